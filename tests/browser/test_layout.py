"""Where a report is read: a screen, a phone, paper; nothing leaves its page and no text is cut."""

from __future__ import annotations

import pytest
from report_support import page_of, rows_of

PAPER = 702
"""Width of an A4 page within its margins of 12 mm, in pixels."""

# Whatever is shown and stands out of the page on either side. Nothing may scroll in a box of its own.
OUTSIDE = """() => [...document.querySelectorAll("body *")].filter((e) => {
  const box = e.getBoundingClientRect(), edge = document.documentElement.getBoundingClientRect().right;
  return e.checkVisibility() && box.width > 0 && !e.closest(".skip") && (box.right > edge + 1 || box.left < -1);
}).map((e) => `${e.tagName} ${e.id} ${e.className} ${e.textContent.slice(0, 40)}`).slice(0, 5)"""

# Text that is wider or higher than the box that shows it, where the box hides what is too much.
CUT = """() => [...document.querySelectorAll("body *")].filter((e) => {
  const style = getComputedStyle(e), hides = (value) => value !== "visible";
  if (!e.checkVisibility() || !e.textContent.trim() || ["SELECT", "OPTION"].includes(e.tagName)) return false;
  const x = hides(style.overflowX) && e.scrollWidth > e.clientWidth + 1;
  return x || (hides(style.overflowY) && e.scrollHeight > e.clientHeight + 1) || style.textOverflow === "ellipsis";
}).map((e) => `${e.tagName} ${e.id} ${e.className}`).slice(0, 5)"""

# Text that runs over its own cell, such as a word without a blank.
OVERRUN = """() => [...document.querySelectorAll("td, th, li, p, h1, h2, h3, button, summary, dd, figcaption, .bar *")]
  .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0)
  .map((e) => `${e.tagName} ${e.className} ${e.textContent.slice(0, 40)} ${e.scrollWidth}`).slice(0, 5)"""


def opened(page):
    """Open an item, an annotator and everything that can be opened."""
    page.locator("#item-list .open").nth(1).click()
    page.evaluate("() => { for (const each of document.querySelectorAll('details')) each.open = true; }")


@pytest.mark.parametrize(
    ("kind", "width"),
    [("twin", 390), ("twin", 1280), ("messy", 390), ("messy", 1280), ("many", 390), ("many", 800), ("hostile", 390),
     ("panel", 390), ("panel", 1280)],
)  # fmt: skip
def test_nothing_leaves_its_page_and_no_text_is_cut(kind, width, request, open_report):
    page = open_report(request.getfixturevalue(f"{kind}_run"), width=width).page
    opened(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate(CUT) == []
    assert page.evaluate(OVERRUN) == []
    page.reload()


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
        page.emulate_media(media="print", color_scheme="dark")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.add_style_tag(content=f"html {{ width: {PAPER}px }}")
        return page

    yield on_paper
    for page in pages:
        page.close()


@pytest.mark.parametrize("kind", ["twin", "many", "messy"])
def test_paper_is_light_and_cuts_nothing(kind, request, on_paper):
    page = on_paper(request.getfixturevalue(f"{kind}_run"))
    page.evaluate("() => { for (const each of document.querySelectorAll('details')) each.open = true; }")
    assert page.evaluate(OUTSIDE) == page.evaluate(CUT) == page.evaluate(OVERRUN) == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 31, 36)"


def test_paper_has_no_controls_but_every_issue_and_every_annotator(twin_run, crowd_run, on_paper):
    page = on_paper(twin_run)
    for selector in ("nav", "select", "input", "#theme", ".pager", "details.more:not([open])"):
        assert visible(page, selector) == 0, selector
    assert page.locator(".issues details:not([open])").count() == 0
    crowd = on_paper(crowd_run)
    assert visible(crowd, "#people tbody tr") == len(rows_of(page_of(crowd_run).data()["people"])) > 300


def test_a_report_becomes_a_pdf_of_full_pages(twin_run, open_report):
    pdf = open_report(twin_run).page.pdf(format="A4")
    assert pdf.startswith(b"%PDF") and pdf.count(b"/Type /Page\n") >= 2


def column(page, at):
    return page.locator(f"#people tbody td:nth-child({at})").all_inner_texts()


def test_a_long_list_of_annotators_is_shown_in_pieces_searched_and_sorted(crowd_run, open_report):
    page = open_report(crowd_run).page
    people = rows_of(page_of(crowd_run).data()["people"])
    assert len(column(page, 1)) == 25
    page.locator("#people .next").click()
    assert len(column(page, 1)) == 125
    head = page.locator("#people th").nth(1)
    head.locator(".sort").focus()
    page.keyboard.press("Enter")
    assert page.locator("#people th").nth(1).get_attribute("aria-sort") == "ascending"
    votes = [int(text) for text in column(page, 2)]
    assert votes == sorted(votes)
    page.fill("#people-find", "worker 123")
    assert column(page, 1) == ["worker 123"]
    page.fill("#people-find", "")
    assert column(page, 1) == [row["annotator"] for row in people[:25]]


def test_tables_are_sorted_as_numbers_by_mouse_and_keyboard(twin_run, open_report):
    page = open_report(twin_run).page
    head = page.locator("#questions th").nth(4)
    head.locator(".sort").click()
    shares = [float(text.rstrip("%")) for text in page.locator("#questions tbody td:nth-child(5)").all_inner_texts()]
    assert shares == sorted(shares) and len(shares) > 3
    head.locator(".sort").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert page.locator("#questions tbody td:nth-child(5)").first.inner_text() == f"{max(shares):.1f}%"
