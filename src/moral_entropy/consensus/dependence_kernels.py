"""Numba passes over the pairs of votes on the same row, one annotator after the other.

All pairs of one annotator are added up in a workspace with a place per annotator, so that nothing is held of the pairs
that share too few items: memory grows with the annotators and with the pairs kept, time with the pairs of votes.
"""

from __future__ import annotations

import numpy as np

from moral_entropy.compiled import compiled

kernel = compiled()

NEGLIGIBLE = 1e-9
"""Posterior probability below which a state adds nothing that could be seen."""


@kernel
def shared_pairs(start_r, code_v, weight_r, n_labels, start_a, row_w, least, a, touched, count_a, ends_ep, shared_p):
    """List pairs of annotators who share at least `least` items, from annotator `a` on, while there is room for them.

    `row_w` holds the rows of annotator a's votes from `start_a[a]` to `start_a[a + 1]`; `touched` and `count_a` are
    buffers, the latter 0. Writes both ends, the first ascending, and the items shared. Returns the annotator to go on
    with, and how many pairs were written.
    """
    n_annotators, n_pairs = len(start_a) - 1, 0
    while a < n_annotators and n_pairs + n_annotators - a <= len(shared_p):
        n_touched = 0
        for w in range(start_a[a], start_a[a + 1]):
            r = row_w[w]
            if weight_r[r] == 0.0:
                continue
            # Votes are sorted by annotator: whoever comes before the first has met the second already.
            for v in range(start_r[r + 1] - 1, start_r[r] - 1, -1):
                b = code_v[v] // n_labels
                if b <= a:
                    break
                if count_a[b] == 0.0:
                    touched[n_touched] = b
                    n_touched += 1
                count_a[b] += weight_r[r]
        for t in range(n_touched):
            b = touched[t]
            if count_a[b] >= least:
                ends_ep[0, n_pairs] = a
                ends_ep[1, n_pairs] = b
                shared_p[n_pairs] = count_a[b]
                n_pairs += 1
            count_a[b] = 0.0
        a += 1
    return a, n_pairs


@kernel
def _place_partners(a, p, first_p, second_p, place_a):
    """Write which pair each partner of annotator `a` is in; pairs begin at `p`. Return where the next one's begin."""
    while p < len(first_p) and first_p[p] == a:
        place_a[second_p[p]] = p
        p += 1
    return p


@kernel
def add_agreement(start_r, code_v, weight_r, n_labels, start_a, row_w, label_w, first_p, second_p, place_a, sums_px):
    """Add up, per pair, the items on which both agree, and what each of them said on the items they share.

    Columns: agreements, votes of the first for every label, votes of the second for every label. `place_a` is a buffer
    of -1.
    """
    p = 0
    for a in range(len(start_a) - 1):
        begin, p = p, _place_partners(a, p, first_p, second_p, place_a)
        if p == begin:
            continue
        for w in range(start_a[a], start_a[a + 1]):
            r, u = row_w[w], label_w[w]
            for v in range(start_r[r + 1] - 1, start_r[r] - 1, -1):
                b, said = code_v[v] // n_labels, code_v[v] % n_labels
                at = place_a[b]
                if b <= a:
                    break
                if at >= 0:
                    sums_px[at, 0] += weight_r[r] if u == said else 0.0
                    sums_px[at, 1 + u] += weight_r[r]
                    sums_px[at, 1 + n_labels + said] += weight_r[r]
        for q in range(begin, p):
            place_a[second_p[q]] = -1


@kernel
def add_residuals(
    start_r, code_v, weight_r, n_labels, start_a, row_w, label_w, posterior_rz, vote_azv, first_p, second_p, place_a,
    sums_px,
):  # fmt: skip
    """Add up, per pair, the products of residuals that `dependence.residual_pairs` explains.

    Columns: the product x, its square, its variance under independence, and the variance of each one's residual.
    `place_a` is a buffer of -1.
    """
    p = 0
    for a in range(len(start_a) - 1):
        begin, p = p, _place_partners(a, p, first_p, second_p, place_a)
        if p == begin:
            continue
        for w in range(start_a[a], start_a[a + 1]):
            r, u = row_w[w], label_w[w]
            for v in range(start_r[r + 1] - 1, start_r[r] - 1, -1):
                b, said = code_v[v] // n_labels, code_v[v] % n_labels
                if b <= a:
                    break
                if place_a[b] >= 0:
                    _add_product(posterior_rz[r], vote_azv[a], vote_azv[b], u, said, weight_r[r], sums_px[place_a[b]])
        for q in range(begin, p):
            place_a[second_p[q]] = -1


