"""`moral-entropy validate`, and the flags and warnings of `audit` that concern the consensus itself."""

from __future__ import annotations

import json

import polars as pl
import pytest

from moral_entropy.runs.folder import read_table
from moral_entropy.schemas import SCHEMAS


@pytest.fixture
def audited(audit_once):
    audit_once("run", "--draws", 100)


def test_every_audit_makes_the_cheap_checks(audited, folder):
    found = read_table("run", "findings")
    assert found.schema == SCHEMAS["findings"]
    assert set(found["check"]) == {"fit", "votes", "laplace", "identifiability"}
    assert "checks" in json.loads((folder / "run" / "manifest.json").read_text())["seconds"]


def test_validate_adds_checks_and_keeps_the_others(audited, run, folder):
    before = read_table("run", "findings")
    code, out, err = run("validate", "run", "--checks", "ensemble,heldout", "--members", 3)
    assert (code, err) == (0, "")
    assert out.startswith(("No doubt was found.", "The consensus"))
    assert "findings.parquet" in out
    after = read_table("run", "findings")
    assert set(after["check"]) == set(before["check"]) | {"ensemble", "heldout"}
    assert after.filter(pl.col("check").is_in(before["check"].unique().implode())).height == before.height
    assert "Does the consensus predict votes?" in (folder / "run" / "report.html").read_text()


def test_the_same_seed_gives_the_same_findings(audited, run):
    run("validate", "run", "--checks", "ensemble", "--members", 2, "--seed", 5)
    once = read_table("run", "findings")
    run("validate", "run", "--checks", "ensemble", "--members", 2, "--seed", 5)
    assert read_table("run", "findings").equals(once)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("validate", "nowhere"), 1, "nowhere is no run folder"),
        (("validate", "run", "--checks", "left"), 2, "there is no check 'left'. Checks: fit, votes, identifiability"),
    ],
)
def test_misuse_is_explained(audited, run, folder, arguments, code, message):
    found, _, err = run(*arguments)
    assert found == code
    assert message in err
    assert "Traceback" not in err
    assert not (folder / "other").exists()
