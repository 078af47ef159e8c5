"""`moral-entropy validate`, and the flags and warnings of `audit` that concern the consensus itself."""

from __future__ import annotations

import json

import polars as pl
import pytest

from moral_entropy.runs.tables import read_table
from moral_entropy.schemas import FINDINGS


@pytest.fixture
def audited(audit_once):
    audit_once("run", "--draws", 100)


def test_every_audit_makes_the_cheap_checks(audited, folder):
    found = read_table("run", "findings")
    assert found.schema == FINDINGS
    assert set(found["side"]) == {"fit", "votes", "laplace", "identifiability"}
    assert "checks" in json.loads((folder / "run" / "manifest.json").read_text())["seconds"]


def test_validate_adds_checks_and_keeps_the_others(audited, run, folder):
    before = read_table("run", "findings")
    code, out, err = run("validate", "run", "--checks", "ensemble,heldout", "--members", 3, "--folds", 2)
    assert (code, err) == (0, "")
    assert out.startswith(("No doubt was found.", "The consensus"))
    assert "findings.parquet" in out
    after = read_table("run", "findings")
    assert set(after["side"]) == set(before["side"]) | {"ensemble", "heldout"}
    assert after.filter(pl.col("side").is_in(before["side"].unique().implode())).height == before.height
    assert "Does the consensus predict votes?" in (folder / "run" / "report.html").read_text()


def test_the_same_seed_gives_the_same_findings(audited, run):
    run("validate", "run", "--checks", "ensemble", "--members", 2, "--seed", 5)
    once = read_table("run", "findings")
    run("validate", "run", "--checks", "ensemble", "--members", 2, "--seed", 5)
    assert read_table("run", "findings").equals(once)


def test_the_verdict_alone_by_the_former_name_of_the_flag(audited, run):
    code, out, _ = run("validate", "run", "--sides", "votes", "--quiet")
    assert code == 0
    assert len(out.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("validate", "nowhere"), 1, "nowhere is no run folder"),
        (("validate", "run", "--checks", "left"), 2, "there is no check 'left'. Checks: fit, votes, identifiability"),
        (
            ("audit", "votes.csv", "-o", "other", "--temper", "much"),
            2,
            "--temper is 'much'; choose one of off, heldout, gold, or write a number.",
        ),
        (("audit", "votes.csv", "-o", "other", "--model", "paper", "--temper", "gold"), 1, "no item has a gold label"),
        (("audit", "votes.csv", "-o", "other", "--temper", "heldout"), 2, "the mixed model needs no such power"),
        (("audit", "votes.csv", "-o", "other", "--temper", "-1"), 2, "above 0 and at most 10"),
        (
            ("audit", "votes.csv", "-o", "other", "--pooling", "partial", "--constrain", "better-than-chance"),
            2,
            "Use --pooling none or --pooling full with it",
        ),
    ],
)
def test_misuse_is_explained(audited, run, folder, arguments, code, message):
    found, _, err = run(*arguments)
    assert found == code
    assert message in err
    assert "Traceback" not in err
    assert not (folder / "other").exists()


def test_a_tempered_run_says_so_everywhere(run, folder):
    flags = ("--model", "paper", "--temper", "0.5", "--pooling", "full", "--constrain", "better-than-chance")
    code, out, _ = run("audit", "votes.csv", "-o", "run", "--draws", 50, *flags)
    assert code == 0
    notes = ("every vote counts as 0.5 of one", "full pooling", "kept at chance or above")
    for note in notes:
        assert note in out
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    assert (manifest["temper"], manifest["pooling"], manifest["constrain"]) == (0.5, "full", "better-than-chance")
    assert {fit["exponent"]["value"] for fit in manifest["questions"]} == {0.5}
    report = (folder / "run" / "report.html").read_text()
    for note in notes:
        assert note in report.lower()


@pytest.mark.parametrize(("model", "method"), [("mixed", "dense"), ("paper", "nested")])
def test_partial_pooling_leaves_its_common_rows_in_the_manifest(run, folder, model, method):
    flags = ("--draws", 50, "--pooling", "partial", "--quiet", "--model", model)
    assert run("audit", "votes.csv", "-o", "run", *flags)[0] == 0
    facts = json.loads((folder / "run" / "manifest.json").read_text())["questions"][0]
    assert facts["curvature"]["method"] == method
    rows = facts["common"]["rows"]
    assert [sum(row) for row in rows] == pytest.approx([1.0, 1.0])
    assert rows[0][0] > 0.6 < rows[1][1], "annotators are right four times in five"
