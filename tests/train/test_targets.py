"""Targets: each kind by hand, the same from a run folder as from the consensus, and texts that cannot be used."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import moral_entropy as me
from moral_entropy.consensus.options import FitOptions
from moral_entropy.errors import MoralEntropyWarning, TrainError, VotesError
from moral_entropy.pipeline.audit import audit
from moral_entropy.pipeline.options import AuditOptions
from moral_entropy.train.answers import Answers, label_targets
from moral_entropy.train.head import Block
from moral_entropy.train.run_targets import targets_from_run
from moral_entropy.train.targets import check_classes, mean_logits, targets_from_consensus, targets_of
from moral_entropy.votes.options import ReadOptions

COUNTS = np.array([[2, 1], [1, 1], [0, 3], [3, 0], [0, 0]])
P = np.array([[0.7, 0.3], [0.5, 0.5], [0.1, 0.9], [1.0, 0.0], [0.8, 0.2]])


def answers(counts_ik=COUNTS, p_ik=P, block=None, **facts):
    n = len(counts_ik)
    labels = {"published_i": np.array([0, 1, -1, 1, 0]), "gold_i": np.array([1, 1, 0, 0, -1])}
    given = {"model_ik": p_ik[:, ::-1], "epistemic_i": np.zeros(n), "count_i": np.ones(n), **labels, **facts}
    return Answers(block or Block("care", ("no", "yes"), "yes"), np.arange(n), counts_ik, p_ik, **given)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("soft", [0.3, 0.5, 0.9, 0.0]),
        ("share", [1 / 3, 0.5, 1.0, 0.0]),
        ("any", [1, 1, 1, 0]),
        ("majority", [0, 1, 1, 0]),
        ("two-vote", [0, 0, 1, 0]),
        ("hard", [0, 1, 1, 0]),
        ("unanimous", [0, 0, 1, 0]),
        ("p_model", [0.7, 0.5, 0.1, 1.0]),
        ("smoothed", [0.05, 0.95, 0.95, 0.05]),
        ("gold", [1, 1, 0, 0]),
    ],
)
def test_kinds_by_hand(kind, expected):
    target_ik = label_targets(answers(), kind)
    assert_allclose(target_ik[:4, 1], expected)
    assert_allclose(target_ik[:4].sum(axis=1), 1.0)
    assert np.isnan(target_ik[4]).all(), "an item without votes has no target"


def test_published_labels_are_targets_where_there_are_any():
    assert_array_equal(label_targets(answers(), "published")[:, 1], [0, 1, np.nan, 1, 0])


def test_the_positive_label_may_come_first():
    block = Block("care", ("ja", "nein"), "ja")
    assert_array_equal(label_targets(answers(block=block), "any")[:4, 0], [1, 1, 0, 1])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("share", [[0.5, 0.25, 0.25], [1 / 3, 1 / 3, 1 / 3], [0, 0, 1]]),
        ("any", [[1 / 3, 1 / 3, 1 / 3], [1 / 3, 1 / 3, 1 / 3], [0, 0, 1]]),
        ("majority", [[1, 0, 0], [1 / 3, 1 / 3, 1 / 3], [0, 0, 1]]),
        ("two-vote", [[1, 0, 0], [np.nan] * 3, [0, 0, 1]]),
        ("hard", [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    ],
)
def test_kinds_of_three_labels_by_hand(kind, expected):
    counts = np.array([[2, 1, 1], [1, 1, 1], [0, 0, 4]])
    p = np.array([[0.6, 0.2, 0.2], [0.3, 0.4, 0.3], [0.0, 0.1, 0.9]])
    asked = answers(counts, p, Block("tone", ("anger", "joy", "none")), published_i=np.zeros(3, dtype=int))
    assert_allclose(label_targets(asked, kind), expected)


def votes_frame(n_items=60, *, seed=0, labels=("no", "yes")):
    rng = np.random.default_rng(seed)
    truth_i = rng.integers(len(labels), size=n_items)
    rows = [
        {
            "item": f"t{item:02}",
            "annotator": f"a{who}",
            "care": labels[truth_i[item] if rng.random() < 0.8 else rng.integers(len(labels))],
            "text": f"text {item % 50}",
            "domain": "ab"[item % 2],
            "shipped": labels[truth_i[item]],
        }
        for item in range(n_items)
        for who in range(4)
    ]
    return pl.DataFrame(rows)


def read(frame, **more):
    return me.read_votes(frame, label="care", text="text", domain="domain", published="shipped", **more)


def fitted(frame, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return me.fit(read(frame), draws=50, **more)


def audited(folder, frame, **options):
    given = {"label": "care", "text": "text", "domain": "domain", "published": "shipped", **options}
    asked = AuditOptions(ReadOptions(**given), fit=FitOptions(draws=50), report=False)
    frame.write_csv(folder / "votes.csv")
    return audit(folder / "votes.csv", folder / "run", asked).path


@pytest.mark.parametrize("labels", [("no", "yes"), ("anger", "joy", "none")])
@pytest.mark.parametrize("weight", [None, "votes", "epistemic"])
def test_a_run_folder_gives_the_targets_of_its_consensus(tmp_path, labels, weight):
    frame = votes_frame(labels=labels)
    run, consensus = audited(tmp_path, frame), fitted(frame)
    for kind in ("soft", "share", "any", "majority", "two-vote", "hard", "published"):
        there, here = targets_from_run(run, kind, weight=weight), targets_from_consensus(consensus, kind, weight=weight)
        assert there.items.to_list() == here.items.to_list() and there.texts == here.texts
        assert there.head == here.head and there.domains == here.domains and there.notes == here.notes
        assert_allclose(there.target_io, here.target_io, atol=1e-12)
        assert_allclose(there.weight_iq, here.weight_iq, atol=1e-12)


def test_weights_average_to_one_and_fall_with_epistemic_entropy():
    consensus = fitted(votes_frame())
    targets = targets_from_consensus(consensus, weight="epistemic")
    epistemic_i = me.decompose_entropy(consensus).epistemic_i
    assert_allclose(targets.weight_iq.mean(), 1.0)
    assert_array_equal(np.argsort(-targets.weight_iq[:, 0], kind="stable"), np.argsort(epistemic_i, kind="stable"))


def test_without_draws_nothing_can_be_weighed_by_epistemic_entropy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        consensus = me.fit(read(votes_frame()), draws=0)
    with pytest.raises(TrainError, match="without draws"):
        targets_from_consensus(consensus, weight="epistemic")


def test_blank_texts_are_left_out_and_repeated_ones_counted():
    frame = votes_frame().with_columns(text=pl.when(pl.col("item") == "t03").then(pl.lit(" ")).otherwise("text"))
    targets = targets_from_consensus(fitted(frame))
    assert "t03" not in targets.items.to_list() and targets.n_items == 59
    assert targets.notes == (
        "1 of 60 items have no text and are left out.",
        "9 of 59 items repeat the text of another; splits keep them on one side.",
    )


def test_mean_logits_are_those_of_the_mean():
    targets = targets_from_consensus(fitted(votes_frame(400)), "majority")
    mean = (targets.target_io.sum() + 0.5) / (targets.n_items + 1)
    assert_allclose(mean_logits(targets), np.log(mean / (1 - mean)))


def test_one_class_only_is_refused():
    frame = votes_frame().with_columns(
        care=pl.when(pl.col("annotator") == "a0").then(pl.lit("yes")).otherwise(pl.lit("no"))
    )
    targets = targets_from_consensus(fitted(frame), "any")
    with pytest.raises(TrainError, match=r"'care': all 60 targets of kind 'any' are 'yes'"):
        check_classes(targets)
    check_classes(targets_from_consensus(fitted(votes_frame()), "any"))


def test_unknown_targets_and_weights_are_refused():
    consensus = fitted(votes_frame())
    with pytest.raises(TrainError, match="no targets 'fuzzy'"):
        targets_from_consensus(consensus, "fuzzy")
    with pytest.raises(TrainError, match="no weighting 'length'"):
        targets_from_consensus(consensus, weight="length")


def test_votes_without_texts_are_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        consensus = me.fit(me.read_votes(votes_frame().drop("text"), label="care"), draws=0)
    with pytest.raises(TrainError, match="came without texts"):
        targets_from_consensus(consensus)


class TestTextsOfARun:
    @pytest.fixture
    def run(self, tmp_path):
        return audited(tmp_path, votes_frame(), text="")

    def test_come_from_the_file_of_the_votes(self, run):
        frame = votes_frame()
        texts = dict(frame.select("item", "text").unique().iter_rows())
        targets = targets_from_run(run, votes=run.parent / "votes.csv", text="text")
        assert targets.texts == tuple(texts[item] for item in targets.items.to_list())

    def test_are_asked_for_where_there_are_none(self, run):
        with pytest.raises(TrainError, match=r"has no texts.*--votes FILE --text COLUMN"):
            targets_from_run(run)

    def test_need_a_column_that_is_there(self, run):
        with pytest.raises(VotesError, match=r"no column 'txt'.*Did you mean 'text'"):
            targets_from_run(run, votes=run.parent / "votes.csv", text="txt")

    def test_need_the_same_ids(self, run, tmp_path):
        pl.DataFrame({"item": ["x1", "x2"], "text": ["a", "b"]}).write_csv(tmp_path / "other.csv")
        with pytest.raises(
            TrainError, match=r"none of the 60 items of the run has a text in other\.csv\. First: item 't00'"
        ):
            targets_from_run(run, votes=tmp_path / "other.csv")

    def test_must_not_all_be_blank(self, run, tmp_path):
        votes_frame().with_columns(text=pl.lit(" ")).write_csv(tmp_path / "blank.csv")
        with pytest.raises(TrainError, match="none of 60 items has a text that is not blank"):
            targets_from_run(run, votes=tmp_path / "blank.csv")


def test_published_labels_must_be_there(tmp_path):
    run = audited(tmp_path, votes_frame(), published=None)
    with pytest.raises(TrainError, match="no published labels"):
        targets_from_run(run, "published")


def test_prevalence_makes_a_constant_answer_lose_as_much_on_every_question():
    rare = answers(np.array([[3, 0]] * 9 + [[0, 3]]), np.array([[0.9, 0.1]] * 9 + [[0.1, 0.9]]))
    even = answers(
        np.array([[3, 0], [0, 3]] * 5), np.array([[0.9, 0.1], [0.1, 0.9]] * 5), Block("b", ("no", "yes"), "yes")
    )
    fixed = {"published_i": np.zeros(10, int), "gold_i": np.zeros(10, int)}
    both = [replace(one, **fixed) for one in (rare, even)]
    items, texts = pl.Series(range(10)), [f"text {n}" for n in range(10)]
    made = targets_of(both, items, texts, [""] * 10, "share", weight="prevalence")
    constant_o = made.target_io.mean(axis=0)
    loss_q = -(made.target_io * np.log(constant_o) + (1 - made.target_io) * np.log(1 - constant_o)) * made.weight_iq
    assert_allclose(loss_q.mean(axis=0), np.log(2))
