"""Comparing targets: figures against scikit-learn's, intervals against planted truths, and a whole comparison."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from train_support import CARE, TONE, targets_of_texts, votes_csv

import moral_entropy as me
from moral_entropy.options import TrainOptions
from moral_entropy.train.run import COMPARED, find_worth, mean_auc, mean_gap, mean_loss, run_training, score_targets

metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")


def labelled(n_items=400, *, kinds=("gold",), seed=0, repeat=1):
    """Texts, of which some repeat, with gold and hard labels of some rules."""
    rng = np.random.default_rng(seed)
    targets = targets_of_texts(n_items, questions=(CARE, TONE), seed=seed)
    labels = {}
    for kind in kinds:
        labels[kind] = np.column_stack([rng.integers(2, size=n_items), np.eye(3)[rng.integers(3, size=n_items)]])
    texts = tuple(targets.texts[i - i % repeat] for i in range(n_items))
    return replace(targets, texts=texts, by_kind=labels)


def answers(labels_io, right, *, seed):
    """Probabilities that are on the right side with a given chance."""
    rng = np.random.default_rng(seed)
    p_io = np.empty(labels_io.shape)
    right_i = rng.random(len(p_io)) < right
    yes_i = np.where(right_i, labels_io[:, 0], 1 - labels_io[:, 0])
    p_io[:, 0] = np.where(yes_i > 0, rng.uniform(0.5, 1, len(p_io)), rng.uniform(0, 0.499, len(p_io)))
    tone_i = np.where(right_i, labels_io[:, 1:].argmax(axis=1), (labels_io[:, 1:].argmax(axis=1) + 1) % 3)
    p_io[:, 1:] = 0.6 * np.eye(3)[tone_i] + 0.4 * rng.dirichlet(np.ones(3), len(p_io))
    return p_io


def all_answers(test, right=(0.9, 0.8, 0.7, 0.6)):
    return {
        kind: [answers(test.by_kind["gold"], share, seed=n)]
        for n, (kind, share) in enumerate(zip(COMPARED, right, strict=True))
    }


def test_figures_are_those_of_scikit_learn():
    test = labelled(kinds=("gold", "any"))
    p = all_answers(test)
    table = score_targets(p, test)
    for reference in ("gold", "any"):
        labels_io = test.by_kind[reference]
        rows = table.filter(reference=reference, target="majority")
        value = {(row["question"], row["metric"]): row["value"] for row in rows.iter_rows(named=True)}
        p_io = p["majority"][0]
        assert_allclose(value["care", "accuracy"], ((p_io[:, 0] >= 0.5) == labels_io[:, 0]).mean())
        assert_allclose(value["care", "auc"], metrics.roc_auc_score(labels_io[:, 0], p_io[:, 0]))
        tone_i = labels_io[:, 1:].argmax(axis=1)
        assert_allclose(value["tone", "accuracy"], (p_io[:, 1:].argmax(axis=1) == tone_i).mean())
        assert_allclose(value["tone", "auc"], metrics.roc_auc_score(tone_i, p_io[:, 1:], multi_class="ovr"))
        assert_allclose(value["(mean)", "auc"], (value["care", "auc"] + value["tone", "auc"]) / 2)


def test_differences_are_those_of_the_values_and_intervals_hold_the_planted_ones():
    test = labelled(2_000)
    table = score_targets(all_answers(test), test).filter(metric="accuracy", question="(mean)")
    rows = {row["target"]: row for row in table.iter_rows(named=True)}
    assert rows["soft"]["difference"] is None and rows["soft"]["n"] == 2_000
    for target, share in zip(COMPARED[1:], (0.8, 0.7, 0.6), strict=True):
        row = rows[target]
        assert_allclose(row["difference"], rows["soft"]["value"] - row["value"])
        assert row["difference_low"] < 0.9 - share < row["difference_high"]
        assert row["low"] < row["value"] < row["high"] and row["difference_low"] > 0


def test_a_model_compared_with_itself_differs_by_nothing():
    test = labelled(100, kinds=("gold", "majority"))
    p_io = answers(test.by_kind["gold"], 0.8, seed=1)
    table = score_targets({kind: [p_io, p_io] for kind in COMPARED}, test)
    others = table.filter(pl.col("target") != "soft").select("difference", "difference_low", "difference_high")
    assert np.abs(others.to_numpy()).max() == 0.0


def test_seeds_are_averaged_and_repeated_texts_widen_intervals():
    test, twice = labelled(), labelled(repeat=4)
    p = all_answers(test)
    both = score_targets({**p, "any": p["any"] + p["majority"]}, test)
    each = score_targets(p, test)
    single = {target: each.filter(target=target)["value"] for target in ("any", "majority")}
    assert_allclose(both.filter(target="any")["value"], (single["any"] + single["majority"]) / 2)
    groups = {kind: [np.repeat(p_io[::4], 4, axis=0) for p_io in by_seed] for kind, by_seed in p.items()}
    labels = {kind: np.repeat(labels_io[::4], 4, axis=0) for kind, labels_io in twice.by_kind.items()}
    alone = score_targets(groups, replace(test, by_kind=labels))
    together = score_targets(groups, replace(twice, by_kind=labels))
    width = {name: (table["high"] - table["low"]).mean() for name, table in (("a", alone), ("t", together))}
    assert 1.6 < width["t"] / width["a"] < 2.4, "four copies of a text are worth one: twice as wide"


def test_scores_of_a_constant_and_of_one_class():
    label_ik = np.eye(2)[[0, 1, 1, 0]]
    half_ik = np.full((4, 2), 0.5)
    assert mean_auc(half_ik, label_ik, np.ones(4)) == 0.5
    assert np.isnan(mean_auc(half_ik, np.eye(2)[[1, 1, 1, 1]], np.ones(4)))
    assert_allclose(mean_loss(half_ik, label_ik, np.ones(4)), np.log(2))
    assert mean_gap(half_ik, label_ik, np.ones(4)) == 0.0
    assert_allclose(mean_gap(np.tile([0.1, 0.9], (4, 1)), label_ik, np.ones(4)), 0.4)


def test_what_a_model_is_worth_is_by_gold_where_there_is_enough():
    targets = targets_of_texts(200, questions=(CARE,))
    soft_io = targets.by_kind["soft"]
    kinds = {"soft": soft_io, "hard": soft_io.round(), "smoothed-share": soft_io, "gold": 1.0 - soft_io.round()}
    targets = replace(targets, by_kind=kinds)
    worth = find_worth(soft_io, targets, targets, "soft")
    assert (worth["reference"], worth["questions"][0]["auc"]) == ("gold", 0.0)
    few = np.where(np.arange(200)[:, None] < 30, kinds["gold"], np.nan)
    worth = find_worth(soft_io, targets, replace(targets, by_kind=kinds | {"gold": few}), "soft")
    [row] = worth["questions"]
    assert (worth["reference"], row["auc"]) == ("consensus", 1.0) and row["log_loss"] < row["constant_loss"]
    assert_allclose(row["log_loss"], -(0.9 * np.log(0.9) + 0.1 * np.log(0.1)))


def test_soft_wins_where_hard_labels_lose_the_doubt(tmp_path):
    """Two good annotators of six: p knows whom to trust, a count of votes does not."""
    votes_csv(
        tmp_path / "votes.csv", n_items=400, n_annotators=6, skill=(0.95, 0.95, 0.55, 0.55, 0.55, 0.55), gold=True
    )
    run = me.audit(tmp_path / "votes.csv", label="care", gold="gold", text="text", draws=0)
    facts = run_training(run, tmp_path / "model", TrainOptions(model="tfidf", compare=True))
    table = facts["comparison"].filter(reference="gold", question="(mean)")
    row = table.filter(metric="auc", target="any").row(0, named=True)
    assert row["difference_low"] > 0
    written = pl.read_csv(tmp_path / "model" / "comparison.csv")
    assert written.columns == facts["comparison"].columns and written.height == facts["comparison"].height
    assert "## Which targets are better" in (tmp_path / "model" / "README.md").read_text()


def test_a_label_that_no_tested_text_has_leaves_the_mean_of_the_others():
    p_ik = np.array([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1], [0.3, 0.6, 0.1]])
    share_ik = np.eye(3)[[0, 1, 1, 1]]
    # Label 0: the one text that has it comes first of four; label 1: of three pairs all are in order.
    assert mean_auc(p_ik, share_ik, np.ones(4)) == pytest.approx(1.0)
    assert np.isnan(mean_auc(p_ik[:1], share_ik[:1], np.ones(1)))
