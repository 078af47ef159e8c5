"""Every Numba kernel: one pass of EM, label probabilities over draws, and what votes leave unknown.

One family for both models: the paper's has the labels as its only states. Probabilities are multiplied, which takes no
logarithms: `vote_cz` is relative to the likeliest state's, so that a product of some votes cannot vanish everywhere.
Axes: **r** row, **v** vote, **c** code (annotator × labels + label), **z** state, **k** label, **d**omain, **s** draw.
No slices are assigned and nothing is sorted: Numba would compile its texts of errors along, for seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

NEGLIGIBLE = 1e-14
"""Probability of a state below which it adds nothing to a covariance."""

RESCALED = 8
"""Votes after which products are scaled to a largest one of 1: no factor is below 1e-30, so that one cannot vanish."""

I64, I32, I16, F1 = (f"{kind}[::1]" for kind in ("int64", "int32", "int16", "float64"))
F2, F3 = "float64[:,::1]", "float64[:,:,::1]"
VOTES = f"Tuple(({I64},{I32},{F1},{I16},{I32}))"
"""Types of start_r, code_v, weight_r, clamp_r, domain_r."""


OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
UNWRAPPED: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Of functions that only kernels call: what Python needs to call them takes time to compile."""


def kernel(*types: str) -> Callable[..., Any]:
    """Compile a function for these types of arguments and no others; kept in the cache of Numba."""
    return njit(f"void({','.join(types)})", **OPTIONS)


@njit(**OPTIONS, **UNWRAPPED)
def _row(code_v, begin, end, clamped, vote_cz, weight_z, x_z):
    """Write the probabilities of a row's states; return the log likelihood."""
    n_states = len(x_z)
    log_row = 0.0
    if clamped >= 0:
        # Logs are added: a product would vanish where hundreds of votes contradict what is known.
        log_row = math.log(weight_z[clamped] + 1e-300)
        for v in range(begin, end):
            log_row += math.log(vote_cz[code_v[v], clamped])
        for z in range(n_states):
            x_z[z] = 1.0 if z == clamped else 0.0
        return log_row
    for z in range(n_states):
        x_z[z] = weight_z[z]
    for v in range(begin, end):
        c = code_v[v]
        for z in range(n_states):
            x_z[z] *= vote_cz[c, z]
        if (v - begin) % RESCALED == RESCALED - 1:
            top = 0.0
            for z in range(n_states):
                top = x_z[z] if x_z[z] > top else top
            for z in range(n_states):
                x_z[z] /= top
            log_row += math.log(top)
    total = 1e-300
    for z in range(n_states):
        total += x_z[z]
    for z in range(n_states):
        x_z[z] /= total
    return log_row + math.log(total)


@kernel(VOTES, F2, F2, I64, F3, F3, "int64", "int64")
def em_pass(votes, vote_cz, weight_dz, bound_b, count_bcz, total_bdt, first, last):
    """Add up the expected votes by code and state, and items by domain and state, of blocks `first` to `last`.

    State 0 is left out: it has the rest of the votes. The last column of `total_bdt` is the log likelihood.
    """
    start_r, code_v, weight_r, clamp_r, domain_r = votes
    n_states = weight_dz.shape[1]
    x_z = np.empty(n_states)
    for b in range(first, last):
        count_cz = count_bcz[b]
        for r in range(bound_b[b], bound_b[b + 1]):
            d = domain_r[r] if len(domain_r) > 0 else 0
            log_row = _row(code_v, start_r[r], start_r[r + 1], clamp_r[r], vote_cz, weight_dz[d], x_z)
            total_bdt[b, d, n_states - 1] += weight_r[r] * log_row
            for z in range(1, n_states):
                x_z[z] *= weight_r[r]
                total_bdt[b, d, z - 1] += x_z[z]
            for v in range(start_r[r], start_r[r + 1]):
                c = code_v[v]
                for z in range(1, n_states):
                    count_cz[c, z - 1] += x_z[z]


