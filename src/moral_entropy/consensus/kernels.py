"""The fused Numba passes over the votes, and nothing else.

Every pass walks rows of votes in blocks and writes each block's sums to its own place, so that the caller may
spread blocks over threads and still add them up in one order: any number of threads gives the same bits.

Everything is relative to label 0: `push` holds log confusion ratios log(theta_akv / theta_a0v) by vote code,
`base` log prevalence ratios. Sums of logs, since a few hundred votes on one item underflow a product.
"""

from __future__ import annotations

import math

import numpy as np

from moral_entropy.compiled import compiled
from moral_entropy.consensus.vector_math import logistic

kernel = compiled()

STRIP = 512
"""Rows whose logistics are taken at once: their buffers stay in the nearest cache."""


@kernel
def binary_pass(start_r, code_v, weight_r, clamp_r, push_c, base, bound_b, first, last, count_bc, total_bt):
    """E-step and M-step of two labels in one go, for blocks `first` to `last`.

    Adds up, per block, the expected votes of label 1 by code, its expected items, and the log likelihood. Rows go
    through in strips: gather their votes' push, take all logistics at once, scatter the probabilities.
    """
    x_s, p_s, softplus_s = np.empty(STRIP), np.empty(STRIP), np.empty(STRIP)
    size_s, whole_s, bits_s = np.empty(STRIP), np.empty(STRIP), np.empty(STRIP, np.int64)
    for b in range(first, last):
        count_c = count_bc[b]
        items = 0.0
        log_likelihood = 0.0
        for lo in range(bound_b[b], bound_b[b + 1], STRIP):
            n = min(STRIP, bound_b[b + 1] - lo)
            for s in range(n):
                x = base
                for v in range(start_r[lo + s], start_r[lo + s + 1]):
                    x += push_c[code_v[v]]
                x_s[s] = x
            logistic(x_s[:n], p_s[:n], softplus_s[:n], size_s[:n], whole_s[:n], bits_s[:n])
            for s in range(n):
                r = lo + s
                p = p_s[s]
                row = softplus_s[s]
                if clamp_r[r] >= 0:
                    p = float(clamp_r[r])
                    row = x_s[s] * p
                weight = weight_r[r]
                p *= weight
                items += p
                log_likelihood += weight * row
                for v in range(start_r[r], start_r[r + 1]):
                    count_c[code_v[v]] += p
        total_bt[b, 0] = items
        total_bt[b, 1] = log_likelihood


@kernel
def general_pass(start_r, code_v, weight_r, clamp_r, push_ck, base_k, bound_b, first, last, count_bck, total_bt):
    """The same for any number of labels; `k` runs over the labels after the first."""
    n_other = len(base_k)
    x_k = np.empty(n_other)
    for b in range(first, last):
        for r in range(bound_b[b], bound_b[b + 1]):
            for k in range(n_other):
                x_k[k] = base_k[k]
            for v in range(start_r[r], start_r[r + 1]):
                for k in range(n_other):
                    x_k[k] += push_ck[code_v[v], k]
            row = _softmax(x_k, clamp_r[r])
            weight = weight_r[r]
            total_bt[b, n_other] += weight * row
            for k in range(n_other):
                x_k[k] *= weight
                total_bt[b, k] += x_k[k]
            for v in range(start_r[r], start_r[r + 1]):
                for k in range(n_other):
                    count_bck[b, code_v[v], k] += x_k[k]


@kernel
def _softmax(x_k, clamp):
    """Turn log ratios to label 0 into probabilities in place; return the log of their sum, label 0 included."""
    if clamp >= 0:
        row = x_k[clamp - 1] if clamp > 0 else 0.0
        for k in range(len(x_k)):
            x_k[k] = 1.0 if k == clamp - 1 else 0.0
        return row
    top = 0.0
    for k in range(len(x_k)):
        top = max(top, x_k[k])
    total = math.exp(-top)
    for k in range(len(x_k)):
        x_k[k] = math.exp(x_k[k] - top)
        total += x_k[k]
    for k in range(len(x_k)):
        x_k[k] /= total
    return top + math.log(total)


