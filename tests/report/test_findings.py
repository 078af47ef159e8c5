"""Findings in the report: one warning per kind, ranked, that turns the verdict; and a section with all of them."""

from __future__ import annotations

import polars as pl
import pytest
from report_support import HOSTILE, Page, make_run

from moral_entropy.findings import CODES, Finding, warning_sentences
from moral_entropy.markup import markdown_text
from moral_entropy.report.card import dataset_card
from moral_entropy.report.html import render
from moral_entropy.report.page import findings_section
from moral_entropy.runs.run import cautions, read_findings, read_run
from moral_entropy.schemas import SCHEMAS

CONVERGED = Finding("fit", "converged", 0, "care", level="bad", text="the fit did not converge: 9 passes.",
                    meaning="The search stopped too soon.", remedy="Raise --max-passes.")  # fmt: skip
THIN = Finding("votes", "votes_per_item", 1.8, "care", level="doubt", text="1.80 votes per item.",
               meaning="Too few votes to decide.", remedy="Collect second votes.")  # fmt: skip
UNVOTED = Finding("votes", "items_without_votes", 7, "fairness", level="note", text="7 items have no vote.",
                  meaning="Their p is the share.", remedy="Leave them out.")  # fmt: skip


def status_of(run):
    return run.verdict.status


def without_gold(run):
    """The same run, had nobody known an answer."""
    items = run.items.with_columns(gold=pl.lit(None, dtype=pl.String))
    items.write_parquet(run.folder / "items.parquet")
    return read_run(run.folder)


def test_worse_comes_first_and_those_of_one_kind_are_one(with_findings):
    also_thin = Finding("votes", "votes_per_item", 1.9, "fairness", level="doubt", text="1.90 votes per item.")
    run = with_findings([UNVOTED, THIN, also_thin, CONVERGED, Finding("gold", "ece", 0.1, level="good", text="fine.")])
    found = cautions(run)
    assert [one.severity for one in found] == ["high", "medium", "low"]
    assert found[0].text == "care: the fit did not converge: 9 passes"
    assert found[1].text == "care: 1.80 votes per item. The same in 1 more: fairness"
    assert (found[1].meaning, found[1].remedy) == (THIN.meaning, THIN.remedy)


@pytest.mark.parametrize(
    ("findings", "status"),
    [([], "unknown"), ([UNVOTED], "unknown"), ([THIN], "unknown"), ([THIN, CONVERGED], "stop")],
    ids=["nothing", "note", "doubt", "bad"],
)
def test_the_worst_finding_turns_the_verdict_of_votes_alone(with_findings, findings, status):
    assert status_of(without_gold(with_findings(findings))) == status


def test_checked_labels_go_before_findings(with_findings):
    run = with_findings([CONVERGED])
    assert run.verdict.checked_by == "gold" and "to settle first" not in run.verdict.title


def test_report_card_manifest_and_screen_say_the_same(tmp_path, capsys):
    # Three of five annotators follow another guideline than gold, together; on half of the items gold agrees with two.
    # Each slips on other items, so that no two are identical.
    rows = [
        {"item": i, "annotator": a, "label": (int(i % (3 if a < 3 else 2) == 0) + ((7 * i + a) % 23 == 0)) % 2,
         "gold": int(i % 2 == 0)}
        for i in range(240)
        for a in range(5)
    ]  # fmt: skip
    run = read_run(make_run(pl.DataFrame(rows), tmp_path / "run"))
    findings = read_findings(run)
    assert run.manifest["warnings"] == warning_sentences(findings)
    card, page, said = dataset_card(run), render(run), " ".join(run.manifest["warnings"])
    for one in cautions(run):
        assert markdown_text(one.text) in card
        assert one.text.replace("&", "&amp;")[:60] in page.replace("&#39;", "'")
        assert one.severity == "low" or (one.text in said and one.meaning in said and one.remedy in said)
    titles = [one.text for one in cautions(run) if one.severity == "high"]
    assert any("against the gold labels" in title for title in titles)
    assert status_of(run) == "stop"


def test_a_consensus_that_gold_bears_out_is_left_alone(plain_run):
    assert not [one for one in cautions(read_run(plain_run)) if "gold" in one.text]


GROUPS = Finding("identifiability", "groups", 2, "care", level="doubt", text="two groups share nothing.")
PAIR = Finding("dependence", "pair_excess", 0.21, "care", subject="a · b", low=0.1, high=0.3, n=40, level="bad",
               text="a · b agree on 99.0% of 40 shared items.")  # fmt: skip
CALM = Finding("laplace", "pareto_k", 0.31, "fairness", level="good", text="the Gaussian fits.")


def test_every_kind_of_finding_is_an_issue_fine_not_applicable_muted_or_not_checked(with_findings):
    muted = Finding("votes", "votes_per_item", 1.8, "care", level="muted", text="1.80 votes per item.")
    section = findings_section(with_findings([CALM, muted, PAIR]))
    assert [issue["code"] for issue in section["issues"]] == [PAIR.code]
    kinds = {title: {kind["code"] for kind in kinds} for title, kinds in section["kinds"]}
    assert CALM.code in kinds["Looked at and fine"] and muted.code in kinds["Muted"]
    assert GROUPS.code in kinds["Not checked"] and kinds["Not applicable"]
    everything = [code for codes in kinds.values() for code in codes] + [PAIR.code]
    assert sorted(everything) == sorted({code for code, _ in CODES.values()})


def test_a_muted_finding_is_no_issue_in_the_page(with_findings):
    muted = Finding("votes", "votes_per_item", 1.8, "care", level="muted", text="1.80 votes per item.")
    page = render(with_findings([muted, CALM]))
    assert "1.80 votes per item" not in page and "Muted (1)" in page


def test_quick_and_missing_examinations_say_so(with_findings):
    assert "moral-entropy validate" in findings_section(with_findings([CALM]))["more"]
    section = findings_section(with_findings([]))
    assert "moral-entropy validate" in section["more"]
    assert findings_section(with_findings([PAIR]))["more"] == ""


def test_an_audit_fills_the_section_itself(plain_run):
    titles = [kind["title"] for _, kinds in findings_section(read_run(plain_run))["kinds"] for kind in kinds]
    assert len(titles) > 20


def test_what_was_written_is_what_is_read(with_findings):
    assert read_findings(with_findings([GROUPS, PAIR, CALM]).path) == [GROUPS, PAIR, CALM]


def test_nulls_and_levels_from_elsewhere_do_not_break_the_page(with_findings, tmp_path):
    run = with_findings([])
    row = {**dict.fromkeys(SCHEMAS["findings"], None), "check": "another", "metric": "thing", "level": "odd"}
    pl.DataFrame([row], schema=SCHEMAS["findings"]).write_parquet(run.path / "findings.parquet")
    [finding] = read_findings(run)
    assert finding.level == "info" and finding.text == ""
    assert render(run)


def test_hostile_findings_are_text(with_findings):
    bad = [
        Finding(text[:40], text[:40], 1.0, text[:60], text[:60], text[:60], text[:60], level="bad", text=text[:200])
        for text in HOSTILE
    ]
    html = render(with_findings(bad))
    for text in HOSTILE[:2]:
        assert text not in html
    page = Page(html)
    assert [attributes.get("type") for attributes, _ in page.scripts] == ["application/json", "module"]
    assert not [tag for tag, attributes in page.elements if tag == "img" or "onerror" in attributes]
