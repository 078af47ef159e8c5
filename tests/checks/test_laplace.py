"""Pareto-k against ArviZ, densities against the log posterior's own, and data that should and should not alarm."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import genpareto
from support import random_parameters, random_rows, votes_of

from moral_entropy.checks import laplace
from moral_entropy.checks.density import drawn_of, log_heights, log_over_base
from moral_entropy.checks.laplace import examine_laplace, fit_tail, reweight, smooth
from moral_entropy.consensus.coordinates import pack, unpack_like
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.patterns import Domains, collapse
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.states import between_labels
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import FitError, MoralEntropyWarning


def arviz():
    """ArviZ, whose import announces its next version; skips where it is absent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return pytest.importorskip("arviz", reason="needs the extra: pip install 'moral-entropy[mcmc]'")


def quiet_fit(votes, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(votes, **options)


@pytest.mark.parametrize("spread", [0.05, 0.5, 1.5, 4.0, 30.0])
@pytest.mark.parametrize("n", [60, 400, 1_000])
def test_k_and_weights_are_arvizs(spread, n):
    az = arviz()
    log_ratio_s = np.random.default_rng(n).normal(12.0, spread, n)
    found = smooth(log_ratio_s)
    weights, k = az.psislw(log_ratio_s.copy())
    assert found.k == pytest.approx(float(k), rel=1e-9)
    np.testing.assert_allclose(np.exp(found.log_weight_s), np.exp(weights), rtol=1e-8, atol=1e-300)
    assert np.exp(found.log_weight_s).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("k", [-0.3, 0.2, 0.8])
def test_the_tail_is_recovered_from_draws_of_it(k):
    excess_t = np.sort(genpareto.rvs(k, scale=2.0, size=20_000, random_state=3))
    found, scale = fit_tail(excess_t)
    assert found == pytest.approx(k, abs=0.03)
    assert scale == pytest.approx(2.0, rel=0.04)


def test_ratios_that_tie_or_are_few():
    assert smooth(np.zeros(100)).k == -np.inf
    assert smooth(np.zeros(100)).ess == pytest.approx(100)
    assert smooth(np.array([0.0, 1.0, 5.0])).k == np.inf


@pytest.mark.parametrize("n_labels", [2, 3, 4])
def test_densities_are_the_log_posteriors_own(n_labels):
    rng = np.random.default_rng(n_labels)
    gold_i = np.full(60, -1, dtype=np.int16)
    gold_i[:n_labels] = np.arange(n_labels)
    votes = votes_of(random_rows(rng, 60, 5, n_labels), n_labels, gold_i=gold_i)
    ballot = votes.ballots[0]
    beta_akv = Priors().beta_akv(ballot, votes)
    density = LogPosterior(collapse(ballot, use_gold=True), np.full(n_labels, 1.5), beta_akv)
    places = [random_parameters(rng, 5, n_labels) for _ in range(6)]
    drawn = Parameters(np.array([at.log_weight_g for at in places]), np.array([at.log_confusion_akv for at in places]))
    np.testing.assert_allclose(
        log_heights(density, drawn, log_over_base(density.patterns, drawn, density.between)),
        [density.expect(at).log_posterior for at in places],
        rtol=1e-12,
    )


@pytest.mark.parametrize("n_labels", [2, 3, 4])
def test_densities_between_labels_are_the_log_posteriors_own(n_labels):
    rng = np.random.default_rng(n_labels)
    rows = random_rows(rng, 60, 12, n_labels)
    gold_i = np.full(60, -1, dtype=np.int16)
    gold_i[:n_labels] = np.arange(n_labels)
    votes = votes_of(rows, n_labels, gold_i=gold_i)
    ballot, states = votes.ballots[0], between_labels(n_labels)
    patterns = collapse(ballot, use_gold=True, domains=Domains(rng.integers(2, size=60).astype(np.int32), 2))
    alpha_dg = rng.uniform(1.0, 2.0, (2, states.n_groups))
    density = LogPosterior(patterns, alpha_dg, Priors().beta_akv(ballot, votes), between=states)
    places = [random_parameters(rng, 12, n_labels).log_confusion_akv for _ in range(6)]
    log_sdg = np.log(rng.dirichlet(np.ones(states.n_groups), size=(6, 2)))
    drawn = Parameters(log_sdg, np.array(places))
    np.testing.assert_allclose(
        log_heights(density, drawn, log_over_base(patterns, drawn, states)),
        [density.expect(Parameters(*at)).log_posterior for at in zip(log_sdg, places, strict=True)],
        rtol=1e-12,
    )


@pytest.mark.parametrize(
    ("model", "coordinates"),
    [("mixed", "jeffreys"), *(("paper", name) for name in ("jacobian", "paper", "logit-mode", "jeffreys"))],
)
def test_ratios_are_density_over_the_gaussians(model, coordinates):
    votes = simulate_votes(n_items=120, n_annotators=4, votes_per_item=3, seed=2).votes
    one = quiet_fit(votes, draws=3_000, model=model, coordinates=coordinates).fits[0]
    drawn = drawn_of(one, 3_000)
    x_sp = np.stack([pack(Parameters(*at)) for at in zip(drawn.log_weight_g, drawn.log_confusion_akv, strict=True)])
    # The Gaussian, learnt back from its draws.
    apart_sp = x_sp - x_sp.mean(axis=0)
    distance_s = np.einsum("sp,sp->s", apart_sp @ np.linalg.inv(np.cov(x_sp.T)), apart_sp)
    # The weights of rare states are skewed (`rare_states`), so that one Gaussian is not all of it.
    assert np.corrcoef(-0.5 * distance_s, one.log_density_s)[0, 1] > (0.995 if model == "paper" else 0.9)
    density = LogPosterior(one.patterns, one.alpha_g, one.beta_akv, between=one.between)
    log_s = np.array([density.expect(unpack_like(x_p, one.at)).log_posterior for x_p in x_sp[:300]])
    expected = smooth(log_s - one.log_density_s[:300])
    found = reweight(one, draws=300)
    assert found.k == pytest.approx(expected.k, rel=1e-6)


@pytest.mark.parametrize("model", ["mixed", "paper"])
def test_plenty_of_votes_do_not_alarm(model):
    votes = simulate_votes(n_items=3_000, n_annotators=6, votes_per_item=5, seed=1).votes
    (finding,) = examine_laplace(quiet_fit(votes, model=model))
    assert (finding.side, finding.figure, finding.n, finding.level) == ("laplace", "pareto_k", 400, "good")
    assert finding.value < 0.7
    assert "Pareto-k" in finding.text


def test_thin_votes_alarm():
    votes = simulate_votes(n_items=400, n_annotators=150, votes_per_item=1.3, seed=1).votes
    (finding,) = examine_laplace(quiet_fit(votes, model="paper", coordinates="jacobian"))
    assert finding.value > 1.25
    assert finding.level == "doubt"
    n_parameters = 1 + 2 * votes.ballots[0].n_annotators
    assert f"{n_parameters} parameters" in finding.text


def test_what_cannot_be_reweighted_is_said(monkeypatch):
    votes = simulate_votes(n_items=200, n_annotators=5, votes_per_item=4, seed=1).votes
    (none,) = examine_laplace(quiet_fit(votes, draws=0))
    (few,) = examine_laplace(quiet_fit(votes, draws=99))
    (lifted,) = examine_laplace(quiet_fit(votes, draws=150, constrain="better-than-chance"))
    monkeypatch.setattr(laplace, "MOST_VOTES", 1.0)
    (large,) = examine_laplace(quiet_fit(votes, draws=150))
    for finding, why in ((none, "no draws"), (few, "99 draws"), (lifted, "more than a Gaussian"), (large, "left out")):
        assert finding.level == "info"
        assert np.isnan(finding.value)
        assert why in finding.text


def test_annotators_pooled_fully_have_ratios_too():
    votes = simulate_votes(n_items=800, n_annotators=20, votes_per_item=3, seed=1).votes
    one = quiet_fit(votes, draws=200, model="paper", pooling="full", coordinates="jacobian").fits[0]
    found = reweight(one)
    assert found.k < 0.7
    assert found.ess > 100
    with pytest.raises(FitError, match="not those of a Gaussian"):
        reweight(replace(one, log_density_s=None))


@pytest.mark.slow
@pytest.mark.parametrize(("model", "most"), [("paper", 2), ("mixed", 8)])
def test_false_alarms_over_200_clean_simulations(model, most):
    """Of the mixed model's, most are no false ones: there NUTS has p 0.03 off on average."""
    levels = []
    for seed in range(200):
        votes = simulate_votes(n_items=1_000, n_annotators=8, votes_per_item=4, seed=seed).votes
        levels += [finding.level for finding in examine_laplace(quiet_fit(votes, model=model, seed=seed))]
    assert levels.count("doubt") <= most
