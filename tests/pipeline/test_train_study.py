"""The study on a run folder: whole or not at all, with its tables, its page, and its section in the report."""

import json
import shutil

import polars as pl
import pytest
from report_support import make_run, vote_frame

from moral_entropy.errors import RunFolderError, TrainError
from moral_entropy.pipeline.train_study import run_study
from moral_entropy.train.compare import CURVES
from moral_entropy.train.study_tables import DIFFERENCES, SCORES


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A run whose texts say what the truth is."""
    frame = vote_frame(n_items=200, questions=("care",))
    cue = pl.when(pl.col("gold") == "1").then(pl.lit("suffering and mercy, ")).otherwise(pl.lit("trains and markets, "))
    frame = frame.with_columns(text=cue + pl.col("item"))
    return frame, make_run(frame, tmp_path_factory.mktemp("told") / "run")


@pytest.fixture
def run(told, tmp_path):
    return shutil.copytree(told[1], tmp_path / "run")


@pytest.fixture
def finished(run, tmp_path):
    return run_study(run, tmp_path / "study", kinds=("soft", "any"), models=("tfidf",), seeds=2, command="typed")


def test_the_folder_has_tables_page_and_manifest(finished, run):
    found = {path.name for path in finished.path.iterdir()}
    assert found == {"manifest.json", "study.md", "study.parquet", "study_curves.parquet", "study_differences.parquet"}
    for name, schema in (("study", SCORES), ("study_differences", DIFFERENCES), ("study_curves", CURVES)):
        assert pl.read_parquet_schema(finished.path / f"{name}.parquet") == schema
    manifest = json.loads((finished.path / "manifest.json").read_text())
    assert (manifest["command"], manifest["targets"], manifest["seeds"]) == ("typed", ["soft", "any"], [0, 1])
    assert manifest["settings"]["batch_size"] == 32
    assert (run / "soft_labels.parquet").is_file()
    assert "Do soft labels win?" in (run / "report.html").read_text(encoding="utf-8")


def test_the_real_baseline_learns_what_texts_say(finished):
    """Here the words are the truth: tfidf must find it, and soft must rank texts no worse than any."""
    rows = finished.study.scores.filter(model="tfidf", reference="gold", metric="auc", question="(mean)")
    assert dict(zip(rows["target"], rows["value"], strict=True))["soft"] > 0.99
    [row] = finished.study.differences.filter(reference="gold", metric="log_loss", question="(mean)").to_dicts()
    assert row["better"] == "soft"


def test_texts_can_come_from_the_file_of_the_votes(told, tmp_path):
    frame, _ = told
    bare = make_run(frame.drop("text"), tmp_path / "bare", report=False)
    asked = {"kinds": ("soft", "any"), "models": ("tfidf",), "seeds": 1}
    with pytest.raises(TrainError, match="text"):
        run_study(bare, tmp_path / "none", **asked)
    assert not (tmp_path / "none").exists() and not (bare / "soft_labels.parquet").exists()
    frame.write_csv(tmp_path / "votes.csv")
    found = run_study(bare, tmp_path / "study", votes=tmp_path / "votes.csv", text="text", **asked)
    assert found.study.facts["items"] == 200
    assert not (bare / "report.html").exists()


def test_an_earlier_study_is_replaced_only_when_asked(finished, run):
    again = {"kinds": ("soft", "any"), "models": ("tfidf",), "seeds": 1}
    with pytest.raises(RunFolderError, match="exists and holds"):
        run_study(run, finished.path, **again)
    assert run_study(run, finished.path, force=True, **again).manifest["seeds"] == [0]


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunFolderError, match="is no run folder"):
        run_study(tmp_path / "nowhere", tmp_path / "study")