@kernel
def row_posteriors(start_r, code_v, clamp_r, domain_r, push_cz, base_dz, first, last, posterior_rz):
    """Probabilities of the states of rows `first` to `last`, written to the first rows of `posterior_rz`."""
    n_other = base_dz.shape[1]
    x_z = np.empty(n_other)
    for r in range(first, last):
        d = domain_r[r] if len(domain_r) > 0 else 0
        for z in range(n_other):
            x_z[z] = base_dz[d, z]
        for v in range(start_r[r], start_r[r + 1]):
            for z in range(n_other):
                x_z[z] += push_cz[code_v[v], z]
        log_sum = _softmax(x_z, clamp_r[r])
        posterior_rz[r - first, 0] = math.exp(-log_sum)
        if clamp_r[r] >= 0:
            posterior_rz[r - first, 0] = 1.0 if clamp_r[r] == 0 else 0.0
        for z in range(n_other):
            posterior_rz[r - first, z + 1] = x_z[z]


@kernel
def add_missing_information(start_r, code_v, weight_r, posterior_rk, confusion_akv, curvature_pp):
    """Subtract the covariance of the complete-data score from the lower triangle (Louis 1982, eq. 3.2').

    Coordinates: log prevalence ratios first, then those of annotator 0's row 0, row 1, …
    """
    n_labels = posterior_rk.shape[1]
    n_other = n_labels - 1
    longest = 0
    for r in range(len(start_r) - 1):
        longest = max(longest, start_r[r + 1] - start_r[r])
    size = n_other + longest * n_labels * n_other
    at_t = np.empty(size, np.int64)
    label_t = np.empty(size, np.int64)
    score_t = np.empty(size)
    for r in range(len(start_r) - 1):
        certain = 0.0
        for k in range(n_labels):
            certain = max(certain, posterior_rk[r, k])
        if certain == 1.0 or weight_r[r] == 0.0:
            continue
        n = n_other
        for k in range(n_other):
            at_t[k] = k
            label_t[k] = k + 1
            score_t[k] = 1.0
        for v in range(start_r[r], start_r[r + 1]):
            a = code_v[v] // n_labels
            voted = code_v[v] % n_labels
            for k in range(n_labels):
                for other in range(1, n_labels):
                    at_t[n] = n_other + (a * n_labels + k) * n_other + other - 1
                    label_t[n] = k
                    score_t[n] = (1.0 if other == voted else 0.0) - confusion_akv[a, k, other]
                    n += 1
        for t in range(n):
            push = weight_r[r] * score_t[t] * posterior_rk[r, label_t[t]]
            for u in range(t + 1):
                same = 1.0 if label_t[u] == label_t[t] else 0.0
                cell = push * score_t[u] * (same - posterior_rk[r, label_t[u]])
                # An annotator with two votes on the item meets the same coordinates twice.
                if u < t and at_t[u] == at_t[t]:
                    cell *= 2.0
                curvature_pp[max(at_t[t], at_t[u]), min(at_t[t], at_t[u])] -= cell


