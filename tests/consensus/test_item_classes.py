"""Item classes stand for the items themselves in all that depends on counts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from moral_entropy.cluster.parts import cut_votes
from numpy.testing import assert_array_equal
from polars.testing import assert_frame_equal
from support import vote_rows, votes_of

from moral_entropy.consensus.item_classes import add_classes, facts_of, place_of
from moral_entropy.consensus.parts import classes_of_part, local_parts, make_part
from moral_entropy.items.agreement import measure_agreement


@given(rows=vote_rows(max_items=20), n_parts=st.integers(1, 5))
def test_classes_of_parts_are_the_classes_of_all(rows, n_parts):
    votes = votes_of(*rows)
    by_part = [classes_of_part(make_part(cut, False))[0] for cut in cut_votes(votes, n_parts)]
    classes = add_classes(by_part)
    fact_if = np.column_stack(facts_of(votes, votes.ballots[0]))
    expected_nf, n_n = np.unique(fact_if, axis=0, return_counts=True)
    assert_array_equal(classes.fact_nf, expected_nf)
    assert_array_equal(classes.weight_n, n_n)
    assert_array_equal(classes.fact_nf[place_of(fact_if, classes.fact_nf)], fact_if)


@given(rows=vote_rows(max_items=20))
def test_the_class_of_an_item_has_its_facts(rows):
    votes = votes_of(*rows)
    ((classes, class_i),) = make_part(votes, False).classes
    assert_array_equal(classes.fact_nf[class_i], np.column_stack(facts_of(votes, votes.ballots[0])))


@given(rows=vote_rows(max_items=20))
def test_agreement_of_classes_is_that_of_items(rows):
    votes = votes_of(*rows)
    ballot = votes.ballots[0]
    condensed = local_parts(votes).class_votes.ballots[0]
    assert condensed.count_i.sum() == ballot.n_items
    expected = measure_agreement(ballot.counts_ik, seed=1)
    found = measure_agreement(condensed.counts_ik, condensed.count_i, seed=1)
    assert_frame_equal(found, expected, check_exact=True)
