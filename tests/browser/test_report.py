"""A report as its readers use it: charts, filters, the rule explorer, waterfalls, themes, a phone."""

from __future__ import annotations

import csv
import math

import polars as pl
import pytest
from report_support import HOSTILE, page_of, rows_of

from moral_entropy.runs.folder import read_table

CHARTS = ("rules", "heat", "explorer", "entropy", "by_votes", "annotators")
ALWAYS = ("explorer", "entropy")
MARKS = "svg .mark-symbol path, svg .mark-rect path"


@pytest.fixture(params=["twin", "real", "many", "hostile"], scope="module")
def run(request):
    return request.getfixturevalue(f"{request.param}_run")


def marks(report, chart):
    return report.page.locator(f"#chart-{chart}").locator(MARKS).count()


def test_every_chart_is_drawn_with_a_mark_for_every_figure(run, open_report):
    report, data = open_report(run), page_of(run).data()
    for chart in CHARTS:
        if chart in ALWAYS or data["drawn"][chart]:
            report.page.locator(f"#chart-{chart} svg.marks").wait_for()
            assert marks(report, chart) > 0, chart
    hard = {rule["rule"] for rule in data["rules"]} - {"share", "smoothed-share"}
    targets = {target["name"] for target in data["targets"]}
    dots = [row for row in rows_of(data["audit"]) if row["domain"] == "(all)" and row["reference"] == "consensus"
            and row["metric"] in ("fpr", "fnr") and row["rule"] in hard and row["target"] in targets
            and row["value"] is not None]  # fmt: skip
    shown = report.page.locator("#chart-rules svg .mark-symbol.role-mark path").count()
    assert shown == len(dots)


def dashed_lines(report, chart):
    report.page.locator(f"#chart-{chart} svg.marks").wait_for()
    return report.page.locator(f"#chart-{chart} svg .mark-line path[stroke-dasharray]").count()


def test_chance_and_the_right_p_are_dashed_lines(twin_run, many_run, open_report):
    assert dashed_lines(open_report(twin_run), "annotators") == 1
    assert dashed_lines(open_report(many_run), "reliability") == 1


def test_more_than_two_labels_have_their_own_words(many_run, open_report):
    page = open_report(many_run).page
    headings = page.locator("#table-people th").all_inner_texts()
    assert "right label" in headings and "sees a no" not in headings
    assert page.locator("#item-show option").all_inner_texts()[:2] == [
        "all items",
        "fewer than half of the votes are for the consensus",
    ]
    page.locator("#table-people .open").first.click()
    said = page.locator("main").inner_text().lower()
    assert not [word for word in ("sensitivity", "specificity", "positive vote", "flagger") if word in said]


def test_the_first_screen_answers(run, open_report):
    report = open_report(run)
    data = page_of(run).data()
    assert data["verdict"]["title"] in report.text("#verdict")
    box = report.page.locator("#verdict").bounding_box()
    assert box["y"] + box["height"] < 900
    assert report.page.locator("ul.figures li").count() == len(data["headlines"]) >= 3


def rate_shown(report, metric):
    value = report.page.locator(f"#try-{metric}").get_attribute("data-value")
    return float(value) if value else None


def try_rule(report, kind, at, target="(all)", domain="(all)"):
    page = report.page
    if page.locator("#try-target").is_visible():
        page.select_option("#try-target", target)
    if page.locator("#try-domain").is_visible():
        page.select_option("#try-domain", domain)
    page.select_option("#try-kind", kind)
    page.locator("#try-at").evaluate(
        "(slider, at) => { slider.value = at; slider.dispatchEvent(new Event('input')); }", at
    )


def test_the_rule_explorer_says_what_the_audit_says(run, open_report):
    report = open_report(run)
    audit = read_table(run, "audit").filter(reference="consensus", question="(all)", label="(all)")
    domains = ["(all)", *audit.filter(pl.col("domain") != "(all)")["domain"].unique(maintain_order=True)[:2]]
    seen = 0
    for domain in domains:
        for rule, kind, at in (("any", "votes", 1), ("two-vote", "votes", 2), ("majority", "share", 50)):
            try_rule(report, kind, at, domain=domain)
            figures = dict(audit.filter(rule=rule, domain=domain).select("metric", "value").iter_rows())
            for metric in ("fpr", "fnr", "fdr", "for"):
                assert rate_shown(report, metric) == pytest.approx(figures[metric], abs=1e-9), (rule, domain, metric)
                seen += 1
    assert seen >= 12


def test_the_rule_explorer_knows_every_question(twin_run, open_report):
    report = open_report(twin_run)
    audit = read_table(twin_run, "audit").filter(reference="consensus", domain="(all)", rule="two-vote", metric="fdr")
    for question in ("care", "sanctity"):
        try_rule(report, "votes", 2, target=question)
        assert rate_shown(report, "fdr") == pytest.approx(audit.filter(question=question)["value"].item(), abs=1e-9)


