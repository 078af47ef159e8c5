"""The study on a run folder: whole or not at all, with its tables, its page, and its section in the report."""

import json
import shutil
from dataclasses import replace

import polars as pl
import pytest
from report_support import make_run, vote_frame

from moral_entropy.errors import RunFolderError, TrainError
from moral_entropy.study.compare import CURVES
from moral_entropy.study.options import StudyOptions
from moral_entropy.study.run import run_study
from moral_entropy.study.tables import DIFFERENCES, SCORES


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


ASKED = StudyOptions(targets=("soft", "any"), models=("tfidf",), seeds=1)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "study"


@pytest.fixture
def study(run, out):
    return run_study(run, out, replace(ASKED, seeds=2), command="typed")


def test_the_folder_has_tables_page_and_manifest(study, run, out):
    found = {path.name for path in out.iterdir()}
    assert found == {"manifest.json", "study.md", "study.parquet", "study_curves.parquet", "study_differences.parquet"}
    for name, schema in (("study", SCORES), ("study_differences", DIFFERENCES), ("study_curves", CURVES)):
        assert pl.read_parquet_schema(out / f"{name}.parquet") == schema
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["command"], manifest["targets"], manifest["seeds"]) == ("typed", ["soft", "any"], [0, 1])
    assert manifest["settings"]["batch_size"] == 32
    assert (run / "soft_labels.parquet").is_file()
    assert "Do soft labels win?" in (run / "report.html").read_text(encoding="utf-8")


def test_the_real_baseline_learns_what_texts_say(study):
    """Here the words are the truth: tfidf must find it, and soft must rank texts no worse than any."""
    rows = study.scores.filter(model="tfidf", reference="gold", metric="auc", question="(mean)")
    assert dict(zip(rows["target"], rows["value"], strict=True))["soft"] > 0.99
    [row] = study.differences.filter(reference="gold", metric="log_loss", question="(mean)").to_dicts()
    assert row["better"] == "soft"


def test_texts_can_come_from_the_file_of_the_votes(told, tmp_path):
    frame, _ = told
    bare = make_run(frame.drop("text"), tmp_path / "bare", report=False)
    with pytest.raises(TrainError, match="text"):
        run_study(bare, tmp_path / "none", ASKED)
    assert not (tmp_path / "none").exists() and not (bare / "soft_labels.parquet").exists()
    frame.write_csv(tmp_path / "votes.csv")
    found = run_study(bare, tmp_path / "study", replace(ASKED, votes=str(tmp_path / "votes.csv"), text="text"))
    assert found.facts["items"] == 200
    assert not (bare / "report.html").exists()


def test_an_earlier_study_is_replaced_only_when_asked(study, run, out):
    with pytest.raises(RunFolderError, match="exists and holds"):
        run_study(run, out, ASKED)
    run_study(run, out, ASKED, force=True)
    assert json.loads((out / "manifest.json").read_text())["seeds"] == [0]


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunFolderError, match="is no run folder"):
        run_study(tmp_path / "nowhere", tmp_path / "study")
