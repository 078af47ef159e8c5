"""Who errs together: counts by hand, chances against scipy and all permutations, panels whose design is known."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import nchypergeom_fisher

from moral_entropy.judges.common_errors import _tilted, count_errors, find_common_errors
from moral_entropy.votes.table import UNKNOWN

RIGHT = (0.9, 0.86, 0.84, 0.8, 0.7)


def independent(rng, n, right=RIGHT, n_labels=2):
    """Judges who err each by itself, all wrong labels alike."""
    truth_i = rng.integers(0, n_labels, n)
    wrong_ji = (truth_i + rng.integers(1, n_labels, (len(right), n))) % n_labels
    return np.where(rng.random((len(right), n)) < np.array(right)[:, None], truth_i, wrong_ji), truth_i


def followed(rng, n, followers, noise, right=RIGHT, n_labels=2):
    """The same, and judges who say what the last says, but for some items."""
    vote_ji, truth_i = independent(rng, n, right, n_labels)
    other_ji = (vote_ji[-1] + rng.integers(1, n_labels, (followers, n))) % n_labels
    return np.vstack([vote_ji, np.where(rng.random((followers, n)) < noise, other_ji, vote_ji[-1])]), truth_i


def hard(rng, n, right, slope):
    """Judges who all err on the same hard items: hardness is normal, and the chance to be right logistic."""
    truth_i, hard_i, many = rng.integers(0, 2, n), rng.normal(size=n), rng.normal(size=4_000)
    start = np.linspace(-8, 12, 400)
    mean = (1 / (1 + np.exp(-(start[:, None] + slope * many)))).mean(axis=1)
    at_j = np.interp(right, mean, start)
    right_ji = rng.random((len(right), n)) < 1 / (1 + np.exp(-(at_j[:, None] + slope * hard_i)))
    return np.where(right_ji, truth_i, 1 - truth_i), truth_i


def members(vote_ji, truth_i, n_labels=2):
    return [found.judges for found in find_common_errors(vote_ji, truth_i, n_labels).groups]


@given(
    st.integers(2, 3).flatmap(
        lambda k: st.lists(
            st.tuples(st.integers(0, k - 1), *[st.integers(-1, k - 1)] * 3), min_size=1, max_size=25
        ).map(lambda rows: (k, np.array(rows)))
    )
)
def test_same_wrong_answers_are_counted(made):
    n_labels, rows = made
    gold_i, vote_ji = rows[:, 0], rows[:, 1:].T
    pairs = count_errors(vote_ji, gold_i, n_labels)
    for j, one in ((j, o) for j in range(3) for o in range(3) if j != o):
        both = (vote_ji[j] != UNKNOWN) & (vote_ji[one] != UNKNOWN)
        assert pairs.same_jl[j, one] == (both & (vote_ji[j] == vote_ji[one]) & (vote_ji[j] != gold_i)).sum()
        beyond, square = 0.0, np.zeros(2)
        for k in range(n_labels):
            here = both & (gold_i == k)
            for v in (v for v in range(n_labels) if v != k and here.any()):
                x, y = (vote_ji[j][here] == v) * 1.0, (vote_ji[one][here] == v) * 1.0
                beyond += ((x - x.mean()) * (y - y.mean())).sum()
                square += ((x - x.mean()) ** 2).sum(), ((y - y.mean()) ** 2).sum()
        expected = beyond / np.sqrt(square.prod()) if square.prod() > 1e-12 else 0.0
        assert pairs.correlation_jl[j, one] == pytest.approx(expected, abs=1e-9)


def test_the_chance_is_that_over_all_orders_of_one_judges_votes():
    gold_i = np.array([0] * 5 + [1] * 4)
    vote_ji = np.array([[1, 1, 0, 0, 0, 0, 1, 1, 1], [1, 0, 0, 0, 1, 0, 1, 1, 0]])
    pairs = count_errors(vote_ji, gold_i, 2)
    wrong = vote_ji != gold_i
    same = [
        (wrong[0] & np.concatenate([first, second])).sum()
        for first in permutations(wrong[1, :5])
        for second in permutations(wrong[1, 5:])
    ]
    assert pairs.chance(0, 1, 0.0) == pytest.approx(np.mean(np.array(same) >= (wrong[0] & wrong[1]).sum()))


def test_where_errors_go_together_the_chance_is_fishers():
    """One known answer: 30 items, of which the judges miss 10 and 12, 8 of them both."""
    vote_ji = np.ones((2, 30), dtype=np.int64)
    vote_ji[0, :10], vote_ji[1, 2:14] = 0, 0
    pairs = count_errors(vote_ji, np.ones(30, dtype=np.int64), 2)
    mean = 10 * 12 / 30 + 0.3 * np.sqrt(10 * 20 / 30 * 12 * 18 / 30)
    odds = np.exp(np.linspace(0, 6, 6_001))
    at = odds[np.argmin([abs(nchypergeom_fisher.mean(30, 10, 12, one) - mean) for one in odds[::50]]) * 50]
    near = min(
        np.linspace(at / 1.1, at * 1.1, 201), key=lambda one: abs(nchypergeom_fisher.mean(30, 10, 12, one) - mean)
    )
    assert pairs.chance(0, 1, 0.3) == pytest.approx(nchypergeom_fisher.sf(7, 30, 10, 12, near), rel=0.01)
    mass_x = _tilted(np.array([0.5, 0.3, 0.2]), np.arange(3), 1.3)
    assert (mass_x.sum(), mass_x @ np.arange(3)) == pytest.approx((1.0, 1.3))


@pytest.mark.parametrize("n_labels", [2, 3])
def test_followers_are_found_and_nobody_else(n_labels):
    for seed in range(5):
        made = followed(np.random.default_rng([1, seed]), 200, 4, 0.1, n_labels=n_labels)
        assert members(*made, n_labels) == [(4, 5, 6, 7, 8)]


def test_independent_judges_are_no_group():
    found = [members(*independent(np.random.default_rng([2, seed]), n)) for n in (50, 200) for seed in range(40)]
    assert found == [[]] * 80


def test_items_that_are_hard_for_all_make_no_group_and_are_said():
    found = [
        find_common_errors(*hard(np.random.default_rng([3, seed]), 200, RIGHT, 2.0), n_labels=2) for seed in range(20)
    ]
    assert [one.groups for one in found] == [()] * 20
    assert sum(one.shared_by_all > 0.2 for one in found) >= 18


def test_two_judges_are_one_only_if_they_all_but_repeat_each_other():
    rng = np.random.default_rng(4)
    assert members(*followed(rng, 300, 1, 0.02, right=(0.7,))) == [(0, 1)]
    assert members(*followed(rng, 300, 1, 0.15, right=(0.7,))) == []


def test_few_known_answers_tell_nothing():
    vote_ji, truth_i = followed(np.random.default_rng(5), 200, 4, 0.03)
    gold_i = np.where(np.arange(200) < 29, truth_i, UNKNOWN)
    assert find_common_errors(vote_ji, gold_i, 2)[:2] == ((), 0.0)
    assert find_common_errors(vote_ji, np.full(200, UNKNOWN), 2)[:2] == ((), 0.0)


@given(st.permutations(range(7)))
def test_the_order_of_judges_does_not_matter(order):
    vote_ji, truth_i = followed(np.random.default_rng(6), 120, 2, 0.05)
    place = {old: new for new, old in enumerate(order)}
    [found] = members(vote_ji[list(order)], truth_i)
    assert set(found) == {place[j] for [group] in [members(vote_ji, truth_i)] for j in group}
