"""The fused passes over items and draws, and nothing else.

Each pass takes units of identical items, works out their posterior in a few draws at a time, and adds what audits
need to the unit's cell. Threads take different draws, so nothing is ever added up in two orders.

Sums, in the order of `STATS` in `cells.py`: consensus says yes, p, p squared, entropy of p, min(p, 1 - p), and last
the weight itself.
"""

from __future__ import annotations

import math

import numpy as np

from moral_entropy.compiled import compiled
from moral_entropy.consensus.draw_kernels import add_pushes
from moral_entropy.consensus.state_draw_kernels import read_labels, row_draws
from moral_entropy.consensus.vector_math import (
    EXPONENT,
    FARTHEST,
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    ONE_BITS,
    ROUNDER,
    elementwise_kernel,
    entropy_of_rare,
    exp_near_zero,
    log1p_of,
)
from moral_entropy.ties import TIE

kernel = compiled()

CERTAIN = 1e6
"""Log odds of a known label: so large that its probability is exactly 1."""


@kernel
def binary_cells(start_r, code_v, clamp_r, row_u, cell_u, weight_us, push_cs, base_s, sign, sum_tcs):
    """Add units of two labels to their cells; fastest when `cell_u` ascends.

    `sign` is 1 if the positive label is label 1, else -1. `weight_us` has a column per draw, or a single one.
    """
    n_draws = len(base_s)
    x_s, size_s, whole_s = np.empty(n_draws), np.empty(n_draws), np.empty(n_draws)
    bits_s = np.empty(n_draws, np.int64)
    power_s = bits_s.view(np.float64)
    value_ts = np.empty((5, n_draws))
    part_ts = np.zeros((6, n_draws))
    for u in range(len(row_u)):
        r = row_u[u]
        if u > 0 and cell_u[u] != cell_u[u - 1]:
            _flush(part_ts, sum_tcs, cell_u[u - 1])
        if clamp_r[r] >= 0:
            for s in range(n_draws):
                x_s[s] = CERTAIN * sign * (2.0 * clamp_r[r] - 1.0)
        else:
            for s in range(n_draws):
                x_s[s] = base_s[s]
            for v in range(start_r[r], start_r[r + 1]):
                push_s = push_cs[code_v[v]]
                for s in range(n_draws):
                    x_s[s] += push_s[s]
            for s in range(n_draws):
                x_s[s] *= sign
        _values(x_s, size_s, whole_s, bits_s, power_s, value_ts)
        _add(weight_us[u], value_ts, part_ts)
    if len(row_u):
        _flush(part_ts, sum_tcs, cell_u[len(row_u) - 1])


@elementwise_kernel
def _values(x_s, size_s, whole_s, bits_s, power_s, value_ts):
    """Compute from log odds: yes or no, p, p squared, entropy, and min(p, 1 - p).

    The four in the middle are buffers, `power_s` is `bits_s` seen as floats. exp(-|x|) is a power of two times a
    polynomial, which the compiler can work out for four draws at a time.
    """
    n_draws = len(x_s)
    for s in range(n_draws):
        size = abs(x_s[s])
        size_s[s] = size if size < FARTHEST else FARTHEST
        whole_s[s] = size_s[s] * LOG2_E + ROUNDER
    whole_bits_s = whole_s.view(np.int64)
    for s in range(n_draws):
        bits_s[s] = ONE_BITS - (whole_bits_s[s] << EXPONENT)
    p_s, entropy_s, doubt_s = value_ts[1], value_ts[3], value_ts[4]
    for s in range(n_draws):
        whole = whole_s[s] - ROUNDER
        e = exp_near_zero((whole * LN2_HIGH - size_s[s]) + whole * LN2_LOW) * power_s[s]
        doubt_s[s] = e / (1.0 + e)
        entropy_s[s] = log1p_of(e / (2.0 + e)) + size_s[s] * (e / (1.0 + e))
    for s in range(n_draws):
        yes = 1.0 if x_s[s] >= -TIE else 0.0
        p_s[s] = yes + (1.0 - 2.0 * yes) * doubt_s[s]
        value_ts[0, s] = yes
        value_ts[2, s] = p_s[s] * p_s[s]


@elementwise_kernel
def _values_of_p(value_ts, odds_s, whole_s):
    """Compute the other values from p; the last two are buffers."""
    p_s, doubt_s = value_ts[1], value_ts[4]
    for s in range(len(p_s)):
        yes = 1.0 if p_s[s] >= 0.5 - TIE else 0.0
        rest = 1.0 - p_s[s]
        value_ts[0, s] = yes
        value_ts[2, s] = p_s[s] * p_s[s]
        doubt_s[s] = p_s[s] if p_s[s] < rest else rest
    entropy_of_rare(doubt_s, value_ts[3], odds_s, whole_s)


@kernel
def _add(weight_s, value_ts, part_ts):
    """Add weighted values, the weight last."""
    n_draws = value_ts.shape[1]
    if len(weight_s) == 1:
        weight = weight_s[0]
        for t in range(5):
            for s in range(n_draws):
                part_ts[t, s] += weight * value_ts[t, s]
        for s in range(n_draws):
            part_ts[5, s] += weight
    else:
        for t in range(5):
            for s in range(n_draws):
                part_ts[t, s] += weight_s[s] * value_ts[t, s]
        for s in range(n_draws):
            part_ts[5, s] += weight_s[s]


