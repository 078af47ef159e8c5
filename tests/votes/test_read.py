from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import UNKNOWN


def frame(rows, columns=("item", "annotator", "label")):
    return pl.DataFrame([list(map(str, row)) for row in rows], schema=list(columns), orient="row")


PLAIN = [("q1", "a", "no"), ("q1", "b", "yes"), ("q2", "a", "yes")]


@pytest.mark.parametrize(
    ("columns", "roles"),
    [
        (["Text ID", "Worker.Id", "Rating"], ["item", "annotator", "label"]),
        (["tweet_id", "coder", "vote"], ["item", "annotator", "label"]),
        (["id", "judge", "verdict"], ["item", "annotator", "label"]),
        (["question_id", "user", "answer"], ["item", "annotator", "label"]),
        (["LABEL", "Rater", "task"], ["label", "annotator", "item"]),
    ],
)
def test_columns_are_guessed_from_common_names(columns, roles, spelt):
    order = [["item", "annotator", "label"].index(role) for role in roles]
    votes = read_votes(frame([[row[k] for k in order] for row in PLAIN], columns))
    assert spelt(votes) == PLAIN
    assert votes.reading.columns == {role: columns[roles.index(role)] for role in ("item", "annotator", "label")}
    assert set(votes.reading.guessed) == {"item", "annotator", "label"}


def test_named_columns_win_over_guesses(spelt):
    table = frame(PLAIN, ["label", "item", "annotator"])
    votes = read_votes(table, item="label", annotator="item", label="annotator")
    assert spelt(votes) == PLAIN
    assert votes.reading.guessed == ()
    assert votes.questions == ("annotator",)


def test_group_is_no_domain():
    table = frame(PLAIN).with_columns(group=pl.lit("g1"), bucket=pl.lit("b"))
    assert read_votes(table).domains == ("b",)
    assert read_votes(table.drop("bucket")).domains == ()
    assert read_votes(table, domain="").domains == ()


def test_a_column_that_does_not_exist():
    with pytest.raises(VotesError) as error:
        read_votes(frame(PLAIN, ["item_id", "rater", "rating"]), annotator="ratr")
    assert str(error.value) == (
        "a polars DataFrame has no column 'ratr'. Found: item_id, rater, rating. Did you mean 'rater'? "
        'Name it with annotator="rater" (CLI: --annotator rater).'
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["item", "age", "label"], r"looks like the annotator\. Found: item, age, label.*--annotator.*--anonymous"),
        (["confidence", "annotator", "label"], r"looks like the item.*item=\"COLUMN\""),
        (["q1", "ann", "zz"], r"looks like the item.*add a header"),
    ],
)
def test_wrong_columns(columns, message):
    with pytest.raises(VotesError, match=message):
        read_votes(frame(PLAIN, columns))


@pytest.mark.parametrize(
    "columns", [("item", "xx", "label"), ("xx", "annotator", "label"), ("item", "annotator", "xx")]
)
def test_the_one_column_left_is_told_from_its_cells(columns, spelt):
    votes = read_votes(frame(PLAIN, columns))
    assert spelt(votes) == PLAIN
    role = ("item", "annotator", "label")[columns.index("xx")]
    assert votes.reading.columns[role] == "xx" and role in votes.reading.guessed


def test_texts_stand_in_for_missing_item_ids(spelt):
    votes = read_votes(frame(PLAIN, ["text", "annotator", "label"]))
    assert spelt(votes) == PLAIN
    assert votes.texts.to_list() == ["q1", "q2"]


def test_missing_cells_are_no_votes_but_register_the_item():
    rows = [("1", "a", "x"), ("1", "b", "y"), ("2", "a", "NA"), ("3", "", "x"), ("", "a", "x"), ("4", "", "")]
    votes = read_votes(frame(rows))
    ballot = votes.ballots[0]
    assert votes.items.to_list() == ["1", "2", "3", "4"]
    assert ballot.votes_i.tolist() == [2, 0, 0, 0]
    assert votes.reading.dropped == {"no annotator": 1, "no item": 1, "no label": 2}
    assert votes.reading.rows == 6


