"""Where a report is read: a phone, a tablet, paper; and its tables, whatever their length."""

from __future__ import annotations

import pytest
from report_support import page_of, rows_of

PAPER = 702
"""Width of an A4 page within its margins of 12 mm, in pixels."""

# Whatever is shown and stands out of the page on the right, unless it scrolls in a box of its own.
OUTSIDE = """() => [...document.querySelectorAll("body *")].filter((e) => {
  const box = e.getBoundingClientRect(), edge = document.documentElement.getBoundingClientRect().right;
  return box.width > 0 && box.right > edge + 1 && !e.closest(".scroll, nav, .skip")
    && getComputedStyle(e).visibility !== "hidden";
}).map((e) => `${e.tagName} ${e.id} ${Math.round(e.getBoundingClientRect().right)}`).slice(0, 5)"""

WIDE = """() => [...document.querySelectorAll(".chart svg.marks")].filter((svg) => (
  svg.getBoundingClientRect().width > svg.closest(".chart").clientWidth + 1)).map((svg) => svg.closest(".chart").id)"""


@pytest.mark.parametrize(("kind", "width"), [("twin", 390), ("twin", 800), ("many", 390)])
def test_nothing_stands_out_of_the_window(kind, width, request, open_report):
    report = open_report(request.getfixturevalue(f"{kind}_run"), width=width)
    report.page.wait_for_timeout(200)
    assert report.page.evaluate(OUTSIDE) == []
    assert report.page.evaluate(WIDE) == []


def visible(page, selector):
    return page.locator(selector).evaluate_all("list => list.filter((e) => e.checkVisibility()).length")


@pytest.fixture
def on_paper(chromium):
    """A report as it is printed from a dark screen."""
    pages = []

    def on_paper(run):
        page = chromium.new_page(viewport={"width": 1280, "height": 900}, color_scheme="dark")
        pages.append(page)
        page.goto((run / "report.html").resolve().as_uri())
        page.wait_for_function("document.documentElement.dataset.ready === 'yes'")
        page.wait_for_function("document.querySelectorAll('.chart svg.marks').length >= 4")
        page.emulate_media(media="print", color_scheme="dark")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        # As on paper: narrower, and nothing is drawn again.
        page.add_style_tag(content=f"html {{ width: {PAPER}px }}")
        return page

    yield on_paper
    for page in pages:
        page.close()


@pytest.mark.parametrize("kind", ["twin", "many"])
def test_paper_is_light_and_cuts_nothing(kind, request, on_paper):
    page = on_paper(request.getfixturevalue(f"{kind}_run"))
    assert page.evaluate(OUTSIDE) == page.evaluate(WIDE) == []
    # Not even in the boxes that scroll on a screen: paper does not.
    assert (
        page.evaluate("""() => [...document.querySelectorAll(".scroll")].filter((e) => (
      e.checkVisibility() && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)))
      .map((e) => `${e.ariaLabel} ${e.scrollWidth} ${e.clientWidth}`)""")
        == []
    )
    label = page.locator("#chart-rules .role-axis-label text").first.evaluate("e => getComputedStyle(e).fill")
    assert label == "rgb(27, 31, 36)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("#chart-rules path.background[stroke]").first.evaluate(
        "e => getComputedStyle(e).stroke") == "rgb(223, 227, 232)"  # fmt: skip


def test_paper_has_no_buttons_but_every_warning_and_every_row(twin_run, crowd_run, on_paper):
    page = on_paper(twin_run)
    for selector in (
        "nav",
        "select",
        "input",
        "#theme",
        ".csv",
        ".chart summary",
        "th button",
        "details.table:not([open])",
    ):
        assert visible(page, selector) == 0, selector
    warnings = page_of(twin_run).data()["cautions"]
    assert visible(page, ".cautions details p") == 2 * len(warnings)
    crowd = on_paper(crowd_run)
    assert visible(crowd, "#table-people tbody tr") == len(rows_of(page_of(crowd_run).data()["people"])) > 300
    assert (
        crowd.locator("#table-people th").first.evaluate("e => getComputedStyle(e, '::before').content")
        == '"annotator"'
    )


def test_a_report_becomes_a_pdf_of_full_pages(twin_run, open_report):
    pdf = open_report(twin_run).page.pdf(format="A4")
    assert pdf.startswith(b"%PDF") and pdf.count(b"/Type /Page\n") >= 3
    # Afterwards the screen is as it was.
    n_warnings = len(page_of(twin_run).data()["cautions"])
    assert open_report(twin_run).page.locator(".cautions details[open]").count() == min(2, n_warnings)


def column(page, at):
    return page.locator(f"#table-people tbody td:nth-child({at})").all_inner_texts()


