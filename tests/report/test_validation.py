"""The section on trust in the consensus: what the table says, worst first, as text and nothing else."""

from __future__ import annotations

import polars as pl
from report_support import HOSTILE, Page

from moral_entropy.findings import Finding
from moral_entropy.report.html import render
from moral_entropy.report.validation import MOST_ROWS, validation_section
from moral_entropy.runs.findings import read_findings
from moral_entropy.runs.run import read_run
from moral_entropy.schemas import SCHEMAS
from moral_entropy.validate.verdict import NOT_EXAMINED

GROUPS = Finding("identifiability", "groups", 2, "care", level="doubt", text="two groups share nothing.")
PAIR = Finding("dependence", "pair_excess", 0.21, "care", subject="a · b", low=0.1, high=0.3, n=40, level="bad",
               text="a · b agree on 99.0% of 40 shared items.")  # fmt: skip
CALM = Finding("laplace", "pareto_k", 0.31, "fairness", level="good", text="the Gaussian fits.")


def test_sides_and_rows_come_worst_first(with_findings):
    more = [CALM, Finding("laplace", "pareto_k", 0.9, "care", level="doubt", text="the Gaussian hardly fits.")]
    section = validation_section(with_findings([*more, GROUPS, PAIR]))
    assert section["status"] == "stop" and "To settle first: Do annotators vote independently?" in section["verdict"]
    assert [side["level"] for side in section["sides"]] == ["doubt", "doubt", "bad"]
    laplace = section["sides"][1]
    assert [row["level"] for row in laplace["rows"]] == ["doubt", "good"] and laplace["left_out"] == 0
    [pair] = section["sides"][2]["rows"]
    assert (pair["about"], pair["value"]) == ("care, a · b", "0.21 (0.1 – 0.3)")
    assert section["more"] == ""


def test_quick_and_missing_examinations_say_so(with_findings):
    quick = validation_section(with_findings([CALM]))
    assert quick["status"] == "ready" and "moral-entropy validate" in quick["more"]
    section = validation_section(with_findings([]))
    assert (section["verdict"], section["status"], section["sides"]) == (NOT_EXAMINED, "none", [])
    assert "moral-entropy validate" in section["more"]


def test_an_audit_fills_the_section_itself(plain_run):
    sides = [side["title"] for side in validation_section(read_run(plain_run))["sides"]]
    assert {"Did the fit succeed?", "Can the votes tell?", "Do the probabilities agree with gold labels?"} < set(sides)


def test_many_findings_are_counted(with_findings):
    many = [Finding("dependence", "pair_excess", 0.1 + n, subject=str(n)) for n in range(MOST_ROWS + 7)]
    run = with_findings([*many, PAIR])
    [side] = validation_section(run)["sides"]
    assert len(side["rows"]) == MOST_ROWS and side["left_out"] == 8 and side["rows"][0]["about"] == "care, a · b"
    assert "8 more in findings.parquet" in render(run)


def test_figures_that_are_no_numbers_are_shown_as_such(with_findings):
    odd = [Finding("gold", "ece", float("nan")), Finding("gold", "loss", float("inf"), low=0.0, high=float("inf"))]
    run = with_findings(odd)
    assert [row["value"] for row in validation_section(run)["sides"][0]["rows"]] == ["–", "– (0 – –)"]
    assert render(run)


def test_what_was_written_is_what_is_read(with_findings):
    assert read_findings(with_findings([GROUPS, PAIR, CALM]).path) == [GROUPS, PAIR, CALM]


def test_nulls_and_levels_from_elsewhere_do_not_break_the_page(with_findings, tmp_path):
    run = with_findings([])
    row = {**dict.fromkeys(SCHEMAS["findings"], None), "side": "another", "figure": "thing", "level": "odd"}
    pl.DataFrame([row], schema=SCHEMAS["findings"]).write_parquet(run.path / "findings.parquet")
    [finding] = read_findings(run)
    assert finding.level == "info" and finding.text == ""
    assert "Another" in render(run)


def test_hostile_findings_are_text(with_findings):
    bad = [
        Finding(text[:40], text[:40], 1.0, text[:60], text[:60], text[:60], text[:60], level="bad", text=text[:200])
        for text in HOSTILE
    ]
    html = render(with_findings(bad))
    for text in HOSTILE[:2]:
        assert text not in html
    page = Page(html)
    assert [attributes.get("type") for attributes, _ in page.scripts] == ["application/json", "module", "module"]
    assert not [tag for tag, attributes in page.elements if tag == "img" or "onerror" in attributes]
