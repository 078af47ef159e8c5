"""The share of wrong labels: against exact sums and enumeration of every sheet."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from moral_entropy.verdict.checked import checks_needed, error_rate

ENDLESS = 1e12


def checked(wrong, n, population=ENDLESS):
    return error_rate([1.0] * wrong + [0.0] * (n - wrong), population)


@pytest.mark.parametrize(("wrong", "n"), [(8, 50), (1, 20), (19, 20), (3, 7)])
def test_alone_it_is_jeffreys_interval(wrong, n):
    rate = checked(wrong, n)
    assert (rate.low, rate.high) == pytest.approx(stats.beta(wrong + 0.5, n - wrong + 0.5).interval(0.9), rel=1e-6)
    assert rate.value == wrong / n


def test_without_a_wrong_one_the_interval_begins_at_nothing():
    assert checked(0, 20).low == 0.0 and checked(20, 20).high == 1.0


@pytest.mark.parametrize("wrong", [0, 1, 4, 30, 50])
def test_the_bound_is_exceeded_by_one_sheet_in_twenty_at_most(wrong):
    # The largest share under which so few wrong ones are found in a twentieth of all sheets, by adding up binomials.
    bound = checked(wrong, 50).bound
    below = sum(stats.binom.pmf(k, 50, bound) for k in range(wrong + 1))
    assert below == pytest.approx(0.05, abs=1e-6) if wrong < 50 else bound == 1.0


def test_all_labels_checked_leave_no_doubt():
    rate = checked(3, 10, population=10)
    assert (rate.low, rate.value, rate.high, rate.bound) == (0.3, 0.3, 0.3, 0.3)


def test_few_unseen_labels_are_narrow_as_enumeration_says():
    # Every sheet of 8 of 12 labels, 3 of which are wrong: how the share varies over them.
    labels = [1] * 3 + [0] * 9
    shares = [np.mean(sheet) for sheet in combinations(labels, 8)]
    rate, endless = checked(2, 8, population=12), checked(2, 8)
    assert (rate.high - rate.low) / (endless.high - endless.low) == pytest.approx(np.sqrt(4 / 12), abs=0.07)
    assert np.std(shares) == pytest.approx(np.sqrt(0.25 * 0.75 / 8 * 4 / 11), rel=1e-9)


@given(st.integers(0, 30), st.integers(1, 30), st.integers(31, 10_000))
def test_the_interval_is_one(wrong, right, population):
    rate = checked(wrong, wrong + right, population=max(population, wrong + right + 1))
    assert 0 <= rate.low <= rate.value <= rate.high <= 1 and rate.bound >= rate.value


def test_weights_count():
    rate = error_rate([1, 0, 0], ENDLESS, weight_j=[2.0, 1.0, 1.0])
    alone = stats.beta(0.5 * 16 / 6 + 0.5, 0.5 * 16 / 6 + 0.5).interval(0.9)
    assert (rate.value, rate.checked) == (0.5, 3) and (rate.low, rate.high) == pytest.approx(alone)


def test_nothing_checked_says_nothing():
    rate = error_rate([], 10)
    assert (rate.low, rate.high, rate.bound) == (0.0, 1.0, 1.0) and np.isnan(rate.value)


@pytest.mark.parametrize(("share", "tolerance"), [(0.0, 0.1), (0.05, 0.1), (0.08, 0.1), (0.01, 0.02)])
def test_so_many_checks_are_the_fewest_that_show_it(share, tolerance):
    def bound(n):
        return stats.beta(share * n + 1, (1 - share) * n).ppf(0.95)

    n = checks_needed(share, tolerance)
    assert bound(n) <= tolerance < bound(n - 1)


def test_what_is_not_below_the_tolerance_no_check_shows():
    assert checks_needed(0.1, 0.1) is None and checks_needed(0.0999, 0.1) is None