@kernel
def add_own_information(start_r, code_v, weight_r, posterior_rk, confusion_akv, first, last, own_app, items_kk):
    """Subtract the score covariance of some rows from each annotator's own block; add up the prevalence's by label."""
    n_labels = posterior_rk.shape[1]
    n_other = n_labels - 1
    score_t = np.empty(n_labels * n_other)
    for r in range(first, last):
        weight = weight_r[r]
        for k in range(n_labels):
            for m in range(n_labels):
                same = 1.0 if k == m else 0.0
                items_kk[k, m] += weight * posterior_rk[r, k] * (same - posterior_rk[r, m])
        for v in range(start_r[r], start_r[r + 1]):
            a = code_v[v] // n_labels
            voted = code_v[v] % n_labels
            for t in range(n_labels * n_other):
                other = t % n_other + 1
                score_t[t] = (1.0 if other == voted else 0.0) - confusion_akv[a, t // n_other, other]
            for t in range(n_labels * n_other):
                push = weight * score_t[t] * posterior_rk[r, t // n_other]
                for u in range(n_labels * n_other):
                    same = 1.0 if t // n_other == u // n_other else 0.0
                    own_app[a, t, u] -= push * score_t[u] * (same - posterior_rk[r, u // n_other])


@kernel
def add_own_rows(start_r, code_v, weight_r, posterior_rk, bound_b, first, last, unknown_bck):
    """Add up, by vote code and label, how uncertain it is that the vote's item has the label: p (1 - p)."""
    n_labels = posterior_rk.shape[1]
    x_k = np.empty(n_labels)
    for b in range(first, last):
        for r in range(bound_b[b], bound_b[b + 1]):
            for k in range(n_labels):
                x_k[k] = weight_r[r] * posterior_rk[r, k] * (1.0 - posterior_rk[r, k])
            for v in range(start_r[r], start_r[r + 1]):
                for k in range(n_labels):
                    unknown_bck[b, code_v[v], k] += x_k[k]


@kernel
def count_votes(start_r, code_v, weight_r, votes_c):
    """Count the votes by code; a row counts once per item it stands for."""
    for r in range(len(start_r) - 1):
        for v in range(start_r[r], start_r[r + 1]):
            votes_c[code_v[v]] += weight_r[r]


@kernel
def covariance_pass(
    start_r, code_v, weight_r, domain_r, posterior_rz, gain_cz, base_dz, bound_b, first, last, out_bcz, total_bdz
):
    """Multiply the score covariance with a vector, without ever forming it.

    `gain_cz` is what a vote of code `c` adds to the vector's product with state z's score.
    """
    n_states = posterior_rz.shape[1]
    x_z = np.empty(n_states)
    for b in range(first, last):
        for r in range(bound_b[b], bound_b[b + 1]):
            d = domain_r[r] if len(domain_r) > 0 else 0
            for z in range(n_states):
                x_z[z] = base_dz[d, z]
            for v in range(start_r[r], start_r[r + 1]):
                for z in range(n_states):
                    x_z[z] += gain_cz[code_v[v], z]
            mean = 0.0
            for z in range(n_states):
                mean += posterior_rz[r, z] * x_z[z]
            for z in range(n_states):
                x_z[z] = weight_r[r] * posterior_rz[r, z] * (x_z[z] - mean)
                total_bdz[b, d, z] += x_z[z]
            for v in range(start_r[r], start_r[r + 1]):
                for z in range(n_states):
                    out_bcz[b, code_v[v], z] += x_z[z]


@kernel
def binary_covariance_pass(start_r, code_v, weight_r, p_r, gain_c, base, bound_b, first, last, out_bc, total_b):
    """The same for two labels, which need one number each: label 1's gain over label 0's, and label 1's product."""
    for b in range(first, last):
        out_c = out_bc[b]
        for r in range(bound_b[b], bound_b[b + 1]):
            x = base
            for v in range(start_r[r], start_r[r + 1]):
                x += gain_c[code_v[v]]
            x *= weight_r[r] * p_r[r] * (1.0 - p_r[r])
            total_b[b] += x
            for v in range(start_r[r], start_r[r + 1]):
                out_c[code_v[v]] += x


@kernel
def hash_rows(start_i, code_v, clamp_i, domain_i, salt, hash_i):
    """Write a 64-bit hash of the votes, the clamp and the domain of the first items; without domains that is empty."""
    for i in range(len(hash_i)):
        # The clamp is put into the high bits, above all codes, so that it cannot be taken for a code.
        h = np.uint64(salt) ^ (np.uint64(clamp_i[i] + 1) << np.uint64(40))
        if len(domain_i) > 0:
            h = _mixed(h, np.uint64(domain_i[i]) << np.uint64(32))
        for v in range(start_i[i], start_i[i + 1]):
            h = _mixed(h, np.uint64(code_v[v]))
        hash_i[i] = h


@kernel
def _mixed(h, code):
    # The finaliser of SplitMix64 (Steele, Lea & Flood 2014) mixes every bit into every other.
    h = (h ^ code) + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@kernel
def same_rows(start_i, code_v, clamp_i, domain_i, first_r, row_i):
    """Return whether every item equals the first item of its row, vote by vote."""
    for i in range(len(row_i)):
        j = first_r[row_i[i]]
        n = start_i[i + 1] - start_i[i]
        if n != start_i[j + 1] - start_i[j] or clamp_i[i] != clamp_i[j]:
            return False
        if len(domain_i) > 0 and domain_i[i] != domain_i[j]:
            return False
        for v in range(n):
            if code_v[start_i[i] + v] != code_v[start_i[j] + v]:
                return False
    return True
