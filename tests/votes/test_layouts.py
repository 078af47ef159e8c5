from __future__ import annotations

import polars as pl
import pytest

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.votes.read import read_votes

WIDE = pl.DataFrame(
    {
        "item": ["q1", "q2", "q3"],
        "zoe": ["yes", "no", None],
        "ann": ["no", "", None],
        "domain": ["d", "d", "e"],
        "length": [111, 222, 333],
    }
)


def test_a_wide_table_is_told_from_its_columns(spelt):
    votes = read_votes(WIDE)
    assert spelt(votes) == [("q1", "ann", "no"), ("q1", "zoe", "yes"), ("q2", "zoe", "no")]
    assert votes.ballots[0].question == "label"
    assert votes.ballots[0].votes_i.tolist() == [2, 1, 0]
    assert votes.domains == ("d", "e")
    assert votes.reading.dropped == {}
    assert votes.reading.not_read == ("length",)
    assert any("each of 2 columns is read as an annotator" in note for note in votes.reading.notes)


def test_wide_and_long_give_the_same_ballot(spelt):
    long = WIDE.unpivot(index=["item", "domain"], on=["zoe", "ann"], variable_name="annotator", value_name="label")
    one, other = read_votes(WIDE), read_votes(long)
    assert spelt(one) == spelt(other)
    assert one.ballots[0].start_i.tolist() == other.ballots[0].start_i.tolist()


def test_wide_by_order_takes_every_column_left():
    with pytest.raises(VotesError, match="nothing to tell apart"):
        read_votes(WIDE.with_columns(zoe=pl.lit("no"), ann=pl.lit("no"), length=pl.lit("no")), format="wide")
    assert read_votes(WIDE, format="wide").annotators.to_list() == ["ann", "length", "zoe"]


def test_a_single_column_of_votes():
    assert read_votes(WIDE.select("item", "zoe"), format="wide").annotators.to_list() == ["zoe"]


def test_columns_of_different_types_share_labels(write):
    votes = read_votes(write("item,r1,r2\na,1,1.0\nb,0,\nc, 1,0\n"))
    assert votes.ballots[0].labels == ("0", "1")
    assert votes.ballots[0].counts_ik.tolist() == [[0, 2], [1, 0], [1, 1]]


def test_a_repeated_item_is_a_repeat():
    with pytest.raises(
        VotesError, match=r"1 of 4 votes .* item 'q1', annotator 'zoe' voted 'yes' \(row 1\) and 'no' \(row 2\)"
    ):
        read_votes(WIDE.with_columns(item=pl.Series(["q1", "q1", "q3"]), ann=pl.Series(["no", None, "yes"])))


def test_rows_without_ids_are_numbered():
    votes = read_votes(pl.DataFrame({"r1": [0, 1], "r2": [1, 1]}))
    assert votes.items.to_list() == [1, 2]


def test_wide_votes_without_annotators(spelt):
    votes = read_votes(WIDE, format="wide", anonymous=True, facts=["length"])
    assert spelt(votes) == [("q1", "(anonymous)", "no"), ("q1", "(anonymous)", "yes"), ("q2", "(anonymous)", "no")]
    assert votes.extra["length"].to_list() == ["111", "222", "333"]


COUNTED = pl.DataFrame({"r1": [1, 1, 2, 1, 2], "r2": [1, 2, None, 1, 2], "n": [10.0, 3.0, 2.0, 5.0, 0.0]})


def test_counted_patterns_add_up():
    votes = read_votes(COUNTED)
    ballot = votes.ballots[0]
    assert votes.items.to_list() == ["1 1", "1 2", "2 ."]
    assert ballot.count_i.tolist() == [15, 3, 2]
    assert ballot.counts_ik.tolist() == [[2, 0], [1, 1], [0, 1]]
    assert ballot.votes_a.tolist() == [20, 18]
    assert votes.reading.dropped == {"a count of 0": 1}


def test_counted_patterns_of_two_domains_stay_apart():
    votes = read_votes(COUNTED.with_columns(domain=pl.Series(list("ababa"))))
    assert votes.items.to_list() == ["1 1 a", "1 1 b", "1 2 b", "2 . a"]
    assert votes.domain_i.tolist() == [0, 1, 1, 0]
    assert votes.ballots[0].count_i.tolist() == [10, 5, 3, 2]


def test_counted_patterns_with_ids_of_their_own():
    votes = read_votes(COUNTED.with_columns(item=pl.Series(list("edcba"))))
    assert votes.items.to_list() == ["b", "c", "d", "e"]
    assert votes.ballots[0].count_i.tolist() == [5, 2, 3, 10]
    with pytest.raises(VotesError, match="repeat"):
        read_votes(COUNTED.with_columns(item=pl.lit("e")))


@pytest.mark.parametrize("cell", [-1.0, 2.5, None])
def test_bad_counts(cell):
    with pytest.raises(VotesError, match=r"1 cells of column 'n' .* not whole numbers of 0 or more.*\(row 2\)"):
        read_votes(COUNTED.with_columns(n=pl.Series([1.0, cell, 1.0, 1.0, 1.0])))


def test_counts_do_not_belong_in_a_long_table():
    long = pl.DataFrame({"item": [1, 1], "annotator": [1, 2], "label": [0, 1], "n": [2, 3]})
    assert read_votes(long).n_votes == 2
    with pytest.raises(UsageError, match="one vote per row"):
        read_votes(long, count="n")