@njit(inline="always")
def _row_draws(code_v, begin, end, vote_cks, weight_zs, ends_ze, share_z, x_zs, top_s):
    """Write the likelihood of a row's states in every draw, up to a factor; then its sum over states: `top_s`."""
    n_states, n_draws = x_zs.shape
    for z in range(n_states):
        for s in range(n_draws):
            x_zs[z, s] = weight_zs[z, s]
    for v in range(begin, end):
        vote_ks = vote_cks[code_v[v]]
        for z in range(n_states):
            one_s, other_s, share, x_s = vote_ks[ends_ze[z, 0]], vote_ks[ends_ze[z, 1]], share_z[z], x_zs[z]
            if share == 1.0:
                for s in range(n_draws):
                    x_s[s] *= one_s[s]
            else:
                for s in range(n_draws):
                    x_s[s] *= share * one_s[s] + (1.0 - share) * other_s[s]
        if (v - begin) % RESCALED == RESCALED - 1:
            for s in range(n_draws):
                top_s[s] = 0.0
            for z in range(n_states):
                for s in range(n_draws):
                    top_s[s] = x_zs[z, s] if x_zs[z, s] > top_s[s] else top_s[s]
            for z in range(n_states):
                for s in range(n_draws):
                    x_zs[z, s] /= top_s[s]
    for s in range(n_draws):
        top_s[s] = 0.0
    for z in range(n_states):
        for s in range(n_draws):
            top_s[s] += x_zs[z, s]


@njit(inline="always")
def _label_draws(x_zs, ends_ze, share_z, top_s, weight, share_k, p_ks):
    """Write the label probabilities of every draw, pooled with the vote share."""
    n_states, n_draws = x_zs.shape
    for k in range(len(p_ks)):
        for s in range(n_draws):
            p_ks[k, s] = 0.0
    for z in range(n_states):
        one_s, other_s, share = p_ks[ends_ze[z, 0]], p_ks[ends_ze[z, 1]], share_z[z]
        for s in range(n_draws):
            one_s[s] += share * x_zs[z, s]
        if share < 1.0:
            for s in range(n_draws):
                other_s[s] += (1.0 - share) * x_zs[z, s]
    for k in range(len(p_ks)):
        for s in range(n_draws):
            p_ks[k, s] = (1.0 - weight) * p_ks[k, s] / top_s[s] + weight * share_k[k]


@kernel(VOTES, F3, F3, "int64[:,::1]", F1, F1, F2, I64, "int64", "int64", F2, F1, F2)
def draw_summaries(
    votes, vote_cks, weight_dzs, ends_ze, share_z, pool_r, share_rk, about_r, first, last, mean_rk, entropy_r, p_rs
):
    """Write mean and mean entropy over the draws of the label probabilities of rows `first` to `last`.

    The probabilities of label `about_r` are written to `p_rs`, beginning at its first row. In every draw the vote share
    `share_rk` has the weight `pool_r`.
    """
    start_r, code_v, _, clamp_r, domain_r = votes
    n_states, n_draws = weight_dzs.shape[1], weight_dzs.shape[2]
    n_labels = mean_rk.shape[1]
    x_zs, p_ks, top_s = np.empty((n_states, n_draws)), np.empty((n_labels, n_draws)), np.empty(n_draws)
    for r in range(first, last):
        d = domain_r[r] if len(domain_r) > 0 else 0
        if clamp_r[r] >= 0:
            for k in range(n_labels):
                for s in range(n_draws):
                    p_ks[k, s] = 1.0 if k == clamp_r[r] else 0.0
        else:
            _row_draws(code_v, start_r[r], start_r[r + 1], vote_cks, weight_dzs[d], ends_ze, share_z, x_zs, top_s)
            _label_draws(x_zs, ends_ze, share_z, top_s, pool_r[r], share_rk[r], p_ks)
        entropy = 0.0
        for k in range(n_labels):
            total = 0.0
            for s in range(n_draws):
                p = p_ks[k, s]
                total += p
                if p > 0.0:
                    entropy -= p * math.log(p)
            mean_rk[r, k] = total / n_draws
        entropy_r[r] = entropy / n_draws
        for s in range(n_draws):
            p_rs[r - first, s] = p_ks[about_r[r], s]


