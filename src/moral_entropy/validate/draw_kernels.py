"""The fused Numba passes that check posterior draws: their log likelihoods, and how well chains of them mix."""

from __future__ import annotations

import math

import numpy as np

from moral_entropy.compiled import compiled
from moral_entropy.consensus.vector_math import logistic

kernel = compiled()


@kernel
def binary_log_likelihoods(start_r, code_v, weight_r, clamp_r, push_cs, base_s, first, last, log_s):
    """Add the log likelihood of rows `first` to `last` under every draw, relative to all being label 0."""
    n_draws = len(base_s)
    x_s, p_s, softplus_s = np.empty(n_draws), np.empty(n_draws), np.empty(n_draws)
    size_s, whole_s, bits_s = np.empty(n_draws), np.empty(n_draws), np.empty(n_draws, np.int64)
    for r in range(first, last):
        weight = weight_r[r]
        if weight == 0.0 or clamp_r[r] == 0:
            continue
        x_s[:] = base_s
        for v in range(start_r[r], start_r[r + 1]):
            push_s = push_cs[code_v[v]]
            for s in range(n_draws):
                x_s[s] += push_s[s]
        if clamp_r[r] > 0:
            softplus_s[:] = x_s
        else:
            logistic(x_s, p_s, softplus_s, size_s, whole_s, bits_s)
        for s in range(n_draws):
            log_s[s] += weight * softplus_s[s]


@kernel
def general_log_likelihoods(start_r, code_v, weight_r, clamp_r, push_cks, base_ks, first, last, log_s):
    """The same for any number of labels; `k` runs over the labels after the first."""
    n_other, n_draws = base_ks.shape
    x_ks = np.empty((n_other, n_draws))
    for r in range(first, last):
        if weight_r[r] == 0.0 or clamp_r[r] == 0:
            continue
        x_ks[:] = base_ks
        for v in range(start_r[r], start_r[r + 1]):
            x_ks += push_cks[code_v[v]]
        for s in range(n_draws):
            if clamp_r[r] > 0:
                log_s[s] += weight_r[r] * x_ks[clamp_r[r] - 1, s]
                continue
            top = 0.0
            for k in range(n_other):
                top = max(top, x_ks[k, s])
            total = math.exp(-top)
            for k in range(n_other):
                total += math.exp(x_ks[k, s] - top)
            log_s[s] += weight_r[r] * (top + math.log(total))


@kernel
def mixing(value_qcs, score_h, first, last, ess_q, rhat_q):
    """Bulk effective sample size and rank-normalised R-hat of quantities `first` to `last`.

    `value_qcs` are split chains; `score_h` is the normal score of rank h / 2, since ties share a half rank.
    """
    n_chains, n_draws = value_qcs.shape[1:]
    z_cs = np.empty((n_chains, n_draws))
    for q in range(first, last):
        order_s = np.argsort(value_qcs[q].ravel())
        median = _score(value_qcs[q], order_s, score_h, z_cs)
        if z_cs.min() == z_cs.max():
            ess_q[q] = rhat_q[q] = np.nan
            continue
        ess_q[q], bulk = _ess_and_rhat(z_cs)
        folded_cs = np.abs(value_qcs[q] - median)
        _score(folded_cs, np.argsort(folded_cs.ravel()), score_h, z_cs)
        rhat_q[q] = bulk if z_cs.min() == z_cs.max() else max(bulk, _rhat(z_cs))


@kernel
def _score(value_cs, order_s, score_h, z_cs):
    """Write the normal score of every value's rank among all; give the median."""
    value_s, z_s = value_cs.ravel(), z_cs.reshape(-1)
    n, lo = len(value_s), 0
    while lo < n:
        hi = lo + 1
        while hi < n and value_s[order_s[hi]] == value_s[order_s[lo]]:
            hi += 1
        for s in range(lo, hi):
            # Ranks lo + 1 to hi share their mean, (lo + 1 + hi) / 2.
            z_s[order_s[s]] = score_h[lo + 1 + hi]
        lo = hi
    return 0.5 * (value_s[order_s[(n - 1) // 2]] + value_s[order_s[n // 2]])


@kernel
def _within_and_between(z_cs):
    """Mean variance within chains, and the variance of their means."""
    n_chains, n_draws = z_cs.shape
    mean_c = np.empty(n_chains)
    within = 0.0
    for c in range(n_chains):
        mean_c[c] = z_cs[c].mean()
        within += ((z_cs[c] - mean_c[c]) ** 2).sum() / (n_draws - 1)
    return within / n_chains, ((mean_c - mean_c.mean()) ** 2).sum() / (n_chains - 1)


@kernel
def _rhat(z_cs):
    n_draws = z_cs.shape[1]
    within, between = _within_and_between(z_cs)
    return math.sqrt((n_draws - 1) / n_draws + between / within)


@kernel
def _ess_and_rhat(z_cs):
    """Effective sample size by Geyer's initial monotone sequence (Vehtari et al. 2021, section 3.2), and R-hat."""
    n_chains, n_draws = z_cs.shape
    within, between = _within_and_between(z_cs)
    whole = within * (n_draws - 1) / n_draws + between
    centred_cs = np.empty_like(z_cs)
    for c in range(n_chains):
        centred_cs[c] = z_cs[c] - z_cs[c].mean()
    tau = -1.0
    pair_before = math.inf
    for lag in range(0, n_draws - 2, 2):
        even = 1.0 - (within - _autocovariance(centred_cs, lag)) / whole if lag > 0 else 1.0
        odd = 1.0 - (within - _autocovariance(centred_cs, lag + 1)) / whole
        # The sequence ends where a pair turns negative, or short of the end, where it rests on nothing.
        if lag > 0 and (even + odd < 0.0 or lag >= n_draws - 4):
            tau += max(even, 0.0)
            break
        pair = min(even + odd, pair_before)
        tau += 2.0 * pair
        pair_before = pair
    size = n_chains * n_draws
    # Antithetic chains do better than independent draws, but not by more than their number can show.
    return size / max(tau, 1.0 / math.log10(size)), math.sqrt(whole / within)


@kernel
def _autocovariance(centred_cs, lag):
    n_chains, n_draws = centred_cs.shape
    total = 0.0
    for c in range(n_chains):
        for s in range(n_draws - lag):
            total += centred_cs[c, s] * centred_cs[c, s + lag]
    return total / (n_chains * n_draws)
