"""The grid of priors: its rows against fits made one by one, its doubts on thin and on plentiful votes."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest
from scipy.special import entr
from support import posterior_draws

import moral_entropy as me
from moral_entropy.checks.priors import ENTROPIES, ROWS, cross_of, examine_priors, prior_grid, star_of
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.priors import Priors
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.corpora.twins import twin
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.rules.table import audit_rules


def quiet_fit(votes, **options):
    """A fit whose warnings are not this test's business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(votes, **options)


@pytest.fixture(scope="module", params=["mixed", "paper"])
def plenty(request):
    return quiet_fit(simulate_votes(n_items=400, n_annotators=8, votes_per_item=5, seed=3).votes, model=request.param)


@pytest.fixture(scope="module")
def star(plenty):
    return prior_grid(plenty, star_of(plenty), draws=100)


def value(grid, prior, figure, subject):
    return grid.filter(prior=prior, figure=figure, subject=subject)["value"].item()


def test_every_prior_has_every_figure(plenty, star):
    total, *parts = ENTROPIES[plenty.options.model]
    wanted = {("prevalence", "1"), (total, ""), *((part, "") for part in parts)}
    wanted |= {(rate, rule) for rate in ("fpr", "fnr") for rule in ("any", "majority")}
    for _, some in star.group_by("prior"):
        assert set(some.select("figure", "subject").rows()) == wanted
    assert star["prior"].n_unique() == 3 + len(ROWS) + 2
    summed = star.filter(pl.col("figure").is_in(parts)).group_by("prior").agg(pl.col("value").sum())
    both = summed.join(star.filter(figure="total").select("prior", total="value"), on="prior")
    np.testing.assert_allclose(both["value"], both["total"], atol=1e-9)


@pytest.mark.parametrize(
    ("name", "priors", "pooling"),
    [
        ("80,20 · 1.8/1.2 · none", Priors(prevalence=(80, 20)), "none"),
        ("reported · 6/2 · none", Priors(diagonal=6, off_diagonal=2), "none"),
        ("reported · 1.8/1.2 · full", Priors(), "full"),
    ],
)
def test_a_row_of_the_grid_is_a_fit_made_by_hand(plenty, star, name, priors, pooling):
    refit = quiet_fit(plenty.votes, priors=priors, pooling=pooling, draws=100, model=plenty.options.model)
    one = refit.fits[0]
    assert value(star, name, "prevalence", "1") == one.share_k[1]
    assert one.share_k[1] == pytest.approx(one.prevalence_sk[:, 1].mean(), rel=1e-14)
    p_i = posterior_draws(one).mean(axis=0)[:, 1]
    np.testing.assert_allclose(value(star, name, "total", ""), (entr(p_i) + entr(1 - p_i)).mean(), rtol=1e-6)
    if plenty.options.model == "mixed":
        return
    # The rule's rates with plain counts.
    any_i = one.ballot.counts_ik[:, 1] > 0
    assert value(star, name, "fpr", "any") == pytest.approx(any_i[p_i < 0.5].mean())
    assert value(star, name, "fnr", "any") == pytest.approx((~any_i)[p_i >= 0.5].mean())


def test_plentiful_votes_raise_no_doubt_and_thin_ones_do(plenty):
    findings = examine_priors(plenty, draws=50)
    assert not [found for found in findings if found.alarms]
    (span,) = [found for found in findings if found.figure == "range_prevalence"]
    assert span.low < plenty.fits[0].prevalence_sk[:, 1].mean() < span.high
    assert span.value == pytest.approx(span.high - span.low)
    votes = simulate_votes(
        n_items=1_500, n_annotators=150, votes_per_item=1.3, prevalence_k=(0.8, 0.2), accuracy=(0.75, 0.9), seed=1
    ).votes
    (doubt,) = [found for found in examine_priors(quiet_fit(votes), draws=50) if found.alarms]
    assert doubt.figure == "range_prevalence"
    assert "the default assumption (the prior) decides" in doubt.meaning


def test_three_labels_have_no_prior_of_two_and_rates_of_each():
    votes = simulate_votes(n_items=150, n_annotators=6, votes_per_item=4, n_labels=3).votes
    names = {choice.prevalence for choice in cross_of(votes)}
    assert names == {"flat", "500,500"}
    grid = prior_grid(quiet_fit(votes, draws=0), cross_of(votes)[:2], draws=30)
    assert set(grid.filter(figure="fpr")["subject"]) == {f"{rule} · {k}" for rule in ("any", "majority") for k in "012"}
    assert set(grid.filter(figure="prevalence")["subject"]) == {"0", "1", "2"}
    shares = grid.filter(figure="prevalence").group_by("prior").agg(pl.col("value").sum())
    np.testing.assert_allclose(shares["value"], 1.0, atol=1e-9)


def test_rates_are_those_of_the_audit(plenty, star):
    refit = quiet_fit(plenty.votes, priors=Priors(diagonal=4, off_diagonal=1), draws=100)
    frame = audit_rules(plenty.votes, refit, rules=["majority"], reference="consensus").frame
    wanted = frame.filter(question="label", domain="(all)", label="1", metric="fnr")["value"].item()
    assert value(star, "reported · 4/1 · none", "fnr", "majority") == wanted


def test_a_prior_without_pseudo_votes_for_errors_can_be_fitted_to_thin_votes():
    # Rows of 4/1 let modes lie on the edge of the simplex; the grid needs their fit all the same.
    votes = me.read_votes(twin("emfd", scale=0.03))
    choices = [choice for choice in cross_of(votes) if choice.name == "flat · 4/1 · none"]
    grid = prior_grid(quiet_fit(votes, draws=0), choices, draws=20)
    shares = grid.filter(figure="prevalence")["value"]
    assert len(shares) == 5
    assert shares.is_between(0, 1).all()
