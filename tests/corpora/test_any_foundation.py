"""Any foundation: against plain loops over votes."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.corpora.figures import any_foundation
from moral_entropy.votes.read import read_votes

QUESTIONS = ("authority", "care", "loyalty")


@st.composite
def tables(draw):
    """Votes of up to four annotators on up to six items, some questions left out, and gold for some."""
    rows = []
    gold = {}
    for item in range(draw(st.integers(2, 6))):
        for question in QUESTIONS:
            gold[item, question] = draw(st.sampled_from([0, 1, None]))
        for annotator in draw(st.sets(st.sampled_from("abcd"), min_size=1)):
            for question in QUESTIONS:
                label = draw(st.sampled_from([0, 1, 0, None]))
                if label is not None:
                    rows.append((str(item), annotator, question, label, gold[item, question]))
    return rows


def frame_of(rows):
    return pl.DataFrame(rows, schema=["item", "annotator", "question", "label", "gold"], orient="row")


@given(rows=tables())
def test_a_yes_to_any_question_is_a_yes(rows):
    if {row[2] for row in rows} != set(QUESTIONS):
        return
    votes = read_votes(frame_of(rows), classes=["0", "1"])
    expected = {}
    for item, annotator, _, label, _ in rows:
        expected[item, annotator] = max(expected.get((item, annotator), 0), label)
    together = any_foundation(votes)
    if len(set(expected.values())) == 1:
        assert together is None
        return
    [ballot] = together.ballots
    items, annotators = together.items.to_list(), together.annotators.to_list()
    found = {}
    for at in range(ballot.n_items):
        for code in ballot.code_v[ballot.start_i[at] : ballot.start_i[at + 1]]:
            found[str(items[ballot.item_i[at]]), annotators[ballot.annotator_a[code // 2]]] = int(code % 2)
    assert found == expected


@pytest.mark.parametrize(
    ("gold", "expected"),
    [((1, 0, 0), 1), ((0, 0, 0), 0), ((0, None, 0), -1), ((None, None, 1), 1), ((None,) * 3, -1)],
)
def test_gold_is_known_when_one_is_there_or_all_are_absent(gold, expected):
    rows = [("x", "a", question, 1, one) for question, one in zip(QUESTIONS, gold, strict=True)]
    # A second item, so that both labels occur and every question has some gold.
    rows += [("y", "a", question, 0, 0) for question in QUESTIONS]
    [ballot] = any_foundation(read_votes(frame_of(rows), classes=["0", "1"])).ballots
    assert ballot.gold_i.tolist() == [expected, 0]


def test_the_question_is_gone_when_everybody_says_yes():
    rows = [(item, "a", question, int(question == "care"), None) for item in "xyz" for question in QUESTIONS]
    assert any_foundation(read_votes(frame_of(rows).drop("gold"), classes=["0", "1"])) is None
