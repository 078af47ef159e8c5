"""The fused Numba passes over posterior draws: every item's mean, interval and expected entropy.

No array of draws × items is ever made: the draws of one row are held in a buffer while they are summarised.
"""

from __future__ import annotations

import math

import numpy as np

from moral_entropy.compiled import compiled
from moral_entropy.consensus.vector_math import mean_and_entropy, vector_kernel
from moral_entropy.ties import TIE

kernel = compiled()


@kernel
def binary_summaries(
    start_r, code_v, clamp_r, push_cs, base_s, tail, cut, first, last, mean_r, low_r, high_r, entropy_r
):
    """Mean, interval and expected entropy of label 1's probability over draws, for rows `first` to `last`."""
    n_draws = len(base_s)
    x_s, size_s, whole_s = np.empty(n_draws), np.empty(n_draws), np.empty(n_draws)
    bits_s = np.empty(n_draws, np.int64)
    for r in range(first, last):
        if clamp_r[r] >= 0:
            mean_r[r] = low_r[r] = high_r[r] = float(clamp_r[r])
            entropy_r[r] = 0.0
            continue
        for s in range(n_draws):
            x_s[s] = base_s[s]
        for v in range(start_r[r], start_r[r + 1]):
            push_s = push_cs[code_v[v]]
            for s in range(n_draws):
                x_s[s] += push_s[s]
        mean_r[r], entropy_r[r] = mean_and_entropy(x_s, size_s, whole_s, bits_s)
        low, high = interval(x_s, tail, cut, size_s)
        low_r[r] = 1.0 / (1.0 + math.exp(-low))
        high_r[r] = 1.0 / (1.0 + math.exp(-high))


@kernel
def general_summaries(
    start_r, code_v, clamp_r, push_cks, base_ks, tail, cut, first, last, mean_rk, low_r, high_r, entropy_r
):
    """The same for any number of labels; the interval is that of the label with the highest mean."""
    n_other, n_draws = base_ks.shape
    p_ks, some_s = np.empty((n_other + 1, n_draws)), np.empty(n_draws)
    for r in range(first, last):
        if clamp_r[r] >= 0:
            for k in range(n_other + 1):
                mean_rk[r, k] = 1.0 if k == clamp_r[r] else 0.0
            low_r[r] = high_r[r] = 1.0
            entropy_r[r] = 0.0
            continue
        add_pushes(code_v, start_r[r], start_r[r + 1], push_cks, base_ks, p_ks)
        entropy_r[r] = _probabilities(p_ks) / n_draws
        best = 0
        for k in range(n_other + 1):
            mean_rk[r, k] = mean(p_ks[k])
            if mean_rk[r, k] > mean_rk[r, best] + TIE:
                best = k
        low_r[r], high_r[r] = interval(p_ks[best], tail, cut, some_s)


@kernel
def add_pushes(code_v, first, last, push_cks, base_ks, x_ks):
    """Write a row's log ratios to label 0, whose own are 0, in every draw."""
    n_other, n_draws = base_ks.shape
    for s in range(n_draws):
        x_ks[0, s] = 0.0
    for k in range(n_other):
        x_s, base_s = x_ks[k + 1], base_ks[k]
        for s in range(n_draws):
            x_s[s] = base_s[s]
        for v in range(first, last):
            push_s = push_cks[code_v[v], k]
            for s in range(n_draws):
                x_s[s] += push_s[s]


@kernel
def mean(x_s):
    """Return the mean, added up from the first to the last."""
    total = 0.0
    for s in range(len(x_s)):
        total += x_s[s]
    return total / len(x_s)


@kernel
def _probabilities(p_ks):
    """Turn log ratios into probabilities in place, draw by draw; return the sum of their entropies."""
    n_labels, n_draws = p_ks.shape
    entropy = 0.0
    for s in range(n_draws):
        top = p_ks[0, s]
        for k in range(1, n_labels):
            top = max(top, p_ks[k, s])
        total = 0.0
        weighted = 0.0
        for k in range(n_labels):
            gap = p_ks[k, s] - top
            e = math.exp(gap)
            total += e
            weighted += e * gap
            p_ks[k, s] = e
        entropy += math.log(total) - weighted / total
        for k in range(n_labels):
            p_ks[k, s] /= total
    return entropy


@vector_kernel
def _centre_and_spread(x_s):
    """Mean and standard deviation."""
    total = 0.0
    for s in range(len(x_s)):
        total += x_s[s]
    centre = total / len(x_s)
    square = 0.0
    for s in range(len(x_s)):
        square += (x_s[s] - centre) ** 2
    return centre, math.sqrt(square / len(x_s))


@kernel
def interval(x_s, tail, cut, some_s):
    """Quantiles `tail` and 1 - `tail` with linear interpolation.

    Only values more than `cut` standard deviations from the mean are ranked, if there are enough of them: the same
    result as ranking all, in a fraction of the time. Reorders `x_s`; `some_s` is a buffer.
    """
    n_draws = len(x_s)
    centre, spread = _centre_and_spread(x_s)
    at = tail * (n_draws - 1)
    nth = int(at)
    low, high = 0.0, 0.0
    # The high one is the low one of the negated values. A loop, so that all this is compiled once.
    for _ in range(2):
        low, high = -high, -_low_quantile(x_s, nth, at - nth, centre - cut * spread, some_s)
        centre = -centre
        for s in range(n_draws):
            x_s[s] = -x_s[s]
    return low, high


@kernel
def _low_quantile(x_s, nth, share, below, some_s):
    n_low = 0
    for s in range(len(x_s)):
        some_s[n_low] = x_s[s]
        n_low += x_s[s] < below
    if n_low <= nth + 1:
        n_low = len(x_s)
        for s in range(n_low):
            some_s[s] = x_s[s]
    return _order_pair(some_s, n_low - 1, nth, share)


@kernel
def _order_pair(x_s, end, nth, share):
    """Interpolate between the nth smallest and the next of the values up to `end`, by quickselect."""
    lo, hi = 0, end
    while lo < hi:
        pivot = x_s[(lo + hi) // 2]
        i, j = lo, hi
        while i <= j:
            while x_s[i] < pivot:
                i += 1
            while x_s[j] > pivot:
                j -= 1
            if i <= j:
                x_s[i], x_s[j] = x_s[j], x_s[i]
                i += 1
                j -= 1
        if nth <= j:
            hi = j
        elif nth >= i:
            lo = i
        else:
            break
    value = x_s[nth]
    if share == 0.0 or nth == end:
        return value
    following = x_s[nth + 1]
    for s in range(nth + 2, end + 1):
        following = min(following, x_s[s])
    return value + share * (following - value)
