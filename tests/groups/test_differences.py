"""Paired differences and agreement against sums written out by hand, and crowds that do not differ."""

from __future__ import annotations

import numpy as np
import pytest
from group_support import crowd
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from moral_entropy.groups.differences import agreement_across, group_agreement, holm, paired_difference
from moral_entropy.items.agreement import measure_agreement


def by_hand(item_v, side_v, y_v):
    """Weigh the gap of every item that both sides voted on, one item after the other."""
    above = below = 0.0
    for item in np.unique(item_v):
        one, other = (y_v[(item_v == item) & (side_v == s)] for s in (1, 0))
        if len(one) and len(other):
            weight = len(one) * len(other) / (len(one) + len(other))
            above += weight * (one.mean() - other.mean())
            below += weight
    return above / below if below else np.nan


def some_votes(seed=3, threshold=0.8):
    votes, group_a, _ = crowd(seed, sizes=(4, 5), items=15, votes=8, threshold=threshold)
    return votes.item_v, votes.annotator_v, group_a[votes.annotator_v], votes.yes_v.astype(float)


def test_the_difference_is_the_weighted_mean_of_the_items_gaps():
    item_v, annotator_v, side_v, y_v = some_votes()
    found = paired_difference(item_v, annotator_v, side_v, y_v)
    assert found["difference"] == pytest.approx(by_hand(item_v, side_v, y_v))
    # The same as least squares with an effect for every item.
    design = np.column_stack([item_v == item for item in np.unique(item_v)] + [side_v]).astype(float)
    assert found["difference"] == pytest.approx(np.linalg.lstsq(design, y_v, rcond=None)[0][-1])


@pytest.mark.parametrize("spread", [1.0, 0.01])
def test_with_every_vote_cast_it_is_a_t_test_of_annotators_means(spread):
    # Without noise of items and votes, what varies is annotators: their means decide.
    rng = np.random.default_rng(5)
    level_a = rng.normal(0.0, 1.0, 9)
    level_a[:4] *= spread
    item_v, annotator_v = np.repeat(np.arange(30), 9), np.tile(np.arange(9), 30)
    side_v = (annotator_v >= 4).astype(int)
    found = paired_difference(item_v, annotator_v, side_v, level_a[annotator_v] + 0.0)
    sides = level_a[:4], level_a[4:]
    assert found["difference"] == pytest.approx(sides[1].mean() - sides[0].mean())
    # The more cautious of Welch's test and the one that takes both sides to vary alike.
    own = np.array([side.var(ddof=1) / len(side) for side in sides])
    alike = sum(side.var(ddof=1) * (len(side) - 1) for side in sides) / 7 * np.array([1 / 4, 1 / 5])
    variance = max(own.sum(), alike.sum())
    welch_df = (variance**2 / (own**2 / [3, 4]).sum(), 0.45**2 / (1 / 16 / 3 + 1 / 25 / 4))
    df = min(welch_df)
    assert found["df"] == pytest.approx(df)
    assert found["p_value"] == pytest.approx(2 * stats.t.sf(abs(found["difference"]) / np.sqrt(variance), df), rel=1e-6)


def test_a_group_whose_few_members_are_alike_is_not_sure_of_itself():
    # Nobody of three ever says yes; of forty others, most seldom do.
    rng = np.random.default_rng(1)
    rate_a = np.append(np.zeros(3), rng.beta(0.3, 3.0, 40))
    item_v, annotator_v = np.repeat(np.arange(60), 43), np.tile(np.arange(43), 60)
    y_v = (rng.random(len(item_v)) < rate_a[annotator_v]).astype(float)
    found = paired_difference(item_v, annotator_v, (annotator_v < 3).astype(int), y_v)
    assert found["p_value"] > 0.1 and found["df"] < 3


def test_swapping_sides_turns_the_sign():
    item_v, annotator_v, side_v, y_v = some_votes()
    one, other = (paired_difference(item_v, annotator_v, side, y_v) for side in (side_v, 1 - side_v))
    assert (one["difference"], one["low"], one["high"]) == pytest.approx(
        (-other["difference"], -other["high"], -other["low"])
    )
    assert one["p_value"] == pytest.approx(other["p_value"])


