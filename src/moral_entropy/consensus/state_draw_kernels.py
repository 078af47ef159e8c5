"""The fused Numba passes over posterior draws where items may lie between labels.

Probabilities are multiplied, not added as logs: a state's probability of a vote is a sum of two, so its log would have
to be taken for every vote, state and draw.
"""

from __future__ import annotations

import math

import numpy as np

from moral_entropy.compiled import compiled
from moral_entropy.consensus.draw_kernels import interval, mean
from moral_entropy.consensus.state_kernels import RESCALED
from moral_entropy.consensus.vector_math import entropy_of_rare
from moral_entropy.ties import TIE

kernel = compiled()


@kernel
def row_draws(code_v, first, last, vote_cks, weight_zs, ends_ze, share_z, x_zs, top_s):
    """Write the probabilities of a row's states in every draw; `top_s` is a buffer."""
    n_states, n_draws = x_zs.shape
    for z in range(n_states):
        for s in range(n_draws):
            x_zs[z, s] = weight_zs[z, s]
    for v in range(first, last):
        take_vote(vote_cks[code_v[v]], ends_ze, share_z, x_zs)
        if (v - first) % RESCALED == RESCALED - 1:
            rescale(x_zs, top_s)
    add_states(x_zs, top_s)
    _divide(x_zs, top_s)


@kernel
def add_states(x_zs, sum_s):
    """Write the sum over the states, draw by draw."""
    n_states, n_draws = x_zs.shape
    for s in range(n_draws):
        sum_s[s] = 0.0
    for z in range(n_states):
        for s in range(n_draws):
            sum_s[s] += x_zs[z, s]


@kernel
def take_vote(vote_ks, ends_ze, share_z, x_zs):
    """Multiply the likelihood of every state in every draw by that of one vote."""
    n_states, n_draws = x_zs.shape
    for z in range(n_states):
        one_s, other_s, share = vote_ks[ends_ze[z, 0]], vote_ks[ends_ze[z, 1]], share_z[z]
        x_s = x_zs[z]
        if share == 1.0:
            for s in range(n_draws):
                x_s[s] *= one_s[s]
        else:
            for s in range(n_draws):
                x_s[s] *= share * one_s[s] + (1.0 - share) * other_s[s]


@kernel
def rescale(x_zs, top_s):
    """Scale every draw's largest likelihood to 1; `top_s` is then what it was scaled by."""
    n_states, n_draws = x_zs.shape
    for s in range(n_draws):
        top_s[s] = 0.0
    for z in range(n_states):
        for s in range(n_draws):
            top_s[s] = max(top_s[s], x_zs[z, s])
    _divide(x_zs, top_s)


@kernel
def _divide(x_zs, by_s):
    """Divide all states of a draw by the same number; `by_s` is then its inverse."""
    n_states, n_draws = x_zs.shape
    for s in range(n_draws):
        by_s[s] = 1.0 / by_s[s]
    for z in range(n_states):
        for s in range(n_draws):
            x_zs[z, s] *= by_s[s]


@kernel
def read_labels(x_zs, ends_ze, share_z, p_ks):
    """Write the label probabilities of every draw, from those of the states."""
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


@kernel
def mixed_summaries(
    start_r, code_v, clamp_r, domain_r, vote_cks, weight_dzs, ends_ze, share_z, ambiguity_z, positive, tail, cut,
    first, last, mean_rk, low_r, high_r, entropy_r, ambiguity_r, interior_r,
):  # fmt: skip
    """Mean, interval and entropies over the draws, for rows `first` to `last`.

    The interval is that of label `positive`, or of the likeliest if that is negative.
    """
    n_states, n_draws = weight_dzs.shape[1], weight_dzs.shape[2]
    n_labels = mean_rk.shape[1]
    x_zs, p_ks, top_s = np.empty((n_states, n_draws)), np.empty((n_labels, n_draws)), np.empty(n_draws)
    for r in range(first, last):
        if clamp_r[r] >= 0:
            for k in range(n_labels):
                mean_rk[r, k] = 1.0 if k == clamp_r[r] else 0.0
            low_r[r] = high_r[r] = 1.0 if positive < 0 or positive == clamp_r[r] else 0.0
            entropy_r[r] = ambiguity_r[r] = interior_r[r] = 0.0
            continue
        d = domain_r[r] if len(domain_r) > 0 else 0
        row_draws(code_v, start_r[r], start_r[r + 1], vote_cks, weight_dzs[d], ends_ze, share_z, x_zs, top_s)
        read_labels(x_zs, ends_ze, share_z, p_ks)
        ambiguity = 0.0
        interior = 0.0
        for z in range(n_labels, n_states):
            mass = mean(x_zs[z])
            ambiguity += ambiguity_z[z] * mass
            interior += mass
        ambiguity_r[r], interior_r[r] = ambiguity, interior
        best = 0
        for k in range(n_labels):
            mean_rk[r, k] = mean(p_ks[k])
            if mean_rk[r, k] > mean_rk[r, best] + TIE:
                best = k
        entropy_r[r] = _mean_entropy(p_ks, x_zs, top_s)
        low_r[r], high_r[r] = interval(p_ks[best if positive < 0 else positive], tail, cut, top_s)


@kernel
def _mean_entropy(p_ks, x_zs, top_s):
    """Mean over draws of the entropy of the label probabilities; the last two are buffers."""
    n_labels, n_draws = p_ks.shape
    if n_labels == 2:
        # Four draws at once: a third of the time.
        rare_s, entropy_s, odds_s = x_zs[0], x_zs[1], x_zs[2]
        for s in range(n_draws):
            rare_s[s] = min(max(min(p_ks[0, s], p_ks[1, s]), 1e-300), 0.5)
        entropy_of_rare(rare_s, entropy_s, odds_s, top_s)
        return mean(entropy_s)
    entropy = 0.0
    for k in range(n_labels):
        for s in range(n_draws):
            if p_ks[k, s] > 0.0:
                entropy -= p_ks[k, s] * math.log(p_ks[k, s])
    return entropy / n_draws
