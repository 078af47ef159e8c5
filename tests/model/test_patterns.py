"""Collapsing: nothing lost, nothing merged that differs."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from numpy.testing import assert_array_equal
from support import vote_rows, votes_of

from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.model.patterns import collapse


def as_sets(start, code_v):
    return [tuple(code_v[a:b]) for a, b in pairwise(start)]


@settings(max_examples=80, deadline=None, derandomize=True)
@given(made=vote_rows(max_items=30, max_annotators=2))
def test_every_item_finds_its_own_votes_in_its_row(made):
    rows, n_labels = made
    ballot = votes_of(rows, n_labels, n_items=31).ballots[0]
    patterns = collapse(ballot)
    items = as_sets(ballot.start_i, ballot.code_v)
    found = as_sets(patterns.start_r, patterns.code_v)
    assert [found[r] for r in patterns.row_i] == items
    assert patterns.weight_r.sum() == (ballot.votes_i > 0).sum()
    if patterns.n_rows < len(items):
        assert patterns.n_rows == len(set(items))


def test_items_that_never_repeat_stay_rows_of_their_own():
    ballot = simulate_votes(n_items=2_000, n_annotators=300, votes_per_item=5, seed=1).votes.ballots[0]
    patterns = collapse(ballot)
    assert patterns.n_rows == 2_000
    assert_array_equal(patterns.row_i, np.arange(2_000))


def test_known_truth_keeps_equal_votes_apart():
    rows = [(i, 0, 1) for i in range(10)]
    ballot = votes_of(rows, gold_i=np.array([0] * 3 + [1] * 3 + [-1] * 4)).ballots[0]
    assert collapse(ballot).n_rows == 1
    clamped = collapse(ballot, use_gold=True)
    assert_array_equal(clamped.clamp_r, [0, 1, -1])
    assert_array_equal(clamped.weight_r, [3, 3, 4])