def test_what_cannot_be_compared_has_no_interval():
    nobody = paired_difference(np.array([0, 1]), np.array([0, 1]), np.array([0, 1]), np.array([1.0, 0.0]))
    assert np.isnan(nobody["difference"]) and nobody["n_items"] == 0
    item_v, annotator_v = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    alone = paired_difference(item_v, annotator_v, (annotator_v == 0).astype(int), (item_v % 2).astype(float))
    assert alone["n_items"] == 4 and np.isnan(alone["p_value"])


@pytest.mark.parametrize("per_group", [3, 10])
def test_groups_that_do_not_differ_are_seldom_said_to(per_group):
    alarms = 0
    for seed in range(60):
        votes, group_a, _ = crowd(seed, sizes=(per_group, per_group), items=40, votes=25)
        side_v = group_a[votes.annotator_v]
        alarms += (
            paired_difference(votes.item_v, votes.annotator_v, side_v, votes.yes_v.astype(float))["p_value"] < 0.05
        )
    # Of 60 with a chance of 5% each, more than 7 would be seen once in 90.
    assert alarms <= 7


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8))
def test_holm_rejects_what_stepping_down_rejects(p_values):
    adjusted = holm(np.array(p_values))
    rejected, order = set(), np.argsort(p_values, kind="stable")
    for rank, at in enumerate(order):
        if p_values[at] * (len(p_values) - rank) >= 0.05:
            break
        rejected.add(at)
    assert {*np.flatnonzero(adjusted < 0.05)} == rejected
    assert (adjusted >= np.array(p_values) - 1e-12).all()


def test_within_is_krippendorffs_alpha_of_the_members():
    votes, group_a, _ = crowd(5, sizes=(4, 5), items=20, votes=12)
    agreement = group_agreement(votes.item_v, votes.annotator_v, votes.yes_v.astype(int), 2, group_a)
    counts_ik = np.zeros((20, 2), dtype=int)
    mine_v = group_a[votes.annotator_v] == 1
    np.add.at(counts_ik, (votes.item_v[mine_v], votes.yes_v[mine_v].astype(int)), 1)
    assert agreement["within"] == pytest.approx(measure_agreement(counts_ik, resamples=0)[0][1])


def test_across_counts_pairs_with_one_vote_on_each_side():
    rng = np.random.default_rng(4)
    inside_ik, outside_ik = rng.integers(0, 3, size=(2, 12, 3))
    above = below = 0.0
    sides = [[], []]
    for inside_k, outside_k in zip(inside_ik, outside_ik, strict=True):
        inside, outside = np.repeat(np.arange(3), inside_k), np.repeat(np.arange(3), outside_k)
        if len(inside) and len(outside):
            alike, weight = np.mean([a == b for a in inside for b in outside]), len(inside) + len(outside)
            above, below = above + alike * weight, below + weight
            sides[0].extend(inside)
            sides[1].extend(outside)
    shares = [np.bincount(side, minlength=3) / len(side) for side in sides]
    observed, chance = above / below, (shares[0] * shares[1]).sum()
    across = agreement_across(inside_ik.astype(float), outside_ik.astype(float))
    assert across == pytest.approx((observed - chance) / (1 - chance))


def test_a_group_with_a_truth_of_its_own_agrees_with_itself_more_than_with_others():
    def agreement(parting):
        votes, group_a, _ = crowd(1, sizes=(5, 6), items=60, votes=40, parting=parting)
        return group_agreement(votes.item_v, votes.annotator_v, votes.yes_v.astype(int), 2, group_a)

    apart, same = agreement(0.5), agreement(0.0)
    assert apart["within"] > apart["across"]
    assert same["ratio"] == pytest.approx(1.0, abs=0.3)


def test_annotators_who_are_left_out_do_not_count():
    votes, group_a, _ = crowd(1, sizes=(3, 3), items=20, votes=20)
    inside_a = np.where(np.arange(6) == 5, -1, group_a)
    kept_v, label_v = votes.annotator_v != 5, votes.yes_v.astype(int)
    every = group_agreement(votes.item_v, votes.annotator_v, label_v, 2, inside_a)
    kept = (votes.item_v[kept_v], votes.annotator_v[kept_v], label_v[kept_v])
    few = group_agreement(*kept, 2, group_a[:5])
    assert (every["within"], every["across"]) == pytest.approx((few["within"], few["across"]))
