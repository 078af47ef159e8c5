"""The Numba passes that only states between labels need: what the votes leave unknown of the parameters."""

from __future__ import annotations

import math

import numpy as np

from moral_entropy.compiled import compiled

kernel = compiled()

NEGLIGIBLE = 1e-14
"""Probability of a state below which it adds nothing to a covariance."""

RESCALED = 8
"""Votes after which products are scaled to a largest one of 1: no factor is below 1e-30, so that one cannot vanish."""


@kernel
def mixed_pass(
    start_r, code_v, weight_r, clamp_r, domain_r, vote_cz, weight_dz, bound_b, first, last, count_bcz, total_bdt
):
    """E-step and M-step in one go, for blocks `first` to `last`: see `kernels.general_pass`.

    Probabilities are multiplied, which takes no exponentials: `vote_cz` is relative to the likeliest state's, and the
    log likelihood to the product of these.
    """
    n_states = weight_dz.shape[1]
    x_z = np.empty(n_states)
    for b in range(first, last):
        count_cz = count_bcz[b]
        for r in range(bound_b[b], bound_b[b + 1]):
            d = domain_r[r] if len(domain_r) > 0 else 0
            begin, end = start_r[r], start_r[r + 1]
            total, log_row = 1.0, 0.0
            if clamp_r[r] >= 0:
                log_row = _known_state(code_v, begin, end, vote_cz, weight_dz[d], clamp_r[r], x_z)
            else:
                for z in range(n_states):
                    x_z[z] = weight_dz[d, z]
                for v in range(begin, end):
                    c = code_v[v]
                    for z in range(n_states):
                        x_z[z] *= vote_cz[c, z]
                    if (v - begin) % RESCALED == RESCALED - 1:
                        log_row += _rescale(x_z)
                total = 0.0
                for z in range(n_states):
                    total += x_z[z]
                total = max(total, 1e-300)
                log_row += math.log(total)
            total_bdt[b, d, n_states - 1] += weight_r[r] * log_row
            scale = weight_r[r] / total
            for z in range(n_states):
                x_z[z] *= scale
            for z in range(1, n_states):
                total_bdt[b, d, z - 1] += x_z[z]
            for v in range(begin, end):
                c = code_v[v]
                for z in range(1, n_states):
                    count_cz[c, z - 1] += x_z[z]


@kernel
def _known_state(code_v, begin, end, vote_cz, weight_z, known, x_z):
    """Write the probabilities of a row's states where one is known; return the log likelihood.

    Logs are added: a product would vanish where hundreds of votes contradict what is known.
    """
    log_row = math.log(max(weight_z[known], 1e-300))
    for v in range(begin, end):
        log_row += math.log(max(vote_cz[code_v[v], known], 1e-300))
    for z in range(len(x_z)):
        x_z[z] = 1.0 if z == known else 0.0
    return log_row


@kernel
def _rescale(x_z):
    """Scale to a largest entry of 1; return the log of what it was."""
    top = 0.0
    for z in range(len(x_z)):
        top = max(top, x_z[z])
    for z in range(len(x_z)):
        x_z[z] /= top
    return math.log(top)


@kernel
def _row_states(code_v, first, last, base_z, push_cz, x_z):
    """Write the probabilities of a row's states."""
    top = 0.0
    for z in range(len(x_z)):
        x_z[z] = 0.0 if z == 0 else base_z[z - 1]
    for v in range(first, last):
        for z in range(1, len(x_z)):
            x_z[z] += push_cz[code_v[v], z - 1]
    for z in range(len(x_z)):
        top = max(top, x_z[z])
    total = 0.0
    for z in range(len(x_z)):
        x_z[z] = math.exp(x_z[z] - top)
        total += x_z[z]
    for z in range(len(x_z)):
        x_z[z] /= total


