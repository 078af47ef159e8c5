"""Residual correlations and effective votes against loops, integrals and simulated panels."""

from __future__ import annotations

import numpy as np
import pytest
from mixed_em import fit_mixed
from support import load_script, random_rows, votes_of

from moral_entropy.consensus.dependence import (
    NEGLECTED,
    SCALES,
    Correlations,
    correlation,
    draw_correlations,
    effective_by_row,
    effective_votes,
    learn_mixture,
    residual_pairs,
)
from moral_entropy.model.patterns import collapse

study = load_script("studies/copies.py")


def random_patterns(n_labels, *, n_items=60, n_annotators=6, seed=3):
    rows = random_rows(np.random.default_rng(seed), n_items, n_annotators, n_labels)
    return collapse(votes_of(rows, n_labels).ballots[0])


def random_states(patterns, n_states=4, seed=5):
    rng = np.random.default_rng(seed)
    posterior_rz = rng.dirichlet(np.ones(n_states), patterns.n_rows)
    return posterior_rz, rng.dirichlet(np.ones(patterns.n_labels), (patterns.n_annotators, n_states))


def votes_in(patterns, r):
    codes = patterns.code_v[patterns.start_r[r] : patterns.start_r[r + 1]]
    return [divmod(int(code), patterns.n_labels) for code in codes]


@pytest.mark.parametrize("n_labels", [2, 3])
def test_pairs_agree_with_loops(n_labels):
    patterns = random_patterns(n_labels)
    posterior_rz, vote_azv = random_states(patterns)
    hot = np.eye(n_labels)
    sums, shared = {}, {}
    for r in range(patterns.n_rows):
        said = votes_in(patterns, r)
        for a, u in said:
            for b, v in said:
                if a >= b:
                    continue
                one_z, other_z = hot[u] - vote_azv[a], hot[v] - vote_azv[b]
                x = posterior_rz[r] @ (one_z * other_z).sum(axis=1)
                spread = [np.array([np.diag(t) - np.outer(t, t) for t in vote_azv[c]]) for c in (a, b)]
                variance = posterior_rz[r] @ np.einsum("zuv,zvu->z", *spread)
                own = [posterior_rz[r] @ np.einsum("zuu->z", each) for each in spread]
                weight = patterns.weight_r[r]
                sums[a, b] = sums.get((a, b), 0) + weight * np.array([x, x * x, variance, *own])
                shared[a, b] = shared.get((a, b), 0) + weight
    pairs = residual_pairs(patterns, posterior_rz, vote_azv, least_items=35)
    found = list(zip(pairs.first_p.tolist(), pairs.second_p.tolist(), strict=True))
    assert found == sorted(pair for pair, n in shared.items() if n >= 35) and 0 < len(found) < len(shared)
    np.testing.assert_allclose(pairs.shared_p, [shared[pair] for pair in found])
    np.testing.assert_allclose(pairs.sums_px, [sums[pair] for pair in found], atol=1e-7)
    total = np.array([sums[pair] for pair in found])
    np.testing.assert_allclose(correlation(pairs).rho_p, total[:, 0] / np.sqrt(total[:, 3] * total[:, 4]), atol=1e-7)


def test_residuals_of_votes_drawn_from_the_model_have_mean_0():
    """At the true parameters, over many panels: mean 0 and the variance that the sums predict."""
    z_p = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        theta_akv = rng.dirichlet(np.ones(3) * 2, (5, 3))
        truth_i = rng.integers(3, size=400)
        said_ia = np.stack([(theta_akv[a][truth_i].cumsum(1) < rng.random((400, 1))).sum(1) for a in range(5)], axis=1)
        patterns = study.patterns_of(said_ia, 3)
        likelihood_ik = np.prod([theta_akv[a][:, said_ia[:, a]].T for a in range(5)], axis=0)
        first_r = np.unique(patterns.row_i, return_index=True)[1]
        posterior_rk = (likelihood_ik / likelihood_ik.sum(axis=1, keepdims=True))[first_r]
        pairs = residual_pairs(patterns, posterior_rk, theta_akv)
        z_p.append(pairs.sums_px[:, 0] / np.sqrt(pairs.sums_px[:, 1]))
    z_p = np.concatenate(z_p)
    assert abs(z_p.mean()) < 4 / np.sqrt(len(z_p)) and z_p.std() == pytest.approx(1.0, abs=0.15)


