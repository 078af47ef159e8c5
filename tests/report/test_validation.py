"""The section on the yardstick: what the table says, worst first, as text and nothing else, and never twice."""

from __future__ import annotations

import json
import shutil

import polars as pl
import pytest
from report_support import HOSTILE, Page

from moral_entropy.report.cautions import cautions
from moral_entropy.report.html import render
from moral_entropy.report.item_sums import item_sums
from moral_entropy.report.validation import MOST_ROWS, findings_in, validation_section
from moral_entropy.report.verdict import give_verdict
from moral_entropy.runs.run import read_run
from moral_entropy.schemas import SCHEMAS
from moral_entropy.validate.finding import Finding, findings_frame
from moral_entropy.validate.verdict import NOT_EXAMINED


@pytest.fixture
def with_findings(plain_run, tmp_path):
    """A copy of a run folder with these findings, and these warnings in its manifest."""

    def with_findings(findings, warnings=()):
        path = tmp_path / "run"
        shutil.copytree(plain_run, path, dirs_exist_ok=True)
        (path / "validation.parquet").unlink(missing_ok=True)
        facts = json.loads((path / "manifest.json").read_text())
        facts["warnings"] = list(warnings)
        (path / "manifest.json").write_text(json.dumps(facts))
        if findings is not None:
            findings_frame(findings).write_parquet(path / "validation.parquet")
        return read_run(path)

    return with_findings


GROUPS = Finding("identifiability", "groups", 2, "care", level="doubt", text="two groups share nothing.")
PAIR = Finding("dependence", "pair_excess", 0.21, "care", subject="a · b", low=0.1, high=0.3, n=40, level="bad",
               text="a · b agree on 99.0% of 40 shared items.")  # fmt: skip
CALM = Finding("laplace", "pareto_k", 0.31, "fairness", level="good", text="the Gaussian fits.")


def found_in(run):
    return cautions(run, item_sums(run))


def test_sides_and_rows_come_worst_first(with_findings):
    more = [CALM, Finding("laplace", "pareto_k", 0.9, "care", level="doubt", text="the Gaussian hardly fits.")]
    section = validation_section(with_findings([*more, GROUPS, PAIR]))
    assert section["status"] == "stop" and "independence of the votes must be settled first" in section["verdict"]
    assert [side["level"] for side in section["sides"]] == ["doubt", "doubt", "bad"]
    laplace = section["sides"][1]
    assert [row["level"] for row in laplace["rows"]] == ["doubt", "good"] and laplace["left_out"] == 0
    [pair] = section["sides"][2]["rows"]
    assert (pair["about"], pair["value"]) == ("care, a · b", "0.21 (0.1 – 0.3)")
    assert section["more"] == ""


def test_quick_and_missing_examinations_say_so(with_findings):
    quick = validation_section(with_findings([CALM]))
    assert quick["status"] == "ready" and "moral-entropy validate" in quick["more"]
    for nothing in (None, []):
        section = validation_section(with_findings(nothing))
        assert (section["verdict"], section["status"], section["sides"]) == (NOT_EXAMINED, "none", [])
        assert "moral-entropy validate" in section["more"]


def test_an_audit_fills_the_section_itself(plain_run):
    sides = [side["title"] for side in validation_section(read_run(plain_run))["sides"]]
    assert "What the votes can tell" in sides


def test_many_findings_are_counted(with_findings):
    many = [Finding("dependence", "pair_excess", 0.1 + n, subject=str(n)) for n in range(MOST_ROWS + 7)]
    run = with_findings([*many, PAIR])
    [side] = validation_section(run)["sides"]
    assert len(side["rows"]) == MOST_ROWS and side["left_out"] == 8 and side["rows"][0]["about"] == "care, a · b"
    assert "8 more in validation.parquet" in render(run)


def test_figures_that_are_no_numbers_are_shown_as_such(with_findings):
    odd = [Finding("gold", "ece", float("nan")), Finding("gold", "loss", float("inf"), low=0.0, high=float("inf"))]
    run = with_findings(odd)
    assert [row["value"] for row in validation_section(run)["sides"][0]["rows"]] == ["–", "– (0 – –)"]
    assert render(run)


def test_what_was_written_is_what_is_read(with_findings):
    assert findings_in(with_findings([GROUPS, PAIR, CALM])) == [GROUPS, PAIR, CALM]


def test_nulls_and_levels_from_elsewhere_do_not_break_the_page(with_findings, tmp_path):
    run = with_findings([])
    row = {**dict.fromkeys(SCHEMAS["validation"], None), "side": "another", "figure": "thing", "level": "odd"}
    pl.DataFrame([row], schema=SCHEMAS["validation"]).write_parquet(run.path / "validation.parquet")
    [finding] = findings_in(run)
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


def test_alarms_become_one_caution_a_side_and_turn_the_verdict(with_findings):
    run = with_findings([GROUPS, PAIR, PAIR, CALM])
    found = found_in(run)
    [pair] = [one for one in found if "agree on 99.0%" in one.title]
    assert pair.severity == "high" and pair.title.endswith("(and 1 more like it)")
    [groups] = [one for one in found if "two groups" in one.title]
    assert groups.severity == "medium" and "care" in groups.title
    assert not [one for one in found if "the Gaussian fits" in one.title]
    assert give_verdict(run, item_sums(run), found).status == "stop"


def test_nothing_is_said_twice(with_findings):
    warnings = ["care: two groups share nothing.", "care: something else. Do this."]
    titles = [one.title for one in found_in(with_findings([GROUPS], warnings))]
    assert sum("two groups" in title for title in titles) == 1
    assert sum("something else" in title for title in titles) == 1
    thin = Finding("identifiability", "votes_per_item", 1.2, "care", level="bad", text="1.20 votes an item: thin.")
    warnings = ["care: 1.20 votes an item: thin."]
    assert not [one for one in found_in(with_findings([thin], warnings)) if "1.20" in one.title]
