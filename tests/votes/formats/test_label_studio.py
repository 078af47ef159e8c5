from __future__ import annotations

import json

import pytest

from moral_entropy.errors import VotesError
from moral_entropy.votes.read import read_votes


def choice(tag, *names, **value):
    return {"id": "x1", "from_name": tag, "to_name": "text", "type": "choices", "value": {"choices": [*names], **value}}


def annotation(by, *results, cancelled=False):
    return {
        "id": 31, "completed_by": by, "result": [*results], "was_cancelled": cancelled, "ground_truth": False,
        "created_at": "2026-03-01T10:00:00Z", "lead_time": 4.2, "prediction": {}, "result_count": 0, "task": 1,
    }  # fmt: skip


def task(number, text, *annotations, **data):
    return {
        "id": number, "annotations": [*annotations], "file_upload": "a.csv", "drafts": [],
        "predictions": [{"model_version": "m", "result": [choice("tone", "sad")]}],
        "data": {"text": text, **data}, "meta": {}, "project": 7, "total_annotations": len(annotations),
    }  # fmt: skip


ANN, BOB = (
    {"id": 3, "email": "ann@example.org", "first_name": "", "last_name": ""},
    {"id": 5, "email": "bob@example.org"},
)
EXPORT = [
    task(11, "so it goes", annotation(ANN, choice("tone", "sad")), annotation(BOB, choice("tone", "glad")), domain="a"),
    task(12, "and on", annotation(ANN, choice("tone", "glad")), annotation(BOB, choice("tone", "sad"), cancelled=True)),
    task(13, "nobody came", domain="b"),
]


def test_choices_are_votes_and_skipped_annotations_are_not(write, spelt):
    votes = read_votes(write(json.dumps(EXPORT), "export.json"))
    assert votes.questions == ("tone",)
    assert spelt(votes) == [
        (11, "ann@example.org", "sad"),
        (11, "bob@example.org", "glad"),
        (12, "ann@example.org", "glad"),
    ]
    assert votes.items.to_list() == [11, 12, 13]
    assert votes.ballots[0].votes_i.tolist() == [2, 1, 0]
    assert votes.texts.to_list() == ["so it goes", "and on", "nobody came"]
    assert votes.domains == ("a", "b")
    assert "format: label-studio (detected)." in votes.reading.notes
    assert votes.reading.dropped == {"skipped annotation": 1, "no label": 1}


def test_an_annotator_may_be_a_number(write, spelt):
    export = [task(1, "x", annotation(4, choice("tone", "sad")), annotation(5, choice("tone", "glad")))]
    assert spelt(read_votes(write(json.dumps(export), "export.json"))) == [(1, 4, "sad"), (1, 5, "glad")]


def test_several_tags_are_several_questions(write, spelt):
    rating = {"from_name": "sure", "to_name": "text", "type": "rating", "value": {"rating": 4}}
    export = [
        task(1, "x", annotation(4, choice("tone", "sad"), rating), annotation(5, choice("tone", "glad"))),
        task(2, "y", annotation(4, choice("tone", "sad"), rating | {"value": {"rating": 2}})),
    ]
    votes = read_votes(write(json.dumps(export), "export.json"))
    assert votes.questions == ("sure", "tone")
    assert spelt(votes, "sure") == [(1, 4, "4"), (2, 4, "2")]
    assert spelt(votes, "tone") == [(1, 4, "sad"), (1, 5, "glad"), (2, 4, "sad")]


MANY = [
    task(1, "x", annotation(4, choice("moral", "care", "harm")), annotation(5, choice("moral", "care"))),
    task(2, "y", annotation(4, choice("moral", "loyalty")), annotation(5, choice("moral", "harm"))),
]


def test_several_choices_make_a_yes_no_question_each(write, spelt):
    votes = read_votes(write(json.dumps(MANY), "export.json"))
    assert votes.questions == ("care", "harm", "loyalty")
    assert spelt(votes, "harm") == [(1, 4, "1"), (1, 5, "0"), (2, 4, "0"), (2, 5, "1")]
    assert spelt(votes, "loyalty") == [(1, 4, "0"), (1, 5, "0"), (2, 4, "1"), (2, 5, "0")]


def test_a_label_map_reaches_the_choices(write, spelt):
    path = write(json.dumps(MANY), "export.json")
    votes = read_votes(path, labels={"harm": "care", "loyalty": ""})
    assert votes.questions == ("care",)
    assert spelt(votes) == [(1, 4, "1"), (1, 5, "1"), (2, 4, "0"), (2, 5, "1")]


