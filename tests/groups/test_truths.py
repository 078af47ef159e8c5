"""One truth or a truth per group: sums against every combination written out, votes really left out, right readings."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from group_support import crowd
from scipy.special import softmax

from moral_entropy.groups.truths import (
    LOG_NO_TQ,
    LOG_YES_TQ,
    SHARED,
    TYPICAL,
    YES_TQ,
    Truths,
    YesVotes,
    choose_reading,
    fit_truths,
    labels_of_all,
    left_out_scores,
    mean_above_zero,
    message_from_others,
    read_truths,
    thinned,
)


def test_what_other_groups_say_is_the_sum_over_all_places():
    rng = np.random.default_rng(3)
    loglik_igq, weight_q, shared = rng.normal(size=(2, 3, 4)), np.array([0.1, 0.2, 0.3, 0.4]), 0.7
    like_igq, prior_igq = np.exp(loglik_igq), message_from_others(loglik_igq, weight_q, shared)

    def given_common(q, c):
        return shared * (q == c) + (1 - shared) * weight_q[q]

    for i, g in product(range(2), range(3)):
        prior_q = np.zeros(4)
        for c, *places in product(range(4), repeat=4):
            chance = weight_q[c] * np.prod([given_common(q, c) for q in places])
            others = np.prod([like_igq[i, h, places[h]] for h in range(3) if h != g])
            prior_q[places[g]] += chance * others
        np.testing.assert_allclose(prior_igq[i, g], prior_q / prior_q.sum())


def test_a_left_out_annotator_is_predicted_from_the_others_alone():
    votes, group_a, _ = crowd(2, sizes=(3, 3), items=15, votes=9, parting=0.4)
    fitted = fit_truths(votes, group_a, 0.6)
    score_a = left_out_scores(votes, fitted)
    for a in (0, 4):
        g, mine_v = group_a[a], votes.annotator_v == a
        without_a = np.where(np.arange(6) == a, -1, group_a)
        no, yes = votes.by_item
        share_agt = (without_a[:, None] == np.arange(2))[:, :, None] * fitted.type_at[:, None]
        loglik = [yes @ (share_agt[:, h] @ LOG_YES_TQ) + no @ (share_agt[:, h] @ LOG_NO_TQ) for h in range(2)]
        rest = Truths(0.6, fitted.weight_q, fitted.type_gt, fitted.type_at, without_a, np.stack(loglik, axis=1))
        place_igq = softmax(rest.log_place_igq, axis=-1)
        type_t = np.maximum(fitted.type_gt[g] * (3 + TYPICAL) - fitted.type_at[a], 1e-12)
        of_type = [
            np.prod([place_igq[i, g] @ np.exp((LOG_YES_TQ if y else LOG_NO_TQ)[t])
                     for i, y in zip(votes.item_v[mine_v], votes.yes_v[mine_v], strict=True)])
            for t in range(len(type_t))
        ]  # fmt: skip
        np.testing.assert_allclose(score_a[a], np.log((type_t / type_t.sum()) @ np.array(of_type)))


def test_groups_places_are_found_where_they_differ():
    votes, group_a, place_ig = crowd(4, sizes=(12, 12), items=40, votes=30, parting=0.4)
    assert ((fit_truths(votes, group_a, 0.5).yes_ig > 0.5) == (place_ig > 0)).mean() > 0.95


def test_the_label_of_a_group_is_what_most_members_would_say():
    votes, group_a, place_ig = crowd(2, sizes=(8, 8), items=40, votes=30, parting=0.5)
    fit = fit_truths(votes, group_a, 0.25)
    place_igq = softmax(fit.log_place_igq, axis=-1)
    for g in (0, 1):
        most_q = [sum(fit.type_gt[g] * YES_TQ[:, q]) > 0.5 for q in range(YES_TQ.shape[1])]
        np.testing.assert_allclose(fit.label_ig[:, g], place_igq[:, g] @ np.array(most_q, dtype=float), atol=1e-9)
    # It is far surer of the truth than a single vote is.
    assert np.mean((fit.label_ig > 0.5) == (place_ig > 0)) > 0.9
    np.testing.assert_allclose(labels_of_all(fit, votes), (fit.yes_ig, fit.label_ig))


@pytest.mark.parametrize(
    ("differs", "answer"),
    [({}, "one truth"), ({"threshold": 1.5}, "one truth"), ({"parting": 0.3}, "a truth per group")],
)
def test_the_right_reading_is_chosen(differs, answer):
    votes, group_a, _ = crowd(7, sizes=(10, 10), items=300, votes=100, **differs)
    reading, fits = read_truths(votes, group_a)
    assert reading["reading"] == answer
    assert len(fits) == len(SHARED) and reading["n_annotators"] == 20
    assert (reading["shared"] < 1.0) == (answer == "a truth per group")


def test_with_few_votes_a_truth_per_group_is_hardly_ever_claimed_where_there_is_one():
    crowds = (crowd(seed, sizes=(3, 3), items=12, votes=6) for seed in range(20))
    answers = [read_truths(votes, group_a)[0]["reading"] for votes, group_a, _ in crowds]
    assert answers.count("a truth per group") <= 2 < answers.count("cannot tell")


def test_annotators_without_a_group_are_left_out():
    votes, group_a, _ = crowd(3, sizes=(4, 4), items=20, votes=10)
    reading, _ = read_truths(votes, np.where(np.arange(8) == 0, -1, group_a))
    kept_v = votes.annotator_v != 0
    rest = YesVotes(votes.item_v[kept_v], votes.annotator_v[kept_v] - 1, votes.yes_v[kept_v], 20, 7)
    assert reading["n_annotators"] == 7
    assert reading["gain"] == pytest.approx(read_truths(rest, group_a[1:])[0]["gain"])


def test_a_gain_that_rests_on_one_annotator_is_no_claim():
    score_as = np.zeros((12, len(SHARED)))
    score_as[0, 3] = 40.0
    assert choose_reading(score_as)["reading"] == "cannot tell"


def test_votes_without_signal_support_nothing():
    rng = np.random.default_rng(1)
    item_v, annotator_v = np.repeat(np.arange(20), 6), np.tile(np.arange(6), 20)
    votes = YesVotes(item_v, annotator_v, rng.random(120) < 0.5, 20, 6)
    assert read_truths(votes, np.repeat([0, 1], 3))[0]["reading"] == "cannot tell"
    steady_as = 1e-3 * np.arange(len(SHARED)) * np.ones((8, 1)) * (1.0 + np.arange(8)[:, None] / 100)
    assert choose_reading(steady_as)["reading"] == "cannot tell"
    assert choose_reading(100 * steady_as)["reading"] == "a truth per group"


def test_what_does_not_vary_is_no_evidence():
    assert mean_above_zero(np.zeros(5)) == (0.0, 1.0)
    assert mean_above_zero(np.array([1.0])) == (1.0, 1.0)


def test_very_many_votes_are_thinned_to_some_items(monkeypatch):
    votes, _, _ = crowd(1, sizes=(5, 5), items=50, votes=25)
    assert thinned(votes, seed=0) is votes
    monkeypatch.setattr("moral_entropy.groups.truths.MAX_VOTES", 100)
    few = thinned(votes, seed=0)
    assert few.n_items == 20 and len(few.item_v) < 150
