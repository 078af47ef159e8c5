"""Texts and tables in Markdown, HTML and JSON: any text stays a text, in its cell."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.markup import html_page, html_table, markdown_table, markdown_text

TEXTS = st.text(max_size=20)


class Cells(HTMLParser):
    """Tags, and the texts of cells row by row."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.rows = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def bars(line):
    """Bars that end a cell: those that are not escaped."""
    return len(re.findall(r"(?<!\\)(?:\\\\)*\|", line))


@given(text=TEXTS)
def test_any_text_stays_in_its_cell_of_a_markdown_table(text):
    lines = markdown_table(("a", text), [(text, None)], numbers=("a",)).splitlines()
    assert len(lines) == 3 and [bars(line) for line in lines] == [3, 3, 3]
    assert lines[1] == ("| ---: | ---: |" if text == "a" else "| ---: | --- |") and lines[2].endswith("| – |")


@given(text=TEXTS)
def test_no_text_is_markup_in_markdown(text):
    written = markdown_text(text)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]#|~]|[<>\n]", written)
    back = re.sub(r"\\(.)", r"\1", written)
    assert back.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == " ".join(text.split())


def test_cells_that_are_markdown_keep_their_marks():
    [_, _, line] = markdown_table(("a",), [("**x** | `y`\nz",)], is_markdown=True).splitlines()
    assert line == "| **x** \\| `y` z |"


@given(text=TEXTS)
def test_any_text_stays_in_its_cell_of_an_html_table(text):
    page = Cells(html_page(text, html_table(["a", "b"], [[text, "1"], ["2", text]], caption=text), "p { margin: 0 }"))
    assert {tag for tag, _ in page.tags} <= {
        "html", "head", "meta", "title", "style", "body", "table", "caption", "thead", "tbody", "tr", "th", "td",
    }  # fmt: skip
    assert [len(row) for row in page.rows] == [2, 2, 2]
    assert page.rows[1][0].replace("\r\n", "\n").replace("\r", "\n") == text.replace("\r\n", "\n").replace("\r", "\n")


def test_classes_are_those_of_columns_and_rows():
    page = Cells(html_table(["a", "b"], [["x", "1"], ["y", "2"]], numbers=["b"], row_classes=["clear", ""]))
    assert [attributes for tag, attributes in page.tags if tag == "tr"] == [{}, {"class": "clear"}, {}]
    assert [attributes for tag, attributes in page.tags if tag in ("th", "td")] == [{}, {"class": "number"}] * 3


def test_a_class_for_some_rows_only_is_an_error():
    with pytest.raises(ValueError, match="zip"):
        html_table(["a"], [["x"], ["y"]], row_classes=["clear"])
