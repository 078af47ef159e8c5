"""What every rule on votes promises, whatever the votes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from moral_entropy.rules.rules import PLURALITY, RULES, rule_named

EVERY = [*RULES.values(), PLURALITY, rule_named("k-vote-5"), rule_named("quorum-3/4"), rule_named("smoothed-share-2")]

counts = st.integers(2, 4).flatmap(
    lambda n_labels: arrays(np.int32, st.tuples(st.integers(1, 12), st.just(n_labels)), elements=st.integers(0, 6))
)
every_rule = pytest.mark.parametrize("rule", EVERY, ids=lambda rule: rule.name)


@every_rule
@settings(max_examples=40, deadline=None)
@given(counts_ik=counts)
def test_scores_are_probabilities_and_silent_only_without_votes(rule, counts_ik):
    score_i = rule.scores(counts_ik, label=1)
    voted_i = counts_ik.sum(axis=1) > 0
    assert score_i.dtype == float and score_i.shape == (len(counts_ik),)
    assert_array_equal(np.isnan(score_i), ~voted_i)
    assert ((score_i[voted_i] >= 0) & (score_i[voted_i] <= 1)).all()
    if not rule.soft and rule is not PLURALITY:
        assert set(score_i[voted_i]) <= {0.0, 1.0}


@every_rule
@settings(max_examples=40, deadline=None)
@given(counts_ik=counts)
def test_votes_stay_as_they_were_and_answers_repeat(rule, counts_ik):
    before = counts_ik.copy()
    assert_array_equal(rule.scores(counts_ik, label=0), rule.scores(counts_ik, label=0))
    assert_array_equal(counts_ik, before)


@every_rule
@settings(max_examples=40, deadline=None)
@given(counts_ik=counts, order=st.randoms(use_true_random=False))
def test_the_order_of_items_is_irrelevant(rule, counts_ik, order):
    moved = list(range(len(counts_ik)))
    order.shuffle(moved)
    assert_array_equal(rule.scores(counts_ik[moved], label=1), rule.scores(counts_ik, label=1)[moved])


@every_rule
@settings(max_examples=40, deadline=None)
@given(counts_ik=counts)
def test_one_more_positive_vote_never_lowers_a_score(rule, counts_ik):
    voted_i = counts_ik.sum(axis=1) > 0
    more_ik = counts_ik.copy()
    more_ik[:, 1] += 1
    before_i, after_i = rule.scores(counts_ik, label=1), rule.scores(more_ik, label=1)
    assert (after_i[voted_i] >= before_i[voted_i] - 1e-12).all()


@every_rule
@settings(max_examples=40, deadline=None)
@given(counts_ik=counts)
def test_ties_are_where_there_are_votes(rule, counts_ik):
    tied_i = rule.ties(counts_ik, label=1)
    assert tied_i.dtype == bool
    assert not (tied_i & (counts_ik.sum(axis=1) == 0)).any()


@settings(max_examples=40, deadline=None)
@given(counts_ik=counts)
def test_plurality_adds_up_over_labels_and_follows_their_names(counts_ik):
    score_ik = np.column_stack([PLURALITY.scores(counts_ik, label) for label in range(counts_ik.shape[1])])
    voted_i = counts_ik.sum(axis=1) > 0
    assert_allclose(score_ik[voted_i].sum(axis=1), 1.0)
    turned_ik = np.roll(counts_ik, 1, axis=1)
    assert_array_equal(PLURALITY.scores(turned_ik, label=1), score_ik[:, 0])
    assert_array_equal(PLURALITY.ties(counts_ik, 0)[voted_i], (score_ik[voted_i].max(axis=1) < 1))


@pytest.mark.parametrize("name", [rule.name for rule in EVERY])
def test_every_rule_is_found_by_its_name_and_says_what_it_does(name):
    rule = rule_named(name)
    assert rule.name == name
    assert len(rule.meaning) > 10 and "\n" not in rule.meaning
