from __future__ import annotations

import csv
import io
import json

import pytest

from moral_entropy.errors import VotesError
from moral_entropy.votes.read import read_votes


def batch(*rows, **same):
    """A CSV as the requester's page writes it: every cell in quotes."""
    rows = [{"HITId": "", "HITTypeId": "3T", "Title": "Tone", "WorkerId": "", "AssignmentStatus": "Approved",
             "WorkTimeInSeconds": "12", **same, **row, "Approve": "", "Reject": ""} for row in rows]  # fmt: skip
    text = io.StringIO()
    table = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), quoting=csv.QUOTE_ALL)
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def row(hit, worker, **more):
    answers = {name.replace("__", "."): value for name, value in more.items()}
    return {"HITId": hit, "WorkerId": worker, "Input.text": f"text {hit}", "Input.doc": hit.lower()} | answers


def test_an_assignment_is_a_vote_unless_rejected(write, spelt):
    export = batch(
        row("H1", "W1", Answer__tone="sad"), row("H1", "W2", Answer__tone="glad"), row("H2", "W1", Answer__tone="glad"),
        row("H2", "W3", Answer__tone="sad", AssignmentStatus="Rejected"),
        row("H3", "W3", Answer__tone="sad", AssignmentStatus="Rejected"),
        row("H4", "W1", Answer__tone="sad", AssignmentStatus="Submitted"),
    )  # fmt: skip
    path = write(export, "Batch_123_batch_results.csv")
    votes = read_votes(path)
    assert votes.questions == ("tone",)
    assert spelt(votes) == [("H1", "W1", "sad"), ("H1", "W2", "glad"), ("H2", "W1", "glad"), ("H4", "W1", "sad")]
    assert votes.items.to_list() == ["H1", "H2", "H3", "H4"]
    assert votes.texts.to_list() == [f"text H{n}" for n in (1, 2, 3, 4)]
    assert votes.reading.dropped["rejected assignment"] == 2
    assert "format: mturk (detected)." in votes.reading.notes
    assert spelt(read_votes(path, item="Input.doc"))[0] == ("h1", "W1", "sad")


def test_naming_the_label_column_reads_the_file_as_a_table(write, spelt):
    path = write(batch(row("H1", "W1", Answer__tone="sad"), row("H1", "W2", Answer__tone="glad")), "batch.csv")
    votes = read_votes(path, item="HITId", annotator="WorkerId", label="Answer.tone")
    assert spelt(votes) == [("H1", "W1", "sad"), ("H1", "W2", "glad")]
    assert not any("format" in note for note in votes.reading.notes)


def test_boxes_with_columns_of_their_own(write, spelt):
    def ticked(*names):
        return {f"Answer.tone.{name}": str(name in names).lower() for name in ("sad", "glad", "cross")}

    one = batch(row("H1", "W1") | ticked("sad"), row("H1", "W2") | ticked("glad"), row("H2", "W1") | ticked())
    votes = read_votes(write(one, "radio.csv"))
    assert spelt(votes) == [("H1", "W1", "sad"), ("H1", "W2", "glad")]
    assert votes.reading.dropped["no choice"] == 1
    many = batch(row("H1", "W1") | ticked("sad", "cross"), row("H1", "W2") | ticked("glad"), row("H2", "W1") | ticked())
    votes = read_votes(write(many, "boxes.csv"))
    assert votes.questions == ("cross", "glad", "sad")
    assert spelt(votes, "cross") == [("H1", "W1", "1"), ("H1", "W2", "0"), ("H2", "W1", "0")]


def test_several_answers_in_a_cell_and_several_questions(write, spelt):
    export = batch(
        row("H1", "W1", Answer__moral="care|harm", Answer__kind__label="tweet", Answer__sure__on="true"),
        row("H1", "W2", Answer__moral="care", Answer__kind__label="post", Answer__sure__on="false"),
        row("H2", "W1", Answer__moral="harm", Answer__kind__label="post", Answer__sure__on=""),
    )
    votes = read_votes(write(export, "batch.csv"))
    assert votes.questions == ("kind", "moral: care", "moral: harm", "sure")
    assert spelt(votes, "moral: harm") == [("H1", "W1", "1"), ("H1", "W2", "0"), ("H2", "W1", "1")]
    assert spelt(votes, "kind") == [("H1", "W1", "tweet"), ("H1", "W2", "post"), ("H2", "W1", "post")]
    assert spelt(votes, "sure") == [("H1", "W1", "true"), ("H1", "W2", "false")]


def test_answers_as_json(write, spelt):
    def answers(tone, odd, moral):
        form = {
            "tone": {"label": tone},
            "odd": {"on": odd},
            "moral": {"care": "care" in moral, "harm": "harm" in moral},
        }
        return {"Answer.taskAnswers": json.dumps([form])}

    export = batch(
        row("H1", "W1") | answers("sad", True, ["care", "harm"]), row("H1", "W2") | answers("glad", False, ["care"])
    )
    votes = read_votes(write(export, "batch.csv"))
    assert votes.questions == ("moral: harm", "odd", "tone")
    assert spelt(votes, "moral: harm") == [("H1", "W1", "1"), ("H1", "W2", "0")]
    assert spelt(votes, "odd") == [("H1", "W1", "true"), ("H1", "W2", "false")]


def test_comments_are_no_votes(write):
    rows = [
        row(f"H{n // 2}", f"W{n % 2}", Answer__tone=["sad", "glad"][n % 2], Answer__comment=f"I think {n}")
        for n in range(12)
    ]
    votes = read_votes(write(batch(*rows), "batch.csv"))
    assert votes.questions == ("tone",)
    assert "answers that look like free text are left out: 'comment'." in votes.reading.notes


BAD = {
    "all rejected": (
        batch(row("H1", "W1", Answer__tone="sad"), AssignmentStatus="Rejected"),
        "MTurk, has no votes. Left out: rejected assignment 1. Take a batch",
    ),
    "no answers": (batch(row("H1", "W1", Answer__tone="")), "MTurk, has no votes. Take a batch"),
    "a quote left open": (batch(row("H1", "W1", Answer__tone="sad"))[:-10], "double quote that swallows"),
    "header alone": (batch(row("H1", "W1", Answer__tone="sad")).splitlines()[0] + "\n", "but no rows"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_half_and_wrong_files_have_one_clear_error(case, write):
    content, message = BAD[case]
    with pytest.raises(VotesError, match=message) as error:
        read_votes(write(content, "batch.csv"))
    assert "\n" not in str(error.value)