def test_nan_labels_are_no_votes():
    votes = read_votes(pl.DataFrame({"item": [1, 1, 2], "annotator": [1, 2, 1], "label": [0.0, 1.0, float("nan")]}))
    assert votes.ballots[0].votes_i.tolist() == [2, 0]
    assert votes.ballots[0].labels == ("0", "1")


def test_annotators_without_a_vote_are_left_out():
    votes = read_votes(frame([("1", "b", "x"), ("1", "c", "y"), ("1", "a", "")]))
    assert votes.annotators.to_list() == ["b", "c"]
    assert votes.ballots[0].annotator_a.tolist() == [0, 1]


def test_no_votes_are_left():
    with pytest.raises(VotesError, match=r"no votes left. Rows dropped: 1 with no item, 2 with no label"):
        read_votes(frame([("1", "a", "NA"), ("1", "b", "null"), ("", "a", "x")]))


def test_a_single_class_is_refused_by_name():
    rows = [(item, annotator, "0") for item in range(43) for annotator in range(28)]
    with pytest.raises(VotesError, match=r"every one of the 1,204 votes on 'label' is '0': nothing to tell apart"):
        read_votes(frame(rows))


def test_one_annotator_works():
    votes = read_votes(frame([("1", "a", "x"), ("2", "a", "y")]))
    assert len(votes.annotators) == 1


def test_a_column_of_texts_is_no_label():
    rows = [(k, "a", f"some text {k}") for k in range(1_500)]
    with pytest.raises(VotesError, match=r"1,500 different values in 1,500 rows"):
        read_votes(frame(rows))


REPEATS = [("q1", "a", "x"), ("q2", "a", "x"), ("q1", "a", "y"), ("q1", "b", "y"), ("q2", "a", "x")]


def test_repeats_are_counted_and_the_first_is_shown():
    with pytest.raises(VotesError) as error:
        read_votes(frame(REPEATS))
    assert str(error.value) == (
        "1 of 4 votes on 'label' contradict another vote of the same annotator on the same item. First: item 'q1', "
        "annotator 'a' voted 'x' (row 1) and 'y' (row 3). "
        'Choose on_repeat="first", "last" or, to keep each as a vote of its own, "count" (CLI: --on-repeat last).'
    )


def test_identical_repeats_count_once(spelt):
    votes = read_votes(frame([*PLAIN, PLAIN[0], PLAIN[2], PLAIN[0]]))
    assert spelt(votes) == PLAIN
    assert votes.reading.dropped == {"identical repeat": 3}


@pytest.mark.parametrize(
    ("on_repeat", "kept", "dropped"),
    [
        ("first", [("q1", "a", "x"), ("q1", "b", "y"), ("q2", "a", "x")], {"repeated vote": 2}),
        ("last", [("q1", "a", "y"), ("q1", "b", "y"), ("q2", "a", "x")], {"repeated vote": 2}),
        ("count", sorted(REPEATS), {}),
    ],
)
def test_repeats_can_be_settled(on_repeat, kept, dropped, spelt):
    votes = read_votes(frame(REPEATS), on_repeat=on_repeat)
    assert spelt(votes) == kept
    assert votes.reading.dropped == dropped


def test_row_numbers_in_errors_survive_dropped_rows():
    rows = [("", "a", "x"), ("1", "a", ""), *[("1", "a", label) for label in "xy"]]
    with pytest.raises(VotesError, match=r"'x' \(row 3\) and 'y' \(row 4\)"):
        read_votes(frame(rows))


@pytest.mark.parametrize(
    ("labels", "positive", "name", "noted"),
    [
        (["0", "1"], None, "1", True),
        (["No", "Yes"], None, "Yes", True),
        (["f", "T"], None, "T", True),
        (["Hateful", "Non-hateful"], None, "Hateful", True),
        (["hate", "nothate"], None, "hate", True),
        (["not toxic", "toxic"], None, "toxic", True),
        (["no_harm", "harm"], None, "harm", True),
        (["cancer", "benign"], None, "cancer", True),
        (["ja", "nein"], None, "ja", True),
        (["nicht_toxisch", "toxisch"], None, "toxisch", True),
        (["Sim", "Não"], None, "Sim", True),
        (["да", "нет"], None, "да", True),
        (["moral", "none"], None, "moral", True),
        (["abuse", "Other"], None, "abuse", True),
        (["neg", "pos"], None, "pos", True),
        (["notable", "plain"], None, "plain", True),
        (["negative", "positive", "zero"], None, "positive", False),
        (["a", "b", "c"], None, "c", False),
        (["a", "b", "c"], "a", "a", False),
        (["a", "B"], "b", "B", False),
        (["1", "2"], 2, "2", False),
    ],
)
def test_the_positive_label(labels, positive, name, noted):
    votes = read_votes(frame([(1, k, label) for k, label in enumerate(labels)]), positive=positive)
    ballot = votes.ballots[0]
    assert ballot.labels[ballot.positive] == name
    assert (f"positive label: {name!r} (guessed)." in votes.reading.notes) is noted


