"""The share of wrong labels: against exact sums and enumeration of every sheet."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from scipy.special import expit

from moral_entropy.verdict.verdict import checks_needed, error_rate

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


def interval_width(wrong, weight, risk):
    rate = error_rate(wrong, ENDLESS, weight_j=weight, risk_j=risk)
    return rate.high - rate.low


def test_weights_count():
    rate = error_rate([1, 0, 0], ENDLESS, weight_j=[2.0, 1.0, 1.0])
    alone = stats.beta(0.5 * 16 / 6 + 0.5, 0.5 * 16 / 6 + 0.5).interval(0.9)
    assert (rate.value, rate.checked) == (0.5, 3) and (rate.low, rate.high) == pytest.approx(alone)


@pytest.mark.parametrize("slope", [0.5, 1.0, 1.8])
def test_drawn_in_proportion_to_their_risk_labels_tell_more(slope):
    """Over all ways to draw one label of each block, the share varies as the interval says, however steep the risk."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(-1, 1, 4_000))
    wrong_bj = (rng.random(4_000) < expit(slope * x)).astype(float).reshape(40, 100)
    # One draw from a block varies by r (1 - r), r being its share of wrong labels; draws are independent.
    share_b, share = wrong_bj.mean(axis=1), wrong_bj.mean()
    gain = share * (1 - share) / (np.mean(share_b * (1 - share_b)) * 100 / 99)
    narrower = interval_width(wrong_bj.ravel(), None, None) / interval_width(wrong_bj.ravel(), None, expit(x))
    assert narrower**2 == pytest.approx(gain, rel=0.04) and gain > 1.03


def test_the_curve_of_the_risk_is_the_mode_that_a_general_search_finds():
    rng = np.random.default_rng(1)
    x, weight = rng.normal(-1, 1, 60), rng.choice([1.0, 2.0], 60)
    wrong = (rng.random(60) < expit(1.5 * x)).astype(float)
    worth = weight.sum() ** 2 / (weight @ weight)
    count = weight / weight.sum() * worth

    def height(at):
        risk = expit(at[0] + at[1] * x)
        return -(count @ (wrong * np.log(risk) + (1 - wrong) * np.log1p(-risk))) + (at[1] - 1.0) ** 2 / (2 * 0.5**2)

    at = optimize.minimize(height, [0.0, 1.0], method="BFGS", tol=1e-9).x
    risk, share = expit(at[0] + at[1] * x), np.average(wrong, weights=weight)
    n = worth * share * (1 - share) / np.average(risk * (1 - risk), weights=weight)
    rate = error_rate(wrong, ENDLESS, weight_j=weight, risk_j=expit(x))
    expected = stats.beta(share * n + 0.5, (1 - share) * n + 0.5).interval(0.9)
    assert (rate.low, rate.high) == pytest.approx(expected, rel=1e-4)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=30))
def test_labels_in_proportion_to_their_risk_never_tell_less(rows):
    wrong, risk = zip(*rows, strict=True)
    assert interval_width(wrong, None, risk) <= interval_width(wrong, None, None) + 1e-6


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
