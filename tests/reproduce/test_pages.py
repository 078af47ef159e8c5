"""Pages: every figure is on them, and nothing that came from a file is taken for markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.markup import markdown_table
from moral_entropy.reproduce.comparison import Basis, compare_figures
from moral_entropy.reproduce.figures import Figure, as_frame
from moral_entropy.reproduce.pages import Table, comparison_tables, sum_up, to_html, to_markdown
from moral_entropy.reproduce.published import read_published


class Cells(HTMLParser):
    """Texts of the cells of all rows, and every tag."""

    def __init__(self):
        super().__init__()
        self.rows, self.tags, self.inside = [], [], False

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = True

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


def parsed(page):
    cells = Cells()
    cells.feed(page)
    return cells


@pytest.fixture(scope="module")
def tables():
    ours = as_frame([Figure(*one.place, one.value + 0.0123) for one in read_published()]).unique(maintain_order=True)
    comparison = compare_figures(read_published(), ours, Basis(("mftc", "mfrc", "emfd")))
    return comparison, comparison_tables(comparison, ["MFTC: <b>evil</b> & Co.csv"])


def test_every_figure_is_on_both_pages(tables):
    comparison, made = tables
    rows = parsed(to_html(made)).rows
    assert len(rows) == len(made) + comparison.height + 7 + 4
    markdown = to_markdown(made)
    assert len(re.findall(r"^\|", markdown, flags=re.MULTILINE)) == len(rows) + len(made)
    entropy = [row for row in rows if "aleatoric" in row or "epistemic" in row]
    assert len(entropy) == 150
    assert "| MFTC | MeToo | authority | aleatoric | 0.1257 | 0.1380 | – | +0.0123 | 0.001 | differs |  |" in markdown
    assert "| 30.6% | 31.8% | – | +1.2 pp | 0.5 pp | differs |" in markdown


def test_sums(tables):
    comparison, _ = tables
    rows = sum_up(comparison)
    assert sum(int(row[1]) for row in rows) == comparison.height
    assert all(int(row[1]) == sum(map(int, row[2:5])) for row in rows)
    assert [row[1] for row in rows if row[0].startswith("Entropy: aleatoric")] == ["150"]


def test_the_page_stands_alone(tables):
    page = to_html(tables[1])
    assert "<b>evil" not in page and "&lt;b&gt;evil&lt;/b&gt; &amp; Co.csv" in page
    assert not set(parsed(page).tags) & {"script", "link", "img", "iframe"}
    assert "http" not in page and "url(" not in page
    assert "&lt;b&gt;evil&lt;/b&gt; &amp; Co.csv" in to_markdown(tables[1])


@given(text=st.text(max_size=20))
def test_any_text_stays_in_its_cell(text):
    table = Table(text, (text,), ("a", "b"), ((text, "1"),), frozenset("b"))
    page = parsed(to_html([table]))
    assert set(page.tags) <= {
        "html", "head", "meta", "title", "style", "body", "h1", "p", "table", "thead", "tbody", "tr", "th", "td",
    }  # fmt: skip
    assert len(page.rows) == 2 and len(page.rows[1]) == 2
    lines = markdown_table(table.header, table.rows).splitlines()
    assert len(lines) == 3
    # Bars that are not escaped end cells: there are three, however many the text has.
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", lines[2])) == 3
