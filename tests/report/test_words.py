"""The words of report and card: votes without names, more than two labels, numbers as labels, one verdict."""

from __future__ import annotations

import re

import polars as pl
import pytest
from report_support import make_run, page_of, vote_frame

from moral_entropy.findings import Finding
from moral_entropy.markup import markdown_text
from moral_entropy.report.card import croissant_facts, dataset_card
from moral_entropy.report.data import report_data
from moral_entropy.report.figures import figure_specs
from moral_entropy.report.html import TEMPLATES, render
from moral_entropy.report.tables import checked_rows, drawn_charts
from moral_entropy.report.words import RATES, label_notes, order_notes, votes_in_words
from moral_entropy.runs.run import cautions, read_run
from moral_entropy.verdict.headlines import headlines


@pytest.fixture(scope="module")
def nameless_run(tmp_path_factory):
    """Three votes per item and nobody's name."""
    counts = pl.DataFrame({"item": range(40), "no": [i % 4 for i in range(40)], "yes": [3 - i % 4 for i in range(40)]})
    return read_run(make_run(counts, tmp_path_factory.mktemp("nameless") / "run", anonymous=True, counts=("no", "yes")))


@pytest.fixture(scope="module")
def graded_run(tmp_path_factory):
    """Ratings from 1 to 5, with gold."""
    frame = vote_frame(labels=tuple("12345"), questions=("rating",), n_items=60)
    return read_run(make_run(frame, tmp_path_factory.mktemp("graded") / "run"))


def test_votes_without_names_are_not_those_of_one_annotator(nameless_run):
    assert votes_in_words(nameless_run) == "120 votes without annotators' names (three votes per item)"
    page, card = render(nameless_run), dataset_card(nameless_run)
    protocol = croissant_facts(nameless_run)["rai:dataAnnotationProtocol"]
    for text in (page, card, protocol):
        assert "three votes per item" in text and "annotators' names" in text.replace("&#39;", "'")
        assert "1 annotator" not in text
    assert "a confusion matrix per annotator" not in card and "one confusion matrix for all votes" in card
    assert '<h2 id="annotators-title">How the votes err</h2>' in page


def test_votes_without_names_make_no_chart_of_one_dot(nameless_run):
    assert not drawn_charts(nameless_run)["annotators"] and not drawn_charts(nameless_run)["by_votes"]
    names = [name for name, _ in figure_specs(nameless_run)]
    assert not [name for name in names if name.startswith("annotators") or name == "entropy-by-votes"]


def test_more_than_two_labels_have_their_own_words(graded_run):
    [note] = label_notes(graded_run)
    assert note.startswith("There are more than two labels: each is then graded by itself.")
    page = render(graded_run)
    text = page[: page.index('<script type="application/json"')]
    for word in ("sensitivity", "specificity", "positive vote"):
        assert word not in text.lower(), word
    assert "the right label, averaged over the labels" in text


def test_numbers_as_labels_are_said_to_be_unordered(graded_run, many_run, plain_run):
    [note] = order_notes(graded_run)
    assert note.startswith("The labels are numbers, from 1 to 5, but are taken as unordered names")
    assert note.endswith("1 for 2 counts as just as wrong as 1 for 5.")
    assert note in render(graded_run) and note in dataset_card(graded_run)
    assert order_notes(read_run(many_run)) == order_notes(read_run(plain_run)) == []


def test_rules_that_grade_label_by_label_are_not_held_beside_the_consensus(graded_run, plain_run):
    found = checked_rows(graded_run)
    n_items = len(graded_run.items)
    assert {row["checked"] for row in found["labels"]} == {n_items}
    # Whoever is graded on all five labels of an item is kept apart.
    assert {row["checked"] for row in found["by_label"]} <= {5 * n_items}
    assert checked_rows(read_run(plain_run))["by_label"] == []


def test_rules_with_the_same_figures_share_a_row(plain_run):
    rows = checked_rows(read_run(plain_run))["labels"]
    figures = [(row["wrong"], row["low"], row["high"]) for row in rows if row["kind"] == "rule"]
    assert len(figures) == len(set(figures))
    named = [name for row in rows if row["kind"] == "rule" for name in row["name"].split(", ")]
    assert len(named) == len(set(named)) >= 6


def test_where_all_labels_are_known_there_is_no_range(graded_run):
    rows = checked_rows(graded_run)["labels"]
    assert rows and all(row["low"] == row["high"] for row in rows)
    page = render(graded_run)
    assert page.count("all are known</td>") >= len(rows)
    assert not re.search(r"(\d+\.\d)–\1%</td>", page)


def test_what_yes_stands_for_is_said(plain_run):
    assert label_notes(read_run(plain_run)) == ["Yes stands for the label “1”, no for the other."]


@pytest.mark.parametrize("kind", ["nameless", "graded"])
def test_page_and_card_say_what_the_run_says(kind, request):
    run = request.getfixturevalue(f"{kind}_run")
    card, data = dataset_card(run), report_data(run)
    assert (data["verdict"]["title"], data["verdict"]["text"]) == (run.verdict.title, run.verdict.text)
    assert markdown_text(run.verdict.title) in card and markdown_text(run.verdict.text) in card
    for one in headlines(run, run.verdict):
        assert f"| {markdown_text(one.name)} | {one.value}" in card
    shown = [(one["severity"], one["text"], one["remedy"]) for one in data["cautions"]]
    assert shown == [(one.severity, one.text, one.remedy) for one in cautions(run)]
    for one in cautions(run):
        assert f"**{one.severity}**: {markdown_text(one.text)}" in card and markdown_text(one.remedy) in card


def test_nothing_is_called_fine_where_something_was_found(with_findings):
    bad = Finding("dependence", "pairs", 2.0, "care", level="bad", text="a and b copy.", meaning="M.", remedy="C.")
    page = render(with_findings([bad]))
    assert "No doubt was found" not in page and "None." not in page
    assert "The consensus itself may be wrong" in page
    assert "No doubt was found" in render(with_findings([Finding("laplace", "pareto_k", 0.3, level="good")]))


def test_every_annotator_is_in_the_page(tmp_path):
    frame = vote_frame(n_items=90, questions=("q",), gold=False, annotators=[f"w{i}" for i in range(5)])
    frame = frame.with_columns(annotator=pl.format("w{}", pl.int_range(pl.len())))
    run = make_run(frame, tmp_path / "run", draws=0)
    data = page_of(run).data()
    assert len(data["people"]["annotator"]["of"]) == data["people_total"] == frame.height > 300


STUMBLED_OVER = (
    "yardstick", "flagger", "near chance", "below chance", "pareto", "prior's say", "overruled", "a row a vote",
    "votes an item", "nats a text", "positive votes", "doubtful",
)  # fmt: skip


@pytest.mark.parametrize("word", STUMBLED_OVER)
def test_words_that_readers_stumbled_over_are_gone(word):
    own = [file for file in TEMPLATES.iterdir() if file.suffix in (".html", ".js")]
    assert len(own) > 5
    assert [file.name for file in own if word in file.read_text(encoding="utf-8").lower()] == []


def test_rates_are_explained_where_they_are_first_named(plain_run):
    page = render(read_run(plain_run))
    for metric in ("fpr", "fnr", "fdr", "for"):
        rate = RATES[metric]
        assert f"<dt>{rate.name}</dt>" in page and f"{rate.meaning} ({rate.formal}, {metric.upper()})" in page
        assert page.index(f"<dt>{rate.name}</dt>") < page.index('id="chart-rules"')
