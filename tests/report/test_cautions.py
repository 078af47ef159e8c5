"""Warnings appear when their cause does, rank by severity, and turn the verdict."""

from __future__ import annotations

import json
import shutil

import polars as pl
import pytest
from report_support import make_run

from moral_entropy.report.cautions import cautions
from moral_entropy.report.item_sums import item_sums
from moral_entropy.report.verdict import give_verdict, headlines
from moral_entropy.runs.run import read_run
from moral_entropy.runs.tables import read_table


@pytest.fixture
def changed(plain_run, tmp_path):
    """A copy of a run folder with tables or manifest changed."""

    def changed(manifest=None, **tables):
        path = tmp_path / "run"
        shutil.copytree(plain_run, path, dirs_exist_ok=True)
        facts = json.loads((path / "manifest.json").read_text())
        if manifest:
            manifest(facts)
        (path / "manifest.json").write_text(json.dumps(facts))
        for name, change in tables.items():
            change(read_table(path, name)).write_parquet(path / f"{name}.parquet")
        return read_run(path)

    return changed


def found_in(run):
    return cautions(run, item_sums(run))


def titles(run):
    return " | ".join(caution.title for caution in found_in(run))


def test_a_fit_that_did_not_converge_stops_the_labels(changed):
    run = changed(lambda facts: facts["questions"][1].update(converged=False))
    first = found_in(run)[0]
    assert first.severity == "high" and "fairness" in first.title and "care" not in first.title
    assert give_verdict(run, item_sums(run), [first]).status == "stop"


def test_thin_votes_are_named(changed):
    run = changed(items=lambda items: items.with_columns(n_votes=pl.lit(1, pl.Int32), n_positive=pl.lit(0, pl.Int32)))
    assert "Thin data: 1.00 votes an item on care, fairness" in titles(run)


def test_votes_overruled_are_counted(changed, plain_run):
    before = read_table(plain_run, "items").filter(question="care", n_positive=0).height
    run = changed(
        items=lambda items: items.with_columns(
            p=pl.when((pl.col("question") == "care") & (pl.col("n_positive") == 0)).then(0.9).otherwise("p")
        )
    )
    assert before > 2
    assert f"on {before} items of care" in titles(run)
    assert "overruled" not in titles(read_run(plain_run))


def test_annotators_below_chance_are_named(changed, plain_run):
    assert "worse than chance" not in titles(read_run(plain_run))
    run = changed(
        annotator_summary=lambda rows: rows.with_columns(
            below_chance=pl.when(pl.col("annotator") == "c").then(0.99).otherwise(0.01)
        )
    )
    assert "1 of 6 annotators look worse than chance on some question (c;" in titles(run)


def test_an_annotator_who_dominates_is_named(changed):
    run = changed(
        annotators=lambda rows: rows.with_columns(
            n_votes=pl.when(pl.col("annotator") == "b").then(10_000).otherwise("n_votes").cast(pl.Int64)
        )
    )
    assert "One annotator dominates: b gave" in titles(run)


def test_worse_comes_first_and_other_warnings_are_kept_once(changed):
    def manifest(facts):
        facts["questions"][0]["converged"] = False
        facts["items_without_votes"] = 7
        facts["warnings"] = ["care: something odd. Do this.", "fairness: something odd. Do this."]

    found = found_in(changed(manifest))
    ranks = [["high", "medium", "low"].index(caution.severity) for caution in found]
    assert ranks == sorted(ranks) and set(ranks) == {0, 1, 2}
    assert [caution.title for caution in found].count("care, fairness: something odd") == 1


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


def test_a_consensus_that_gold_contradicts_cannot_ship(tmp_path):
    # Three of five annotators follow another guideline than gold, together; on half of the items gold agrees with two.
    rows = [
        {"item": i, "annotator": a, "label": int(i % 3 == 0) if a < 3 else int(i % 2 == 0), "gold": int(i % 2 == 0)}
        for i in range(240)
        for a in range(5)
    ]
    run = read_run(make_run(pl.DataFrame(rows), tmp_path / "run"))
    found = cautions(run, item_sums(run))
    titles = [caution.title for caution in found if caution.severity == "high"]
    assert any("against the gold labels" in title for title in titles)
    assert give_verdict(run, item_sums(run), found).status == "stop"


def test_a_consensus_behind_the_plain_vote_is_said(changed):
    def worse(audit):
        spoilt = (pl.col("rule") == "consensus") & (pl.col("metric") == "disagreement")
        return audit.with_columns(value=pl.when(spoilt).then(0.4).otherwise("value"))

    run = changed(audit=worse)
    [caution] = [one for one in found_in(run) if "the plain vote" in one.title]
    assert caution.severity == "high" and "40.0%" in caution.title
    assert give_verdict(run, item_sums(run), [caution]).status == "stop"


def test_a_consensus_that_gold_bears_out_is_left_alone(plain_run):
    run = read_run(plain_run)
    assert not [one for one in cautions(run, item_sums(run)) if "gold" in one.title]
