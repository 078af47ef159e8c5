from __future__ import annotations

import polars as pl
import pytest

from moral_entropy.errors import VotesError
from moral_entropy.votes.read import read_votes

COUNTS = pl.DataFrame({"ID": [1, 2, 3], "text": ["x", "y", "z"], "Care": [0, 3, 4], "Purity": [1, 0, None]})


def test_long_votes_without_annotators():
    table = pl.DataFrame({"item": [1, 1, 1, 2], "label": ["x", "x", "y", "y"]})
    votes = read_votes(table, anonymous=True)
    assert votes.anonymous
    assert votes.annotators.to_list() == ["(anonymous)"]
    assert votes.ballots[0].counts_ik.tolist() == [[2, 1], [0, 1]]


def test_an_annotator_column_is_ignored_when_votes_are_anonymous():
    table = pl.DataFrame({"item": [1, 1], "annotator": ["a", "a"], "label": ["x", "y"]})
    assert read_votes(table, anonymous=True).ballots[0].counts_ik.tolist() == [[1, 1]]


def test_long_votes_with_a_count_column():
    table = pl.DataFrame({"item": [1, 1, 2], "label": ["x", "y", "y"], "count": [3, 0, 2]})
    assert read_votes(table, anonymous=True).ballots[0].counts_ik.tolist() == [[3, 0], [0, 2]]


def test_sets_of_labels_without_annotators():
    table = pl.DataFrame({"item": [1, 1, 2], "label": ["x,y", "x", "z"]})
    votes = read_votes(table, anonymous=True, multilabel=",")
    assert votes.ballot("x").counts_ik.tolist() == [[0, 2], [1, 0]]


def test_counts_per_class():
    table = pl.DataFrame({"item": ["b", "a"], "10": [1, 0], "9": [2, None], "0": [0, 1]})
    votes = read_votes(table, anonymous=True, counts=["10", "9", "0"])
    assert votes.ballots[0].labels == ("0", "9", "10")
    assert votes.ballots[0].counts_ik.tolist() == [[1, 0, 0], [0, 2, 1]]
    merged = read_votes(table, anonymous=True, counts=["10", "9", "0"], labels={"10": "9"})
    assert merged.ballots[0].counts_ik.tolist() == [[1, 0], [0, 3]]


def test_counts_of_yes_among_n():
    votes = read_votes(COUNTS, anonymous=True, questions=["Care", "Purity"], of=3)
    assert votes.ballot("Care").counts_ik.tolist() == [[3, 0], [0, 3], [0, 4]]
    assert votes.ballot("Purity").counts_ik.tolist() == [[2, 1], [3, 0], [0, 0]]
    assert votes.reading.columns == {"item": "ID", "text": "text", "questions": "Care, Purity"}
    assert any(note.startswith("1 items have a count above") for note in votes.reading.notes)


def test_where_one_count_is_too_large_the_other_questions_follow():
    table = COUNTS.with_columns(Purity=pl.Series([1, 0, 1]))
    votes = read_votes(table, anonymous=True, questions=["Care", "Purity"], of=3)
    assert votes.ballot("Purity").counts_ik.tolist() == [[2, 1], [3, 0], [3, 1]]


def test_n_may_be_a_column():
    table = COUNTS.with_columns(asked=pl.Series([1, 5, 6]))
    votes = read_votes(table, anonymous=True, questions=["Care", "Purity"], of="asked")
    assert votes.ballot("Care").counts_ik.tolist() == [[1, 0], [2, 3], [2, 4]]
    assert read_votes(COUNTS, anonymous=True, questions=["Care"], of="3").n_votes == 10


def test_counts_that_were_not_announced():
    with pytest.raises(VotesError, match=r"'Care' holds '3', which is neither yes nor no.*of=3"):
        read_votes(COUNTS, anonymous=True, questions=["Care"])


@pytest.mark.parametrize("of", ["nowhere", 0, -2])
def test_a_bad_n(of):
    with pytest.raises(VotesError, match="neither a number of annotators nor a column"):
        read_votes(COUNTS, anonymous=True, questions=["Care"], of=of)


@pytest.mark.parametrize("cell", ["1.5", "-1", "many"])
def test_bad_cells(cell):
    table = COUNTS.with_columns(Care=pl.Series(["0", cell, "1"]))
    with pytest.raises(VotesError, match=rf"1 cells of column 'Care'.*First: '{cell}' \(row 2\)"):
        read_votes(table, anonymous=True, questions=["Care"], of=3)


def test_items_counted_twice():
    twice = pl.DataFrame({"item": [1, 2, 1], "x": [1, 0, 5], "y": [0, 2, 6]})
    options = {"anonymous": True, "counts": ["x", "y"]}
    with pytest.raises(VotesError, match=r"1 of 3 rows count an item again. First: item 1 \(rows 1 and 3\)"):
        read_votes(twice, **options)
    assert read_votes(twice, **options, on_repeat="first").ballots[0].counts_ik.tolist() == [[1, 0], [0, 2]]
    assert read_votes(twice, **options, on_repeat="last").ballots[0].counts_ik.tolist() == [[5, 6], [0, 2]]
    assert read_votes(twice, **options, on_repeat="count").ballots[0].counts_ik.tolist() == [[6, 6], [0, 2]]
