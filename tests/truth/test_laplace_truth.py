"""Draws and what is summed over them, against dense and direct computations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import entr, logsumexp
from support import log_posterior_of, plain_log_joint, posterior_draws, random_rows, votes_of

from moral_entropy.consensus.coordinates import pack
from moral_entropy.consensus.draw_kernels import interval
from moral_entropy.model.entropy import decompose_entropy
from moral_entropy.model.fit import fit
from moral_entropy.consensus.laplace import information
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.model.priors import Priors


def some_votes(n_labels, seed=0, n_items=60, n_annotators=4):
    rng = np.random.default_rng(seed)
    return votes_of(random_rows(rng, n_items, n_annotators, n_labels), n_labels, n_items=n_items + 1)


def direct_posterior(fit_, s):
    """Label probabilities in one draw, by loops over the votes."""
    votes_like = type("Only", (), {"ballots": (fit_.ballot,)})
    at = Parameters(np.log(fit_.prevalence_sk[s]), np.log(fit_.confusion_sakv[s]))
    log_ik = plain_log_joint(votes_like, at)
    return np.exp(log_ik - logsumexp(log_ik, axis=1, keepdims=True))


@pytest.mark.parametrize("n_labels", [2, 3, 4])
def test_summaries_and_entropies_equal_a_direct_computation(n_labels):
    fitted = fit(some_votes(n_labels, n_items=120), draws=201, model="paper").fits[0]
    posterior_sik = np.stack([direct_posterior(fitted, s) for s in range(201)])
    assert_allclose(posterior_draws(fitted), posterior_sik, rtol=1e-9, atol=1e-13)
    assert_allclose(fitted.summary.mean_ik, posterior_sik.mean(axis=0), rtol=1e-9, atol=1e-13)
    parts = decompose_entropy(fitted)
    aleatoric_i = entr(posterior_sik).sum(axis=-1).mean(axis=0)
    total_i = entr(posterior_sik.mean(axis=0)).sum(axis=-1)
    assert_allclose(parts.aleatoric_i, aleatoric_i, rtol=1e-9, atol=1e-12)
    assert_allclose(parts.total_i, total_i, rtol=1e-9, atol=1e-12)
    assert_allclose(parts.epistemic_i, total_i - aleatoric_i, rtol=1e-5, atol=1e-12)
    shown = 1 if n_labels == 2 else fitted.label_i
    p_si = np.take_along_axis(posterior_sik, np.broadcast_to(shown, (1, fitted.ballot.n_items))[..., None], 2)[..., 0]
    assert_allclose(fitted.summary.high_i, np.quantile(p_si, 0.95, axis=0), rtol=2e-3, atol=1e-6)
    assert_allclose(fitted.summary.low_i, np.quantile(p_si, 0.05, axis=0), rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("coordinates", ["jeffreys", "jacobian", "paper", "logit-mode"])
def test_draws_have_the_mean_and_covariance_of_the_laplace_approximation(coordinates):
    votes = some_votes(2, seed=1, n_items=300)
    fitted = fit(votes, draws=40_000, model="paper", coordinates=coordinates).fits[0]
    x_sp = np.stack(
        [
            np.log(fitted.prevalence_sk[:, 1] / fitted.prevalence_sk[:, 0]),
            *np.log(fitted.confusion_sakv[..., 1] / fitted.confusion_sakv[..., 0]).reshape(40_000, -1).T,
        ],
        axis=1,
    )
    ballot, priors = votes.ballots[0], Priors()
    less = {"paper": 1.0, "jeffreys": 0.5}.get(coordinates, 0.0)
    model = LogPosterior(fitted.patterns, priors.alpha_k(ballot) - less, priors.beta_akv(ballot, votes) - less)
    centre = x_sp.mean(axis=0)
    mode = Parameters(np.log(fitted.prevalence_k), np.log(fitted.confusion_akv))
    if coordinates in ("logit-mode", "jeffreys"):
        at_mean = Parameters(np.log(fitted.prevalence_sk).mean(axis=0), np.log(fitted.confusion_sakv).mean(axis=0))
        slope = model.expect(unpacked(centre)).gradient(unpacked(centre))
        # The mean of the draws is stationary for that density, not for the one on the simplex.
        sd = np.sqrt(np.diag(np.linalg.inv(information(model, unpacked(centre)))))
        assert np.abs(slope * sd).max() < 0.1
        mode = unpacked(centre)
        assert at_mean is not None
    else:
        assert_allclose(centre, pack(mode), atol=0.03)
    covariance = np.linalg.inv(information(model, mode))
    scale = np.sqrt(np.diag(covariance))
    assert_allclose(np.cov(x_sp.T) / np.outer(scale, scale), covariance / np.outer(scale, scale), atol=0.05)


def unpacked(x_p):
    from moral_entropy.consensus.coordinates import unpack

    return unpack(x_p, 2)


@pytest.mark.parametrize("tail", [0.005, 0.05, 0.25])
@pytest.mark.parametrize("shape", ["normal", "skewed", "two points", "constant"])
def test_fast_interval_equals_numpy_quantiles(shape, tail):
    rng = np.random.default_rng(7)
    x_s = {
        "normal": rng.normal(size=1_001),
        "skewed": rng.exponential(size=1_000) ** 3,
        "two points": rng.integers(0, 2, size=1_000).astype(float),
        "constant": np.full(999, 3.0),
    }[shape]
    expected = np.quantile(x_s, [tail, 1 - tail])
    assert_allclose(interval(x_s.copy(), tail, 1.2816, np.empty_like(x_s)), expected, rtol=1e-12, atol=1e-12)


def test_more_votes_narrow_the_interval_and_lower_the_entropy():
    few, many = (fit(some_votes(2, seed=2, n_items=400, n_annotators=a), draws=400) for a in (3, 12))
    assert decompose_entropy(many).total_i.mean() < 0.7 * decompose_entropy(few).total_i.mean()
    assert decompose_entropy(many).epistemic_i.mean() < 0.7 * decompose_entropy(few).epistemic_i.mean()


def test_an_item_without_votes_has_the_prevalence_of_the_mode():
    votes = some_votes(3)
    fitted = fit(votes, draws=0).fits[0]
    assert fitted.ballot.votes_i[-1] == 0
    assert_allclose(fitted.posterior_ik[-1], fitted.prevalence_k, rtol=1e-12)
    assert log_posterior_of(votes).n_items == 60
