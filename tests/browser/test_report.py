"""A report as its readers use it: the answer, items with their votes, annotators, themes; hostile texts do nothing."""

from __future__ import annotations

import csv
import math

import pytest
from report_support import HOSTILE, page_of, rows_of

from moral_entropy.runs.run import read_run


@pytest.fixture(params=["twin", "real", "many", "hostile"], scope="module")
def run(request):
    return request.getfixturevalue(f"{request.param}_run")


def test_the_first_screen_answers(run, open_report):
    report = open_report(run)
    assert read_run(run).verdict.title in report.text("#answer")
    box = report.page.locator("#answer").bounding_box()
    assert box["y"] + box["height"] < 500
    questions = {row["name"] for row in page_of(run).data()["questions"]}
    shown = report.page.locator("#questions tbody tr td:first-child").all_inner_texts()
    assert {" ".join(name.split()) for name in questions} == {" ".join(name.split()) for name in shown}


def test_the_whole_page_is_at_most_a_megabyte_and_a_half(run):
    assert (run / "report.html").stat().st_size <= 1_500_000


def test_bars_of_the_entropy_are_as_long_as_their_parts(twin_run, open_report):
    page, entropy = open_report(twin_run).page, read_run(twin_run).entropy.filter(domain="(all)")
    longest = entropy["total"].max()
    tracks = page.locator(".bar-track").evaluate_all("list => list.map((e) => e.getBoundingClientRect().width)")
    filled = page.locator(".bar-track").evaluate_all(
        "list => list.map((e) => [...e.children].reduce((sum, part) => sum + part.getBoundingClientRect().width, 0))"
    )
    for total, track, bar in zip(entropy["total"], tracks, filled, strict=True):
        assert bar / track == pytest.approx(total / longest, abs=0.01)
    assert page.locator(".bar-name").all_inner_texts() == entropy["question"].to_list()


def test_dots_of_reliability_lie_where_gold_says(many_run, open_report):
    page = open_report(many_run).page
    bins = read_run(many_run).table("audit_reliability").filter(bins="width")
    assert page.locator(".plots circle").count() == bins.height > 3
    first, row = page.locator(".plots circle").first, bins.row(0, named=True)
    assert float(first.get_attribute("cx")) == pytest.approx(14 + 100 * row["p"], abs=0.06)
    assert float(first.get_attribute("cy")) == pytest.approx(106 - 100 * row["gold"], abs=0.06)


def test_more_than_two_labels_have_their_own_words(many_run, open_report):
    page = open_report(many_run).page
    heads = page.locator("#people th").all_inner_texts()
    assert any("right label" in head for head in heads) and not any("sees a no" in head for head in heads)


def test_items_are_searched_and_filtered(twin_run, open_report):
    report = open_report(twin_run)
    report.reset_items()
    page, before = report.page, report.count_text()
    items = rows_of(page_of(twin_run).data()["items"])
    page.fill("#find", items[3]["item"])
    assert report.item_rows() == sum(items[3]["item"] in row["item"] for row in items) < 10
    page.fill("#find", "no such words anywhere")
    assert report.item_rows() == 0
    page.fill("#find", "")
    assert report.count_text() == before
    page.select_option("#item-question", "care")
    page.select_option("#item-domain", "BLM")
    page.select_option("#item-show", "majority")
    rows = [row for row in items if row["question"] == "care" and row["domain"] == "BLM" and row["n_votes"]
            and (2 * row["n_positive"] >= row["n_votes"]) != (row["p"] >= 0.5)]  # fmt: skip
    assert report.n_items() == len(rows)


def test_items_are_sorted_and_paged(twin_run, open_report):
    report = open_report(twin_run)
    report.reset_items()
    page = report.page
    page.select_option("#item-sort", "low")
    values = [float(text.removeprefix("p ")) for text in page.locator("#item-list .chance").all_inner_texts()]
    assert values == sorted(values) and len(values) == 10
    first = page.locator("#item-list > li").first.get_attribute("data-row")
    page.click("#after")
    assert page.locator("#item-list > li").first.get_attribute("data-row") != first


