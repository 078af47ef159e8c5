"""`moral-entropy spot-check`: a sheet, its answers, the verdict; and that no answer is ever lost."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from moral_entropy.runs.run import read_run


@pytest.fixture
def audited(audit_once):
    audit_once("run", "--draws", 50)
    return read_run("run")


def fill(path, audited, wrong=0):
    """Answer a sheet as the consensus does, but for the first few rows."""
    sheet = pl.read_csv(path, infer_schema=False)
    keys = ["question", "item"] if "question" in sheet.columns else ["item"]
    labels = audited.items.select(*keys, "label").with_columns(pl.col("item").cast(pl.String))
    other = {"0": "1", "1": "0", "yes": "no", "no": "yes"}
    right = sheet.join(labels, on=keys, maintain_order="left")
    answer = pl.when(pl.int_range(pl.len()) < wrong).then(pl.col("label").replace(other)).otherwise(pl.col("label"))
    filled = right.with_columns(answer=answer).drop("label")
    Path(path).write_text(filled.write_csv(), encoding="utf-8-sig")
    return filled.height


def test_every_audit_writes_a_sheet(audited):
    sheet = pl.read_csv("run/spot-check.csv", infer_schema=False)
    n_rows = min(50, audited.items.height)
    assert sheet.height == n_rows and not {"p", "n_votes", "label", "entropy"} & set(sheet.columns)
    assert audited.table("spot_checks").height == n_rows


def test_from_a_sheet_to_an_error_rate(run, audited):
    n = fill("run/spot-check.csv", audited, wrong=4)
    code, out, err = run("spot-check", "run", "--answers", "run/spot-check.csv")
    assert (code, err) == (0, "")
    assert f"4 of {n} labels checked are wrong" in " ".join(out.split())
    assert "4 of" in Path("run/report.html").read_text()
    code, out, _ = run("spot-check", "run", "--answers", "run/spot-check.csv", "--json")
    facts = json.loads(out)
    assert facts["verdict"]["error"]["wrong"] == 4 and facts["checked"][0]["name"] == "consensus"


def test_the_tolerance_can_be_told_with_the_answers(run, audited):
    fill("run/spot-check.csv", audited)
    run("spot-check", "run", "--answers", "run/spot-check.csv", "--tolerance", "0.001")
    assert read_run("run").verdict.tolerance == 0.001
    code, _, err = run("spot-check", "run", "--answers", "run/spot-check.csv", "--tolerance", "7")
    assert code == 2 and "tolerance is 7; it is a share between 0 and 1" in err


def test_another_sheet_has_other_items(run, audited):
    code, out, _ = run("spot-check", "run", "-n", 10)
    assert code == 0 and "run/spot-check-2.csv: 10 items, chosen at random" in out
    keys = ["question", "item"] if len(audited.questions) > 1 else ["item"]
    first, second = (pl.read_csv(f"run/{name}", infer_schema=False) for name in ("spot-check.csv", "spot-check-2.csv"))
    assert first.join(second, on=keys, how="semi").is_empty() and second.height == 10


def test_repairing_says_that_it_measures_nothing(run, audited):
    code, out, _ = run("spot-check", "run", "-n", 5, "--repair", "-o", "mend.csv")
    assert code == 0 and "to mend labels, not to measure how many are wrong" in out
    assert pl.read_csv("mend.csv", infer_schema=False)["sheet"].unique().to_list() == ["repair-2"]


def test_force_never_deletes_answers(run, audited):
    fill("run/spot-check.csv", audited)
    before = Path("run/spot-check.csv").read_bytes()
    code, _, err = run("audit", "votes.csv", "-o", "run", "--draws", 50, "--force")
    assert code != 0 and "answers, which --force would delete. Use them with --spot-check" in err
    assert Path("run/spot-check.csv").read_bytes() == before


def test_an_audit_takes_answers_over_and_keeps_the_sheet(run, audited):
    n = fill("run/spot-check.csv", audited, wrong=2)
    before = Path("run/spot-check.csv").read_bytes()
    flags = ("--spot-check", "run/spot-check.csv", "--draws", 50, "--force")
    code, out, _ = run("audit", "votes.csv", "-o", "run", *flags)
    assert code == 0 and f"2 of {n} labels checked are wrong" in " ".join(out.split())
    assert Path("run/spot-check.csv").read_bytes() == before
    sheets = read_run("run").table("spot_checks")
    assert sheets.filter(pl.col("answer").is_not_null()).height == n
    assert Path("run/spot-check-2.csv").is_file() == (sheets["sheet"].n_unique() == 2)


def test_a_sheet_replaces_no_file_and_says_how_many_items_it_has(run, audited):
    votes = Path("votes.csv").read_bytes()
    code, _, err = run("spot-check", "run", "-o", "votes.csv")
    assert code == 2 and "votes.csv exists" in err and Path("votes.csv").read_bytes() == votes
    assert audited.table("spot_checks")["sheet"].max() == 1
    left = audited.items.height - audited.table("spot_checks").height
    assert f"{left:,} items" in run("spot-check", "run", "-n", 5_000)[1]


def test_a_sheet_that_cannot_be_read_is_refused_before_the_fit(run, folder, monkeypatch):
    monkeypatch.setattr("moral_entropy.pipeline.make_run", None)
    for name, said in (("nowhere.csv", "there is no file"), ("votes.csv", "has no column 'item'")):
        code, _, err = run("audit", "votes.csv", "-o", "run", "--spot-check", name)
        assert code == 1 and said in err and not Path("run").exists()


def test_an_empty_sheet_is_refused(run, audited):
    code, _, err = run("spot-check", "run", "--answers", "run/spot-check.csv")
    assert code != 0 and "has an answer. Fill in the column 'answer'" in err


def test_limits_on_what_was_found(run, audited):
    assert run("check", "run", "--verdict", "ship")[0] == 1
    code, out, _ = run("check", "run", "--max", "error.high=0.5")
    assert (code, "no value" in out) in {(1, True), (0, False)}
    fill("run/spot-check.csv", audited)
    run("spot-check", "run", "--answers", "run/spot-check.csv", "--tolerance", "0.4")
    code, out, _ = run("check", "run", "--verdict", "ship", "--max", "error.high=0.5", "--max", "uncertain=1",
                       "--min", "alpha=-1")  # fmt: skip
    assert code == 0 and out.count("holds") == 4
    assert run("check", "run", "--verdict", "ship-soft")[0] == 0
    code, out, _ = run("check", "run", "--max", "majority.fnr=1", "--verdict", "ship", "--json")
    assert code == 0 and [record["held"] for record in json.loads(out)["limits"]] == [True, True]
