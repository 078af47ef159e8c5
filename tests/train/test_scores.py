"""Scores against scikit-learn, against loops over single votes, and resampling against really repeated rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score

from moral_entropy.errors import ScoreError
from moral_entropy.train.head import Block, Head
from moral_entropy.train.scores import (
    Standard,
    area_under_roc,
    better,
    by_question,
    draw_seeds,
    draw_times,
    over_seeds,
    score,
)


def two(p_i):
    return np.column_stack([1.0 - p_i, p_i])


def labelled(label_i, n_labels=2, weight_i=None):
    label_ik = np.eye(n_labels)[label_i]
    return Standard(label_ik, label_ik, np.ones(len(label_i)) if weight_i is None else weight_i)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_binary_scores_equal_scikit_learn(rng):
    # Rounded, so that there are ties and values on ½.
    p_i, label_i = rng.random(300).round(2).clip(0.01, 0.99), rng.integers(2, size=300)
    weight_i = rng.uniform(0.5, 3.0, size=300)
    found = {name: value_s[0] for name, value_s in score(two(p_i), labelled(label_i, weight_i=weight_i)).items()}
    assert found["accuracy"] == pytest.approx(accuracy_score(label_i, p_i >= 0.5, sample_weight=weight_i))
    assert found["log_loss"] == pytest.approx(log_loss(label_i, p_i, sample_weight=weight_i))
    assert found["brier"] == pytest.approx(brier_score_loss(label_i, p_i, sample_weight=weight_i))
    assert found["auc"] == pytest.approx(roc_auc_score(label_i, p_i, sample_weight=weight_i))


def test_scores_of_three_labels_equal_scikit_learn(rng):
    p_ik, label_i = rng.dirichlet([1.0, 2.0, 1.0], size=200), rng.integers(3, size=200)
    found = {name: value_s[0] for name, value_s in score(p_ik, labelled(label_i, 3)).items()}
    assert found["accuracy"] == pytest.approx(accuracy_score(label_i, p_ik.argmax(axis=1)))
    assert found["log_loss"] == pytest.approx(log_loss(label_i, p_ik))
    assert found["auc"] == pytest.approx(roc_auc_score(label_i, p_ik, multi_class="ovr", average="macro"))
    assert found["brier"] == pytest.approx(((p_ik - np.eye(3)[label_i]) ** 2).sum(axis=1).mean() / 2)


def loop_ece(p_i, share_i, weight_i):
    gaps = {}
    for p, share, weight in zip(p_i, share_i, weight_i, strict=True):
        at = max(int(np.ceil(p * 15 - 1e-12)), 1)
        gaps[at] = gaps.get(at, 0.0) + weight * (p - share)
    return sum(map(abs, gaps.values())) / sum(weight_i)


def test_scores_against_votes_equal_a_loop_over_votes(rng):
    p_i, yes_i, no_i = rng.random(80), rng.integers(0, 4, size=80), rng.integers(0, 4, size=80)
    n_i = yes_i + no_i
    share_i = yes_i / np.maximum(n_i, 1)
    standard = Standard(two(share_i), two(share_i), n_i.astype(float))
    found = {name: value_s[0] for name, value_s in score(two(p_i), standard).items()}
    votes = [(p, vote) for p, y, n in zip(p_i, yes_i, no_i, strict=True) for vote in [1] * y + [0] * n]
    p_v, vote_v = (np.array(column) for column in zip(*votes, strict=True))
    assert found["accuracy"] == pytest.approx(np.mean((p_v >= 0.5) == vote_v))
    assert found["log_loss"] == pytest.approx(log_loss(vote_v, p_v))
    assert found["brier"] == pytest.approx(np.mean((p_v - vote_v) ** 2))
    assert found["auc"] == pytest.approx(roc_auc_score(vote_v, p_v))
    assert found["ece"] == pytest.approx(loop_ece(p_i, share_i, n_i))


def test_scores_against_a_probability_are_those_expected_of_its_labels(rng):
    p_i, target_i = rng.random(40), rng.random(40)
    hard_i = (target_i >= 0.5).astype(int)
    standard = Standard(two(target_i), two(hard_i.astype(float)), np.ones(40))
    found = {name: value_s[0] for name, value_s in score(two(p_i), standard).items()}
    ones, zeros = (score(two(p_i), labelled(np.full(40, k), weight_i=w)) for k, w in ((1, target_i), (0, 1 - target_i)))
    for name in ("log_loss", "brier"):
        mixed = (ones[name][0] * target_i.sum() + zeros[name][0] * (1 - target_i).sum()) / 40
        assert found[name] == pytest.approx(mixed)
    assert found["accuracy"] == np.mean((p_i >= 0.5) == hard_i)
    assert found["auc"] == pytest.approx(roc_auc_score(hard_i, p_i))


@given(
    p=st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), min_size=2, max_size=12),
    seed=st.integers(0, 1_000),
)
def test_counting_an_item_often_is_repeating_it(p, seed):
    rng = np.random.default_rng(seed)
    p_i, share_i = np.array(p), rng.random(len(p)).round(1)
    standard = Standard(two(share_i), two(share_i), rng.integers(0, 3, size=len(p)).astype(float))
    times_i = rng.integers(0, 4, size=len(p))
    counted = score(two(p_i), standard, times_i[None].astype(float))
    again = np.repeat(np.arange(len(p)), times_i)
    repeated = score(
        two(p_i[again]),
        Standard(*(value[again] for value in (standard.share_ik, standard.label_ik, standard.weight_i))),
    )
    for name, value_s in counted.items():
        np.testing.assert_allclose(value_s, repeated[name], atol=1e-12)


def test_rows_are_scored_alike_whatever_the_memory(rng, monkeypatch):
    p_i, times_si = rng.random(30), draw_times(np.arange(30), replicates=40, seed=0)
    standard = labelled(rng.integers(2, size=30))
    whole = score(two(p_i), standard, times_si)
    monkeypatch.setattr("moral_entropy.train.scores.CELLS_AT_ONCE", 100)
    for name, value_s in score(two(p_i), standard, times_si).items():
        np.testing.assert_allclose(value_s, whole[name], rtol=1e-12)


@given(seed=st.integers(0, 1_000))
def test_auc_is_the_share_of_pairs_won(seed):
    rng = np.random.default_rng(seed)
    p_i, label_i, weight_i = rng.random(9).round(1), rng.integers(2, size=9), rng.random(9) + 0.1
    won = pairs = 0.0
    for i in np.flatnonzero(label_i == 1):
        for j in np.flatnonzero(label_i == 0):
            pairs += weight_i[i] * weight_i[j]
            won += weight_i[i] * weight_i[j] * ((p_i[i] > p_i[j]) + (p_i[i] == p_i[j]) / 2)
    [found] = area_under_roc(p_i, label_i.astype(float), weight_i[None])
    assert (np.isnan(found) and pairs == 0) or found == pytest.approx(won / pairs)


@given(target=st.floats(0.01, 0.99), other=st.floats(0.01, 0.99))
def test_no_answer_beats_the_standard_itself(target, other):
    standard = Standard(two(np.array([target])), two(np.array([target])), np.ones(1))
    honest, tried = (score(two(np.array([p])), standard) for p in (target, other))
    for name in ("log_loss", "brier", "ece"):
        assert honest[name][0] <= tried[name][0] + 1e-12


def test_one_class_has_no_auc_and_no_weight_no_score(rng):
    p_i = rng.random(20)
    assert np.isnan(score(two(p_i), labelled(np.ones(20, dtype=int)))["auc"]).all()
    nothing = score(two(p_i), labelled(np.ones(20, dtype=int), weight_i=np.zeros(20)))
    assert all(np.isnan(value_s).all() for value_s in nothing.values())


def test_a_wrong_never_is_once_in_a_million():
    found = score(two(np.array([0.0])), labelled(np.array([1])))
    assert found["log_loss"][0] == pytest.approx(np.log(1e6))


def test_answers_that_are_no_probabilities_are_refused():
    with pytest.raises(ScoreError, match=r"^1 of 2 answers are no probabilities. First: item 1"):
        score(np.array([[0.5, 0.5], [np.nan, np.nan]]), labelled(np.array([0, 1])))
    with pytest.raises(ScoreError, match=r"^answers of shape \(2, 3\) cannot"):
        score(np.full((2, 3), 1 / 3), labelled(np.array([0, 1])))


def test_two_labels_become_two_columns_positive_last():
    head = Head((Block("tone", ("anger", "joy", "none")), Block("care", ("no", "yes"), "no")))
    tone, care = by_question(head, np.array([[0.2, 0.3, 0.5, 0.9]]))
    assert tone.tolist() == [[0.2, 0.3, 0.5]]
    assert care == pytest.approx(np.array([[0.1, 0.9]]))


def test_intervals_over_items_are_those_of_a_mean(rng):
    value_i = rng.normal(size=400)
    times_si = draw_times(np.arange(400), replicates=4_000, seed=1)
    mean_s = times_si @ value_i / 400
    value, low, high = over_seeds(mean_s[None], draw_seeds(1, replicates=4_000, seed=1))
    assert value == pytest.approx(value_i.mean())
    half = 1.645 * value_i.std() / 20
    assert (low - value, high - value) == pytest.approx((-half, half), rel=0.08)


def test_items_of_one_text_come_and_go_together(rng):
    value_i = np.repeat(rng.normal(size=100), 4)
    group_i = np.repeat(np.arange(100), 4)
    mean_s = draw_times(group_i, replicates=3_000, seed=0)[1:] @ value_i / 400
    # Four copies of a text are one text: the spread is that of 100, twice that of 400.
    assert mean_s.std() == pytest.approx(value_i.std() / 10, rel=0.08)


@pytest.mark.parametrize("n_seeds", [2, 3, 5])
def test_the_spread_over_few_seeds_is_right_on_average(n_seeds):
    rng = np.random.default_rng(3)
    share_sn = draw_seeds(n_seeds, replicates=2_000, seed=0)
    spreads = [(share_sn[1:] @ rng.normal(size=n_seeds)).var() for _ in range(2_000)]
    assert np.mean(spreads) == pytest.approx(1.0 / n_seeds, rel=0.1)


def test_who_is_better_depends_on_the_metric():
    assert [better("accuracy", 0.1, 0.2), better("brier", 0.1, 0.2)] == [1, -1]
    assert [better("auc", -0.2, -0.1), better("ece", -0.2, -0.1)] == [-1, 1]
    assert [better(name, -0.1, 0.1) for name in ("accuracy", "ece")] == [0, 0]
    assert better("auc", float("nan"), float("nan")) == 0
