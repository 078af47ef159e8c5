from __future__ import annotations

import json

import pytest

from moral_entropy.errors import VotesError
from moral_entropy.votes.read import read_votes


def task(number, by, answer, **more):
    return {
        "text": f"text {number}", "meta": {"source": ["press", "blog"][number % 2]}, "_input_hash": -100 - number,
        "_task_hash": 7 * number, "_view_id": "classification", "answer": answer, "_timestamp": 1_700_000_000,
        "_annotator_id": f"demo-{by}", "_session_id": f"demo-{by}", **more,
    }  # fmt: skip


def lines(*tasks):
    return "".join(json.dumps(task) + "\n" for task in tasks)


OPTIONS = [{"id": "sad", "text": "Sad"}, {"id": "glad", "text": "Glad"}, {"id": "cross", "text": "Cross"}]


def chosen(number, by, *names, answer="accept"):
    return task(
        number, by, answer, options=OPTIONS, accept=[*names], _view_id="choice", config={"choice_style": "single"}
    )


def test_accept_and_reject_are_yes_and_no_to_the_label(write, spelt):
    export = lines(
        task(1, "ann", "accept", label="INSULT"), task(1, "bob", "reject", label="INSULT"),
        task(2, "ann", "ignore", label="INSULT"), task(2, "bob", "reject", label="INSULT"),
        task(3, "ann", "ignore", label="INSULT"),
    )  # fmt: skip
    votes = read_votes(write(export, "export.jsonl"))
    assert votes.questions == ("INSULT",)
    assert spelt(votes) == [(-102, "demo-bob", "0"), (-101, "demo-ann", "1"), (-101, "demo-bob", "0")]
    assert votes.ballots[0].labels[votes.ballots[0].positive] == "1"
    assert votes.items.to_list() == [-103, -102, -101]
    assert votes.reading.dropped["ignored task"] == 2
    assert votes.texts.to_list() == ["text 3", "text 2", "text 1"]
    assert votes.domains == ("blog", "press")
    assert "format: prodigy (detected)." in votes.reading.notes


def test_every_label_is_a_question(write, spelt):
    export = lines(
        task(1, "ann", "accept", label="A"), task(1, "ann", "reject", label="B"),
        task(1, "bob", "reject", label="A"), task(1, "bob", "accept", label="B"),
    )  # fmt: skip
    votes = read_votes(write(export, "export.jsonl"))
    assert votes.questions == ("A", "B")
    assert spelt(votes, "B") == [(-101, "demo-ann", "0"), (-101, "demo-bob", "1")]


def test_a_task_without_a_label_is_a_question_too(write, spelt):
    votes = read_votes(write(lines(task(1, "ann", "accept"), task(1, "bob", "reject")), "export.jsonl"))
    assert votes.questions == ("answer",)
    assert spelt(votes) == [(-101, "demo-ann", "1"), (-101, "demo-bob", "0")]


def test_one_choice_among_options(write, spelt):
    export = lines(
        chosen(1, "ann", "sad"), chosen(1, "bob", "glad"), chosen(2, "ann", "cross"), chosen(2, "bob"),
        chosen(3, "bob", "sad", answer="ignore"), chosen(4, "bob", answer="reject"),
    )  # fmt: skip
    votes = read_votes(write(export, "export.jsonl"))
    assert votes.questions == ("choice",)
    assert spelt(votes) == [(-102, "demo-ann", "cross"), (-101, "demo-ann", "sad"), (-101, "demo-bob", "glad")]
    reasons = {"no choice": 1, "ignored task": 1, "rejected choice": 1}
    assert reasons.items() <= votes.reading.dropped.items()


def test_several_choices_among_options(write, spelt):
    export = lines(
        chosen(1, "ann", "sad", "cross"), chosen(1, "bob"), chosen(2, "ann", "glad"), chosen(2, "bob", "sad")
    )
    votes = read_votes(write(export, "export.jsonl"))
    assert votes.questions == ("cross", "glad", "sad")
    # Who was free to choose several and chose none said no to all.
    assert spelt(votes, "sad") == [
        (-102, "demo-ann", "0"), (-102, "demo-bob", "1"), (-101, "demo-ann", "1"), (-101, "demo-bob", "0"),
    ]  # fmt: skip


def test_the_annotator_comes_before_the_session(write, spelt):
    export = lines(
        task(1, "ann", "accept", label="A", _session_id="2026-01-01"),
        task(1, "bob", "reject", label="A", _session_id="x"),
    )
    assert spelt(read_votes(write(export, "export.jsonl"))) == [(-101, "demo-ann", "1"), (-101, "demo-bob", "0")]


def test_the_session_stands_in_for_a_missing_annotator(write, spelt):
    tasks = [task(1, "ann", "accept", label="A"), task(1, "bob", "reject", label="A")]
    for entry in tasks:
        del entry["_annotator_id"]
    assert spelt(read_votes(write(lines(*tasks), "export.jsonl"))) == [(-101, "demo-ann", "1"), (-101, "demo-bob", "0")]


def test_spans_are_no_votes(write):
    spans = [{"start": 0, "end": 4, "label": "X"}]
    export = lines(
        task(1, "ann", "accept", label="A"), task(1, "bob", "reject", label="A"), task(2, "ann", "accept", spans=spans)
    )
    votes = read_votes(write(export, "export.jsonl"))
    assert votes.n_votes == 2
    assert votes.reading.dropped["task about parts of an item"] == 1


def test_answering_twice_is_a_repeat_like_any_other(write, spelt):
    export = lines(
        task(1, "ann", "accept", label="A"), task(1, "bob", "reject", label="A"), task(1, "ann", "reject", label="A")
    )
    path = write(export, "export.jsonl")
    with pytest.raises(VotesError, match="1 of 3 votes on 'A' contradict"):
        read_votes(path)
    assert spelt(read_votes(path, on_repeat="last")) == [(-101, "demo-ann", "0"), (-101, "demo-bob", "0")]


def anonymous(*answers):
    return lines(
        *(task(n, "x", answer, label="A") | {"_annotator_id": None, "_session_id": None} for n, answer in answers)
    )


BAD = {
    "all ignored": (
        lines(task(1, "a", "ignore", label="A")),
        r"Prodigy, has no votes. Left out: ignored task 1\. Only",
    ),
    "cut off": (lines(task(1, "a", "accept", label="A"), task(2, "a", "reject"))[:-30], "line 2 of .* is no JSON"),
    "nobody": (anonymous((1, "accept"), (2, "reject")), "none of the 2 votes of .* says who voted"),
}


@pytest.mark.parametrize("case", BAD)
def test_half_and_wrong_files_have_one_clear_error(case, write):
    content, message = BAD[case]
    with pytest.raises(VotesError, match=message) as error:
        read_votes(write(content, "export.jsonl"))
    assert "\n" not in str(error.value)


def test_votes_of_nobody_can_be_read_as_those_of_a_crowd(write):
    votes = read_votes(write(anonymous((1, "accept"), (2, "reject")), "export.jsonl"), anonymous=True)
    assert votes.ballots[0].counts_ik.tolist() == [[1, 0], [0, 1]]
