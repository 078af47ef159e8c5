"""Targets per group of annotators: the same p as in the run's table, and classifiers that take sides."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from moral_entropy.errors import TrainError
from moral_entropy.pipeline.audit import audit
from moral_entropy.runs.reload import reload_consensus
from moral_entropy.study.compare import compare_targets
from moral_entropy.study.options import StudyOptions
from moral_entropy.train.group_targets import group_cast, group_p, rows_of_kind
from moral_entropy.train.head import Block
from moral_entropy.train.options import TrainOptions
from moral_entropy.train.run import run_training
from moral_entropy.train.run_targets import groups_of, targets_from_run
from tests.train_support import CARE, TONE, small_bert, texts_and_truth


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Three women say yes to "hurt" and "protect", three men to "protect" alone."""
    texts, care_i, _ = texts_and_truth(240, seed=3)
    rng = np.random.default_rng(3)
    rows = []
    for item, text in enumerate(texts):
        for who in range(6):
            yes = bool(care_i[item]) and (who < 3 or "protect" in text)
            rows.append((f"t{item:03}", f"a{who}", "yes" if yes != (rng.random() < 0.05) else "no", text))
    table = pl.DataFrame(rows, schema=["item", "annotator", "label", "text"], orient="row")
    table = table.with_columns(
        sex=pl.col("annotator").replace_strict({f"a{n}": "f" if n < 3 else "m" for n in range(6)})
    )
    out = tmp_path_factory.mktemp("groups") / "run"
    return audit(table, out, text="text", annotator_group=("sex",), draws=20, report=False)


def test_the_p_of_a_group_is_that_of_the_table(run):
    found = targets_from_run(run, "group:m")
    known = {row["item"]: row["p"] for row in run.table("group_items").filter(group="m").iter_rows(named=True)}
    assert_allclose(found.target_io[:, 0], [known[item] for item in found.items.to_list()])
    assert_allclose(found.target_io, targets_from_run(run, "group:sex=m").target_io)
    assert not np.allclose(found.target_io, targets_from_run(run, "group:f").target_io, atol=0.3)


def test_the_votes_of_groups_are_those_that_were_cast(run):
    voters = targets_from_run(run, "annotators:sex").voters
    assert voters.head.questions == ("label by f", "label by m")
    assert (voters.votes_ib == 3).all()
    yes = run.table("votes").filter(label="yes", annotator="a0").height
    women = run.table("votes").filter(pl.col("annotator").is_in(["a0", "a1", "a2"]), label="yes").height
    assert voters.target_io[:, 0].sum() * 3 == pytest.approx(women)
    assert yes < women


def test_classifiers_take_the_side_of_their_group(run, tmp_path):
    asked = ["a river hurt the sky", "the letter protect a street", "a report of the market"]
    says = {}
    for group in ("f", "m"):
        trained = run_training(run, tmp_path / group, TrainOptions(model="tfidf", labels=f"group:{group}"))
        says[group] = trained.classifier.probabilities(asked)[:, 0]
        assert f"one group of annotators, {group}" in (tmp_path / group / "README.md").read_text()
    assert says["f"][0] > says["m"][0] + 0.15, "only women call it care"
    assert min(says["f"][1], says["m"][1]) > max(says["f"][2], says["m"][2]), "both agree on the rest"


def test_an_encoder_learns_the_p_of_a_group(run, tmp_path):
    """Its first loss is near the entropy of the group's mean p, at which every training starts."""
    how = TrainOptions(
        model=str(small_bert(tmp_path / "bert")), labels="group:f", epochs=1, max_length=16, device="cpu"
    )
    trained = run_training(run, tmp_path / "model", how)
    mean = trained.train.target_io.mean()
    start = -mean * np.log(mean) - (1 - mean) * np.log(1 - mean)
    assert trained.classifier.curve[0].train_loss == pytest.approx(start, abs=0.1)
    assert trained.train.kind == "group:f"


def test_a_study_compares_groups_without_holding_votes_out(run):
    options = StudyOptions(targets=("soft", "group:f", "annotators:sex"), models=("tfidf",), seeds=1, replicates=20)
    study = compare_targets(reload_consensus(run.path), options, groups=groups_of(run))
    assert any("No votes are held out: targets 'group:f'" in note for note in study.notes)
    assert set(study.scores["target"]) == {"soft", "group:f", "annotators:sex"}


def test_unknown_groups_are_named(run):
    with pytest.raises(TrainError, match=r"no group 'x'\. It has sex=f, sex=m"):
        targets_from_run(run, "group:x")
    with pytest.raises(TrainError, match=r"no column of groups 'age'\. It has sex"):
        targets_from_run(run, "annotators:age")
    with pytest.raises(TrainError, match="--annotator-group"):
        rows_of_kind(None, "group:f")
    twice = pl.DataFrame({"column": ["a", "b"], "group": ["x", "x"]})
    with pytest.raises(TrainError, match="Say which: group:a=x"):
        rows_of_kind(twice, "group:x")


def rows(label, p, yes, **more):
    return {"question": "tone", "item": "i", "group": "g", "label": label, "p": p, "n_yes": yes, "n_votes": 4, **more}


def test_several_labels_are_divided_by_their_sum():
    table = pl.DataFrame([rows("anger", 0.6, 3), rows("joy", 0.2, 1), rows("none", 0.0, 0)])
    items = pl.Series(["h", "i"])
    p_ik = group_p(table, TONE, items)
    assert np.isnan(p_ik[0]).all()
    assert_allclose(p_ik[1], [0.75, 0.25, 0.0])
    cast = group_cast(table, TONE, items)
    assert cast.sort("label").select("item", "label", "n").rows() == [(1, 0, 3.0), (1, 1, 1.0)]


def test_two_labels_in_either_order():
    table = pl.DataFrame([rows("yes", 0.7, 3, question="care")])
    items = pl.Series(["i"])
    assert_allclose(group_p(table, CARE, items), [[0.3, 0.7]])
    other = Block("care", ("yes", "no"), "yes")
    assert_allclose(group_p(table, other, items), [[0.7, 0.3]])
    assert group_cast(table, other, items).sort("label").rows() == [(0, "g", 0, 3.0), (0, "g", 1, 1.0)]


def test_ratings_have_no_p_per_label():
    table = pl.DataFrame([rows("at least 3", 0.7, 3)])
    with pytest.raises(TrainError, match="by their mean and one cut"):
        group_p(table, TONE, pl.Series(["i"]))