def test_a_positive_label_nobody_gave():
    with pytest.raises(VotesError, match=r"positive is 'zz', which is no label. Labels: no, yes"):
        read_votes(frame(PLAIN), positive="zz")


def test_classes_may_add_labels_but_never_lose_one():
    table = frame([(1, "a", "0"), (1, "b", "1")])
    assert read_votes(table, classes=3).ballots[0].labels == ("0", "1", "2")
    assert read_votes(table, classes=2).ballots[0].labels == ("0", "1")
    assert read_votes(table, classes=["2", 1, "0"]).ballots[0].labels == ("0", "1", "2")
    with pytest.raises(VotesError, match=r"classes is 1, but the votes on 'label' have 2 labels: 0, 1"):
        read_votes(table, classes=1)
    with pytest.raises(VotesError, match=r"1 votes on 'label' say something else. First: '1'"):
        read_votes(table, classes=["0", "2"])
    with pytest.raises(VotesError, match="List all of them by name"):
        read_votes(frame(PLAIN), classes=3)
    assert read_votes(frame([(1, "a", "0")]), classes=["0", "1"]).ballots[0].n_labels == 2


def test_domain_text_and_kept_columns_belong_to_items():
    table = frame(
        [
            (1, "a", "x", "news", "", "en"),
            (1, "b", "y", "blog", "hello", "en"),
            (2, "a", "x", "news", "bye", ""),
            (2, "b", "x", "news", "bye", ""),
            (3, "a", "x", "", "", "de"),
        ],
        ["item", "annotator", "label", "domain", "text", "lang"],
    )
    votes = read_votes(table, facts=["lang", "domain"])
    assert votes.domains == ("blog", "news")
    assert votes.domain_i.tolist() == [0, 1, UNKNOWN]
    assert votes.texts.to_list() == ["hello", "bye", None]
    assert votes.extra["lang"].to_list() == ["en", None, "de"]
    assert votes.extra["domain"].to_list() == ["blog", "news", None]
    assert any("1 items have more than one value of" in note for note in votes.reading.notes)


def test_codes_are_narrow_and_ids_typed():
    votes = read_votes(pl.DataFrame({"item": [5, 3], "annotator": [2**40, 1], "label": ["x", "y"]}))
    assert votes.items.dtype == pl.Int64
    assert votes.annotators.to_list() == [1, 2**40]
    assert votes.ballots[0].code_v.dtype == np.int32


@pytest.mark.parametrize(
    "options",
    [
        {"format": "tall"},
        {"on_repeat": "sum"},
        {"counts": ["label"]},
        {"of": 3},
        {"multilabel": ",", "questions": ["label"]},
        {"format": "wide", "questions": ["label"]},
        {"classes": 2, "multilabel": ","},
    ],
)
def test_options_that_contradict_each_other(options):
    with pytest.raises(UsageError):
        read_votes(frame(PLAIN), **options)


def test_a_column_called_prompt_that_holds_numbers_is_no_text():
    rows = [(f"i{i}", name, "yn"[i % 2], i // 2, f"words {i}") for i in range(6) for name in ("ann", "bob")]
    frame = pl.DataFrame(rows, schema=["item", "annotator", "label", "prompt", "comment"], orient="row")
    numbers, words = frame.drop("comment"), frame.drop("prompt").rename({"comment": "prompt"})
    assert read_votes(numbers).texts is None
    assert read_votes(words).texts is not None and read_votes(numbers, text="prompt").texts is not None
