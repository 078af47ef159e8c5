"""Targets of a run: each kind by hand, texts that cannot be used, and splits that keep a text on one side."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import moral_entropy as me
from moral_entropy.errors import MoralEntropyWarning, RuleError, TrainError
from moral_entropy.train.targets import check_classes, normal_text, read_targets, split_targets

YES_NO = {"a": "no no yes", "b": "yes no", "c": "yes yes yes", "d": "no no no"}
MOODS = {"a": "joy joy anger none", "b": "joy anger none", "c": "none none none none"}


def audited(votes, *, gold=None, **options):
    rows = [
        {"item": item, "annotator": f"r{n}", "label": label, "text": f"text of {item}"}
        | ({"gold": gold[item]} if gold else {})
        for item, labels in votes.items()
        for n, label in enumerate(labels.split())
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return me.audit(pl.DataFrame(rows), draws=0, text="text", **({"gold": "gold"} if gold else {}), **options)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("share", [1 / 3, 0.5, 1, 0]),
        ("any", [1, 1, 1, 0]),
        ("majority", [0, 1, 1, 0]),
        ("strict-majority", [0, 0, 1, 0]),
        ("two-vote", [0, 0, 1, 0]),
        ("gold", [1, 0, 1, 0]),
    ],
)
def test_kinds_by_hand(kind, expected):
    run = audited(YES_NO, gold={"a": "yes", "b": "no", "c": "yes", "d": "no"})
    targets = read_targets(run, [kind])
    assert targets.items.to_list() == ["a", "b", "c", "d"] and targets.texts[0] == "text of a"
    assert_allclose(targets.by_kind[kind][:, 0], expected)


def test_soft_is_p_and_hard_is_the_label_of_the_run():
    run = audited(YES_NO)
    targets = read_targets(run, ["soft", "hard"])
    rows = run.items.sort("item")
    assert_array_equal(targets.by_kind["soft"][:, 0], rows["p"])
    assert_array_equal(targets.by_kind["hard"][:, 0], rows["label"] == "yes")


def test_the_positive_label_may_come_first():
    named = {item: labels.replace("yes", "a-yes") for item, labels in YES_NO.items()}
    run = audited(named, positive="a-yes")
    assert run.questions[0].labels[0] == "a-yes"
    assert_array_equal(read_targets(run, ["any"]).by_kind["any"][:, 0], [1, 1, 1, 0])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("share", [[1 / 4, 1 / 2, 1 / 4], [1 / 3] * 3, [0, 0, 1]]),
        ("any", [[1 / 3] * 3, [1 / 3] * 3, [0, 0, 1]]),
        ("majority", [[0, 1, 0], [1 / 3] * 3, [0, 0, 1]]),
        ("two-vote", [[0, 1, 0], [np.nan] * 3, [0, 0, 1]]),
    ],
)
def test_kinds_of_three_labels_by_hand(kind, expected):
    targets = read_targets(audited(MOODS), ["soft", kind])
    assert_allclose(targets.by_kind[kind], expected)
    assert_allclose(targets.by_kind["soft"].sum(axis=1), 1.0)
    assert len(targets.with_target(kind).texts) == (2 if kind == "two-vote" else 3)


def test_what_a_run_does_not_have_is_said():
    run = audited(YES_NO)
    with pytest.raises(RuleError, match="there is no rule 'fuzzy'"):
        read_targets(run, ["fuzzy"])
    with pytest.raises(TrainError, match=r"has no gold labels\. Audit the votes with --gold COLUMN"):
        read_targets(run, ["gold"])


def test_blank_and_repeated_texts_are_noted():
    votes = pl.DataFrame(
        {"item": ["a", "b", "c", "d"] * 2, "annotator": ["x"] * 4 + ["y"] * 4, "label": ["yes", "no"] * 4,
         "text": ["same", "same", " ", "other"] * 2}
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        targets = read_targets(me.audit(votes, draws=0, text="text"), ["share"])
    assert targets.items.to_list() == ["a", "b", "d"]
    assert targets.notes == (
        "1 of 4 items have no text and are left out.",
        "1 of 3 items repeat the text of another; splits never part them.",
    )


def test_nothing_to_tell_apart_is_refused():
    run = audited({"a": "no no", "b": "no no", "c": "yes no"})
    targets = read_targets(run, ["strict-majority", "soft"])
    check_classes(targets, "soft")
    with pytest.raises(TrainError, match="all 3 targets of kind 'strict-majority' are 'no'"):
        check_classes(targets, "strict-majority")


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    rows = [
        {"item": n, "annotator": who, "label": rng.choice(["yes", "no"]), "text": f"{' ' * (n % 3)}Text {n % 150}"}
        for n in range(300)
        for who in ("ann", "bob")
    ]
    return read_targets(me.audit(pl.DataFrame(rows), draws=0, text="text"), ["share"])


@pytest.mark.parametrize("seed", range(3))
def test_no_text_is_on_both_sides(many, seed):
    train, test = split_targets(many, 0.2, seed=seed)
    assert len(train.texts) + len(test.texts) == 300 and 0.1 < len(test.texts) / 300 < 0.3
    assert not {normal_text(text) for text in train.texts} & {normal_text(text) for text in test.texts}


def test_a_split_depends_on_texts_and_seed_alone(many):
    _, test = split_targets(many, 0.2, seed=0)
    _, backwards = split_targets(many.take(np.arange(300)[::-1]), 0.2, seed=0)
    assert sorted(test.items) == sorted(backwards.items)
    assert sorted(split_targets(many, 0.2, seed=1)[1].items) != sorted(test.items)
    with pytest.raises(TrainError, match="10 are the fewest"):
        split_targets(many.take(np.arange(8)), 0.1, seed=0)
