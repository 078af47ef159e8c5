"""Tables survive the way into the page, and nothing in them can leave it."""

from __future__ import annotations

import json

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from report_support import rows_of

from moral_entropy.report.html import script_json
from moral_entropy.report.page import packed

TEXTS = st.text(st.characters(codec="utf-8"))
CELLS = st.fixed_dictionaries(
    {"name": st.none() | TEXTS, "n": st.integers(-(2**40), 2**40), "value": st.none() | st.floats(-1e9, 1e9)}
)


@given(st.lists(CELLS, max_size=20))
def test_tables_come_back(rows):
    frame = pl.DataFrame(rows, schema={"name": pl.String, "n": pl.Int64, "value": pl.Float64})
    back = rows_of(packed(frame))
    assert [(row["name"], row["n"]) for row in back] == [(row["name"], row["n"]) for row in rows]
    for was, now in zip(rows, back, strict=True):
        assert (was["value"] is None) == (now["value"] is None)
        assert was["value"] is None or abs(now["value"] - was["value"]) <= 1e-3 * abs(was["value"])


def test_what_is_not_finite_becomes_null():
    frame = pl.DataFrame({"value": [float("inf"), float("-inf"), float("nan"), None, 0.5]})
    assert packed(frame) == {"value": [None, None, None, None, 0.5]}


@given(st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
def test_json_in_a_script_element_is_the_same_and_inert(value):
    text = script_json(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")
