"""Groups on the command line: what audit says, `compare --by`, `export --group`, and errors that name the flag."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from group_support import crowd, frame_of

from moral_entropy.cli.main import main
from moral_entropy.runs.run import read_run
from moral_entropy.votes.read import read_votes


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
    assert "the votes support a truth per group" in " ".join(out.split())


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
        (
            ["export", "run", "--to", "prodigy", "-o", "out.jsonl", "--group", "gender"],
            "for which prodigy has no place. Export to csv or hf.",
        ),
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


def women(file, to):
    """Return the soft label of women by item, as a layout holds it."""
    if to == "lewidi":
        entries = json.loads(file.read_text())
        assert all(sum(shares.values()) == pytest.approx(1) for entry in entries.values()
                   for shares in entry["soft_label_by_group"].values())  # fmt: skip
        return {int(item): entry["soft_label_by_group"]["women"]["yes"] for item, entry in entries.items()}
    read = {"csv": pl.read_csv, "jsonl": pl.read_ndjson, "hf": pl.read_parquet}[to]
    rows = read(file).with_columns(pl.col("item").cast(pl.Int64))
    return dict(rows.select("item", "p women").iter_rows())


@pytest.mark.parametrize(
    ("to", "out", "data"),
    [
        ("csv", "out.csv", "out.csv"),
        ("jsonl", "out.jsonl", "out.jsonl"),
        ("hf", "out", "out/data/train.parquet"),
        ("lewidi", "out.json", "out.json"),
    ],
)
def test_export_adds_soft_labels_per_group_and_the_votes_come_back(folder, tmp_path, to, out, data):
    run = read_run(folder / "run")
    assert main(["export", str(run.path), "--to", to, "-o", str(tmp_path / out), "--group", "gender", "--names"]) == 0
    known = run.table("group_items").filter(group="women")
    assert women(tmp_path / data, to) == pytest.approx(dict(known.select("item", "p").iter_rows()))
    again = read_votes(tmp_path / data)
    [ballot] = again.ballots
    who_v, label_v = ballot.annotator_a[ballot.code_v // 2], ballot.code_v % 2
    item_v = ballot.item_i[np.repeat(np.arange(ballot.n_items), ballot.votes_i)]
    cast = {(int(again.items[i]), again.annotators[a], ballot.labels[k])
            for i, a, k in zip(item_v.tolist(), who_v.tolist(), label_v.tolist(), strict=True)}  # fmt: skip
    assert cast == set(run.table("votes").select("item", "annotator", "label").iter_rows())
    if to == "hf":
        fields = json.loads((tmp_path / "out" / "croissant.json").read_text())["recordSet"][0]["field"]
        assert {"p men", "p women", "between_groups"} <= {field["name"] for field in fields}
