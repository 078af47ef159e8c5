"""The right reading is chosen where it is known, and none where votes cannot tell."""

from __future__ import annotations

import numpy as np
import pytest
from group_support import crowd

from moral_entropy.groups.coupled_truths import YesVotes
from moral_entropy.groups.one_truth import SHARED, judge, mean_above_zero, read_truths, thinned


@pytest.mark.parametrize(
    ("differs", "answer"),
    [({}, "one truth"), ({"threshold": 1.5}, "one truth"), ({"parting": 0.3}, "a truth per group")],
)
def test_the_right_reading_is_chosen(differs, answer):
    votes, group_a, _ = crowd(7, sizes=(10, 10), items=300, votes=100, **differs)
    reading, fits = read_truths(votes, group_a)
    assert reading.answer == answer
    assert len(fits) == len(SHARED) and reading.n_annotators == 20
    assert (reading.shared < 1.0) == (answer == "a truth per group")


def test_with_few_votes_a_truth_per_group_is_hardly_ever_claimed_where_there_is_one():
    crowds = (crowd(seed, sizes=(3, 3), items=12, votes=6) for seed in range(20))
    answers = [read_truths(votes, group_a)[0].answer for votes, group_a, _ in crowds]
    assert answers.count("a truth per group") <= 2 < answers.count("cannot tell")


def test_annotators_without_a_group_are_left_out():
    votes, group_a, _ = crowd(3, sizes=(4, 4), items=20, votes=10)
    reading, _ = read_truths(votes, np.where(np.arange(8) == 0, -1, group_a))
    assert reading.n_annotators == 7


def test_a_gain_that_rests_on_one_annotator_is_no_claim():
    score_as = np.zeros((12, len(SHARED)))
    score_as[0, 3] = 40.0
    assert judge(score_as).answer == "cannot tell"


def test_votes_without_signal_support_nothing():
    rng = np.random.default_rng(1)
    item_v, annotator_v = np.repeat(np.arange(20), 6), np.tile(np.arange(6), 20)
    votes = YesVotes(item_v, annotator_v, rng.random(120) < 0.5, 20, 6)
    assert read_truths(votes, np.repeat([0, 1], 3))[0].answer == "cannot tell"
    steady_as = 1e-3 * np.arange(len(SHARED)) * np.ones((8, 1)) * (1.0 + np.arange(8)[:, None] / 100)
    assert judge(steady_as).answer == "cannot tell"
    assert judge(100 * steady_as).answer == "a truth per group"


def test_what_does_not_vary_is_no_evidence():
    assert mean_above_zero(np.zeros(5)) == (0.0, 1.0)
    assert mean_above_zero(np.array([1.0])) == (1.0, 1.0)


def test_very_many_votes_are_thinned_to_some_items():
    votes, _, _ = crowd(1, sizes=(5, 5), items=50, votes=25)
    few, some_i = thinned(votes, seed=0, most=100)
    assert few.n_items == len(some_i) == 20 and len(few.item_v) < 150
    assert thinned(votes, seed=0)[0] is votes
