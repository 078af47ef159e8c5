"""Annotators that a user names: left out while reading, or put together; unknown names are an error that helps."""

from __future__ import annotations

import polars as pl
import pytest

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.options import ReadOptions
from moral_entropy.votes.layouts import merged_annotators
from moral_entropy.votes.read import read_votes

ROWS = [(item, who, (item + n) % 2) for item in range(6) for n, who in enumerate(("ann", "bob", "cy, jr", 7))]
LONG = pl.DataFrame([(i, str(a), str(k)) for i, a, k in ROWS], schema=["item", "annotator", "label"], orient="row")


@pytest.mark.parametrize("layout", ["long", "wide"])
def test_excluded_annotators_are_as_if_they_had_not_voted(layout, spelt):
    kept = LONG.filter(~pl.col("annotator").is_in(["bob", "7"]))
    table = LONG if layout == "long" else LONG.pivot("annotator", index="item", values="label")
    votes = read_votes(table, exclude=("bob", "7"), format=layout)
    expected = sorted((i, a, k) for i, a, k in kept.iter_rows())
    assert sorted(spelt(votes)) == expected and votes.annotators.to_list() == ["ann", "cy, jr"]
    assert votes.reading.dropped == {"an excluded annotator": 12}


def test_numbers_and_every_question():
    table = pl.DataFrame({"item": [1, 1, 2, 2], "annotator": [5, 6, 5, 6], "a": [1, 0, 0, 1], "b": [0, 1, 1, 0]})
    three = pl.concat([table, table.with_columns(annotator=pl.lit(7, dtype=pl.Int64))], how="vertical")
    votes = read_votes(three.unique(["item", "annotator"], maintain_order=True), questions=("a", "b"), exclude=["7"])
    assert votes.annotators.to_list() == [5, 6] and [ballot.n_votes for ballot in votes.ballots] == [4, 4]


def test_an_unknown_name_is_named_with_one_that_is_near():
    with pytest.raises(VotesError) as caught:
        read_votes(LONG, exclude=("bop", "ann", "dora"))
    assert str(caught.value) == (
        "exclude: 2 of 3 names belong to no annotator: 'bop', 'dora'. Did you mean 'bob'? Annotators: 7, "
        "ann, bob, cy, jr."
    )


def test_excluding_everyone_leaves_no_votes():
    with pytest.raises(VotesError, match="Rows dropped: 24 with an excluded annotator"):
        read_votes(LONG, exclude=("ann", "bob", "cy, jr", "7"))


def test_anonymous_votes_have_nobody_to_exclude():
    with pytest.raises(UsageError, match="anonymous votes have no annotators to exclude"):
        ReadOptions(anonymous=True, exclude=("ann",))


NAMES = pl.Series(["C++", "ann", "bob", "cy"])


def test_groups_that_share_a_name_are_one():
    assert merged_annotators(["ann+bob", "cy + bob"], NAMES).tolist() == [0, 1, 1, 1]
    assert merged_annotators(["C+++cy"], NAMES).tolist() == [0, 1, 2, 0]
    assert merged_annotators([], NAMES).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("ann", "merge has 'ann', which names one annotator"),
        ("ann+bop", "merge: 1 of 2 names belong to no annotator: 'bop'"),
    ],
)
def test_groups_that_cannot_be(group, words):
    with pytest.raises(VotesError, match=words):
        merged_annotators([group], NAMES)
