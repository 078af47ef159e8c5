"""NUTS against sums over every labelling, and what it says of Laplace draws."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np
import pytest
from checks.exact import exact_posterior
from support import random_rows, votes_of

from moral_entropy import fit, simulate_votes
from moral_entropy.checks.nuts import check_nuts, sample
from moral_entropy.checks.posterior import posterior_of
from moral_entropy.checks.run import run_check
from moral_entropy.errors import MissingExtraError
from moral_entropy.model.draws import posterior_draws
from moral_entropy.model.priors import Priors
from moral_entropy.model.search import unpack

pytestmark = [
    pytest.mark.skipif(find_spec("nutpie") is None, reason="needs the extra: pip install 'moral-entropy[mcmc]'"),
    pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning"),
]


@pytest.mark.parametrize(("n_items", "n_annotators", "n_labels"), [(8, 3, 2), (6, 2, 3)])
def test_moments_are_those_of_the_sum_over_labellings(n_items, n_annotators, n_labels):
    rows = random_rows(np.random.default_rng(n_labels), n_items, n_annotators, n_labels)
    priors = Priors(prevalence=3.0, diagonal=4.0, off_diagonal=1.5)
    one = fit(votes_of(rows, n_labels), priors=priors, draws=200, model="paper").fits[0]
    exact = exact_posterior(rows, one.pseudo.weight_dg[0], one.pseudo.confusion_akv)
    posterior = posterior_of(one)
    x_csp, diverged = sample(one, posterior, chains=2, tune=200, draws=500, seed=1)
    assert diverged == 0
    x_sp = x_csp.reshape(1_000, -1)
    weight_sdg, confusion_sakv = drawn = unpack(x_sp, one.mode)
    # Five standard errors, two of three draws being effective.
    for value_s, mean, sd in (
        (weight_sdg[:, 0], exact.prevalence_k, exact.prevalence_sd_k),
        (confusion_sakv, exact.confusion_akv, exact.confusion_sd_akv),
    ):
        assert (np.abs(value_s.mean(axis=0) - mean) < 5 * sd / np.sqrt(650)).all()
        np.testing.assert_allclose(value_s.std(axis=0), sd, rtol=0.2)
    label_rk = posterior_draws(one.patterns, one.states, drawn, np.arange(one.patterns.n_rows)).mean(axis=0)
    np.testing.assert_allclose(label_rk[one.patterns.row_i], exact.label_ik, atol=0.05)
    again, _ = sample(one, posterior, chains=2, tune=20, draws=20, seed=7)
    other, _ = sample(one, posterior, chains=2, tune=20, draws=20, seed=8)
    assert not np.array_equal(again, other)
    np.testing.assert_array_equal(again, sample(one, posterior, chains=2, tune=20, draws=20, seed=7)[0])


@pytest.mark.parametrize("model", ["mixed", "paper"])
def test_laplace_agrees_with_nuts_where_votes_are_plenty(model):
    votes = simulate_votes(n_items=400, n_annotators=5, votes_per_item=5, seed=2).votes
    consensus = fit(votes, model=model)
    # Shorter chains mix too badly on some processors: 57 effective draws of 500, and a ratio of .55.
    found = {f.metric: f for f in check_nuts(consensus, chains=2, tune=400, draws=1_000)}
    ratio = found["epistemic_ratio"]
    # Few pseudo-votes leave the rows of good annotators skewed: the Gaussian overstates their part a little.
    assert 0.6 < ratio.value < (1.6 if model == "paper" else 2.0) and "p differs by" in ratio.text
    assert found["p_mean_difference"].value < 0.05
    assert 0.7 < found["coverage"].value <= 1.0
    assert found["ess"].value > 50 and found["rhat"].value < 1.1
    assert found["divergences"].value == 0


def test_what_is_not_sampled_is_said():
    votes = simulate_votes(n_items=60, n_annotators=4, votes_per_item=3, seed=2).votes
    (finding,) = check_nuts(fit(votes, draws=0))
    assert finding.level == "info" and "no draws" in finding.text


def test_a_missing_extra_is_an_error_only_where_the_check_was_asked_for(monkeypatch):
    consensus = fit(simulate_votes(n_items=60, n_annotators=4, votes_per_item=3).votes, draws=20)
    monkeypatch.setitem(sys.modules, "nutpie", None)
    with pytest.raises(MissingExtraError, match=r"moral-entropy\[mcmc\]"):
        run_check(consensus, "nuts")
    (left_out,) = run_check(consensus, "nuts", required=False)
    assert (left_out.metric, left_out.level) == ("left_out", "info") and "moral-entropy[mcmc]" in left_out.text
