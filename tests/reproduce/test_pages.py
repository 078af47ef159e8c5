"""The page: every figure is on it, and nothing that came from a file is taken for markup."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.markup import markdown_table
from moral_entropy.reproduce.figures import SCHEMA
from moral_entropy.reproduce.pages import comparison_page, sum_up
from moral_entropy.reproduce.published import PLACE, compare_figures, read_published


@pytest.fixture(scope="module")
def comparison():
    rows = [{name: getattr(one, name) for name in PLACE} | {"value": one.value + 0.0123} for one in read_published()]
    ours = pl.DataFrame(rows, schema=SCHEMA).unique(maintain_order=True)
    return compare_figures(read_published(), ours, ("mftc", "mfrc", "emfd"))


def test_every_figure_is_on_the_page(comparison):
    page = comparison_page(comparison, ["MFTC: <b>evil</b> & Co.csv"])
    tables = 2 + 7
    assert len(re.findall(r"^\|", page, flags=re.MULTILINE)) == 2 * tables + comparison.height + 7 + 4
    assert len(re.findall(r"^\|.*\| (?:aleatoric|epistemic) \|", page, flags=re.MULTILINE)) == 150
    assert "| MFTC | MeToo | authority | aleatoric | 0.1257 | 0.1380 | – | +0.0123 | 0.001 | differs |  |" in page
    assert "| 30.6% | 31.8% | – | +1.2 pp | 0.5 pp | differs |" in page
    assert "<b>evil" not in page and "&lt;b&gt;evil&lt;/b&gt; &amp; Co.csv" in page


def test_sums(comparison):
    rows = sum_up(comparison)
    assert sum(int(row[1]) for row in rows) == comparison.height
    assert all(int(row[1]) == sum(map(int, row[2:5])) for row in rows)
    assert [row[1] for row in rows if row[0].startswith("Entropy: aleatoric")] == ["150"]


@given(text=st.text(max_size=20))
def test_any_text_stays_in_its_cell(text):
    lines = markdown_table(("a", "b"), ((text, "1"),)).splitlines()
    assert len(lines) == 3
    # Bars that are not escaped end cells: there are three, however many the text has.
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", lines[2])) == 3
