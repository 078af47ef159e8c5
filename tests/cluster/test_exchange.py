"""Rows in any order come together by item, in the order of the items."""

from __future__ import annotations

import polars as pl
import pytest
from cluster.here import Here
from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.cluster.exchange import choose_edges, cut_rows, exchange, in_order, range_of
from moral_entropy.cluster.files import Table, has_row_per_vote, load_slice, open_table
from moral_entropy.errors import VotesError
from moral_entropy.votes.columns import ColumnRoles
from moral_entropy.votes.options import ReadOptions

TABLE = Table("votes", (), (), ColumnRoles({"item": "item"}, ()), ("item", "row"))

ids = st.one_of(st.integers(-50, 50), st.none())
words = st.one_of(st.text("abé ", min_size=1, max_size=3), st.none())


@given(items=st.one_of(st.lists(ids, min_size=1), st.lists(words, min_size=1)), n_parts=st.integers(1, 6))
def test_every_item_lands_whole_in_one_part(items, n_parts):
    kind = pl.String if any(isinstance(item, str) for item in items) else pl.Int64
    frame = pl.DataFrame({"item": pl.Series(items, dtype=kind), "row": range(len(items))})
    slices = [frame[:4], frame[4:9], frame[9:]]
    parts = exchange(Here(), TABLE, [one for one in slices if one.height], n_parts)
    together = pl.concat(parts)
    assert sorted(together["row"]) == list(range(len(items)))
    seen = [set(part["item"].drop_nulls()) for part in parts]
    assert sum(map(len, seen)) == len(set(items) - {None})
    ordered = [part for part in parts if part["item"].drop_nulls().len()]
    lows, highs = [part["item"].min() for part in ordered], [part["item"].max() for part in ordered]
    assert all(high < low for high, low in zip(highs[:-1], lows[1:], strict=True))
    for part in parts:
        by_item = part.group_by("item").agg("row")
        assert all(list(rows) == sorted(rows) for rows in by_item["row"])


def test_slices_that_are_ranges_already_stay_as_they_are():
    low, high = pl.DataFrame({"item": [1, 2], "row": [0, 1]}), pl.DataFrame({"item": [3, 9], "row": [2, 3]})
    assert in_order([range_of(high, "item"), range_of(low, "item")]) == [1, 0]
    assert in_order([range_of(low, "item"), range_of(low, "item")]) is None


def test_rows_without_an_item_go_to_the_first_part():
    frame = pl.DataFrame({"item": [5, None, 1], "row": [0, 1, 2]})
    first, second = cut_rows(frame, "item", pl.Series([4]))
    assert first["row"].to_list() == [1, 2]
    assert second["row"].to_list() == [0]


def test_edges_leave_parts_of_like_size():
    edges = choose_edges([pl.Series(range(0, 100, 2)), pl.Series(range(1, 100, 2))], 4)
    assert edges.to_list() == [25, 50, 75]


def test_items_are_spelt_alike_before_they_are_compared(tmp_path):
    pl.DataFrame({"item": [" b", "a ", "NA"], "annotator": [1, 1, 1], "label": [0, 1, 1]}).write_parquet(
        tmp_path / "votes.parquet"
    )
    table = open_table(tmp_path / "votes.parquet", ReadOptions())
    loaded = load_slice(table.slices[0], table.columns, table.item)
    assert loaded["item"].to_list() == ["b", "a", None]


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "votes.csv").write_text("item,annotator,label\n1,2,3\n")
    with pytest.raises(VotesError, match=r"votes.csv is no Parquet file"):
        open_table(tmp_path / "votes.csv", ReadOptions())
    with pytest.raises(VotesError, match="no file matches"):
        open_table(str(tmp_path / "*.parquet"), ReadOptions())
    pl.DataFrame({"item": [0.5], "annotator": [1], "label": [1]}).write_parquet(tmp_path / "half.parquet")
    table = open_table(tmp_path / "half.parquet", ReadOptions())
    with pytest.raises(VotesError, match="fractions"):
        load_slice(table.slices[0], table.columns, table.item)
    pl.DataFrame({"item": [1], "ann": ["yes"], "bob": ["no"]}).write_parquet(tmp_path / "wide.parquet")
    assert not has_row_per_vote(tmp_path / "wide.parquet", ReadOptions())
    with pytest.raises(VotesError, match="no column that looks like the annotator"):
        open_table(tmp_path / "wide.parquet", ReadOptions())