@kernel
def _add_product(posterior_z, one_zv, other_zv, one_said, other_said, weight, sums_x):
    """Add one pair of votes to the sums of its pair of annotators."""
    product, variance, one_variance, other_variance = 0.0, 0.0, 0.0, 0.0
    agreed = 1.0 if one_said == other_said else 0.0
    for z in range(len(posterior_z)):
        share = posterior_z[z]
        if share < NEGLIGIBLE:
            continue
        both, third, one_square, other_square = 0.0, 0.0, 0.0, 0.0
        for v in range(one_zv.shape[1]):
            s, t = one_zv[z, v], other_zv[z, v]
            both += s * t
            third += s * t * (s + t)
            one_square += s * s
            other_square += t * t
        product += share * (agreed - one_zv[z, other_said] - other_zv[z, one_said] + both)
        variance += share * (both - third + both * both)
        one_variance += share * (1.0 - one_square)
        other_variance += share * (1.0 - other_square)
    sums_x[0] += weight * product
    sums_x[1] += weight * product * product
    sums_x[2] += weight * variance
    sums_x[3] += weight * one_variance
    sums_x[4] += weight * other_variance


@kernel
def rank_one_step(first_p, second_p, weight_p, correlation_p, cut_p, strength_a, nearest, redescend):
    """Return strengths a_j after one weighted least-squares step towards R_jl ≈ a_j a_l in absolute deviations.

    Residuals below `nearest` weigh as if they were that large; with `redescend`, those beyond `cut_p` next to nothing.
    """
    top_a, below_a = np.zeros_like(strength_a), np.zeros_like(strength_a)
    for p in range(len(first_p)):
        one, other = strength_a[first_p[p]], strength_a[second_p[p]]
        fitted = one * other
        residual = abs(correlation_p[p] - fitted)
        weight = weight_p[p] / max(residual, nearest)
        if redescend and residual > 0.02 + cut_p[p] * (1.0 - fitted * fitted):
            weight *= 0.01
        top_a[first_p[p]] += weight * correlation_p[p] * other
        below_a[first_p[p]] += weight * other * other
        top_a[second_p[p]] += weight * correlation_p[p] * one
        below_a[second_p[p]] += weight * one * one
    moved_a = strength_a.copy()
    for a in range(len(strength_a)):
        if below_a[a] > 0.0:
            # Half a step: whole ones may swing between two annotators.
            moved_a[a] = 0.5 * strength_a[a] + 0.5 * min(max(top_a[a] / below_a[a], -0.995), 0.995)
    return moved_a


@kernel
def add_effective(start_r, code_v, n_labels, start_a, partner_q, rho_q, effective_r):
    """Write each row's effective number of votes: every vote weighs 1 / (1 + the correlations with the others).

    `partner_q` holds the annotators who depend on annotator a, with `rho_q`, from `start_a[a]` to `start_a[a + 1]`.
    """
    here_a = np.zeros(len(start_a) - 1)
    for r in range(len(start_r) - 1):
        for v in range(start_r[r], start_r[r + 1]):
            here_a[code_v[v] // n_labels] += 1.0
        total = 0.0
        for v in range(start_r[r], start_r[r + 1]):
            a, shared = code_v[v] // n_labels, 0.0
            for q in range(start_a[a], start_a[a + 1]):
                shared += rho_q[q] * here_a[partner_q[q]]
            total += 1.0 / (1.0 + shared)
        effective_r[r] = total
        for v in range(start_r[r], start_r[r + 1]):
            here_a[code_v[v] // n_labels] = 0.0
