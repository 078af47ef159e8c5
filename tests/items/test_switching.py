"""The switching table: votes of the top items beside the majority, against the paper's own rows."""

from __future__ import annotations

import polars as pl
import pytest

from moral_entropy.errors import VotesError
from moral_entropy.items.disagreement import switching_table

# Five annotators on four texts, as in the paper's table: only A03 flags all of them.
PAPER = {"t1": "00011", "t2": "00011", "t3": "10111", "t4": "01010"}


def votes(table=PAPER, names=("A00", "A01", "A02", "A03", "A04")):
    rows = [
        ("care", item, name, vote)
        for item, cast in table.items()
        for name, vote in zip(names, cast, strict=True)
        if vote != "."
    ]
    rows += [("fairness", "t1", "A00", "1")]
    return pl.DataFrame(rows, schema=["question", "item", "annotator", "label"], orient="row")


def test_the_papers_table():
    frame, roles = switching_table(votes(), ["t3", "t1", "t2", "t4"], question="care")
    assert frame["item"].to_list() == ["t3", "t1", "t2", "t4"]
    assert frame["majority"].to_list() == ["1", "0", "0", "0"]
    assert frame.row(0) == ("t3", "1", "0", "1", "1", "1", "1")
    roles = {name: (alike, against) for name, alike, against in roles.rows()}
    assert roles == {"A00": (4, 0), "A01": (2, 2), "A02": (4, 0), "A03": (1, 3), "A04": (2, 2)}


def test_missing_votes_are_null_and_ties_go_to_the_positive_label():
    frame, _ = switching_table(votes({"x": "01..."}), ["x"], question="care")
    assert frame.row(0) == ("x", "0", "1", "1")
    assert switching_table(votes({"x": "01..."}), ["x"], question="care", positive="0")[0]["majority"].item() == "0"


def test_integer_ids_and_annotators_called_as_columns():
    given = votes({"1": "011"}, ("item", "majority", "z")).with_columns(pl.lit(7).alias("item"))
    frame, _ = switching_table(given, [7], question="care")
    assert frame.columns == ["item", "item (annotator)", "majority (annotator)", "z", "majority"]
    assert frame.row(0) == ("7", "0", "1", "1", "1")


def test_items_without_votes_are_named():
    with pytest.raises(VotesError, match=r"none of the 1 items has a vote on 'care'\. First: 'nowhere'"):
        switching_table(votes(), ["nowhere"], question="care")
