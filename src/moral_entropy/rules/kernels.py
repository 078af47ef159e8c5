"""The pass over items and draws in compiled code: label probabilities in every draw, added up by cell.

Units are identical items. Threads take different draws, so nothing is ever added up in two orders.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from moral_entropy.ties import TIE

RESCALED = 8
"""Votes after which products are scaled to a largest one of 1: no factor is below 1e-30, so that they cannot vanish."""

LN2 = 0.6931471805599453
EXPONENT = np.int64(52)
ROOT_HALF_BITS = np.array([0.5**0.5]).view(np.int64)[0]
"""Where the exponent begins in the bits of a float, and the bits of √½."""

helper = njit(nogil=True, error_model="numpy", fastmath={"contract", "nsz"})

# Votes by row; row, cells and weight by unit; targets; draws; states; sums.
_SIGNATURE = (
    "void(i8[::1], i4[::1], i2[::1], i4[::1], i8[::1], i8[:,::1], f8[::1], i8[::1], "
    "f8[:,:,::1], f8[:,:,::1], i8[:,::1], f8[::1], f8[:,:,::1])"
)


@helper
def _normalise(x_zs, scale_s):
    """Divide every column by its sum, in place; `scale_s` is a buffer."""
    for s in range(len(scale_s)):
        scale_s[s] = 0.0
    for z in range(len(x_zs)):
        for s in range(len(scale_s)):
            scale_s[s] += x_zs[z, s]
    for s in range(len(scale_s)):
        scale_s[s] = 1.0 / scale_s[s]
    for z in range(len(x_zs)):
        for s in range(len(scale_s)):
            x_zs[z, s] *= scale_s[s]


@helper
def _add_logs(weight_s, x_s, sum_s, whole_s):
    """Add weights times logs of `x_s`, which is positive and used up; `whole_s` is a buffer.

    A number is a power of two times 0.7 to 1.4, whose log is a series: so the compiler takes four numbers at once.
    """
    bits_s = x_s.view(np.int64)
    for s in range(len(x_s)):
        whole = (bits_s[s] - ROOT_HALF_BITS) >> EXPONENT
        bits_s[s] -= whole << EXPONENT
        whole_s[s] = np.int32(whole)
    for s in range(len(x_s)):
        u = (x_s[s] - 1.0) / (x_s[s] + 1.0)
        w = u * u
        series = ((((1.0 / 19.0 * w + 1.0 / 17.0) * w + 1.0 / 15.0) * w + 1.0 / 13.0) * w + 1.0 / 11.0) * w + 1.0 / 9.0
        series = (((series * w + 1.0 / 7.0) * w + 1.0 / 5.0) * w + 1.0 / 3.0) * w + 1.0
        sum_s[s] += weight_s[s] * (whole_s[s] * LN2 + 2.0 * u * series)


@helper
def _values(p_ks, k, left_s, value_ts, buffer_ts):
    """Write what is added up of label `k` against the rest, in the order of `cells.SUMS`."""
    p_s, n_labels = p_ks[k], len(p_ks)
    margin = 2 * TIE if n_labels == 2 else TIE
    top_s, x_s, whole_s = buffer_ts[0], buffer_ts[1], buffer_ts[2]
    for s in range(len(p_s)):
        top_s[s] = p_s[s]
    for other in range(n_labels):
        for s in range(len(p_s)):
            top_s[s] = max(top_s[s], p_ks[other, s])
    for s in range(len(p_s)):
        yes = left_s[s] if p_s[s] >= top_s[s] - margin else 0.0
        left_s[s] -= yes
        value_ts[1, s] = yes
    for s in range(len(p_s)):
        value_ts[0, s] = 1.0
        value_ts[2, s] = p_s[s]
        value_ts[3, s] = p_s[s] * p_s[s]
        value_ts[4, s] = 0.0
        value_ts[5, s] = min(p_s[s], 1.0 - p_s[s])
        x_s[s] = max(p_s[s], 1e-300)
        top_s[s] = -p_s[s]
    _add_logs(top_s, x_s, value_ts[4], whole_s)
    for s in range(len(p_s)):
        x_s[s] = max(1.0 - p_s[s], 1e-300)
        top_s[s] = p_s[s] - 1.0
    _add_logs(top_s, x_s, value_ts[4], whole_s)


@helper
def label_draws(start_r, code_v, r, vote_cks, weight_zs, ends_ze, share_z, x_zs, p_ks, scale_s):
    """Write the label probabilities of one row in every draw; `x_zs` and `scale_s` are buffers."""
    n_states, n_draws = x_zs.shape
    for z in range(n_states):
        for s in range(n_draws):
            x_zs[z, s] = weight_zs[z, s]
    for v in range(start_r[r], start_r[r + 1]):
        vote_ks = vote_cks[code_v[v]]
        for z in range(n_states):
            first_s, second_s, share, x_s = vote_ks[ends_ze[z, 0]], vote_ks[ends_ze[z, 1]], share_z[z], x_zs[z]
            if share == 1.0:
                for s in range(n_draws):
                    x_s[s] *= first_s[s]
            else:
                for s in range(n_draws):
                    x_s[s] *= share * first_s[s] + (1.0 - share) * second_s[s]
        if (v - start_r[r]) % RESCALED == RESCALED - 1:
            _normalise(x_zs, scale_s)
    for k in range(len(p_ks)):
        for s in range(n_draws):
            p_ks[k, s] = 0.0
    for z in range(n_states):
        first_s, second_s, share = p_ks[ends_ze[z, 0]], p_ks[ends_ze[z, 1]], share_z[z]
        for s in range(n_draws):
            first_s[s] += share * x_zs[z, s]
        if share < 1.0:
            for s in range(n_draws):
                second_s[s] += (1.0 - share) * x_zs[z, s]
    _normalise(p_ks, scale_s)


@njit(_SIGNATURE, cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
def add_draws(
    start_r, code_v, clamp_r, domain_r, row_u, cell_ut, weight_u, target_t,
    vote_cks, weight_dzs, ends_ze, share_z, sum_cts,
):  # fmt: skip
    """Add units to their cells, in the order of `cells.SUMS`. Of more than two labels every one is a target."""
    n_labels, n_draws = vote_cks.shape[1], vote_cks.shape[2]
    x_zs, p_ks = np.empty(weight_dzs.shape[1:]), np.empty((n_labels, n_draws))
    value_ts, buffer_ts, left_s = np.empty((6, n_draws)), np.empty((3, n_draws)), np.empty(n_draws)
    for u in range(len(row_u)):
        r = row_u[u]
        if clamp_r[r] >= 0:
            for k in range(n_labels):
                for s in range(n_draws):
                    p_ks[k, s] = 1.0 if k == clamp_r[r] else 0.0
        else:
            weight_zs = weight_dzs[domain_r[r] if len(domain_r) > 0 else 0]
            label_draws(start_r, code_v, r, vote_cks, weight_zs, ends_ze, share_z, x_zs, p_ks, buffer_ts[0])
        for s in range(n_draws):
            left_s[s] = 1.0
        for n in range(len(target_t)):
            _values(p_ks, target_t[n], left_s, value_ts, buffer_ts)
            sum_ts, weight = sum_cts[cell_ut[u, n]], weight_u[u]
            for t in range(6):
                for s in range(n_draws):
                    sum_ts[t, s] += weight * value_ts[t, s]
