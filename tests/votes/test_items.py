from __future__ import annotations

import polars as pl
import pytest

from moral_entropy.errors import VotesError
from moral_entropy.votes.read import read_votes

VOTES = pl.DataFrame(
    {"item": [1, 1, 2, 2, 3], "annotator": list("ababa"), "label": ["Yes", "No", "Yes", "Yes", "No"]},
)


def labelled(votes, code_i):
    return [None if code < 0 else votes.ballots[0].labels[code] for code in code_i]


def test_gold_and_published_columns():
    votes = read_votes(
        VOTES.with_columns(gold=pl.Series(["No", None, "Yes", "Yes", None]), shipped=pl.Series(["Yes"] * 4 + [""])),
        gold="gold", published="shipped",
    )  # fmt: skip
    assert labelled(votes, votes.ballots[0].gold_i) == ["No", "Yes", None]
    assert labelled(votes, votes.ballots[0].published_i) == ["Yes", "Yes", None]


@pytest.mark.parametrize("name", ["gold", "truth", "Expert"])
def test_a_column_of_a_file_that_is_called_the_truth_is_not_taken_for_it(name, write):
    table = VOTES.with_columns(pl.Series(name, ["No", None, "Yes", "Yes", None]))
    votes = read_votes(write(table.write_csv()))
    assert (votes.ballots[0].gold_i == -1).all()
    assert f"column {name!r} may hold true labels and is not used (--gold {name} uses it)." in votes.reading.notes
    assert votes.reading.not_read == (name,)
    votes = read_votes(table)
    assert (votes.ballots[0].gold_i >= 0).any()
    assert f'column {name!r} is taken for true labels (guessed; gold="" does without).' in votes.reading.notes


@pytest.mark.parametrize("role", ["gold", "published"])
def test_two_known_labels_for_one_item(role):
    table = VOTES.with_columns(x=pl.Series(["No", "Yes", "Yes", "Yes", None]))
    with pytest.raises(
        VotesError, match=rf"1 items have more than one {role} label .* First: item 1 is 'No' and 'Yes'"
    ):
        read_votes(table, **{role: "x"})


def test_known_labels_that_no_vote_has():
    table = VOTES.with_columns(gold=pl.Series(["No", "No", "Maybe", "Maybe", None]))
    with pytest.raises(VotesError, match=r"1 items have the gold label 'Maybe' on 'label'.* Votes say: No, Yes"):
        read_votes(table, gold="gold")
    assert (read_votes(table, gold="").ballots[0].gold_i == -1).all()
    mapped = read_votes(table, gold="gold", labels={"Maybe": "yes", "yes": "Yes"})
    assert labelled(mapped, mapped.ballots[0].gold_i) == ["No", "Yes", None]


def test_an_empty_gold_column():
    table = VOTES.with_columns(gold=pl.lit(None, dtype=pl.String))
    with pytest.raises(VotesError, match="no item has a gold label"):
        read_votes(table, gold="gold")


def test_a_gold_file_matches_ids_and_case(write):
    path = write("item,gold\n3,no\n1,YES\n99,no\n98,no\n", "gold.csv")
    votes = read_votes(VOTES, gold_file=path)
    assert labelled(votes, votes.ballots[0].gold_i) == ["Yes", None, "No"]
    assert any(note == "gold label 'YES' is taken for 'Yes'." for note in votes.reading.notes)
    assert any("2 items of gold.csv have no vote" in note for note in votes.reading.notes)


def test_ids_match_across_types(write):
    path = write("id,truth\n3,No\n1,Yes\n", "gold.csv")
    votes = read_votes(VOTES.with_columns(pl.col("item").cast(pl.String)), gold_file=path)
    assert labelled(votes, votes.ballots[0].gold_i) == ["Yes", None, "No"]


def test_the_gold_column_of_a_file_can_be_named(write):
    path = write("item,one,two\n3,No,Yes\n1,Yes,No\n", "gold.csv")
    votes = read_votes(VOTES, gold_file=path, gold="two")
    assert labelled(votes, votes.ballots[0].gold_i) == ["No", None, "Yes"]
    with pytest.raises(VotesError, match="looks like the gold"):
        read_votes(VOTES, gold_file=path)


def test_gold_for_no_item(write):
    path = write("item,gold\nq7,No\nq8,Yes\n", "gold.csv")
    with pytest.raises(VotesError, match=r"none of the 2 items of gold.csv has a vote. First: 'q7'"):
        read_votes(VOTES, gold_file=path)


def test_gold_sets_are_split_like_the_votes():
    table = pl.DataFrame(
        {
            "item": [1, 1, 2, 3], "annotator": list("abaa"), "label": ["care,harm", "care", "nm", "harm"],
            "gold": ["harm, care", "care,harm", "nm", None],
        }
    )  # fmt: skip
    votes = read_votes(table, gold="gold", multilabel=",")
    assert votes.ballot("care").gold_i.tolist() == [1, 0, -1]
    assert votes.ballot("harm").gold_i.tolist() == [1, 0, -1]
    with pytest.raises(VotesError, match=r"1 gold labels of column 'gold' occur in no vote. First: 'other'"):
        read_votes(table.with_columns(gold=pl.lit("other")), gold="gold", multilabel=",")


def test_gold_per_question(write):
    table = pl.DataFrame(
        {"item": [1, 1, 1, 1], "annotator": list("abab"), "question": list("ppqq"), "label": list("0101")}
    )
    votes = read_votes(table.with_columns(gold=pl.Series(list("0011"))), gold="gold")
    assert [ballot.gold_i.tolist() for ballot in votes.ballots] == [[0], [1]]
    path = write("item,question,gold\n1,q,1\n1,p,0\n", "gold.csv")
    votes = read_votes(table, gold_file=path)
    assert [ballot.gold_i.tolist() for ballot in votes.ballots] == [[0], [1]]
    with pytest.raises(VotesError, match="does not say which of the 2 questions"):
        read_votes(table, gold_file=write("item,gold\n1,1\n", "gold.csv"))


def test_gold_of_question_columns_comes_from_a_file(write):
    table = pl.DataFrame(
        {"item": [1, 1, 2], "annotator": list("aba"), "p": [0, 1, 1], "q": [1, 0, 1], "gold": [1, 1, 1]}
    )
    path = write("item,question,gold\n1,q,1.0\n2,p,0\n", "gold.csv")
    votes = read_votes(table, questions=["p", "q"], gold_file=path)
    assert votes.ballot("p").gold_i.tolist() == [-1, 0]
    assert votes.ballot("q").gold_i.tolist() == [1, -1]
    assert (read_votes(table, questions=["p", "q"]).ballot("p").gold_i == -1).all()
    with pytest.raises(VotesError, match="Use gold_file"):
        read_votes(table, questions=["p", "q"], gold="gold")


def test_a_file_of_gold_labels_does_not_hide_that_there_are_no_votes(write):
    gold = write("item,gold\n1,Yes\n", "gold.csv")
    with pytest.raises(VotesError, match=r"no votes left. Rows dropped: 5 with no item"):
        read_votes(VOTES.with_columns(item=pl.lit(None, dtype=pl.Int64)), gold_file=gold)
