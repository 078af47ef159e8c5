"""NUTS against sums over every labelling, on ballots small enough for that."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from checks.exact import exact_posterior
from support import plain_states, random_rows, votes_of

from moral_entropy.checks import nuts_sampler
from moral_entropy.checks.nuts_sampler import measure_mixing, row_values, sample
from moral_entropy.consensus import laplace
from moral_entropy.consensus.draws import drawn_posterior, mixed_posterior_of_rows, posterior_of_rows
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.priors import Priors
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import FitError, MissingExtraError, MoralEntropyWarning

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    pytest.importorskip("nutpie", reason="needs the extra: pip install 'moral-entropy[mcmc]'")

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")


def fitted(rows, n_labels, priors, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(votes_of(rows, n_labels), priors=priors, draws=20, **options).fits[0]


def near(value, truth, sd, ess, errors=4.5):
    """Whether a mean over draws is the truth, to some Monte-Carlo standard errors."""
    return np.abs(value - truth) <= errors * sd / np.sqrt(ess)


@pytest.mark.parametrize(("n_items", "n_annotators", "n_labels"), [(9, 3, 2), (6, 2, 3)])
def test_moments_are_those_of_the_sum_over_labellings(n_items, n_annotators, n_labels):
    rng = np.random.default_rng(n_labels)
    rows = random_rows(rng, n_items, n_annotators, n_labels)
    priors = Priors(prevalence=3.0, diagonal=4.0, off_diagonal=1.5)
    one = fitted(rows, n_labels, priors, model="paper")
    exact = exact_posterior(rows, one.alpha_g, one.beta_akv)
    samples = sample(one, tune=250, draws=500, seed=1)
    ess = 0.5 * samples.parameters.least_ess
    assert samples.divergences == 0
    assert samples.parameters.least_ess > 400
    assert near(samples.prevalence_sk.mean(axis=0), exact.prevalence_k, exact.prevalence_sd_k, ess).all()
    assert near(samples.confusion_sakv.mean(axis=0), exact.confusion_akv, exact.confusion_sd_akv, ess).all()
    np.testing.assert_allclose(samples.prevalence_sk.std(axis=0), exact.prevalence_sd_k, rtol=0.12)
    np.testing.assert_allclose(samples.confusion_sakv.std(axis=0), exact.confusion_sd_akv, rtol=0.15)
    posterior_srk = posterior_of_rows(
        one.patterns, samples.prevalence_sk, samples.confusion_sakv, np.arange(one.patterns.n_rows)
    )
    label_ik = posterior_srk.mean(axis=0)[one.patterns.row_i]
    sd_ik = posterior_srk.std(axis=0)[one.patterns.row_i]
    assert near(label_ik, exact.label_ik, sd_ik, ess).all()


@pytest.mark.parametrize(("n_items", "n_annotators", "n_labels"), [(8, 3, 2), (6, 2, 3)])
def test_between_labels_moments_are_those_of_weighted_draws_from_the_prior(n_items, n_annotators, n_labels):
    rng = np.random.default_rng(n_labels)
    rows = random_rows(rng, n_items, n_annotators, n_labels)
    one = fitted(rows, n_labels, Priors(prevalence=3.0, diagonal=4.0, off_diagonal=1.5))
    mix_zk, group_z = plain_states(n_labels)
    n = 150_000
    weight_sg = rng.dirichlet(one.alpha_g[0], size=n)
    theta = np.stack([rng.dirichlet(beta_v, size=n) for beta_v in one.beta_akv.reshape(-1, n_labels)], axis=1)
    theta = theta.reshape(n, n_annotators, n_labels, n_labels)
    log_s, label_sik = np.zeros(n), []
    for i in range(n_items):
        joint_sz = (weight_sg / np.bincount(group_z))[:, group_z]
        for _, a, v in (row for row in rows if row[0] == i):
            joint_sz = joint_sz * (theta[:, a, :, v] @ mix_zk.T)
        log_s += np.log(joint_sz.sum(axis=1))
        label_sik.append(joint_sz @ mix_zk / joint_sz.sum(axis=1, keepdims=True))
    chance_s = np.exp(log_s - log_s.max()) / np.exp(log_s - log_s.max()).sum()
    samples = sample(one, tune=250, draws=500, seed=1)
    assert samples.divergences == 0 and samples.parameters.least_ess > 400
    ess = min(0.5 * samples.parameters.least_ess, 1.0 / (chance_s**2).sum())
    found = (samples.prevalence_sk[:, 0], samples.confusion_sakv)
    for value_s, exact_s in zip(found, (weight_sg, theta), strict=True):
        assert near(value_s.mean(axis=0), np.tensordot(chance_s, exact_s, axes=1), value_s.std(axis=0), ess).all()
    drawn = replace(one.mixture, weight_sdg=samples.prevalence_sk)
    posterior_srk = mixed_posterior_of_rows(one.patterns, drawn, samples.confusion_sakv, one.patterns.row_i)
    exact_ik = np.tensordot(chance_s, np.stack(label_sik, axis=1), axes=1)
    assert near(posterior_srk.mean(axis=0), exact_ik, posterior_srk.std(axis=0), ess).all()


def test_drawn_rows_of_many_labels_have_the_means_of_sampled_ones():
    """A Gaussian around the mode, not moved, is 8 points off: with five labels most of a row rests on hardly a vote."""
    votes = simulate_votes(n_items=250, n_annotators=10, votes_per_item=3, n_labels=5, seed=1).votes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        one = fit(votes, draws=1_000).fits[0]
    sampled_akv = sample(one, chains=2, tune=200, draws=300, seed=1).confusion_sakv.mean(axis=0)
    right_ak, sampled_ak = (np.einsum("akk->ak", rows) for rows in (one.confusion_sakv.mean(axis=0), sampled_akv))
    assert abs(right_ak.mean() - sampled_ak.mean()) < 0.015
    assert np.sqrt(((right_ak - sampled_ak) ** 2).mean()) < 0.03


def test_the_same_seed_gives_the_same_bits_on_any_number_of_cores():
    one = fitted(random_rows(np.random.default_rng(5), 30, 4, 2), 2, Priors())
    alone = sample(one, chains=3, tune=60, draws=40, seed=7, cores=1)
    together = sample(one, chains=3, tune=60, draws=40, seed=7, cores=3)
    other = sample(one, chains=3, tune=60, draws=40, seed=8)
    np.testing.assert_array_equal(alone.x_csp, together.x_csp)
    assert not np.array_equal(alone.x_csp, other.x_csp)
    assert not np.array_equal(alone.x_csp[0], alone.x_csp[1])


@pytest.mark.parametrize(("model", "weights"), [("mixed", (1, 3)), ("paper", (2,))])
def test_shapes_and_figures(model, weights):
    votes = simulate_votes(n_items=300, n_annotators=6, votes_per_item=4).votes
    one = fit(votes, draws=20, model=model).fits[0]
    n_parameters = weights[-1] - 1 + 12
    shares = []
    samples = sample(one, chains=2, tune=200, draws=300, advance=shares.append)
    assert samples.x_csp.shape == (2, 300, n_parameters)
    assert samples.prevalence_sk.shape == (600, *weights)
    assert samples.confusion_sakv.shape == (600, 6, 2, 2)
    assert samples.parameters.ess_q.shape == (n_parameters,)
    assert samples.rows.ess_q.shape == (one.patterns.n_rows,)
    assert samples.gradients > 2 * 500
    assert shares[-1] == 1.0


@pytest.mark.parametrize("model", ["mixed", "paper"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_row_values_rank_as_the_rows_probabilities(n_labels, model):
    one = fitted(random_rows(np.random.default_rng(3), 40, 4, n_labels), n_labels, Priors(), model=model)
    samples = sample(one, chains=2, tune=30, draws=20)
    if model == "paper":
        drawn = replace(one, prevalence_sk=samples.prevalence_sk, confusion_sakv=samples.confusion_sakv)
    else:
        mixture = replace(one.mixture, weight_sdg=samples.prevalence_sk)
        drawn = replace(one, mixture=mixture, confusion_sakv=samples.confusion_sakv)
    posterior_srk = drawn_posterior(drawn, one.patterns, np.arange(one.patterns.n_rows))
    for rows, value_rks in row_values(one, samples.patterns, samples.drawn):
        shown_rks = 1.0 / (1.0 + np.exp(-value_rks)) if n_labels == 2 else value_rks
        expected_rks = posterior_srk[:, rows].transpose(1, 2, 0)
        np.testing.assert_allclose(shown_rks, expected_rks[:, 1:] if n_labels == 2 else expected_rks, atol=1e-12)


def test_known_items_have_nothing_to_mix():
    rows = random_rows(np.random.default_rng(2), 30, 3, 2)
    gold_i = np.full(30, -1, dtype=np.int16)
    gold_i[:4] = [0, 1, 0, 1]
    one = fit(votes_of(rows, gold_i=gold_i), draws=20, use_gold=True).fits[0]
    samples = sample(one, chains=2, tune=50, draws=50)
    known_r = one.patterns.clamp_r != -1
    assert np.isnan(samples.rows.ess_q[known_r]).all()
    assert not np.isnan(samples.rows.ess_q[~known_r]).any()


def test_annotators_pooled_fully_share_one_matrix():
    one = fitted(random_rows(np.random.default_rng(4), 60, 5, 2), 2, Priors(), pooling="full")
    samples = sample(one, chains=2, tune=50, draws=50)
    assert samples.x_csp.shape == (2, 50, 4)
    assert samples.confusion_sakv.shape[1] == 1


def test_too_many_parameters_are_refused(monkeypatch):
    one = fitted(random_rows(np.random.default_rng(4), 30, 3, 2), 2, Priors())
    monkeypatch.setattr(laplace, "DENSE", 6)
    with pytest.raises(FitError, match="8 free parameters"):
        sample(one)


def test_a_missing_extra_is_named(monkeypatch):
    one = fitted(random_rows(np.random.default_rng(4), 30, 3, 2), 2, Priors())
    monkeypatch.setitem(sys.modules, "nutpie", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'moral-entropy\[mcmc\]'"):
        sample(one)


def chains(phi, n_draws, *, n_chains=4, n_quantities=5, seed=0):
    """Autoregressive chains; one quantity ties, one differs between chains, one drifts, one never moves."""
    noise_csq = np.random.default_rng(seed).standard_normal((n_chains, n_draws, n_quantities))
    value_csq = noise_csq.copy()
    for s in range(1, n_draws):
        value_csq[:, s] = phi * value_csq[:, s - 1] + noise_csq[:, s]
    value_csq[..., 1] = np.round(value_csq[..., 1])
    value_csq[0, :, 2] += 1.0
    value_csq[..., 3] += np.linspace(0, 2, n_draws)
    value_csq[..., 4] = 1.0
    return value_csq


def test_chains_that_do_not_mix_are_told_and_what_never_moves_has_no_figure():
    mixing, slow = measure_mixing(chains(0.0, 400)), measure_mixing(chains(0.97, 400))
    assert np.isnan([mixing.ess_q[4], mixing.rhat_q[4]]).all()
    assert mixing.ess_q[0] > 1_000 and mixing.rhat_q[0] < 1.01
    assert mixing.least_ess == min(mixing.ess_q[2:4]) < 100 and slow.ess_q[0] < 100
    assert mixing.most_rhat == max(mixing.rhat_q[2:4]) > 1.05


def test_of_many_rows_some_are_looked_at(monkeypatch):
    one = fitted(random_rows(np.random.default_rng(3), 60, 5, 2), 2, Priors())
    whole = sample(one, chains=2, tune=50, draws=60)
    monkeypatch.setattr(nuts_sampler, "MOST_ROWS", 10)
    some = sample(one, chains=2, tune=50, draws=60)
    step = -(-one.patterns.n_rows // 10)
    np.testing.assert_array_equal(some.rows.ess_q, whole.rows.ess_q[::step])
    assert 5 <= len(some.rows.ess_q) <= 10 < one.patterns.n_rows
