"""The model of one truth and of several: its sums against every combination written out, and votes really left out."""

from __future__ import annotations

from itertools import product

import numpy as np
from group_support import crowd

from moral_entropy.groups.coupled_truths import (
    LOG_NO_TQ,
    LOG_YES_TQ,
    TYPICAL,
    Truths,
    _told_by_others,
    fit_truths,
    left_out_scores,
)


def test_what_other_groups_say_is_the_sum_over_all_places():
    rng = np.random.default_rng(3)
    loglik_igq, weight_q, shared = rng.normal(size=(2, 3, 4)), np.array([0.1, 0.2, 0.3, 0.4]), 0.7
    like_igq, found = np.exp(loglik_igq), _told_by_others(loglik_igq, weight_q, shared)

    def given_common(q, c):
        return shared * (q == c) + (1 - shared) * weight_q[q]

    for i, g in product(range(2), range(3)):
        prior_q = np.zeros(4)
        for c, *places in product(range(4), repeat=4):
            chance = weight_q[c] * np.prod([given_common(q, c) for q in places])
            others = np.prod([like_igq[i, h, places[h]] for h in range(3) if h != g])
            prior_q[places[g]] += chance * others
        np.testing.assert_allclose(found[i, g], prior_q / prior_q.sum())


def test_with_nothing_shared_other_groups_say_nothing():
    loglik_igq = np.random.default_rng(0).normal(size=(5, 2, 13))
    weight_q = np.full(13, 1 / 13)
    np.testing.assert_allclose(_told_by_others(loglik_igq, weight_q, 0.0), np.broadcast_to(weight_q, (5, 2, 13)))


def test_a_left_out_annotator_is_told_from_the_others_alone():
    votes, group_a, _ = crowd(2, sizes=(3, 3), items=15, votes=9, parting=0.4)
    member_ag = np.eye(2)[group_a]
    fitted = fit_truths(votes, member_ag, 0.6)
    score_ag = left_out_scores(votes, fitted)
    for a in (0, 4):
        g = group_a[a]
        without_ag = member_ag.copy()
        without_ag[a] = 0.0
        no, yes = votes.by_item
        share_agt = without_ag[:, :, None] * fitted.type_agt
        loglik = [yes @ (share_agt[:, h] @ LOG_YES_TQ) + no @ (share_agt[:, h] @ LOG_NO_TQ) for h in range(2)]
        rest = Truths(0.6, fitted.weight_q, fitted.type_gt, fitted.type_agt, without_ag, np.stack(loglik, axis=1))
        type_t = np.maximum(fitted.type_gt[g] * (3 + TYPICAL) - fitted.type_agt[a, g], 1e-12)
        mine = votes.annotator_v == a
        of_type = [
            np.prod([rest.place_igq[i, g] @ np.exp((LOG_YES_TQ if y else LOG_NO_TQ)[t])
                     for i, y in zip(votes.item_v[mine], votes.yes_v[mine], strict=True)])
            for t in range(len(type_t))
        ]  # fmt: skip
        expected = np.log((type_t / type_t.sum()) @ np.array(of_type))
        np.testing.assert_allclose(score_ag[a, g], expected)
        assert score_ag[a, 1 - g] == -np.inf


def test_groups_places_are_found_where_they_differ():
    votes, group_a, place_ig = crowd(4, sizes=(12, 12), items=40, votes=30, parting=0.4)
    yes_ig = fit_truths(votes, np.eye(2)[group_a], 0.5).yes_ig
    assert ((yes_ig > 0.5) == (place_ig > 0)).mean() > 0.95


def test_votes_on_some_items_keep_their_annotators():
    votes, _, _ = crowd(1, sizes=(2, 2), items=10, votes=5)
    some = votes.on_items(np.array([2, 7]))
    assert some.n_annotators == 4 and some.n_items == 2
    assert len(some.item_v) == np.isin(votes.item_v, [2, 7]).sum()