def test_search_and_filters_change_the_rows(twin_run, open_report):
    report = open_report(twin_run)
    report.reset_items()
    page, before = report.page, report.count_text()
    items = rows_of(page_of(twin_run).data()["items"])
    page.fill("#find", items[3]["item"])
    assert report.item_rows() == sum(items[3]["item"] in row["item"] for row in items) < 25
    page.fill("#find", "no such words anywhere")
    assert report.item_rows() == 0
    page.fill("#find", "")
    assert report.count_text() == before
    page.select_option("#item-question", "care")
    page.select_option("#item-domain", "BLM")
    page.select_option("#item-show", "any")
    wanted = [row for row in items if row["question"] == "care" and row["domain"] == "BLM" and row["n_votes"]
              and (row["n_positive"] >= 1) != (row["p"] >= 0.5)]  # fmt: skip
    assert report.n_items() == len(wanted)
    page.select_option("#item-show", "all")
    page.locator("#item-entropy").evaluate("(s) => { s.value = 90; s.dispatchEvent(new Event('input')); }")
    entropic = [row for row in items if row["question"] == "care" and row["domain"] == "BLM"
                and row["entropy"] >= 0.9 * math.log(2)]  # fmt: skip
    assert report.n_items() == len(entropic)


def test_items_are_sorted_and_paged(twin_run, open_report):
    report = open_report(twin_run)
    report.reset_items()
    page = report.page
    page.select_option("#item-sort", "low")
    column = page.locator(
        "#table-items tbody tr[data-row] .chance + *, #table-items tbody tr[data-row] td:nth-child(6)"
    )
    values = [float(text) for text in column.all_inner_texts() if text]
    assert values == sorted(values) and len(values) == 25
    first = page.locator("#table-items tbody tr[data-row]").first.get_attribute("data-row")
    page.click("#after")
    assert page.locator("#table-items tbody tr[data-row]").first.get_attribute("data-row") != first


def test_every_waterfall_adds_up_to_p(run, open_report):
    report = open_report(run)
    report.reset_items()
    page = report.page
    items = rows_of(page_of(run).data()["items"])
    for at in range(0, 20, 4):
        button = page.locator("#table-items .open").nth(at)
        row = int(page.locator("#table-items tr[data-row]").nth(at).get_attribute("data-row"))
        button.focus()
        page.keyboard.press("Enter")
        fall = page.locator(".waterfall")
        assert float(fall.get_attribute("data-p")) == pytest.approx(items[row]["p_map"], abs=2e-5)
        # The running sum in the last row is the sum of the pushes above it.
        pushes = [_number(text) for text in fall.locator("tbody tr td:nth-child(2)").all_inner_texts()]
        assert sum(pushes[:-1]) == pytest.approx(pushes[-1], abs=0.006 * len(pushes))
        assert len(pushes) == items[row]["n_votes"] + 2
        page.locator("#table-items .open").nth(at).click()
        assert page.locator(".waterfall").count() == 0


def _number(text):
    return float(text.replace("−", "-"))


def test_an_annotator_opens_by_key(run, open_report):
    page = open_report(run).page
    page.locator("#table-people .open").nth(1).focus()
    page.keyboard.press("Enter")
    name = page.locator("#table-people .open").nth(1).text_content()
    assert page.locator("#person h3").text_content().startswith(name)
    labels = page_of(run).data()["questions"][0]["labels"]
    assert page.locator("#person td").count() == len(labels) ** 2
    people = [row for row in rows_of(page_of(run).data()["people"]) if row["annotator"] == name]
    cells = read_table(run, "annotators").with_columns(pl.col("annotator").cast(pl.String))
    chances = cells.filter(annotator=name, question=people[0]["question"], part=people[0]["part"])["probability"]
    shown = [text.split("\n")[0] for text in page.locator("#person td").all_inner_texts()]
    assert [float(text.rstrip("%")) for text in shown] == pytest.approx([100 * p for p in chances], abs=0.06)


def test_dark_and_light(twin_run, open_report):
    paper = "getComputedStyle(document.body).backgroundColor"
    report = open_report(twin_run, dark=True)
    assert report.page.evaluate(paper) == "rgb(20, 23, 27)"
    report.page.click("#theme")
    assert report.page.evaluate(paper) == "rgb(255, 255, 255)"
    report.page.wait_for_timeout(300)
    ink = report.page.locator("#chart-rules svg text").first.evaluate("e => getComputedStyle(e).fill")
    assert ink == "rgb(27, 31, 36)"


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_is_no_wider_than_the_window(run, open_report, width):
    report = open_report(run, width=width)
    report.reset_items()
    report.page.locator("#table-items .open").first.click()
    report.page.locator("#table-people .open").first.click()
    assert report.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_phone_sees_all_of_it(twin_run, open_report, tmp_path):
    picture = tmp_path / "phone.png"
    open_report(twin_run, width=390).page.screenshot(path=picture, full_page=True)
    header = picture.read_bytes()[16:24]
    width, height = int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")
    assert width == 390 and height > 5_000


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
        page.locator("#table-items .open").first.click()
        assert page.locator(".detail .text").text_content() == text
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.querySelectorAll('img, iframe, object, main script').length") == 0


def test_a_cut_text_says_so(hostile_run, open_report):
    report = open_report(hostile_run)
    report.reset_items()
    page = report.page
    page.fill("#find", "long long")
    page.locator("#table-items .open").first.click()
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
