"""exp and log as polynomials, so that the compiler can process four numbers at once: an eighth of the time.

Numba functions on arrays, for the passes in `kernels` and `draw_kernels`. Full double precision for what they are
used for: exp(-y) for y >= 0, and log(1 + e) for e from 0 to 1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from moral_entropy.compiled import compiled

# Sums may be reordered in here, and only here: within one block of one thread, so bits do not depend on threads.
vector_kernel = compiled(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")

# Here nothing may be reordered: `whole * LN2 - ROUNDER * LN2` has lost the digits that `(whole - ROUNDER) * LN2` keeps.
elementwise_kernel = compiled(fastmath={"contract", "nsz"}, error_model="numpy")

LOG2_E = 1.4426950408889634
# ln 2 in two parts, the first with zeros at its end, so that n * LN2_HIGH is exact.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# Adding this to a number leaves its nearest integer in the low bits of the float.
ROUNDER = 6755399441055744.0
EXPONENT = np.int64(52)
ONE_BITS = np.int64(1023) << EXPONENT
ROOT_HALF_BITS, ROUNDER_BITS = (np.array([number]).view(np.int64)[0] for number in (0.5**0.5, ROUNDER))
FARTHEST = 700.0


@vector_kernel
def _split(x_s, size_s, whole_s, bits_s):
    """Split |x| into whole and broken powers of two: `bits_s` are the bits of the whole one."""
    for s in range(len(x_s)):
        size = abs(x_s[s])
        size_s[s] = size if size < FARTHEST else FARTHEST
        whole_s[s] = size_s[s] * LOG2_E + ROUNDER
    whole_bits_s = whole_s.view(np.int64)
    for s in range(len(x_s)):
        bits_s[s] = ONE_BITS - (whole_bits_s[s] << EXPONENT)


@vector_kernel
def mean_and_entropy(x_s, size_s, whole_s, bits_s):
    """Mean of p = 1 / (1 + exp(-x)), and of the entropy of (p, 1 - p), in nats; the last three are buffers."""
    _split(x_s, size_s, whole_s, bits_s)
    power_s = bits_s.view(np.float64)
    mean = 0.0
    entropy = 0.0
    for s in range(len(x_s)):
        whole = whole_s[s] - ROUNDER
        e = exp_near_zero((whole * LN2_HIGH - size_s[s]) + whole * LN2_LOW) * power_s[s]
        rare = e / (1.0 + e)
        mean += rare if x_s[s] < 0.0 else 1.0 - rare
        entropy += log1p_of(e / (2.0 + e)) + size_s[s] * rare
    return mean / len(x_s), entropy / len(x_s)


@vector_kernel
def logistic(x_s, p_s, softplus_s, size_s, whole_s, bits_s):
    """Write p = 1 / (1 + exp(-x)) and log(1 + exp(x)); the last three are buffers."""
    _split(x_s, size_s, whole_s, bits_s)
    power_s = bits_s.view(np.float64)
    for s in range(len(x_s)):
        whole = whole_s[s] - ROUNDER
        e = exp_near_zero((whole * LN2_HIGH - size_s[s]) + whole * LN2_LOW) * power_s[s]
        rare = e / (1.0 + e)
        p_s[s] = rare if x_s[s] < 0.0 else 1.0 - rare
        softplus_s[s] = log1p_of(e / (2.0 + e)) + (0.0 if x_s[s] < 0.0 else x_s[s])


@elementwise_kernel
def entropy_of_rare(rare_s, entropy_s, odds_s, whole_s):
    """Write the entropy of (q, 1 - q), in nats, for q from 0 to 1/2; the last two are buffers."""
    bits_s, whole_bits_s = odds_s.view(np.int64), whole_s.view(np.int64)
    for s in range(len(rare_s)):
        odds_s[s] = rare_s[s] / (1.0 - rare_s[s])
        entropy_s[s] = log1p_of(odds_s[s] / (2.0 + odds_s[s]))
    for s in range(len(rare_s)):
        # The odds are a power of two, whose exponent lies in the low bits of `whole_s`, times 0.7 to 1.4.
        whole = (bits_s[s] - ROOT_HALF_BITS) >> EXPONENT
        whole_bits_s[s] = ROUNDER_BITS + whole
        bits_s[s] -= whole << EXPONENT
    for s in range(len(rare_s)):
        whole = whole_s[s] - ROUNDER
        broken = log1p_of((odds_s[s] - 1.0) / (odds_s[s] + 1.0))
        entropy_s[s] -= rare_s[s] * (whole * LN2_HIGH + (whole * LN2_LOW + broken))


@njit(inline="always")
def exp_near_zero(r):
    """Taylor series of exp, to full precision for |r| up to ln(2) / 2."""
    q = 1.0 / 479001600.0
    q = q * r + 1.0 / 39916800.0
    q = q * r + 1.0 / 3628800.0
    q = q * r + 1.0 / 362880.0
    q = q * r + 1.0 / 40320.0
    q = q * r + 1.0 / 5040.0
    q = q * r + 1.0 / 720.0
    q = q * r + 1.0 / 120.0
    q = q * r + 1.0 / 24.0
    q = q * r + 1.0 / 6.0
    q = q * r + 0.5
    q = q * r + 1.0
    return q * r + 1.0


@njit(inline="always")
def log1p_of(u):
    """log(1 + e) = 2 artanh(u) for u = e / (2 + e), by its series; e from -0.5 to 1."""
    w = u * u
    q = 1.0 / 29.0
    q = q * w + 1.0 / 27.0
    q = q * w + 1.0 / 25.0
    q = q * w + 1.0 / 23.0
    q = q * w + 1.0 / 21.0
    q = q * w + 1.0 / 19.0
    q = q * w + 1.0 / 17.0
    q = q * w + 1.0 / 15.0
    q = q * w + 1.0 / 13.0
    q = q * w + 1.0 / 11.0
    q = q * w + 1.0 / 9.0
    q = q * w + 1.0 / 7.0
    q = q * w + 1.0 / 5.0
    q = q * w + 1.0 / 3.0
    return 2.0 * u * (q * w + 1.0)
