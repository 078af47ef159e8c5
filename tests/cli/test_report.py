"""`moral-entropy report` and `export`, and the report at the end of an audit."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def audited(audit_once):
    audit_once("run", "--draws", 50)


def test_an_audit_ends_with_a_report_unless_told_not_to(run, audited, folder):
    assert (folder / "run" / "report.html").is_file()
    assert "report" in json.loads((folder / "run" / "manifest.json").read_text())["seconds"]
    assert run("audit", "votes.csv", "-o", "bare", "--draws", 30, "--quiet", "--no-report")[0] == 0
    assert not (folder / "bare" / "report.html").exists()


def test_the_report_can_be_made_again(run, audited, folder):
    first = (folder / "run" / "report.html").read_bytes()
    (folder / "run" / "report.html").unlink()
    code, out, _ = run("report", "run")
    assert (code, out.strip()) == (0, "run/report.html")
    assert (folder / "run" / "report.html").read_bytes() == first
    assert run("report", "run", "-o", "short.html", "--items", 5)[0] == 0
    assert (folder / "short.html").stat().st_size < len(first)


def test_a_report_replaces_no_file_of_the_user_unless_told_to(run, audited, folder):
    votes = (folder / "votes.csv").read_bytes()
    code, _, err = run("report", "run", "-o", "votes.csv")
    assert code == 2 and "votes.csv exists" in err and "--force" in err
    assert (folder / "votes.csv").read_bytes() == votes
    assert run("report", "run", "-o", "run/report.html")[0] == 0
    assert run("report", "run", "-o", "other.html")[0] == 0
    assert run("report", "run", "-o", "other.html")[0] == 2
    assert run("report", "run", "-o", "other.html", "--force")[0] == 0


def test_card_and_figures_are_made_on_request(run, audited, folder):
    code, out, _ = run("report", "run", "--card", "--figures", "figures", "--format", "svg")
    assert code == 0 and "figures/rules.svg" in out and "run/dataset-card.md" in out
    assert (folder / "run" / "croissant.json").is_file()


@pytest.mark.parametrize(("to", "out"), [("csv", "o.csv"), ("jsonl", "o.jsonl"), ("hf", "data"), ("lewidi", "lewidi")])
def test_every_layout_is_written(run, audited, folder, to, out):
    code, printed, _ = run("export", "run", "--to", to, "-o", out)
    assert code == 0
    assert all((folder / line).is_file() for line in printed.splitlines())
    assert run("export", "run", "--to", to, "-o", out)[0] == 2
    assert run("export", "run", "--to", to, "-o", out, "--force")[0] == 0


def test_misuse_is_named(run, audited):
    code, _, err = run("report", "run", "--format", "gif")
    assert code == 2 and "--format is 'gif'; choose among png, svg, pdf" in err
    code, _, err = run("report", "nowhere")
    assert code == 1 and "no run folder" in err
    assert run("export", "run", "--to", "stata", "-o", "x")[0] == 2