@kernel(VOTES, F2, F2, F3, I64, "int64", "int64", "int64", F2)
def take_missing(votes, vote_cz, weight_dz, score_czt, group_z, n_labels, first, last, curvature_pp):
    """Subtract the covariance over states of the score, of rows `first` to `last`, from the lower triangle.

    Coordinates: for every domain the log ratios of its weights, then those of annotator 0's rows, annotator 1's, …;
    `score_czt` is the expected score of a vote of code `c` on an item in state `z`, by coordinate of its annotator.
    """
    start_r, code_v, weight_r, clamp_r, domain_r = votes
    n_states, n_own = score_czt.shape[1], score_czt.shape[2]
    n_free = group_z[n_states - 1]
    n_weights = weight_dz.shape[0] * n_free
    longest = 0
    for r in range(first, last):
        longest = max(longest, start_r[r + 1] - start_r[r])
    at_t = np.empty(n_free + longest * n_own, np.int64)
    score_tz = np.empty((n_free + longest * n_own, n_states))
    x_z = np.empty(n_states)
    active_z = np.empty(n_states, np.int64)
    for r in range(first, last):
        if clamp_r[r] >= 0 or weight_r[r] == 0.0:
            continue
        d = domain_r[r] if len(domain_r) > 0 else 0
        _row(code_v, start_r[r], start_r[r + 1], clamp_r[r], vote_cz, weight_dz[d], x_z)
        n_active = 0
        for z in range(n_states):
            if x_z[z] > NEGLIGIBLE:
                active_z[n_active] = z
                n_active += 1
        n = n_free
        for g in range(n_free):
            at_t[g] = d * n_free + g
            for m in range(n_active):
                score_tz[g, m] = 1.0 if group_z[active_z[m]] == g + 1 else 0.0
        for v in range(start_r[r], start_r[r + 1]):
            c = code_v[v]
            # Several votes of one annotator on the item stand side by side, and have the same coordinates.
            again = v > start_r[r] and code_v[v - 1] // n_labels == c // n_labels
            n -= n_own if again else 0
            for t in range(n_own):
                at_t[n] = n_weights + (c // n_labels) * n_own + t
                for m in range(n_active):
                    before = score_tz[n, m] if again else 0.0
                    score_tz[n, m] = before + score_czt[c, active_z[m], t]
                n += 1
        for t in range(n):
            mean = 0.0
            for m in range(n_active):
                mean += x_z[active_z[m]] * score_tz[t, m]
            for m in range(n_active):
                score_tz[t, m] = math.sqrt(weight_r[r] * x_z[active_z[m]]) * (score_tz[t, m] - mean)
        for t in range(n):
            for u in range(t + 1):
                cell = 0.0
                for m in range(n_active):
                    cell += score_tz[t, m] * score_tz[u, m]
                curvature_pp[at_t[t], at_t[u]] -= cell


@njit(**OPTIONS)
def take_own_missing(votes, vote_cz, weight_dz, score_czt, n_labels, first, last, own_app):
    """Subtract the same from each annotator's own block only."""
    start_r, code_v, weight_r, clamp_r, domain_r = votes
    n_states, n_own = score_czt.shape[1], score_czt.shape[2]
    mean_t, score_zt, x_z = np.empty(n_own), np.empty((n_states, n_own)), np.empty(n_states)
    for r in range(first, last):
        if clamp_r[r] >= 0 or weight_r[r] == 0.0:
            continue
        d = domain_r[r] if len(domain_r) > 0 else 0
        _row(code_v, start_r[r], start_r[r + 1], clamp_r[r], vote_cz, weight_dz[d], x_z)
        for v in range(start_r[r], start_r[r + 1]):
            a = code_v[v] // n_labels
            again = v > start_r[r] and code_v[v - 1] // n_labels == a
            for z in range(n_states):
                for t in range(n_own):
                    score_zt[z, t] = (score_zt[z, t] if again else 0.0) + score_czt[code_v[v], z, t]
            if v + 1 < start_r[r + 1] and code_v[v + 1] // n_labels == a:
                continue
            own_pp = own_app[a]
            for t in range(n_own):
                mean_t[t] = 0.0
            for z in range(n_states):
                for t in range(n_own):
                    mean_t[t] += x_z[z] * score_zt[z, t]
            for z in range(n_states):
                p = weight_r[r] * x_z[z]
                if p < NEGLIGIBLE:
                    continue
                for t in range(n_own):
                    part = p * (score_zt[z, t] - mean_t[t])
                    for u in range(n_own):
                        own_pp[t, u] -= part * (score_zt[z, u] - mean_t[u])
