"""The Numba passes that learn the exponent: each vote is predicted from the other votes on its item.

Every pass takes a range of rows, so that the caller may spread rows over threads.
"""

from __future__ import annotations

import math

import numpy as np

from moral_entropy.consensus.kernels import kernel

LEAST = 1e-12
"""Least expected votes of a cell: under flat priors the item's own may be all that a confusion row has."""


@kernel
def chances_without_item(start_r, code_v, posterior_rk, votes_ck, total_ak, first, last, chance_vk):
    """Write the probability of every vote by true label; the item's own expected votes are subtracted."""
    n_labels = posterior_rk.shape[1]
    for r in range(first, last):
        for v in range(start_r[r], start_r[r + 1]):
            a = code_v[v] // n_labels
            same, own = _own_votes(start_r[r], start_r[r + 1], code_v, v, n_labels)
            for k in range(n_labels):
                cell = max(votes_ck[code_v[v], k] - same * posterior_rk[r, k], LEAST)
                total = max(total_ak[a, k] - own * posterior_rk[r, k], n_labels * LEAST)
                chance_vk[v, k] = min(cell / total, 1.0)


@kernel
def _own_votes(start, stop, code_v, v, n_labels):
    """Count the votes of the item that are the same as `v`, and those by the same annotator; codes ascend."""
    a = code_v[v] // n_labels
    same, own = 0, 0
    first = v
    while first > start and code_v[first - 1] // n_labels == a:
        first -= 1
    for u in range(first, stop):
        if code_v[u] // n_labels != a:
            break
        own += 1
        same += code_v[u] == code_v[v]
    return same, own


@kernel
def score_rows(start_r, domain_r, chance_vk, log_vk, log_weight_dk, exponent, first, last, score_r, slope_r):
    """Write the log score of each row's votes, each predicted from the others, and its slope in the exponent.

    `k` runs over labels or, where items may lie between them, over states; `domain_r` is empty for one domain.
    """
    n_labels = log_weight_dk.shape[1]
    sum_k, x_k, rest_k = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    for r in range(first, last):
        d = domain_r[r] if len(domain_r) > 0 else 0
        for k in range(n_labels):
            sum_k[k] = 0.0
        for v in range(start_r[r], start_r[r + 1]):
            for k in range(n_labels):
                sum_k[k] += log_vk[v, k]
        score, slope = 0.0, 0.0
        for v in range(start_r[r], start_r[r + 1]):
            top = -np.inf
            for k in range(n_labels):
                rest_k[k] = sum_k[k] - log_vk[v, k]
                x_k[k] = log_weight_dk[d, k] + exponent * rest_k[k]
                top = max(top, x_k[k])
            total, chance, pull, pull_chance = 0.0, 0.0, 0.0, 0.0
            for k in range(n_labels):
                q = math.exp(x_k[k] - top)
                seen = q * chance_vk[v, k]
                total += q
                chance += seen
                pull += q * rest_k[k]
                pull_chance += seen * rest_k[k]
            score += math.log(chance / total)
            slope += pull_chance / chance - pull / total
        score_r[r] = score
        slope_r[r] = slope
