"""Every finding worth a word becomes a warning of the report, ranked by severity, and turns the verdict."""

from __future__ import annotations

import polars as pl
import pytest
from report_support import make_run

from moral_entropy.findings import Finding, alarm_sentences
from moral_entropy.markup import markdown_text
from moral_entropy.report.card import dataset_card
from moral_entropy.report.cautions import cautions
from moral_entropy.report.html import render
from moral_entropy.report.item_sums import item_sums
from moral_entropy.report.verdict import give_verdict, headlines
from moral_entropy.runs.findings import read_findings
from moral_entropy.runs.run import read_run
from moral_entropy.runs.tables import read_table

CONVERGED = Finding("fit", "converged", 0, "care", level="bad", text="the fit did not converge: 9 passes.",
                    meaning="The search stopped too soon.", cure="Raise --max-passes.")  # fmt: skip
THIN = Finding("votes", "votes_per_item", 1.8, "care", level="doubt", text="1.80 votes per item.",
               meaning="Too few votes to decide.", cure="Collect second votes.")  # fmt: skip
UNVOTED = Finding("votes", "items_without_votes", 7, "fairness", level="note", text="7 items have no vote.",
                  meaning="Their p is the share.", cure="Leave them out.")  # fmt: skip


def status_of(run):
    return give_verdict(run, item_sums(run), cautions(run)).status


def test_worse_comes_first_and_those_of_one_kind_are_one(with_findings):
    also_thin = Finding("votes", "votes_per_item", 1.9, "fairness", level="doubt", text="1.90 votes per item.")
    run = with_findings([UNVOTED, THIN, also_thin, CONVERGED, Finding("gold", "ece", 0.1, level="good", text="fine.")])
    found = cautions(run)
    assert [one.severity for one in found] == ["high", "medium", "low"]
    assert found[0].title == "care: the fit did not converge: 9 passes"
    assert found[1].title == "care: 1.80 votes per item. The same in 1 more: fairness"
    assert (found[1].meaning, found[1].action) == (THIN.meaning, THIN.cure)


@pytest.mark.parametrize(
    ("findings", "status"),
    [([], "ready"), ([UNVOTED], "ready"), ([THIN], "care"), ([THIN, CONVERGED], "stop")],
    ids=["nothing", "note", "doubt", "bad"],
)
def test_the_worst_finding_turns_the_verdict(with_findings, findings, status):
    assert status_of(with_findings(findings)) == status


def test_report_card_manifest_and_screen_say_the_same(tmp_path, capsys):
    # Three of five annotators follow another guideline than gold, together; on half of the items gold agrees with two.
    rows = [
        {"item": i, "annotator": a, "label": int(i % 3 == 0) if a < 3 else int(i % 2 == 0), "gold": int(i % 2 == 0)}
        for i in range(240)
        for a in range(5)
    ]
    run = read_run(make_run(pl.DataFrame(rows), tmp_path / "run"))
    findings = read_findings(run)
    assert run.manifest["warnings"] == alarm_sentences(findings)
    card, page, said = dataset_card(run), render(run), " ".join(run.manifest["warnings"])
    for one in cautions(run):
        assert markdown_text(one.title) in card
        assert one.title.replace("&", "&amp;")[:60] in page.replace("&#39;", "'")
        assert one.severity == "low" or (one.title in said and one.meaning in said and one.action in said)
    titles = [one.title for one in cautions(run) if one.severity == "high"]
    assert any("against the gold labels" in title for title in titles)
    assert status_of(run) == "stop"


def test_a_consensus_that_gold_bears_out_is_left_alone(plain_run):
    assert not [one for one in cautions(read_run(plain_run)) if "gold" in one.title]


def test_headlines_are_the_audits_figures(plain_run):
    run = read_run(plain_run)
    shown = {headline.name: headline for headline in headlines(run, item_sums(run))}
    pooled = read_table(plain_run, "audit").filter(question="(all)", domain="(all)", label="(all)")
    wanted = pooled.filter(rule="any", metric="fdr", reference="consensus").row(0, named=True)
    figure = shown["flagged by one vote, unsupported"]
    assert (figure.value, figure.low) == (f"{wanted['value']:.1%}", f"{wanted['low']:.1%}")
    items = read_table(plain_run, "items")
    by_hand = sum(min(p, 1 - p) for p in items["p"]) / items.height
    assert shown["consensus labels expected wrong"].value == f"{by_hand:.1%}"
    assert 3 <= len(shown) <= 4


def test_with_several_labels_differing_is_about_the_label_itself(many_run):
    run = read_run(many_run)
    figure = next(h for h in headlines(run, item_sums(run)) if h.name == "plurality differs from the consensus")
    rows = read_table(many_run, "audit").filter(rule="plurality", metric="disagreement", label="(multiclass)")
    wanted = rows.filter(reference="consensus", domain="(all)", question="tone")["value"].item()
    assert figure.value == f"{wanted:.1%}"
