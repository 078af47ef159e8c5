from __future__ import annotations

import polars as pl
import pytest

from moral_entropy.errors import VotesError
from moral_entropy.votes.read import read_votes

LONG = pl.DataFrame(
    {
        "item": [1, 1, 2, 2, 1, 1, 3],
        "annotator": ["a", "b", "a", "b", "a", "b", "a"],
        "foundation": ["care", "care", "care", "care", "harm", "harm", "harm"],
        "label": ["0", "1", "1", "1", "0", "1", None],
    }
)


def test_a_question_column_makes_a_ballot_each(spelt):
    votes = read_votes(LONG)
    assert votes.questions == ("care", "harm")
    assert votes.items.to_list() == [1, 2, 3]
    assert votes.ballot("care").item_i.tolist() == [0, 1]
    # Item 3 was put to the question, and nobody answered.
    assert votes.ballot("harm").item_i.tolist() == [0, 2]
    assert votes.ballot("harm").votes_i.tolist() == [2, 0]
    assert spelt(votes, "care") == [(1, "a", "0"), (1, "b", "1"), (2, "a", "1"), (2, "b", "1")]


def test_annotators_of_a_question_are_those_who_answered_it():
    votes = read_votes(LONG.vstack(pl.DataFrame([[2], ["c"], ["care"], ["0"]], schema=LONG.schema)))
    assert votes.annotators.gather(votes.ballot("care").annotator_a).to_list() == ["a", "b", "c"]
    assert votes.annotators.gather(votes.ballot("harm").annotator_a).to_list() == ["a", "b"]


def test_repeats_are_counted_within_a_question():
    with pytest.raises(
        VotesError, match=r"1 of 3 votes on 'harm' contradict.*item 1, annotator 'a' voted '0' \(row 5\) and"
    ):
        read_votes(LONG.with_columns(item=pl.Series([1, 1, 2, 2, 1, 1, 1]), label=pl.Series(list("0111011"))))


def test_one_question_with_one_class_is_set_aside_and_the_others_go_on():
    flat = LONG.with_columns(label=pl.when(pl.col("foundation") == "harm").then(pl.lit("0")).otherwise("label"))
    votes = read_votes(flat)
    assert votes.questions == ("care",)
    assert "all votes on 'harm' are '0': the question is left out." in votes.reading.notes
    with pytest.raises(VotesError, match=r"no question of .* has votes for two labels"):
        read_votes(LONG.with_columns(label=pl.lit("0")))
    votes = read_votes(flat, labels={"harm": ""})
    assert votes.questions == ("care",)
    assert votes.reading.dropped == {"question left out by the label map": 3}


def test_rows_without_a_question():
    votes = read_votes(LONG.with_columns(foundation=pl.Series(["care"] * 4 + ["harm", "harm", ""])))
    assert votes.reading.dropped == {"no question": 1}


SETS = pl.DataFrame(
    {
        "item": [1, 1, 2, 2, 3],
        "annotator": ["a", "b", "a", "b", "a"],
        "annotation": ["care,harm", "nm", " Care2 , care", "harm", None],
    }
)


def test_cells_with_several_labels_make_yes_no_questions(spelt):
    votes = read_votes(SETS, multilabel=",")
    assert votes.questions == ("Care2", "care", "harm")
    assert spelt(votes, "care") == [(1, "a", "1"), (1, "b", "0"), (2, "a", "1"), (2, "b", "0")]
    assert spelt(votes, "harm") == [(1, "a", "1"), (1, "b", "0"), (2, "a", "0"), (2, "b", "1")]
    assert all(ballot.labels == ("0", "1") and ballot.positive == 1 for ballot in votes.ballots)
    assert votes.ballot("harm").votes_i.tolist() == [2, 2, 0]
    assert votes.reading.dropped == {"no label": 1}


def test_a_label_map_merges_and_drops_labels_in_sets(spelt, write):
    toml = write('harm = "care"\nNM = ""\ncare2 = false\nunheard = "x"\n', "map.toml")
    votes = read_votes(SETS, multilabel=",", labels=toml)
    assert votes.questions == ("care",)
    # Who named only a label that is left out still voted no.
    assert spelt(votes) == [(1, "a", "1"), (1, "b", "0"), (2, "a", "1"), (2, "b", "1")]
    assert any("unheard" in note for note in votes.reading.notes)


def test_lists_of_labels_need_no_separator(spelt):
    lists = SETS.with_columns(annotation=pl.Series([["care", "x,y"], ["x,y"], ["care"], [], None]))
    votes = read_votes(lists)
    assert votes.questions == ("care", "x,y")
    assert spelt(votes, "care") == [(1, "a", "1"), (1, "b", "0"), (2, "a", "1"), (2, "b", "0")]


def test_a_label_everybody_names_is_left_out_with_a_note():
    table = pl.DataFrame({"item": [1, 1], "annotator": ["a", "b"], "label": ["x,y", "y"]})
    votes = read_votes(table, multilabel=",")
    assert votes.questions == ("x",)
    assert "all votes on 'y' are '1': the question is left out." in votes.reading.notes
    with pytest.raises(VotesError, match=r"every one of the 2 votes on 'y' is '1': nothing to tell apart"):
        read_votes(table.with_columns(label=pl.lit("y")), multilabel=",")


COLUMNS = pl.DataFrame(
    {
        "item": [1, 1, 2],
        "annotator": ["a", "b", "a"],
        "care": [1, 0, None],
        "fair": [True, False, True],
        "never": [0, 0, 0],
    }
)


def test_columns_of_zeros_and_ones_make_questions(spelt):
    assert read_votes(COLUMNS, questions="care").questions == ("care",)
    votes = read_votes(COLUMNS, questions=["fair", "care", "never"])
    assert votes.questions == ("care", "fair")
    assert spelt(votes, "care") == [(1, "a", "1"), (1, "b", "0")]
    assert spelt(votes, "fair") == [(1, "a", "true"), (1, "b", "false"), (2, "a", "true")]
    assert votes.ballot("care").votes_i.tolist() == [2, 0]
    assert votes.reading.dropped == {"no label": 1}
    assert "all votes on 'never' are '0': the question is left out." in votes.reading.notes


def test_a_question_column_that_does_not_exist():
    with pytest.raises(VotesError, match=r"no column 'car'.*Did you mean 'care'.*--questions care"):
        read_votes(COLUMNS, questions=["car"])


def test_single_labels_merge_and_drop(spelt):
    table = pl.DataFrame({"item": [1, 1, 2, 2], "annotator": list("abab"), "label": ["harm", "care", "nm", "loyalty"]})
    votes = read_votes(table, labels={"harm": "care", "drop": ["NM"]})
    assert spelt(votes) == [(1, "a", "care"), (1, "b", "care"), (2, "b", "loyalty")]
    assert votes.reading.dropped == {"label left out by the label map": 1}
    assert "the label map renamed 1 votes." in votes.reading.notes


@pytest.mark.parametrize(
    ("content", "message"),
    [("harm = ", "is no TOML"), ("harm = [1]", r"says harm = \[1\]"), ("[merge]\na = 'b'", "says merge =")],
)
def test_bad_label_maps(content, message, write):
    with pytest.raises(VotesError, match=message):
        read_votes(SETS, multilabel=",", labels=write(content, "map.toml"))


def test_a_missing_label_map(tmp_path):
    with pytest.raises(VotesError, match=r"label map .* cannot be read"):
        read_votes(SETS, labels=tmp_path / "none.toml")