def test_a_long_table_is_sorted_searched_and_paged_as_a_whole(crowd_run, open_report):
    page = open_report(crowd_run).page
    people = rows_of(page_of(crowd_run).data()["people"])
    assert page.locator("#people-title").inner_text() == f"All {len(people)} annotators of this question"
    assert len(column(page, 1)) == 100
    votes = page.locator("#table-people th .sort").nth(1)
    votes.focus()
    page.keyboard.press("Enter")
    assert page.locator("#table-people th").nth(1).get_attribute("aria-sort") == "ascending"
    ordered = sorted(row["n_votes"] for row in people)
    assert [int(text) for text in column(page, 2)] == ordered[:100]
    page.keyboard.press("Enter")
    assert page.locator("#table-people th").nth(1).get_attribute("aria-sort") == "descending"
    assert [int(text) for text in column(page, 2)] == ordered[::-1][:100]
    page.locator("#table-people th .sort").first.click()
    assert page.locator("#table-people th").nth(1).get_attribute("aria-sort") is None
    # Numbers in names are numbers: worker 2 comes before worker 10.
    names = sorted((row["annotator"] for row in people), key=lambda name: int(name.split()[1]))
    seen = column(page, 1)
    while page.locator("#table-people .pager button").nth(1).is_enabled():
        page.locator("#table-people .pager button").nth(1).click()
        seen += column(page, 1)
    assert seen == names
    page.locator("#table-people .filter input").fill("worker 123")
    assert column(page, 1) == ["worker 123"]
    page.locator("#table-people .filter input").fill("")


def test_ten_thousand_rows_are_a_hundred_at_a_time(crowd_run, tmp_path, chromium):
    """The same page, had thirty times as many annotators voted."""
    page = chromium.new_page()
    html = (crowd_run / "report.html").read_text(encoding="utf-8")
    page.add_init_script("""document.addEventListener("readystatechange", () => {
      const holder = document.getElementById("data");
      if (!holder || holder.dataset.grown) return;
      holder.dataset.grown = "yes";
      const data = JSON.parse(holder.textContent), table = data.people;
      const times = Math.ceil(10000 / table.n_votes.length);
      for (const [name, column] of Object.entries(table)) {
        const list = Array.isArray(column) ? column : column.at;
        const grown = Array.from({ length: times }, () => list).flat();
        if (Array.isArray(column)) table[name] = grown; else column.at = grown;
      }
      data.people_total = table.n_votes.length;
      holder.textContent = JSON.stringify(data);
    });""")
    (tmp_path / "report.html").write_text(html, encoding="utf-8")
    page.goto((tmp_path / "report.html").as_uri())
    page.wait_for_function("document.documentElement.dataset.ready === 'yes'")
    assert "All 10," in page.locator("#people-title").inner_text()
    assert page.locator("#table-people tbody tr").count() == 100
    page.locator("#table-people th .sort").nth(2).click()
    assert page.locator("#table-people tbody tr").count() == 100
    page.wait_for_selector("#chart-annotators svg.marks")
    assert page.locator("#chart-annotators .mark-symbol.role-mark path").count() == 1000
    page.close()


def test_items_are_sorted_by_their_headings_too(twin_run, open_report):
    report = open_report(twin_run)
    report.reset_items()
    page = report.page
    heading = page.locator("#table-items th", has_text="entropy")
    heading.locator(".sort").click()
    assert page.locator("#table-items th", has_text="entropy").get_attribute("aria-sort") == "ascending"
    shown = [
        float(text) for text in page.locator("#table-items tbody tr[data-row] td:nth-last-child(2)").all_inner_texts()
    ]
    least = sorted(row["entropy"] for row in rows_of(page_of(twin_run).data()["items"]))[:25]
    assert shown == pytest.approx(least, abs=6e-4)
    page.select_option("#item-sort", "entropy")
    assert page.locator("#table-items th[aria-sort]").count() == 0


def test_what_would_be_one_dot_is_a_sentence(crowd_run, open_report):
    report = open_report(crowd_run)
    assert report.text("#chart-by_votes").startswith("All items have 2 votes, so there is nothing to compare.")
    assert report.page.locator("#chart-by_votes svg").count() == 0
    assert not report.page.locator("#chart-heat").is_visible()
    assert report.page.locator("#chart-rules .role-legend").count() == 0


def test_names_that_javascript_knows_are_names(named_run, open_report):
    report = open_report(named_run)
    page = report.page
    for chart in ("rules", "by_domain", "heat", "explorer", "entropy", "by_votes", "annotators"):
        page.wait_for_selector(f"#chart-{chart} svg.marks")
        assert page.locator(f"#chart-{chart} svg .role-mark path").count() > 0, chart
    page.select_option("#try-target", "__proto__")
    page.select_option("#item-question", "constructor")
    assert set(page.locator("#table-items tbody tr[data-row] td:nth-child(2)").all_inner_texts()) == {"constructor"}
    page.select_option("#people-question", "toString")
    for name in ("constructor", "__proto__", "hasOwnProperty"):
        page.locator("#table-people .open", has_text=name).click()
        assert report.text("#person h3") == f"{name} on toString"
        assert page.locator("#person td").count() == 4
