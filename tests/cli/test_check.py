"""`moral-entropy check`: a gate that opens and shuts, and says why."""

from __future__ import annotations

import json

import polars as pl
import pytest

from moral_entropy.runs.folder import read_table


@pytest.fixture
def audited(audit_once):
    audit_once("run", "--draws", 50)
    return read_table("run", "audit")


def figure(frame, rule, metric, **where):
    where = {"question": "(all)", "domain": "(all)", "label": "(all)", "reference": "consensus"} | where
    return frame.filter(rule=rule, metric=metric, **where)["value"].item()


def test_limits_that_hold_exit_with_0_and_those_that_do_not_with_1(run, audited):
    value = figure(audited, "any", "expected_fdr")
    code, out, _ = run("check", "run", "--max", f"any.fdr={value + 0.01}", "--min", f"any.fdr={value - 0.01}")
    assert code == 0
    assert out.count("holds") == 2
    code, out, _ = run("check", "run", "--max", f"any.fdr={value - 0.01}", "--max", f"any.fdr={value + 0.01}")
    assert code == 1
    assert f"FAILED: any.fdr is {value:.4g}, limit {value - 0.01:g}" in out and out.count("holds") == 1


def test_json_has_a_record_per_limit(run, audited):
    code, out, _ = run("check", "run", "--max", "care/majority.fnr=1", "--json")
    told = json.loads(out)
    [record] = told["limits"]
    assert told["command"] == "check" and told["held"] is True
    expected = audited.filter(
        pl.col("question") == "care", domain="(all)", rule="majority", metric="expected_fnr", reference="consensus"
    )
    assert code == 0
    assert record["held"] and record["value"] == expected["value"].item() and record["n"] == expected["n"].item()


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ("nobody.fdr=0.2", "rules: any, majority"),
        ("any.beauty=0.2", "metrics: accuracy, fpr, fnr"),
        ("any.fdr=much", "any.fdr=much"),
        ("any.fdr", "any.fdr"),
        ("courage/any.fdr=0.1", "courage"),
    ],
)
def test_misuse_names_the_choices(run, audited, limit, text):
    code, out, err = run("check", "run", "--max", limit)
    assert (code, out) == (2, "")
    assert text in err and err.startswith("error: ") and "Traceback" not in err


def test_no_limit_is_misuse_and_no_run_folder_is_bad_data(run, audited, folder):
    assert run("check", "run")[0] == 2
    code, _, err = run("check", "votes.csv", "--max", "any.fdr=0.2")
    assert code == 4 and "no run folder" in err


def test_a_broken_run_is_told_from_a_limit_that_fails(run, audited, folder):
    (folder / "run" / "audit.parquet").write_bytes(b"no table")
    code, out, err = run("check", "run", "--max", "any.fdr=1")
    assert (code, out) == (4, "") and err.startswith("error: ") and "Traceback" not in err


def test_one_annotator_and_all_of_them(run, audited):
    limits = (
        "--min",
        "annotator:a.accuracy=0.5",
        "--min",
        "care/annotator:a.accuracy=0.5",
        "--max",
        "annotators.below_chance=0",
    )
    code, out, _ = run("check", "run", *limits)
    assert code == 0 and out.count("holds") == 3
    code, _, err = run("check", "run", "--min", "annotator:zoe.accuracy=0.5")
    assert code == 2 and "annotator:NAME.accuracy" in err and "Did you mean annotator:" in err
