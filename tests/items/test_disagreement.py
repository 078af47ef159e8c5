"""Disagreement with the majority, with and without the own vote, against loops over votes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import vote_rows, votes_of

from moral_entropy.items import disagreement as module
from moral_entropy.items.disagreement import majority_label, tally_votes
from moral_entropy.rules.grade import share_of
from moral_entropy.votes.table import UNKNOWN


def plain_others(rows, n_annotators, count_i):
    against, heard = Counter(), Counter()
    for i, a, label in rows:
        others = Counter(other for j, b, other in rows if j == i and b != a)
        if not others:
            continue
        top = [one for one, n in others.items() if n == max(others.values())]
        heard[a] += count_i[i]
        against[a] += count_i[i] * (1 - (label in top) / len(top))
    return [against[a] / heard[a] if heard[a] else np.nan for a in range(n_annotators)]


def disagreement_with_others(ballot, **options):
    return share_of(*tally_votes(ballot, **options)[1:3])


@settings(max_examples=80, deadline=None)
@given(vote_rows(), st.booleans())
def test_own_votes_left_out_by_loops(given_rows, counted):
    rows, n_labels = given_rows
    n_items = max(i for i, _, _ in rows) + 1
    count_i = np.arange(1.0, n_items + 1) if counted else np.ones(n_items)
    ballot = votes_of(rows, n_labels, count_i=count_i).ballots[0]
    found = disagreement_with_others(ballot)
    np.testing.assert_allclose(found, plain_others(rows, ballot.n_annotators, count_i), atol=1e-12)


def test_all_of_an_annotators_repeated_votes_are_left_out():
    rows = [(0, 0, 1), (0, 0, 1), (0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 1)]
    ballot = votes_of(rows).ballots[0]
    np.testing.assert_allclose(disagreement_with_others(ballot), plain_others(rows, 2, np.ones(2)))


def test_anonymous_votes_leave_out_only_themselves():
    ballot = votes_of([(0, 0, 1), (0, 0, 1), (0, 0, 0), (1, 0, 1)]).ballots[0]
    assert np.isnan(disagreement_with_others(ballot)[0])
    # Each yes sees one yes and one no, a tie; the no sees two yes; the last item has nobody else.
    assert disagreement_with_others(ballot, anonymous=True)[0] == pytest.approx((0.5 + 0.5 + 1) / 3)


def test_the_majority_of_two_ties_to_positive_and_of_more_to_the_first():
    assert majority_label(np.array([[1, 1], [2, 1], [0, 0]]), positive=0).tolist() == [0, 0, 0]
    assert majority_label(np.array([[1, 1], [2, 1]]), positive=1).tolist() == [1, 0]
    assert majority_label(np.array([[1, 2, 2]]), positive=2).tolist() == [1]


def test_chunks_change_nothing(monkeypatch):
    rng = np.random.default_rng(1)
    rows = [(i, a, int(rng.integers(3))) for i in range(40) for a in range(5) if rng.random() < 0.6]
    ballot = votes_of(rows, 3, n_items=40).ballots[0]
    whole = tally_votes(ballot)
    monkeypatch.setattr(module, "ITEMS_AT_ONCE", 7)
    np.testing.assert_allclose(tally_votes(ballot), whole, rtol=1e-13)


def test_votes_like_gold_by_loops(monkeypatch):
    monkeypatch.setattr(module, "ITEMS_AT_ONCE", 7)
    rng = np.random.default_rng(1)
    rows = [(i, a, int(rng.integers(3))) for i in range(40) for a in range(5) if rng.random() < 0.6]
    gold_i, count_i = rng.integers(-1, 3, size=40), rng.integers(1, 4, size=40)
    ballot = votes_of(rows, 3, n_items=40, gold_i=gold_i, count_i=count_i.astype(float)).ballots[0]
    right, known = Counter(), Counter()
    for i, a, label in rows:
        known[a] += count_i[i] * (gold_i[i] != UNKNOWN)
        right[a] += count_i[i] * (gold_i[i] == label)
    right_a, known_a = tally_votes(ballot)[3:]
    assert right_a.tolist() == [right[a] for a in range(5)]
    assert known_a.tolist() == [known[a] for a in range(5)]
