"""Camps are found where there are some, and not shown where there are none."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from group_support import crowd
from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.groups.camps import adjusted_rand, find_camps, search_camps


def test_two_camps_of_unequal_size_are_found():
    votes, group_a, _ = crowd(1, sizes=(14, 7), items=50, votes=35, parting=0.5)
    camps = find_camps(votes, most=2)
    assert camps.reason == "" and camps.gain_p < 0.05 and camps.stability > 0.8
    assert adjusted_rand(camps.camp_a, group_a) > 0.9
    assert np.bincount(camps.camp_a)[0] >= np.bincount(camps.camp_a)[1]


def test_a_crowd_with_one_truth_has_none():
    votes, _, _ = crowd(2, sizes=(10, 10), items=40, votes=25, threshold=1.0)
    assert find_camps(votes, most=2).reason != ""


def test_three_camps_are_told_apart():
    votes, group_a, _ = crowd(5, sizes=(10, 8, 6), items=80, votes=70, parting=0.5)
    member_ac, _ = search_camps(votes, 3, seed=0)
    assert adjusted_rand(member_ac.argmax(axis=1), group_a) > 0.9
    np.testing.assert_allclose(member_ac.sum(axis=1), 1.0, atol=1e-5)


def test_too_few_annotators_have_no_camps():
    assert find_camps(crowd(1, sizes=(3, 2), items=10, votes=5)[0]) is None


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=9))
def test_adjusted_rand_counts_pairs(pairs):
    one, other = map(np.array, zip(*pairs, strict=True))
    couples = list(combinations(range(len(one)), 2))
    same_one, same_other = ([bool(x[i] == x[j]) for i, j in couples] for x in (one, other))
    both, a, b = sum(p and q for p, q in zip(same_one, same_other, strict=True)), sum(same_one), sum(same_other)
    expected, most = a * b / len(couples), (a + b) / 2
    found = adjusted_rand(one, other)
    assert found == pytest.approx(1.0 if most == expected else (both - expected) / (most - expected))