def test_every_waterfall_adds_up_to_p(run, open_report):
    report = open_report(run)
    report.reset_items()
    page, data = report.page, page_of(run).data()
    items, labels = rows_of(data["items"]), {row["name"]: row["labels"] for row in data["questions"]}
    for at in range(0, 10, 2):
        row = int(page.locator("#item-list > li").nth(at).get_attribute("data-row"))
        page.locator("#item-list .open").nth(at).focus()
        page.keyboard.press("Enter")
        fall = page.locator(".waterfall")
        contributions = [float(text.replace("−", "-")) for text in fall.locator(".contribution").all_inner_texts()]
        assert sum(contributions[:-1]) == pytest.approx(contributions[-1], abs=0.006 * len(contributions))
        assert len(contributions) == items[row]["n_votes"] + 2
        if len(labels[items[row]["question"]]) == 2:
            p = 1 / (1 + math.exp(-float(fall.get_attribute("data-sum"))))
            assert p == pytest.approx(items[row]["p_map"], abs=2e-3)
        page.locator("#item-list .open").nth(at).click()
        assert page.locator(".waterfall").count() == 0


def test_an_annotator_opens_by_key(many_run, open_report):
    page = open_report(many_run).page
    summary = page.locator("#people summary").first
    summary.focus()
    page.keyboard.press("Enter")
    name = page.locator("#people tbody tr").first.locator("td").first.inner_text()
    cells = (
        read_run(many_run).table("annotators").filter(annotator=name, true="anger").sort("probability", descending=True)
    )
    line = page.locator("#people details[open] li").first.inner_text()
    top = cells.row(0, named=True)
    assert line.startswith(f"Where the label is anger, says {top['voted']} {top['probability']:.0%}")


def test_dark_and_light(twin_run, open_report):
    paper = "getComputedStyle(document.body).backgroundColor"
    report = open_report(twin_run, dark=True)
    assert report.page.evaluate(paper) == "rgb(20, 23, 27)"
    report.page.click("#theme")
    assert report.page.evaluate(paper) == "rgb(255, 255, 255)"


def test_hostile_texts_do_nothing(hostile_run, open_report):
    report = open_report(hostile_run)
    report.reset_items()
    page = report.page
    for text, words in (
        (HOSTILE[0], "hacked 1</script>"),
        (HOSTILE[2], "7 raw"),
        (HOSTILE[3], "onerror"),
        (HOSTILE[4], "gnp"),
    ):
        page.fill("#find", words)
        page.locator("#item-list .open").first.click()
        assert page.locator(".detail .text").text_content() == text
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.querySelectorAll('img, iframe, object, main script').length") == 0


def test_names_that_every_object_of_javascript_has_are_shown(named_run, open_report):
    page = open_report(named_run).page
    assert {"constructor", "toString", "__proto__"} <= set(page.locator("#questions td:first-child").all_inner_texts())
    page.select_option("#people-question", "constructor")
    assert "hasOwnProperty" in page.locator("#people tbody td:first-child").all_inner_texts()


def test_a_cut_text_says_so(hostile_run, open_report):
    report = open_report(hostile_run)
    report.reset_items()
    page = report.page
    page.fill("#find", "long long")
    page.locator("#item-list .open").first.click()
    assert "Cut at 2,000 of 100,000 characters." in page.locator(".detail").inner_text()


def is_number(cell):
    """A negative number is no formula."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_downloads_hold_every_row_and_no_formula(hostile_run, open_report):
    report = open_report(hostile_run)
    report.reset_items()
    page = report.page
    with page.expect_download() as waiting:
        page.click("#items-csv")
    with open(waiting.value.path(), newline="", encoding="utf-8-sig") as file:  # noqa: PTH123
        rows = list(csv.DictReader(file))
    assert len(rows) == len(rows_of(page_of(hostile_run).data()["items"]))
    assert any(row["text"].startswith("'=HYPERLINK(") for row in rows)
    for row in rows:
        for cell in row.values():
            assert is_number(cell) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")), cell
