from __future__ import annotations

import json

import pytest

from moral_entropy.errors import VotesError
from moral_entropy.votes.read import read_votes


def entry(annotations, annotators, **more):
    return {
        "text": f"text of {annotations}", "annotation task": "offensiveness detection", "number of annotations": 3,
        "annotations": annotations, "annotators": annotators, "lang": "en", "hard_label": "0",
        "soft_label": {"0": 0.67, "1": 0.33}, "split": "train", "other_info": {"domain": "BLM"}, **more,
    }  # fmt: skip


FILE = {
    "1": entry("0,1,0", "Ann1,Ann2,Ann3"),
    "2": entry("1,1", "Ann3,Ann2", other_info={"domain": "Covid", "other annotations": [1]}, hard_label="1"),
    "10": entry("", "", soft_label={}),
}


def test_annotations_and_annotators_side_by_side(write, spelt):
    votes = read_votes(write(json.dumps(FILE, indent=2), "MD-Agreement_train.json"))
    assert spelt(votes) == [(1, "Ann1", "0"), (1, "Ann2", "1"), (1, "Ann3", "0"), (2, "Ann2", "1"), (2, "Ann3", "1")]
    assert votes.items.to_list() == [1, 2, 10]
    assert [votes.domains[code] for code in votes.domain_i] == ["BLM", "Covid", "BLM"]
    assert votes.texts[0] == "text of 0,1,0"
    assert votes.ballots[0].positive == 1
    assert "format: lewidi (detected)." in votes.reading.notes


def test_the_hard_label_can_be_named_as_published(write):
    votes = read_votes(write(json.dumps(FILE), "train.json"), published="hard_label", facts=["split"])
    assert votes.ballots[0].published_i.tolist() == [0, 1, 0]
    assert votes.extra["split"].to_list() == ["train"] * 3


def test_annotations_by_annotator_as_in_the_third_edition(write, spelt):
    text = {"context": "Nice weather.", "response": "Sure."}
    file = {
        "7": entry({"Ann1": "4", "Ann2": "1"}, "Ann1,Ann2", text=text),
        "8": entry({"Ann1": "1", "Ann2": ""}, "Ann1,Ann2", text=text),
    }
    votes = read_votes(write(json.dumps(file), "CSC_train.json"))
    assert spelt(votes) == [(7, "Ann1", "4"), (7, "Ann2", "1"), (8, "Ann1", "1")]
    assert votes.texts[0] == "Nice weather. / Sure."


def test_several_labels_by_one_annotator(write, spelt):
    file = {
        "7": entry({"Ann1": "neutral,contradiction", "Ann2": "neutral"}, "Ann1,Ann2"),
        "8": entry({"Ann1": "entailment", "Ann2": "contradiction"}, "Ann1,Ann2"),
    }
    votes = read_votes(write(json.dumps(file), "VariErrNLI_train.json"))
    assert votes.questions == ("contradiction", "entailment", "neutral")
    assert spelt(votes, "neutral") == [(7, "Ann1", "1"), (7, "Ann2", "1"), (8, "Ann1", "0"), (8, "Ann2", "0")]


BAD = {
    "cut off": (json.dumps(FILE)[:500], "train.json is no JSON.*written to the end"),
    "one annotator short": (
        json.dumps(FILE | {"3": entry("0,1,1", "Ann1,Ann2")}),
        "item '3' of train.json has 3 annotations by 2 annotators",
    ),
    "no annotations": (json.dumps({"1": entry("", "")}), "LeWiDi, has no votes. Files of a test split"),
    "a number for an item": (json.dumps(FILE | {"4": 5}), "not one JSON object with a record for each item"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_half_and_wrong_files_have_one_clear_error(case, write):
    content, message = BAD[case]
    with pytest.raises(VotesError, match=message) as error:
        read_votes(write(content, "train.json"))
    assert "\n" not in str(error.value)
