"""Groups on the command line: what audit says, `compare --by`, `export --group`, and errors that name the flag."""

from __future__ import annotations

import json

import polars as pl
import pytest
from group_support import crowd, frame_of

from moral_entropy.cli.main import main
from moral_entropy.runs.run import read_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("groups")
    votes, group_a, _ = crowd(1, sizes=(8, 8), items=50, votes=40, parting=0.5)
    frame_of(votes, group_a).write_csv(path / "votes.csv")
    (path / "who.csv").write_text("annotator,who\nnobody,me\n")
    arguments = ["--draws", "20", "--quiet", "--annotator-group", "gender"]
    assert main(["audit", str(path / "votes.csv"), "-o", str(path / "run"), *arguments]) == 0
    return path


def test_audit_says_what_it_found(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    flags = ["--draws", "0", "--no-report", "--annotator-group", "gender"]
    assert main(["audit", "votes.csv", "-o", "said", *flags]) == 0
    out = capsys.readouterr().out
    assert "Groups of annotators" in out and "the votes support a truth per group" in " ".join(out.split())


def test_compare_by_prints_one_column(folder, capsys):
    assert main(["compare", str(folder / "run"), "--by", "gender"]) == 0
    out = capsys.readouterr().out
    assert "by gender" in out and "women" in out and "label, yes: a truth per group" in out
    assert main(["compare", str(folder / "run"), "--by", "gender", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["groups"]
    assert [row["group"] for row in rows] == ["men", "women"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "run", "--by", "age"], "does not compare groups by 'age'. It has gender."),
        (["compare", "run"], "compare needs RUN_B, a second run, or --by COLUMN"),
        (["compare", "run", "run", "--by", "gender"], "give one run folder"),
        (
            ["export", "run", "--to", "csv", "-o", "out.csv", "--group", "age"],
            "no soft labels by 'age'. It has gender.",
        ),
        (["export", "run", "--to", "hf", "-o", "out", "--group", "gender"], "Export to csv or jsonl"),
        (["audit", "votes.csv", "-o", "new", "--annotator-group", "item"], "--annotator-group names 'item'"),
        (["audit", "votes.csv", "-o", "new", "--annotator-group", "nope"], "no column 'nope'"),
        (
            ["audit", "votes.csv", "-o", "new", "--annotator-group", "who", "--annotators", "who.csv"],
            "CLI: --annotators",
        ),
        (
            ["audit", "votes.csv", "-o", "new", "--annotators", "p.csv"],
            "Say which columns to look at: --annotator-group",
        ),
    ],
)
def test_errors_name_the_flag(folder, arguments, said, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert main(arguments) in (1, 2)
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (folder / "new").exists() and not (folder / "out.csv").exists()


def test_export_adds_a_column_per_group(folder, tmp_path):
    for to in ("csv", "jsonl"):
        out = tmp_path / f"out.{to}"
        assert main(["export", str(folder / "run"), "--to", to, "-o", str(out), "--group", "gender"]) == 0
        rows = pl.read_csv(out) if to == "csv" else pl.read_ndjson(out)
        known = read_run(folder / "run").table("group_items").filter(group="women").sort("item")
        found = rows.with_columns(pl.col("item").cast(pl.Int64)).sort("item")
        assert found["p women"].to_list() == pytest.approx(known["p"].to_list())
