"""Agreement within a group and across: against the package's alpha, and against pairs counted one by one."""

from __future__ import annotations

import numpy as np
import pytest
from group_support import crowd

from moral_entropy.groups.agreement import across_of, alpha_of, group_agreement
from moral_entropy.items.agreement import measure_agreement


def test_within_is_krippendorffs_alpha():
    counts_ik = np.random.default_rng(2).integers(0, 4, size=(30, 3))
    alpha = measure_agreement(counts_ik, resamples=0)["value"][0]
    assert alpha_of(counts_ik[:, :, None].astype(float))[0] == pytest.approx(alpha)


def test_across_counts_pairs_with_one_vote_on_each_side():
    rng = np.random.default_rng(4)
    one_ik, other_ik = rng.integers(0, 3, size=(2, 12, 3))
    above = below = 0.0
    sides = [[], []]
    for one_k, other_k in zip(one_ik, other_ik, strict=True):
        one, other = np.repeat(np.arange(3), one_k), np.repeat(np.arange(3), other_k)
        if len(one) and len(other):
            alike = np.mean([a == b for a in one for b in other])
            above, below = above + alike * (len(one) + len(other)), below + len(one) + len(other)
            sides[0].extend(one)
            sides[1].extend(other)
    shares = [np.bincount(side, minlength=3) / len(side) for side in sides]
    observed, chance = above / below, (shares[0] * shares[1]).sum()
    found = across_of(one_ik[:, :, None].astype(float), other_ik[:, :, None].astype(float))[0]
    assert found == pytest.approx((observed - chance) / (1 - chance))


def test_a_group_with_a_truth_of_its_own_agrees_with_itself_more_than_chance_would():
    def ratio(parting):
        votes, group_a, _ = crowd(1, sizes=(5, 6), items=60, votes=40, parting=parting)
        label_v = votes.yes_v.astype(int)
        return group_agreement(votes.item_v, votes.annotator_v, label_v, 2, (group_a == 1).astype(int), seed=1)

    apart, same = ratio(0.5), ratio(0.0)
    assert apart.within > apart.across and apart.p_value < 0.02
    assert same.p_value > 0.05 and same.ratio == pytest.approx(1.0, abs=0.3)


def test_annotators_who_are_left_out_do_not_count():
    votes, group_a, _ = crowd(1, sizes=(3, 3), items=20, votes=20)
    inside_a = np.where(np.arange(6) == 5, -1, group_a)
    kept = votes.annotator_v != 5
    label_v = votes.yes_v.astype(int)
    one = group_agreement(votes.item_v, votes.annotator_v, label_v, 2, inside_a, shuffles=0)
    other = group_agreement(votes.item_v[kept], votes.annotator_v[kept], label_v[kept], 2, group_a[:5], shuffles=0)
    assert (one.within, one.across) == pytest.approx((other.within, other.across))
