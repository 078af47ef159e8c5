"""`refit`: a fit is repeated from what its `Consensus` holds, and only what is named changes."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from numpy.testing import assert_array_equal

from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.model.consensus import Consensus
from moral_entropy.model.fit import fit, refit
from moral_entropy.model.priors import Priors
from moral_entropy.options import FitOptions
from moral_entropy.votes.table import Votes

NOT_DEFAULT = {
    "draws": 30,
    "seed": 7,
    "interval": 0.5,
    "use_gold": True,
    "model": "paper",
    "domain_prevalence": "off",
    "merge": ("0+1",),
    "threads": 1,
}
"""A value that differs from the default, for every option that the solver "em" uses."""


@pytest.fixture(scope="module")
def votes() -> Votes:
    return simulate_votes(n_items=200, n_annotators=8, votes_per_item=5, seed=3).votes


def same(one: Consensus, other: Consensus) -> None:
    assert one.options == other.options
    assert one.priors == other.priors
    for a, b in zip(one.fits, other.fits, strict=True):
        for name in (
            "prevalence_sk",
            "confusion_akv",
            "confusion_sakv",
            "p_ik",
            "posterior_ik",
            "low_i",
            "epistemic_i",
        ):
            assert_array_equal(getattr(a, name), getattr(b, name), name)


def test_every_option_but_the_solver_is_tried() -> None:
    assert {field.name for field in fields(FitOptions)} - {"solver", "steps"} == set(NOT_DEFAULT)
    assert all(getattr(FitOptions(), name) != value for name, value in NOT_DEFAULT.items())


def test_without_changes_the_fit_is_the_same(votes: Votes) -> None:
    first = fit(votes, priors=Priors(prevalence=(6, 3), diagonal=4, off_diagonal=1.5), **NOT_DEFAULT)
    same(refit(first), first)


@pytest.mark.parametrize("name", NOT_DEFAULT)
def test_every_option_is_kept(votes: Votes, name: str) -> None:
    first = fit(votes, **{"draws": 30, name: NOT_DEFAULT[name]})
    again = refit(first)
    assert getattr(again.options, name) == NOT_DEFAULT[name]
    same(again, first)


def test_a_fit_without_draws_keeps_its_groups(votes: Votes) -> None:
    first = fit(votes, merge=("0+1",), draws=20)
    mode = refit(first, draws=0)
    assert mode.options == replace(first.options, draws=0)
    assert refit(mode, draws=20).options == first.options
    same(refit(mode, draws=20), first)


def test_votes_and_priors_may_change(votes: Votes) -> None:
    first = fit(votes, draws=0, model="paper")
    other = simulate_votes(n_items=150, n_annotators=8, votes_per_item=6, seed=9).votes
    priors = Priors(prevalence=(2, 5))
    same(refit(first, votes=other, priors=priors), fit(other, priors=priors, draws=0, model="paper"))
    assert first.votes is votes


def test_seed_and_interval_are_those_of_the_options(votes: Votes) -> None:
    found = fit(votes, draws=5, seed=11, interval=0.8)
    assert (found.options.seed, found.interval) == (11, 0.8)
