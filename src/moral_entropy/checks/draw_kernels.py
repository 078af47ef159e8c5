"""The fused Numba passes that check posterior draws: log likelihood and label probabilities at each of them."""

from __future__ import annotations

import math

import numpy as np

from moral_entropy.compiled import compiled
from moral_entropy.consensus.draw_kernels import add_pushes
from moral_entropy.consensus.state_draw_kernels import add_states, read_labels, rescale, row_draws, take_vote
from moral_entropy.consensus.state_kernels import RESCALED
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
        for s in range(n_draws):
            x_s[s] = base_s[s]
        for v in range(start_r[r], start_r[r + 1]):
            push_s = push_cs[code_v[v]]
            for s in range(n_draws):
                x_s[s] += push_s[s]
        if clamp_r[r] < 0:
            logistic(x_s, p_s, softplus_s, size_s, whole_s, bits_s)
        for s in range(n_draws):
            log_s[s] += weight * (softplus_s[s] if clamp_r[r] < 0 else x_s[s])


@kernel
def general_log_likelihoods(start_r, code_v, weight_r, clamp_r, push_cks, base_ks, first, last, log_s):
    """The same for any number of labels; `k` runs over the labels after the first."""
    n_other, n_draws = base_ks.shape
    x_ks = np.empty((n_other + 1, n_draws))
    for r in range(first, last):
        if weight_r[r] == 0.0 or clamp_r[r] == 0:
            continue
        add_pushes(code_v, start_r[r], start_r[r + 1], push_cks, base_ks, x_ks)
        for s in range(n_draws):
            if clamp_r[r] > 0:
                log_s[s] += weight_r[r] * x_ks[clamp_r[r], s]
                continue
            top = 0.0
            for k in range(n_other + 1):
                top = max(top, x_ks[k, s])
            total = 0.0
            for k in range(n_other + 1):
                total += math.exp(x_ks[k, s] - top)
            log_s[s] += weight_r[r] * (top + math.log(total))


@kernel
def mixed_log_likelihoods(
    start_r, code_v, weight_r, clamp_r, domain_r, vote_cks, weight_dzs, ends_ze, share_z, first, last, log_s
):
    """The same where items may lie between labels; `vote_cks` says relative to what."""
    n_states, n_draws = weight_dzs.shape[1], weight_dzs.shape[2]
    x_zs, top_s, row_s = np.empty((n_states, n_draws)), np.empty(n_draws), np.empty(n_draws)
    for r in range(first, last):
        if weight_r[r] == 0.0:
            continue
        d = domain_r[r] if len(domain_r) > 0 else 0
        for z in range(n_states):
            possible = 1.0 if clamp_r[r] < 0 or z == clamp_r[r] else 0.0
            for s in range(n_draws):
                x_zs[z, s] = possible * weight_dzs[d, z, s]
        for s in range(n_draws):
            row_s[s] = 0.0
        for v in range(start_r[r], start_r[r + 1]):
            take_vote(vote_cks[code_v[v]], ends_ze, share_z, x_zs)
            if (v - start_r[r]) % RESCALED == RESCALED - 1:
                rescale(x_zs, top_s)
                for s in range(n_draws):
                    row_s[s] -= math.log(top_s[s])
        add_states(x_zs, top_s)
        for s in range(n_draws):
            log_s[s] += weight_r[r] * (row_s[s] + math.log(top_s[s]))


@kernel
def mixed_labels(start_r, code_v, domain_r, vote_cks, weight_dzs, ends_ze, share_z, first, last, p_rks):
    """Write the label probabilities of rows `first` to `last` in every draw, where items may lie between labels."""
    n_states, n_draws = weight_dzs.shape[1], weight_dzs.shape[2]
    x_zs, top_s = np.empty((n_states, n_draws)), np.empty(n_draws)
    for r in range(first, last):
        d = domain_r[r] if len(domain_r) > 0 else 0
        row_draws(code_v, start_r[r], start_r[r + 1], vote_cks, weight_dzs[d], ends_ze, share_z, x_zs, top_s)
        read_labels(x_zs, ends_ze, share_z, p_rks[r - first])
