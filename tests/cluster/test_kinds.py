"""Kinds of items stand for the items themselves in all that depends on counts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from support import vote_rows, votes_of

from moral_entropy.cluster.kinds import add_kinds, facts_of, kinds_of_part, place_of, votes_of_kinds
from moral_entropy.cluster.outliers import in_one_order
from moral_entropy.cluster.parts import cut_votes, make_part
from moral_entropy.outliers.agreement import measure_agreement


@given(rows=vote_rows(max_items=20), n_parts=st.integers(1, 5))
def test_kinds_of_parts_are_the_kinds_of_all(rows, n_parts):
    votes = votes_of(*rows)
    by_part = [kinds_of_part(make_part(cut, False))[0] for cut in cut_votes(votes, n_parts)]
    kinds = add_kinds(by_part)
    expected_nf, n_n = np.unique(facts_of(votes, votes.ballots[0]), axis=0, return_counts=True)
    assert_array_equal(kinds.fact_nf, expected_nf)
    assert_array_equal(kinds.weight_n, n_n)
    place_i = place_of(facts_of(votes, votes.ballots[0]), kinds.fact_nf)
    assert_array_equal(kinds.fact_nf[place_i], facts_of(votes, votes.ballots[0]))


@given(rows=vote_rows(max_items=20))
def test_agreement_of_kinds_is_that_of_items(rows):
    votes = votes_of(*rows)
    ballot = votes.ballots[0]
    kinds = kinds_of_part(make_part(votes, False))
    condensed = votes_of_kinds(votes, kinds, [ballot.votes_a]).ballots[0]
    assert condensed.count_i.sum() == ballot.n_items
    expected = measure_agreement(ballot.counts_ik, seed=1)
    found = measure_agreement(condensed.counts_ik, condensed.count_i, seed=1)
    assert repr(found) == repr(expected)


def test_rankings_keep_their_order_where_a_part_lacks_some():
    assert in_one_order([["a", "d"], ["a", "b", "d"], ["b", "c", "d"]]) == ["a", "b", "c", "d"]