def test_a_set_beside_a_single_choice(write, spelt):
    sure = {4: "yes", 5: "no"}
    export = [
        task(number, "x", *(annotation(by, choice("moral", *names), choice("sure", sure[by])) for by, names in by_whom))
        for number, by_whom in enumerate([[(4, ["care", "harm"]), (5, ["care"])], [(4, ["harm"]), (5, ["nm"])]], 1)
    ]
    path = write(json.dumps(export), "export.json")
    votes = read_votes(path)
    assert votes.questions == ("moral: care", "moral: harm", "sure")
    assert "'nm' beside lists of labels means no to every label (1 votes)." in votes.reading.notes
    assert spelt(votes, "moral: care") == [(1, 4, "1"), (1, 5, "1"), (2, 4, "0"), (2, 5, "0")]
    assert spelt(votes, "sure") == [(1, 4, "yes"), (1, 5, "no"), (2, 4, "yes"), (2, 5, "no")]
    merged = read_votes(path, labels={"harm": "care", "nm": "", "yes": "sure"})
    assert spelt(merged, "moral: care") == [(1, 4, "1"), (1, 5, "1"), (2, 4, "1"), (2, 5, "0")]
    assert spelt(merged, "sure") == [(1, 4, "sure"), (1, 5, "no"), (2, 4, "sure"), (2, 5, "no")]
    assert not any("match no label" in note for note in merged.reading.notes)


def test_a_question_on_which_all_agree_is_left_out_of_several(write):
    export = [
        task(
            1,
            "x",
            *(annotation(by, choice("tone", tone), choice("sure", "yes")) for by, tone in [(4, "sad"), (5, "glad")]),
        )
    ]
    votes = read_votes(write(json.dumps(export), "export.json"))
    assert votes.questions == ("tone",)
    assert "all votes on 'sure' are 'yes': the question is left out." in votes.reading.notes


def test_regions_and_other_results_are_no_votes(write, spelt):
    area = {"from_name": "box", "type": "rectanglelabels", "value": {"x": 1, "y": 2, "rectanglelabels": ["cat"]}}
    export = [
        task(1, "x", annotation(4, choice("tone", "sad"), area), annotation(5, choice("tone", "glad"))),
        task(2, "y", annotation(4, choice("tone", "sad", start=0, end=3)), annotation(5)),
    ]
    votes = read_votes(write(json.dumps(export), "export.json"))
    assert spelt(votes) == [(1, 4, "sad"), (1, 5, "glad")]
    dropped = votes.reading.dropped
    assert (
        dropped["result of type rectanglelabels"]
        == dropped["result of type choices"]
        == dropped["empty annotation"]
        == 1
    )


def test_a_field_of_the_data_can_be_the_item_or_the_gold_label(write, spelt):
    export = [
        task(
            1, "x", annotation(4, choice("tone", "sad")), annotation(5, choice("tone", "glad")), tweet="t9", gold="sad"
        ),
        task(2, "y", annotation(4, choice("tone", "sad")), tweet="t8", gold="glad"),
    ]
    path = write(json.dumps(export), "export.json")
    votes = read_votes(path, item="tweet", gold="data.gold")
    assert spelt(votes) == [("t8", 4, "sad"), ("t9", 4, "sad"), ("t9", 5, "glad")]
    assert votes.ballots[0].gold_i.tolist() == [0, 1]
    assert read_votes(path).ballots[0].gold_i.tolist() == [-1, -1]


BAD = {
    "cut off": (json.dumps(EXPORT)[:700], "export.json is no JSON.*written to the end"),
    "only skipped": (
        json.dumps([task(1, "x", annotation(4, choice("tone", "sad"), cancelled=True))]),
        r"Label Studio, has no votes. Left out: skipped annotation 1\. Export the project as JSON",
    ),
    "no annotation": (json.dumps([task(1, "x")]), "Label Studio, has no votes. Export"),
    "nobody": (
        json.dumps([task(1, "x", annotation(None, choice("tone", "sad")))]),
        "none of the 1 votes of export.json says who voted.*--anonymous",
    ),
    "a number among the tasks": (json.dumps([*EXPORT, 3]), "record 4 of export.json is no record but 3"),
    "one class": (
        json.dumps([task(1, "x", annotation(4, choice("tone", "sad")))]),
        "every one of the 1 votes on 'tone' is 'sad'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_half_and_wrong_files_have_one_clear_error(case, write):
    content, message = BAD[case]
    with pytest.raises(VotesError, match=message) as error:
        read_votes(write(content, "export.json"))
    assert "\n" not in str(error.value)


def test_odd_shapes_are_passed_over(write, spelt):
    odd = {"id": 9, "annotations": "none", "data": None}
    odder = task(10, "z", annotation(4, "choice", {"value": 3}, {"type": "choices", "value": {"choices": None}}))
    votes = read_votes(write(json.dumps([*EXPORT, odd, odder]), "export.json"))
    assert len(spelt(votes)) == 3
    assert votes.n_items == 5
