"""The page: one file, loads nothing, runs only what we wrote, the same for the same run, the answer first."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import polars as pl
import pytest
from report_support import HOSTILE, make_run, page_of, rows_of, vote_frame

import moral_entropy as me
from moral_entropy.cli.main import main
from moral_entropy.report import html
from moral_entropy.report.html import render, write_report
from moral_entropy.report.page import page_data
from moral_entropy.report.paper import methods
from moral_entropy.runs.run import read_run
from moral_entropy.verdict.summary import Summary


def test_the_answer_comes_first_and_the_method_last(plain_run):
    page = (plain_run / "report.html").read_text(encoding="utf-8")
    sections = re.findall(r'<section id="(\w+)"', page)
    assert sections == ["answer", "questions", "todo", "items", "annotators", "uncertainty", "rules", "method"]
    assert re.findall(r'<a href="#(\w+)"', page) == sections
    method = page[page.index('id="method"') :]
    assert method.index("<details") < method.index("Items may lie between labels") and "<details open" not in method


def test_the_table_by_question_holds_the_rows_of_the_first_screen(plain_run):
    run = read_run(plain_run)
    rows = {row[0]: row for row in page_data(run)[0]["questions"]["rows"]}
    screen = {row["question"]: row for row in Summary(run).questions}
    assert list(rows) == list(screen) == ["care", "fairness"]
    for question, row in rows.items():
        items = run.items.filter(question=question)
        assert row[1] == f"{items.height:,}" and row[2] == f"{items['n_votes'].mean():.1f}"
        assert row[3].startswith(f"{screen[question]['alpha']:.2f} (")
        wrong = items.select(pl.min_horizontal("p", 1 - pl.col("p"))).to_series()
        assert row[4] == f"{(wrong > 0.25).mean():.1%}" == f"{screen[question]['uncertain']:.1%}"
        majority = (
            run.table("votes").filter(question=question).group_by("item").agg(yes=(pl.col("label") == "1").mean())
        )
        joined = items.join(majority, on="item").filter(pl.col("yes") != 0.5)
        differs = ((joined["p"] >= 0.5) != (joined["yes"] > 0.5)).sum()
        assert float(row[5].rstrip("%")) == pytest.approx(100 * differs / items.height, abs=1.5)
        # Every answer is known: no range.
        assert row[6] == f"{(items['gold'] != items['label']).mean():.1%}"


@pytest.mark.parametrize("kind", ["plain", "hostile", "many"])
def test_nothing_is_loaded_and_only_our_script_runs(kind, request):
    page = page_of(request.getfixturevalue(f"{kind}_run"))
    assert [attributes.get("type") for attributes, _ in page.scripts] == ["application/json", "module"]
    assert not [
        tag for tag, attributes in page.elements if "src" in attributes or tag in ("link", "iframe", "img", "object")
    ]
    assert all(attributes.get("href", "#").startswith("#") for _, attributes in page.elements)
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    [policy] = [attributes["content"] for tag, attributes in page.elements
                if attributes.get("http-equiv") == "Content-Security-Policy"]  # fmt: skip
    digest = base64.b64encode(hashlib.sha256("".join(page.scripts[1][1]).encode()).digest()).decode()
    assert re.findall(r"'sha256-([^']+)'", policy) == [digest]
    assert "default-src 'none'" in policy and "unsafe-eval" not in policy


def test_hostile_texts_are_data_and_nothing_else(hostile_run):
    page = (hostile_run / "report.html").read_text(encoding="utf-8")
    for text in HOSTILE[:2]:
        assert text not in page
    shown = {row["text"] for row in rows_of(page_of(hostile_run).data()["texts"])}
    assert shown == {text[:2_000] for text in HOSTILE}


def test_the_same_run_gives_the_same_bytes(plain_run, tmp_path):
    one, two = (write_report(plain_run, tmp_path / name).read_bytes() for name in ("a.html", "b.html"))
    assert one == two == (plain_run / "report.html").read_bytes()


def test_without_draws_or_domains_or_gold_there_is_a_report(tmp_path):
    frame = vote_frame(n_items=30, questions=("q",), gold=False).drop("domain", "text")
    run = read_run(make_run(frame, tmp_path / "run", draws=0))
    texts, _ = page_data(run)
    assert texts["reliability"] == [] and texts["checked"] == []
    assert any("No posterior draws" in issue["text"] for issue in texts["findings"]["issues"])


def test_a_page_that_is_too_large_holds_fewer_items(plain_run, monkeypatch):
    whole = render(read_run(plain_run))
    monkeypatch.setattr(html, "MAX_BYTES", len(whole.encode()) - 1_000)
    smaller = render(read_run(plain_run))
    assert len(smaller.encode()) <= len(whole.encode()) - 1_000 and "240" in smaller


def test_a_page_without_a_chart_library_is_small(plain_run, many_run):
    for run in (plain_run, many_run):
        assert (run / "report.html").stat().st_size < 300_000


@pytest.mark.slow
def test_many_items_make_a_small_page(tmp_path):
    votes, run = tmp_path / "votes.parquet", tmp_path / "run"
    sizes = ["--items", "100000", "--annotators", "5000", "--votes-per-item", "3", "--seed", "1"]
    assert main(["simulate", *sizes, "-o", str(votes)]) == 0
    assert main(["audit", str(votes), "-o", str(run), "--draws", "20", "--quiet"]) == 0
    assert (run / "report.html").stat().st_size <= 1_500_000


def planted():
    """Six annotators: one says the opposite, one says yes to nearly everything, one guesses, one copies another."""
    import random

    draw, rows = random.Random(3), []
    for item in range(300):
        truth = draw.random() < 0.5
        slips = {name: draw.random() for name in ("good", "fine", "sound")}
        cast = {name: truth if slip < 0.85 else not truth for name, slip in slips.items()}
        cast |= {"copy of good": cast["good"], "opposite": truth if draw.random() < 0.1 else not truth}
        cast |= {"eager": truth or draw.random() < 0.7, "guesser": draw.random() < 0.5}
        rows += [{"item": item, "annotator": name, "label": "yes" if yes else "no"} for name, yes in cast.items()]
    return pl.DataFrame(rows)


def test_annotators_come_with_the_worst_first_and_a_true_sentence_each():
    run = me.audit(planted(), draws=100)
    people = {row["annotator"]: row["sentence"] for row in rows_of(page_data(run)[1]["people"])}
    assert people["opposite"].startswith("Worse than guessing: against the majority")
    assert people["guesser"].startswith("Like guessing: against the majority of the others on ")
    # Seven in ten of the items that are no, give or take.
    share = re.fullmatch(r"Says yes too often: to (\d+)% of the items that are no\.", people["eager"])[1]
    assert int(share) == pytest.approx(70, abs=9)
    assert people["copy of good"] == "Votes as good does: the two count as one."
    assert list(people)[:3] == ["opposite", "guesser", "eager"] and people["fine"].startswith("Nothing unusual")


def test_with_several_questions_every_annotator_is_one_row_over_all():
    frame = pl.concat([planted().with_columns(question=pl.lit(name)) for name in ("one", "two")])
    rows = rows_of(page_data(me.audit(frame, draws=60))[1]["people"])
    pooled = {row["annotator"]: row for row in rows if row["question"] == "(all)"}
    assert len(pooled) == 7 and pooled["opposite"]["n_votes"] == 600
    assert pooled["opposite"]["sentence"].endswith("Worth a look on 1 more of 2 questions.")
    assert pooled["fine"]["sentence"] == "Nothing unusual on 2 questions."


def test_of_very_many_annotators_the_busiest_are_in_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr("moral_entropy.report.page.MAX_PEOPLE", 50)
    frame = vote_frame(n_items=60, questions=("q",), gold=False).with_columns(
        annotator=pl.format("w{}", pl.int_range(pl.len()))
    )
    run = me.audit(frame, draws=0)
    texts, columns = page_data(run)
    assert len(rows_of(columns["people"])) == 50 and texts["people_note"].startswith("50 of ")


THIN = {
    "one item of twenty voters": [(0, voter, voter % 2) for voter in range(20)],
    "a vote per item and annotator": [(item, item, item % 2) for item in range(10)],
    "nearly all say yes": [(item, voter, 1) for item in range(10) for voter in range(3)] + [(0, 9, 0)],
    "ratings by two": [(item, voter, 1 + (3 * item + voter) % 5) for item in range(12) for voter in range(2)],
}


@pytest.mark.parametrize("model", ["mixed", "paper"])
@pytest.mark.parametrize("kind", THIN)
@pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")
def test_thin_votes_make_a_page_without_a_library_warning_or_a_missing_figure(kind, model):
    frame = pl.DataFrame(THIN[kind], schema=["item", "annotator", "label"], orient="row").with_columns(
        team=pl.col("annotator") % 2
    )
    run = me.audit(frame, draws=20, model=model, annotator_group=("team",))
    page, paragraph = render(run), methods(run)
    text = re.sub(r"<[^>]*>", " ", page[: page.index('id="data"')])
    for words in (text, paragraph):
        assert not re.search(r"\bnan\b|\bNone\b|\binf\b", words)


def test_items_whose_text_says_otherwise_than_their_votes_are_listed():
    """Texts say what the truth is; of one item in ten most votes are wrong."""
    rows = []
    for item in range(400):
        truth, slips = item % 2, item % 20 in (3, 8)
        text = f"{['sunny kind gentle', 'storm cruel brutal'][truth]} number {item}"
        rows += [(item, voter, 1 - truth if slips and voter < 2 else truth, text) for voter in range(3)]
    frame = pl.DataFrame(rows, schema=["item", "annotator", "label", "text"], orient="row")
    run = me.audit(frame, draws=20)
    section = page_data(run)[0]["texts"]
    assert section["sentence"] == run.manifest["text_worth"]["sentence"] in render(run)
    conflicts = run.table("text_conflicts")
    assert [row[1] for row in section["table"]["rows"]] == [str(item) for item in conflicts["item"].head(50)]
    assert all(item % 20 in (3, 8) for item in conflicts["item"].head(10))


def test_thresholded_rates_stand_beside_the_expected_ones_under_the_default_model_alone():
    votes = Path(__file__).parents[2] / "examples" / "votes.csv"
    run, paper = (me.audit(votes, draws=0, model=model) for model in ("mixed", "paper"))
    rules = page_data(run)[0]["rules"]
    p, missed = run.items["p"].to_numpy(), run.items["n_positive"].to_numpy() < 2
    [cell] = [row[2] for row in rules["table"]["rows"] if "two-vote" in row[0]]
    assert cell == f"{p[missed].sum() / p.sum():.1%} ({missed[p >= 0.5].mean():.0%})"
    assert rules["caveat"].startswith("In brackets")
    rules = page_data(paper)[0]["rules"]
    assert not rules["caveat"] and not any("(" in cell for row in rules["table"]["rows"] for cell in row[1:])
