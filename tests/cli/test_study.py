"""`study`: a run with texts to tables, a page and a section in the report; and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from train_support import votes_csv

from moral_entropy.cli.main import main

pytest.importorskip("sklearn", reason="scikit-learn is not installed")


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audited")
    votes_csv(folder / "votes.csv")
    audit = ["audit", str(folder / "votes.csv"), "--label", "care", "-o", str(folder / "run"), "--draws", "20", "-q"]
    assert main([*audit, "--no-report"]) == 0
    return folder / "run"


def test_a_study_prints_its_page_and_leaves_its_tables(run, audited, folder):
    shutil.copytree(audited, folder / "run")
    asked = ["study", "run", "--targets", "soft,majority", "--models", "tfidf", "--seeds", 1, "-o", "out"]
    code, out, err = run(*asked)
    assert (code, err) == (0, "")
    page = Path("out/study.md").read_text(encoding="utf-8")
    assert out == f"{page}\nout: tables and study.md; the report of run has a section on it\n"
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert (manifest["targets"], manifest["command"].split()[:3]) == (
        ["soft", "majority"],
        ["moral-entropy", *asked[:2]],
    )
    assert Path("run/soft_labels.parquet").is_file()
    code, _, err = run(*asked)
    assert code == 1 and "--force" in err
    assert run(*asked, "--force", "-q") == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--targets", "soft"], 2, "cannot be compared with itself"),
        (["--targets", "soft,fuzzy", "--models", "tfidf"], 1, "there are no targets 'fuzzy'"),
        (["--models", "tfdf"], 2, "did you mean 'tfidf'?"),
        (["--layers", "2", "--head-only"], 2, "Choose one"),
        (["--votes", "nowhere.csv"], 1, "there is no file 'nowhere.csv'"),
    ],
)
def test_what_is_refused(run, audited, folder, arguments, code, said):
    found, out, err = run("study", audited, *arguments, "-o", "out")
    assert (found, out) == (code, "") and said in err and "Traceback" not in err
    assert not (folder / "out").exists()
