"""The findings of the cheap sides, votes in parts, against those of one machine: row by row, word by word."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cluster.here import Here
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from polars.testing import assert_frame_equal
from support import log_posterior_of, random_parameters, random_rows, vote_rows, votes_of

from moral_entropy.cluster.parts import send_votes
from moral_entropy.consensus.fit import fit, fit_parts
from moral_entropy.consensus.fitted import local_fit
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.tempering import heldout_exponent, learn_from_votes
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.runs.findings import findings_frame
from moral_entropy.validate.sides import CHEAP, examine_cheaply
from moral_entropy.validate.vote_access import VoteAccess, votes_of_fits

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")


def fitted_in(votes, n_parts, **options):
    """Votes in several parts, fitted."""
    chosen = FitOptions(**options)
    parts = send_votes(votes, Here(), use_gold=chosen.use_gold, by_domain=chosen.by_domain, n_parts=n_parts)
    return fit_parts(parts, Priors(), chosen)


def fitted_here(votes, **options):
    return local_fit(fit(votes, **options))


def assert_same_findings(votes, n_parts, **options):
    """Give the findings, after holding those of parts against those of one machine."""
    expected = findings_frame(examine_cheaply(fitted_here(votes, **options), seed=3))
    found = findings_frame(examine_cheaply(fitted_in(votes, n_parts, **options), seed=3))
    # What domains have in common is learnt in rounds, in which the last bits of sums over parts add up.
    close = 1e-6 if len(votes.domains) > 1 else 1e-8
    assert_frame_equal(found, expected, check_exact=False, rel_tol=close, abs_tol=close)
    return found


@pytest.mark.parametrize("n_parts", [1, 3, 11])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_findings_are_those_of_one_machine(n_parts, n_labels):
    votes = simulate_votes(n_items=900, n_annotators=12, votes_per_item=4, n_labels=n_labels, seed=n_parts).votes
    found = assert_same_findings(votes, n_parts, draws=120)
    assert set(found["side"]) == set(CHEAP)
    assert found.filter(figure="pareto_k")["n"].to_list() == [120]


def test_identical_items_in_several_parts():
    votes = simulate_votes(n_items=3_000, n_annotators=4, votes_per_item=3, seed=1).votes
    assert VoteAccess(fitted_in(votes, 5, draws=0), 0).n_votes < votes.n_votes / 10
    assert_same_findings(votes, 5, draws=120)


def two_teams():
    """Two groups that share no item, the second with an annotator who says the opposite of what they mean."""
    rng = np.random.default_rng(4)
    truth_i = rng.integers(2, size=400)
    rows = []
    for i in range(400):
        team = range(3) if i < 250 else range(3, 7)
        for a in team:
            right = rng.random() < (0.1 if a == 5 else 0.85)
            rows.append((i, a, truth_i[i] if right else 1 - truth_i[i]))
    return votes_of(rows)


@pytest.mark.parametrize("n_parts", [2, 6])
@pytest.mark.parametrize("many", [False, True], ids=["few votes", "many votes"])
def test_teams_groups_and_votes_that_are_overruled(monkeypatch, n_parts, many):
    if many:
        # Then rows stay with the workers, and are sampled before switches are tried on all of them.
        monkeypatch.setattr("moral_entropy.validate.vote_access.SAMPLE_PAIRS", 60)
    found = assert_same_findings(two_teams(), n_parts, draws=120)
    assert found.filter(figure="groups")["value"].to_list() == [2.0]
    assert found.filter(figure="below_chance")["value"].to_list() == [1.0]
    assert found.filter(figure="switch_cost", level="doubt").height + found.filter(level="bad").height > 0


@pytest.mark.parametrize(
    "options",
    [
        {"draws": 0},
        {"draws": 120, "use_gold": True},
        {"draws": 120, "constrain": "better-than-chance"},
        {"draws": 120, "model": "paper"},
        {"draws": 120, "model": "paper", "temper": "heldout"},
        {"draws": 120, "model": "paper", "temper": "gold"},
        {"draws": 120, "model": "paper", "temper": 0.7},
        {"draws": 120, "pooling": "full"},
        {"draws": 120, "model": "paper", "pooling": "full", "temper": "gold"},
        {"draws": 0, "model": "paper", "pooling": "full", "temper": "heldout"},
        {"draws": 120, "domain_prevalence": "off"},
    ],
    ids=str,
)
def test_however_it_was_fitted(options):
    rng = np.random.default_rng(5)
    gold_i = np.where(np.arange(300) % 4 == 0, rng.integers(2, size=300), -1)
    votes = votes_of(random_rows(rng, 300, 8, 2, share=0.5), n_items=300, gold_i=gold_i)
    votes = replace(votes, domains=("a", "b"), domain_i=(np.arange(300) % 3 == 0).astype(np.int32))
    assert_same_findings(votes, 4, **options)


def test_samples_of_many_votes_are_those_of_one_machine(monkeypatch):
    monkeypatch.setattr("moral_entropy.validate.vote_access.PAIRS_OF_VOTES", 2_000)
    monkeypatch.setattr("moral_entropy.validate.vote_access.SAMPLE_PAIRS", 1_500)
    monkeypatch.setattr("moral_entropy.validate.laplace.MOST_VOTES", 1e4)
    votes = simulate_votes(n_items=900, n_annotators=20, votes_per_item=4, seed=2).votes
    found = assert_same_findings(votes, 4, draws=120)
    assert "too much for a cheap check" in found.filter(figure="pareto_k")["text"].item()
    spread, whole = VoteAccess(fitted_in(votes, 4, draws=0), 0), VoteAccess(fitted_here(votes, draws=0), 0)
    assert_array_equal(spread.shared_items().toarray(), whole.shared_items().toarray())
    assert spread.shared_items().sum() < len(votes.ballots[0].code_v)
    some, all_rows = spread.small_density.patterns, whole.small_density.patterns
    assert_array_equal(some.code_v, all_rows.code_v)
    assert some.n_rows < whole.fit.patterns.n_rows


@given(rows=vote_rows(max_items=15, max_annotators=6), n_parts=st.integers(1, 5))
@settings(max_examples=20)
def test_links_of_any_votes(rows, n_parts):
    names = sorted({a for _, a, _ in rows[0]})
    votes = votes_of([(i, names.index(a), k) for i, a, k in rows[0]], rows[1])
    spread, whole = VoteAccess(fitted_in(votes, n_parts, draws=0), 0), VoteAccess(fitted_here(votes, draws=0), 0)
    for found, expected in zip(spread.groups(), whole.groups(), strict=True):
        assert_array_equal(found, expected)
    assert_array_equal(spread.shared_items().toarray(), whole.shared_items().toarray())
    assert spread.unsupported() == whole.unsupported()
    assert_allclose(spread.density.votes_c, whole.density.votes_c)


@pytest.mark.parametrize("most_votes", [200, 10**6])
def test_the_exponent_is_learnt_from_the_rows_of_one_machine(monkeypatch, most_votes):
    monkeypatch.setattr("moral_entropy.consensus.tempering.MOST_VOTES", most_votes)
    rng = np.random.default_rng(6)
    votes = votes_of(random_rows(rng, 400, 9, 2, share=0.3), n_items=400)
    at = random_parameters(rng, 9, 2)
    parts = send_votes(votes, Here(), n_parts=5)
    expected = heldout_exponent(log_posterior_of(votes), at, most_votes=most_votes)
    found = learn_from_votes(parts, 0, log_posterior_of(votes), at)
    assert found.n == expected.n
    assert_allclose([found.value, found.gain, found.surplus], [expected.value, expected.gain, expected.surplus])
    assert (found.n < 300) == (most_votes == 200)


def test_questions_with_the_same_voters_share_their_links():
    one = simulate_votes(n_items=300, n_annotators=8, votes_per_item=3, seed=7).votes
    other = simulate_votes(n_items=300, n_annotators=8, votes_per_item=4, seed=8).votes.ballots[0]
    first = one.ballots[0]
    turned = replace(first, question="turned", code_v=first.code_v ^ 1)
    votes = replace(one, ballots=(first, turned, replace(other, question="other")))
    assert_same_findings(votes, 3, draws=120)
    spread, as_turned, apart = map(votes_of_fits(fitted_in(votes, 3, draws=0)), range(3))
    assert as_turned.same_voters(spread)
    assert not apart.same_voters(spread)