@kernel
def _flush(part_ts, sum_tcs, cell):
    for t in range(6):
        for s in range(part_ts.shape[1]):
            sum_tcs[t, cell, s] += part_ts[t, s]
            part_ts[t, s] = 0.0


@kernel
def general_cells(start_r, code_v, clamp_r, row_u, cell_uk, weight_us, push_cks, base_ks, sum_tcs):
    """Add units of any number of labels, each label in turn against the rest: unit `u` to cell `cell_uk[u, k]`."""
    n_other, n_draws = base_ks.shape
    p_ks = np.empty((n_other + 1, n_draws))
    value_ts = np.empty((5, n_draws))
    part_ts = np.zeros((6, n_draws))
    best_s = np.empty(n_draws, np.int64)
    for u in range(len(row_u)):
        r = row_u[u]
        if clamp_r[r] >= 0:
            _fill(p_ks, clamp_r[r], 0.0, -CERTAIN)
        else:
            add_pushes(code_v, start_r[r], start_r[r + 1], push_cks, base_ks, p_ks)
        _probabilities(p_ks, best_s)
        for k in range(n_other + 1):
            _label_values(p_ks, k, best_s, value_ts)
            _add(weight_us[u], value_ts, part_ts)
            _flush(part_ts, sum_tcs, cell_uk[u, k])


@kernel
def mixed_cells(
    start_r, code_v, clamp_r, domain_r, row_u, cell_ut, weight_us, target,
    vote_cks, weight_dzs, ends_ze, share_z, sum_tcs,
):  # fmt: skip
    """Add units of items that may lie between labels; `target` is the positive one of two labels."""
    n_labels, n_draws = vote_cks.shape[1], vote_cks.shape[2]
    x_zs, p_ks = np.empty((len(share_z), n_draws)), np.empty((n_labels, n_draws))
    one_s, other_s, best_s = np.empty(n_draws), np.empty(n_draws), np.empty(n_draws, np.int64)
    value_ts, part_ts = np.empty((5, n_draws)), np.zeros((6, n_draws))
    for u in range(len(row_u)):
        r = row_u[u]
        if clamp_r[r] >= 0:
            _fill(p_ks, clamp_r[r], 1.0, 0.0)
        else:
            weight_zs = weight_dzs[domain_r[r] if len(domain_r) > 0 else 0]
            row_draws(code_v, start_r[r], start_r[r + 1], vote_cks, weight_zs, ends_ze, share_z, x_zs, one_s)
            read_labels(x_zs, ends_ze, share_z, p_ks)
        if n_labels == 2:
            for s in range(n_draws):
                value_ts[1, s] = p_ks[target, s]
            _values_of_p(value_ts, one_s, other_s)
            _add(weight_us[u], value_ts, part_ts)
            if u + 1 == len(row_u) or cell_ut[u + 1, 0] != cell_ut[u, 0]:
                _flush(part_ts, sum_tcs, cell_ut[u, 0])
            continue
        _likeliest(p_ks, best_s)
        for k in range(n_labels):
            _label_values(p_ks, k, best_s, value_ts)
            _add(weight_us[u], value_ts, part_ts)
            _flush(part_ts, sum_tcs, cell_ut[u, k])


@kernel
def _fill(x_ks, known, value, other):
    """Write one value for the known label, another for all others, in every draw."""
    for k in range(x_ks.shape[0]):
        for s in range(x_ks.shape[1]):
            x_ks[k, s] = value if k == known else other


@kernel
def _likeliest(p_ks, best_s):
    """Write the likeliest label, draw by draw."""
    n_labels, n_draws = p_ks.shape
    for s in range(n_draws):
        best_s[s] = 0
        for k in range(1, n_labels):
            if p_ks[k, s] > p_ks[best_s[s], s] + TIE:
                best_s[s] = k


@kernel
def _probabilities(p_ks, best_s):
    """Turn log ratios into probabilities in place, draw by draw; write the likeliest label."""
    n_labels, n_draws = p_ks.shape
    _likeliest(p_ks, best_s)
    for s in range(n_draws):
        top = p_ks[best_s[s], s]
        total = 0.0
        for k in range(n_labels):
            p_ks[k, s] = math.exp(p_ks[k, s] - top)
            total += p_ks[k, s]
        for k in range(n_labels):
            p_ks[k, s] /= total


@kernel
def _label_values(p_ks, k, best_s, value_ts):
    """Take one label against the rest; the rest is summed, not subtracted from 1, where it is improbable."""
    n_labels, n_draws = p_ks.shape
    for s in range(n_draws):
        p = p_ks[k, s]
        rest = 0.0
        for other in range(n_labels):
            if other != k:
                rest += p_ks[other, s]
        entropy = 0.0
        if p > 0.0 and rest > 0.0:
            entropy = -p * (math.log(p) if p < 0.5 else math.log1p(-rest))
            entropy -= rest * (math.log(rest) if rest < 0.5 else math.log1p(-p))
        value_ts[0, s] = 1.0 if best_s[s] == k else 0.0
        value_ts[1, s] = p
        value_ts[2, s] = p * p
        value_ts[3, s] = entropy
        value_ts[4, s] = min(p, rest)


@kernel
def add_products(factor_xc, sum_cs, sum_xs):
    """Add each cell's columns, times its factor, to every row of `sum_xs`; most factors are 0 or 1."""
    for c in range(factor_xc.shape[1]):
        for x in range(factor_xc.shape[0]):
            factor = factor_xc[x, c]
            if factor != 0.0:
                for s in range(sum_cs.shape[1]):
                    sum_xs[x, s] += factor * sum_cs[c, s]
