"""Means with intervals: against other implementations, against draws of the same posterior, and over repetitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from moral_entropy.judges.estimates import (
    corrected_mean,
    difference,
    gold_alone,
    gold_needed,
    ppi_mean,
    strata,
    votes_alone,
)
from moral_entropy.votes.table import UNKNOWN

YES = np.array([0.0, 1.0])


def panel(seed, n_items=1_000, share=0.3, right=0.9):
    """Truth of two labels, and label probabilities by judges who are right that often."""
    rng = np.random.default_rng(seed)
    truth_i = (rng.random(n_items) < share).astype(int)
    voted_i = np.where(rng.random(n_items) < right, truth_i, 1 - truth_i)
    p_i = np.clip(np.where(voted_i == 1, 0.9, 0.1) + 0.1 * rng.standard_normal(n_items), 0.01, 0.99)
    return truth_i, np.stack([1 - p_i, p_i], axis=1)


def revealed(truth_i, n):
    return np.where(np.arange(len(truth_i)) < n, truth_i, UNKNOWN)


def test_known_answers_of_0_and_1_have_jeffreys_interval():
    found = gold_alone(np.repeat([1.0, 0.0], [13, 37]))
    assert (found.low, found.high) == pytest.approx(beta(13.5, 37.5).ppf([0.05, 0.95]))


def test_ppi_is_that_of_the_public_implementation():
    """Figures of ppi-python 0.2.3: ppi_mean_pointestimate and ppi_mean_ci(alpha=0.1) of the same numbers."""
    rng = np.random.default_rng(5)
    truth_i = (rng.random(500) < 0.35) * 1.0
    noise = 0.6 * np.where(rng.random(500) < 0.85, truth_i, 1 - truth_i) + 0.1 * rng.standard_normal(500)
    guess_i = np.round(np.clip(0.2 + noise, 0, 1), 3)
    found = ppi_mean(truth_i[:60], guess_i[:60], guess_i[60:])
    assert (found.value, found.low, found.high) == pytest.approx((0.33784773, 0.27667529, 0.39902016), abs=1e-8)


def test_the_correction_is_the_posterior_of_its_strata():
    """Draws of every stratum's share and of the strata's sizes have the same mean and standard deviation."""
    truth_i, p_ik = panel(1)
    gold_i = revealed(truth_i, 200)
    found = corrected_mean(gold_i, p_ik, YES)
    rng, known_i, stratum_i = np.random.default_rng(0), gold_i != UNKNOWN, strata(p_ik @ YES, gold_i != UNKNOWN)
    overall = (truth_i[:200].sum() + 0.5) / 201
    sizes = [(stratum_i == b).sum() for b in range(stratum_i.max() + 1)]
    drawn = 0
    for b, size_s in enumerate(rng.dirichlet(sizes, 40_000).T):
        yes, n = truth_i[known_i & (stratum_i == b)].sum(), (known_i & (stratum_i == b)).sum()
        prior = (p_ik[stratum_i == b, 1].mean() + overall) / 2
        drawn = drawn + size_s * rng.beta(yes + prior, n - yes + 1 - prior, 40_000)
    assert found.value == pytest.approx(drawn.mean(), abs=1e-3)
    assert found.se == pytest.approx(drawn.std(), rel=0.02)
    assert (found.low, found.high) == pytest.approx(np.quantile(drawn, [0.05, 0.95]), abs=2e-3)


@pytest.mark.parametrize(("n", "share", "right"), [(50, 0.3, 0.95), (200, 0.05, 0.95), (200, 0.6, 0.85)])
def test_intervals_hold_the_truth_and_are_shorter_than_those_of_known_answers_alone(n, share, right):
    held, length = [], []
    for seed in range(200):
        truth_i, p_ik = panel(seed, share=share, right=right)
        found, alone = corrected_mean(revealed(truth_i, n), p_ik, YES), gold_alone(truth_i[:n] * 1.0)
        held.append(found.low <= share <= found.high)
        length.append((found.high - found.low) / (alone.high - alone.low))
    assert 0.85 <= np.mean(held) <= 0.95
    assert np.mean(length) < 0.95


@pytest.mark.parametrize("n", [50, 100])
@pytest.mark.parametrize("share", [0.03, 0.05, 0.1])
def test_intervals_of_a_rare_label_hold_it_where_judges_tell_nothing(n, share):
    """Only the number of known answers that are yes matters then: every number, as often as it occurs."""
    held = 0.0
    for yes in range(n + 1):
        gold_i = np.where(np.arange(2_000) < n, np.arange(2_000) < yes, UNKNOWN)
        found = corrected_mean(gold_i, np.tile([1 - share, share], (2_000, 1)), YES)
        held += binom.pmf(yes, n, share) * (found.low <= share <= found.high)
    assert held >= 0.85


def test_judges_who_tell_nothing_leave_the_known_answers():
    truth_i, _ = panel(3, share=0.6)
    p_i = np.random.default_rng(9).random(1_000)
    found = corrected_mean(revealed(truth_i, 200), np.stack([1 - p_i, p_i], axis=1), YES)
    alone = gold_alone(truth_i[:200] * 1.0)
    assert found.value == pytest.approx(alone.value, abs=0.02)
    assert found.high - found.low == pytest.approx(alone.high - alone.low, rel=0.1)


def test_all_answers_known_is_their_mean():
    truth_i, p_ik = panel(4)
    assert corrected_mean(truth_i, p_ik, YES) == gold_alone(truth_i * 1.0)


@given(
    gold=st.lists(st.sampled_from([UNKNOWN, 0, 1, 2]), min_size=1, max_size=40),
    seed=st.integers(0, 99),
)
def test_every_interval_lies_between_0_and_1_and_holds_its_value(gold, seed):
    p_ik = np.random.default_rng(seed).dirichlet([0.3] * 3, len(gold))
    found = corrected_mean(np.array(gold), p_ik, np.array([0.0, 0.25, 1.0]))
    assert 0 <= found.low <= found.high <= 1
    if found.n_gold:
        assert found.low - 1e-9 <= found.value <= found.high + 1e-9


@given(seed=st.integers(0, 99))
def test_labels_turned_round_turn_the_score_round(seed):
    truth_i, p_ik = panel(seed, n_items=120)
    gold_i = revealed(truth_i, 40)
    there = corrected_mean(gold_i, p_ik, YES)
    back = corrected_mean(np.where(gold_i == UNKNOWN, UNKNOWN, 1 - gold_i), p_ik[:, ::-1], YES)
    # An expectation at the edge of two strata may fall to either side; of random ones none does.
    assert (there.value, there.low) == pytest.approx((1 - back.value, 1 - back.high), abs=0.02)


def test_a_difference_of_two_shares_has_newcombes_interval():
    """The method of Zou and Donner on Jeffreys' intervals, by hand."""
    a, b = gold_alone(np.repeat([1.0, 0.0], [56, 14])), gold_alone(np.repeat([1.0, 0.0], [48, 32]))
    found = difference(a, b)
    assert found.low == pytest.approx(0.2 - np.sqrt((0.8 - a.low) ** 2 + (b.high - 0.6) ** 2))
    assert found.high == pytest.approx(0.2 + np.sqrt((a.high - 0.8) ** 2 + (0.6 - b.low) ** 2))


def test_as_many_known_answers_as_are_said_to_be_needed_settle_it():
    truth_i, p_ik = panel(7, n_items=20_000, share=0.6, right=0.85)
    found = corrected_mean(revealed(truth_i, 100), p_ik, YES)
    limit = found.value - 0.03
    needed = gold_needed(found, limit)
    assert found.low < limit
    assert needed > 100
    later = corrected_mean(revealed(truth_i, needed), p_ik, YES)
    # If the score stays as it is: its distance from the lower bound is then that from the limit.
    assert later.value - later.low == pytest.approx(0.03, rel=0.15)


def test_without_known_answers_items_and_draws_count():
    p_i = np.repeat([0.1, 0.9], [300, 100])
    none = votes_alone(p_i, p_i, np.ones(400), np.empty(0))
    drawn = votes_alone(p_i, p_i, np.ones(400), np.array([0.25, 0.35]))
    assert none.value == pytest.approx(0.3)
    assert none.se == pytest.approx(np.sqrt(0.3 * 0.7 / 400))
    assert drawn.se == pytest.approx(np.hypot(none.se, 0.05))
    assert none.low < 0.3 < none.high
