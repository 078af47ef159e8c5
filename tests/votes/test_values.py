from __future__ import annotations

from datetime import date, time
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.errors import VotesError
from moral_entropy.votes import labels as values
from moral_entropy.votes.labels import canonical_label, code_ids, code_labels, series_of, sort_labels
from moral_entropy.votes.read import read_votes


def decoded(coded):
    listed = coded.values.to_list()
    return [None if code < 0 else listed[code] for code in coded.code_r]


@pytest.mark.parametrize(
    ("cell", "label"),
    [
        (1, "1"), (1.0, "1"), ("1", "1"), (" 1", "1"), ("1.0", "1"), ("1.50", "1.5"), (1.5, "1.5"), (-0.0, "0"),
        ("-0", "0"), ("007", "007"), (True, "true"), (np.int8(3), "3"), (np.float32(2), "2"), ("care ", "care"),
        ("none", "none"), ("None", "None"), ("", None), ("NA", None), ("NaN", None), ("null", None), (None, None),
        (float("nan"), None),
    ],
)  # fmt: skip
def test_one_spelling_for_each_label(cell, label):
    assert canonical_label(cell) == label


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([1, 0, None, 1]),
        pl.Series([1.0, 0.0, float("nan"), 1.0]),
        pl.Series(["1", " 0", "NA", "1.0"]),
        pl.Series([1, 0, None, 1], dtype=pl.UInt8),
        pl.Series(["1", "0", None, "1"], dtype=pl.Categorical),
        pl.Series([Decimal("1"), Decimal("0"), None, Decimal("1")]),
        series_of("x", [1, "0", None, True]),
    ],
)
def test_zero_is_one_label_whatever_its_type(column):
    assert decoded(code_labels(column)) == ["1", "0", None, "1"]


def test_booleans_keep_their_name_alone_and_become_numbers_in_company():
    assert decoded(code_labels(pl.Series([True, False, None]))) == ["true", "false", None]
    assert decoded(code_labels(pl.Series(["True", "False"]))) == ["true", "false"]
    assert series_of("x", [True, "yes"]).to_list() == ["true", "yes"]
    assert series_of("x", [True, False, 1]).to_list() == ["1", "0", "1"]


def test_labels_sort_as_numbers_only_if_all_are():
    assert sort_labels(["10", "9", "-1", "2.5"]) == ["-1", "2.5", "9", "10"]
    assert sort_labels(["10", "9", "b"]) == ["10", "9", "b"]


@pytest.mark.parametrize(
    ("column", "textual", "ids"),
    [
        (pl.Series([3, 1, None]), False, [3, 1, None]),
        (pl.Series([3.0, 1.0, float("nan")]), False, [3, 1, None]),
        (pl.Series([3.5, 1.0]), False, ["3.5", "1.0"]),
        (pl.Series(["3", "1 ", ""]), False, ["3", "1", None]),
        (pl.Series(["3", "1.0", ""]), True, [3, 1, None]),
        (pl.Series(["3", "1"]), True, [3, 1]),
        (pl.Series(["007", "7"]), True, ["007", "7"]),
        (pl.Series([2**64 - 1, 0], dtype=pl.UInt64), False, ["18446744073709551615", "0"]),
        (pl.Series([date(2020, 1, 2)]), False, ["2020-01-02"]),
        (pl.Series([None, None]), False, [None, None]),
        (pl.Series([], dtype=pl.Int64), False, []),
    ],
)
def test_ids_are_integers_where_all_are_else_strings(column, textual, ids):
    assert decoded(code_ids(column, textual=textual)) == ids


integers = st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1), st.none())


@given(st.lists(integers, max_size=40))
def test_coded_integers_decode_to_themselves(cells):
    coded = code_ids(pl.Series(cells, dtype=pl.Int64))
    assert decoded(coded) == cells
    assert coded.values.to_list() == sorted({cell for cell in cells if cell is not None})


# Python calls the separators 0x1c to 0x1f blank, polars does not.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\x1c\x1d\x1e\x1f"), max_size=3)


@given(st.lists(st.one_of(st.none(), texts), max_size=20))
def test_coded_texts_decode_to_what_was_written(cells):
    coded = code_ids(pl.Series(cells, dtype=pl.String))
    got = decoded(coded)
    for cell, have in zip(cells, got, strict=True):
        assert have == (None if cell is None or cell.strip() in values.MISSING else cell.strip())
    assert coded.values.to_list() == sorted({cell for cell in got if cell is not None})


def test_blocks_do_not_show(monkeypatch):
    cells = pl.Series([5, None, 900_000, 7, 5, None, 6])
    floats = cells.cast(pl.Float64) / 2
    whole, half = decoded(code_ids(cells)), decoded(code_labels(floats))
    monkeypatch.setattr(values, "BLOCK", 2)
    assert decoded(code_ids(cells)) == whole == cells.to_list()
    assert decoded(code_labels(floats)) == half
    assert values.count_codes(np.array([1, -1, 1, 0, 1]), 3).tolist() == [1, 3, 0]


def test_ids_of_64_bits_stay_apart_beside_a_float():
    ids = [1234567890123456789, 1234567890123456788, 7.0, None]
    assert decoded(code_ids(series_of("item", ids))) == ["1234567890123456789", "1234567890123456788", "7", None]


@pytest.mark.parametrize(
    "column",
    [
        pl.Series("item", [1e18, 7.0, None]),
        pl.Series("item", [0.5, 2.0**53]),
        pl.Series("item", [2.0**24, 7.0], dtype=pl.Float32),
        series_of("item", [1.0, 2.0**60, 7]),
    ],
)
def test_ids_that_a_float_has_rounded_are_refused(column):
    with pytest.raises(VotesError, match=r"1 ids of column 'item' are floats .* or more.*as text"):
        code_ids(column)


def test_whole_floats_below_the_first_that_is_rounded_are_ids():
    assert decoded(code_ids(pl.Series([2.0**53 - 1, -7.0]))) == [2**53 - 1, -7]
    assert decoded(code_ids(pl.Series([2.0**24 - 1, 7.0], dtype=pl.Float32))) == [2**24 - 1, 7]


def test_times_keep_their_fractions(spelt):
    times = [time(1, 2, 3, micro) for micro in (500, 700)]
    table = pl.DataFrame({"item": [*times, *times], "annotator": ["a", "a", "b", "b"], "label": ["x", "y", "y", "x"]})
    assert len(spelt(read_votes(table))) == 4


def test_a_printed_minus_is_a_minus():
    assert canonical_label("\N{MINUS SIGN}1") == canonical_label(-1) == "-1"
    assert canonical_label("\N{MINUS SIGN} or plus") == "\N{MINUS SIGN} or plus"


def test_an_arrow_type_that_polars_has_not_is_refused_in_words():
    wide = pa.array([Decimal("1.5")] * 3, pa.decimal256(50, 2))
    with pytest.raises(VotesError, match=r"pyarrow dataframe has a column that cannot be read: .*Cast it to text"):
        read_votes(pa.table({"item": wide, "annotator": ["a", "b", "c"], "label": ["x", "y", "x"]}))