@kernel
def take_state_information(
    start_r, code_v, weight_r, clamp_r, domain_r, push_cz, base_dz, score_czt, group_z, first, last, curvature_pp
):
    """Subtract the covariance over states of the score, of rows `first` to `last`, from the lower triangle.

    Coordinates: for every domain the log ratios of its weights, then those of annotator 0's rows, annotator 1's, …;
    `score_czt` is the expected score of a vote of code `c` on an item in state `z`, by coordinate of its annotator.
    """
    n_states, n_own = score_czt.shape[1], score_czt.shape[2]
    n_free = group_z[n_states - 1]
    n_weights = base_dz.shape[0] * n_free
    longest = 0
    for r in range(first, last):
        longest = max(longest, start_r[r + 1] - start_r[r])
    at_t = np.empty(n_free + longest * n_own, np.int64)
    score_tz = np.empty((n_free + longest * n_own, n_states))
    x_z, root_z = np.empty(n_states), np.empty(n_states)
    active_z = np.empty(n_states, np.int64)
    codes_per_annotator = _codes_per_annotator(score_czt, curvature_pp, n_weights)
    for r in range(first, last):
        if clamp_r[r] >= 0 or weight_r[r] == 0.0:
            continue
        d = domain_r[r] if len(domain_r) > 0 else 0
        _row_states(code_v, start_r[r], start_r[r + 1], base_dz[d], push_cz, x_z)
        n_active = 0
        for z in range(n_states):
            if x_z[z] > NEGLIGIBLE:
                active_z[n_active] = z
                root_z[n_active] = math.sqrt(weight_r[r] * x_z[z])
                n_active += 1
        n = _fill_scores(
            code_v, start_r[r], start_r[r + 1], score_czt, group_z, n_free, n_weights, codes_per_annotator, d,
            active_z[:n_active], at_t, score_tz,
        )  # fmt: skip
        for t in range(n):
            mean = 0.0
            for m in range(n_active):
                mean += x_z[active_z[m]] * score_tz[t, m]
            for m in range(n_active):
                score_tz[t, m] = root_z[m] * (score_tz[t, m] - mean)
        for t in range(n):
            for u in range(t + 1):
                cell = 0.0
                for m in range(n_active):
                    cell += score_tz[t, m] * score_tz[u, m]
                # An annotator with two votes on the item meets the same coordinates twice.
                if u < t and at_t[u] == at_t[t]:
                    cell *= 2.0
                curvature_pp[max(at_t[t], at_t[u]), min(at_t[t], at_t[u])] -= cell


@kernel
def _codes_per_annotator(score_czt, curvature_pp, n_weights):
    n_annotators = (curvature_pp.shape[0] - n_weights) // score_czt.shape[2]
    return score_czt.shape[0] // max(n_annotators, 1)


@kernel
def _fill_scores(
    code_v, first, last, score_czt, group_z, n_free, n_weights, codes_per_annotator, d, active_z, at_t, score_tz
):
    """Write a row's coordinates, and its score on each of them by active state; return how many there are."""
    n_own = score_czt.shape[2]
    for g in range(n_free):
        at_t[g] = d * n_free + g
        for m in range(len(active_z)):
            score_tz[g, m] = 1.0 if group_z[active_z[m]] == g + 1 else 0.0
    n = n_free
    for v in range(first, last):
        c = code_v[v]
        for t in range(n_own):
            at_t[n] = n_weights + (c // codes_per_annotator) * n_own + t
            for m in range(len(active_z)):
                score_tz[n, m] = score_czt[c, active_z[m], t]
            n += 1
    return n


@kernel
def add_own_state_rows(start_r, code_v, weight_r, posterior_rz, share_czk, bound_b, first, last, unknown_bck):
    """Add up, by vote code and label, how uncertain it is that the vote was given as for the label: p (1 - p)."""
    n_states, n_labels = share_czk.shape[1], share_czk.shape[2]
    p_k = np.empty(n_labels)
    for b in range(first, last):
        for r in range(bound_b[b], bound_b[b + 1]):
            for v in range(start_r[r], start_r[r + 1]):
                c = code_v[v]
                for k in range(n_labels):
                    p_k[k] = 0.0
                for z in range(n_states):
                    if posterior_rz[r, z] > NEGLIGIBLE:
                        for k in range(n_labels):
                            p_k[k] += posterior_rz[r, z] * share_czk[c, z, k]
                for k in range(n_labels):
                    unknown_bck[b, c, k] += weight_r[r] * p_k[k] * max(1.0 - p_k[k], 0.0)


@kernel
def take_own_state_information(
    start_r, code_v, weight_r, domain_r, posterior_rz, score_czt, codes_per_annotator, first, last, own_app, items_dzz
):
    """Subtract the score covariance of some rows from each annotator's own block; add up the weights' by state."""
    n_states, n_own = score_czt.shape[1], score_czt.shape[2]
    mean_t = np.empty(n_own)
    for r in range(first, last):
        d = domain_r[r] if len(domain_r) > 0 else 0
        weight = weight_r[r]
        for z in range(n_states):
            for y in range(n_states):
                same = 1.0 if z == y else 0.0
                items_dzz[d, z, y] += weight * posterior_rz[r, z] * (same - posterior_rz[r, y])
        for v in range(start_r[r], start_r[r + 1]):
            c = code_v[v]
            own_pp = own_app[c // codes_per_annotator]
            for t in range(n_own):
                mean_t[t] = 0.0
            for z in range(n_states):
                for t in range(n_own):
                    mean_t[t] += posterior_rz[r, z] * score_czt[c, z, t]
            for z in range(n_states):
                p = weight * posterior_rz[r, z]
                if p < NEGLIGIBLE:
                    continue
                for t in range(n_own):
                    push = p * (score_czt[c, z, t] - mean_t[t])
                    for u in range(n_own):
                        own_pp[t, u] -= push * (score_czt[c, z, u] - mean_t[u])