def test_shrunk_correlations_are_posterior_means():
    """Against sums over a fine grid of true correlations."""
    rng = np.random.default_rng(1)
    true_p = np.where(rng.random(200) < 0.9, 0.0, rng.normal(0, 0.6, 200))
    error_p = rng.uniform(0.03, 0.2, 200)
    rho_p = true_p + error_p * rng.standard_normal(200)
    mixture_m = learn_mixture(rho_p, error_p)
    sums_px = np.stack([rho_p, error_p**2, np.zeros(200), np.ones(200), np.ones(200)], axis=1)
    pairs = study_pairs(sums_px)
    found = correlation(pairs)
    np.testing.assert_allclose(found.mixture_m, mixture_m)
    grid = np.linspace(-5, 5, 20_001)
    prior = sum(w * np.exp(-0.5 * (grid / sd) ** 2) / sd for w, sd in zip(mixture_m[1:], SCALES, strict=True))
    prior = prior / np.sqrt(2 * np.pi) * (grid[1] - grid[0])
    prior[len(grid) // 2] += mixture_m[0]
    for p in range(0, 200, 7):
        likelihood = np.exp(-0.5 * ((rho_p[p] - grid) / error_p[p]) ** 2)
        mean = (prior * likelihood * grid).sum() / (prior * likelihood).sum()
        assert found.shrunk_p[p] == pytest.approx(min(mean, 1.0) if mean >= NEGLECTED else 0.0, abs=1e-3)
    drawn = np.mean([draw_correlations(found, np.random.default_rng(s)) for s in range(400)], axis=0)
    sure_p = found.shrunk_p > 0.6
    np.testing.assert_allclose(drawn[sure_p], found.shrunk_p[sure_p], atol=0.05)


def study_pairs(sums_px):
    from moral_entropy.consensus.dependence import PairSums

    n = len(sums_px)
    return PairSums(n + 1, np.arange(n), np.arange(n) + 1, np.full(n, 50.0), sums_px)


def test_mixture_is_where_its_likelihood_is_highest():
    rng = np.random.default_rng(2)
    error_p = rng.uniform(0.05, 0.2, 300)
    rho_p = np.where(rng.random(300) < 0.7, 0.0, rng.normal(0, 0.3, 300)) + error_p * rng.standard_normal(300)

    def height(mixture_m):
        sd_pm = np.sqrt(error_p[:, None] ** 2 + np.array([0.0, *SCALES]) ** 2)
        density_pm = np.exp(-0.5 * (rho_p[:, None] / sd_pm) ** 2) / sd_pm
        return np.log(density_pm @ mixture_m).sum() + 10 * np.log(mixture_m[0])

    best = learn_mixture(rho_p, error_p)
    for _ in range(50):
        other = 0.9 * best + 0.1 * rng.dirichlet(np.ones(7))
        assert height(other) < height(best) + 0.1


def test_effective_votes_agree_with_loops():
    patterns, rng = random_patterns(2), np.random.default_rng(4)
    first_p, second_p = np.array([0, 0, 2, 3]), np.array([1, 4, 3, 5])
    rho_p, ones = rng.uniform(0.3, 1.0, 4), np.ones(4)
    found = Correlations(6, first_p, second_p, ones, rho_p, ones, rho_p, np.eye(7)[0])
    of = {pair: rho for *pairs, rho in zip(first_p, second_p, rho_p, strict=True) for pair in [tuple(pairs)]}
    expected = [
        sum(
            1 / (1 + sum(of.get((a, b), of.get((b, a), 0.0)) for b, _ in votes_in(patterns, r) if b != a))
            for a, _ in votes_in(patterns, r)
        )
        for r in range(patterns.n_rows)
    ]
    np.testing.assert_allclose(effective_by_row(patterns, found, rho_p), expected)


@pytest.mark.parametrize("name", study.clean_designs())
def test_independent_votes_count_in_full(name):
    panel = study.clean_designs()[name](np.random.default_rng([1, 0]))
    found, effective = study.worth(panel.patterns)
    assert not found.any
    assert effective.low <= effective.effective <= effective.high <= effective.votes + 1e-9
    assert effective.effective == pytest.approx(effective.votes, rel=0.03)


def test_copies_count_as_one_vote():
    panel = study.copy_designs()["20 judges, 5 copies of one, K = 2"](np.random.default_rng([1, 0]))
    _, effective = study.worth(panel.patterns)
    assert effective.votes == 20 and 14.5 < effective.low <= effective.effective <= effective.high < 16


def test_the_paper_s_model_has_labels_for_states():
    patterns = random_patterns(3, n_items=200)
    fitted = fit_mixed(patterns, points=0)
    pairs = residual_pairs(patterns, fitted.posterior_rz, fitted.confusion_akv)
    assert fitted.posterior_rz.shape[1] == 3 and pairs.n_pairs == 15


def test_nothing_to_pair():
    patterns = random_patterns(2, n_annotators=1)
    posterior_rz, vote_azv = random_states(patterns)
    found = correlation(residual_pairs(patterns, posterior_rz, vote_azv))
    effective = effective_votes(patterns, found)
    assert len(found.rho_p) == 0 and effective.effective == effective.low == effective.high == effective.votes
