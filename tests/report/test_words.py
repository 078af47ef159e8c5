"""The words of report and card: votes without names, more than two labels, numbers as labels, one verdict."""

from __future__ import annotations

import polars as pl
import pytest
from report_support import make_run, vote_frame

from moral_entropy.findings import Finding
from moral_entropy.markup import markdown_text
from moral_entropy.report.card import croissant_facts, dataset_card
from moral_entropy.report.figures import figure_specs
from moral_entropy.report.html import TEMPLATES, render
from moral_entropy.report.page import checked_tables, page_data
from moral_entropy.report.words import RATES, label_notes, order_notes, votes_in_words
from moral_entropy.runs.run import cautions, read_run


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
        assert "three votes per item" in text and "1 annotator" not in text
    assert "a confusion matrix per annotator" not in card and "one confusion matrix for all votes" in card
    assert '<h2 id="annotators-title">How the votes err</h2>' in page
    assert not [name for name, _ in figure_specs(nameless_run) if name.startswith("annotators")]


def test_more_than_two_labels_have_their_own_words(graded_run):
    [note] = label_notes(graded_run)
    assert note.startswith("There are more than two labels: each is then graded by itself.")
    page = render(graded_run)
    text = page[: page.index('<script type="application/json"')]
    for word in ("sensitivity", "specificity"):
        assert word not in text.lower(), word


def test_numbers_taken_as_names_are_said_to_be_unordered(graded_run, many_run, plain_run, tmp_path):
    assert order_notes(graded_run) == []  # taken as levels
    frame = vote_frame(labels=tuple("12345"), questions=("rating",), n_items=60)
    names_run = read_run(make_run(frame, tmp_path / "run", scale="nominal"))
    [note] = order_notes(names_run)
    assert note.startswith("The labels are numbers, from 1 to 5, but are taken as unordered names")
    assert note.endswith("1 for 2 counts as just as wrong as 1 for 5.")
    assert note in render(names_run) and note in dataset_card(names_run)
    assert order_notes(read_run(many_run)) == order_notes(read_run(plain_run)) == []


def test_rules_that_grade_label_by_label_are_not_held_beside_the_consensus(graded_run, plain_run):
    tables = {table["title"]: table["rows"] for table in checked_tables(graded_run)}
    assert {row[1] for row in tables[""]} == {f"{len(graded_run.items):,}"}
    assert "Rules that decide on each label by itself" not in [
        table["title"] for table in checked_tables(read_run(plain_run))
    ]


def test_rules_with_the_same_figures_share_a_row(plain_run):
    rows = [row for row in checked_tables(read_run(plain_run))[0]["rows"] if row[0].startswith("rule ")]
    assert len({tuple(row[1:]) for row in rows}) == len(rows)
    names = [name for row in rows for name in row[0].removeprefix("rule ").split(", ")]
    assert len(names) == len(set(names)) >= 6


def test_where_all_labels_are_known_there_is_no_range(graded_run):
    assert all("(" not in row[3] for row in checked_tables(graded_run)[0]["rows"])


def test_what_yes_stands_for_is_said(plain_run):
    assert label_notes(read_run(plain_run)) == ["Yes stands for the label “1”, no for the other."]


@pytest.mark.parametrize("kind", ["nameless", "graded"])
def test_page_and_card_say_what_the_run_says(kind, request):
    run = request.getfixturevalue(f"{kind}_run")
    card, (texts, _) = dataset_card(run), page_data(run)
    assert (texts["verdict"]["title"], texts["verdict"]["text"]) == (run.verdict.title, run.verdict.text)
    for finding in cautions(run):
        assert markdown_text(finding.text) in card and markdown_text(finding.meaning) in card
    shown = [(issue["severity"], issue["text"], issue["remedy"]) for issue in texts["findings"]["issues"]]
    assert shown == [(finding.severity, finding.text, finding.remedy) for finding in cautions(run)]


def test_nothing_is_called_fine_where_something_was_found(with_findings):
    bad = Finding("dependence", "pairs", 2.0, "care", level="bad", text="a and b copy.", meaning="M.", remedy="C.")
    page = render(with_findings([bad]))
    assert "No doubt was found" not in page and "a and b copy" in page.lower()
    assert "No doubt was found" in render(with_findings([Finding("laplace", "pareto_k", 0.3, level="good")]))


STUMBLED_OVER = (
    "yardstick", "flagger", "near chance", "below chance", "pareto", "prior's say", "overruled", "a row a vote",
    "votes an item", "nats a text", "positive votes", "doubtful",
)  # fmt: skip


@pytest.mark.parametrize("word", STUMBLED_OVER)
def test_words_that_readers_stumbled_over_are_gone(word):
    files = [file for file in TEMPLATES.iterdir() if file.suffix in (".html", ".js")]
    assert [file.name for file in files if word in file.read_text(encoding="utf-8").lower()] == []


def test_rates_are_explained_below_their_table(plain_run):
    page = render(read_run(plain_run))
    rules = page[page.index('id="rules"') :]
    for metric in ("fpr", "fnr", "fdr", "for"):
        assert f"{RATES[metric].meaning} ({RATES[metric].formal})" in rules
