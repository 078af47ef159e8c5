from __future__ import annotations

import json

import pytest

from moral_entropy.errors import VotesError
from moral_entropy.votes.read import read_votes


def instance(item, **schemas):
    return {
        "id": item, "displayed_text": f"text {item}", "label_annotations": schemas, "span_annotations": {},
        "behavioral_data": {"time_string": "Time spent: 0d 0h 0m 5s "},
    }  # fmt: skip


def state(user, answers):
    return {
        "user_id": user, "instance_id_ordering": list(answers), "current_instance_index": 1,
        "instance_id_to_label_to_value": answers, "instance_id_to_span_to_value": {},
        "phase_to_page_to_label_to_value": {"consent": {"p": [[{"schema": "consent", "name": "I agree"}, True]]}},
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A function that lays out users' folders."""

    def lay_out(users, name="annotation_output"):
        for user, files in users.items():
            place = tmp_path / name / user
            place.mkdir(parents=True)
            for file, content in files.items():
                (place / file).write_text(content)
        return tmp_path / name

    return lay_out


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


EXPECTED = [("a1", "ann", "sad"), ("a1", "bob", "glad"), ("a2", "ann", "glad")]


def test_lines_in_a_folder_for_each_user(folder, spelt):
    path = folder(
        {
            "ann": {
                "annotated_instances.jsonl": lines(
                    instance("a1", tone={"sad": "1"}, why={"text_box": "so"}), instance("a2", tone={"glad": "2"})
                ),
                "annotation_order.txt": "a1\na2\n",
            },
            "bob": {"annotated_instances.jsonl": lines(instance("a1", tone={"glad": "2"}))},
        }
    )
    votes = read_votes(path)
    assert votes.questions == ("tone",)
    assert spelt(votes) == EXPECTED
    assert votes.texts.to_list() == ["text a1", "text a2"]
    assert votes.reading.dropped == {"free text or slider": 1}
    assert votes.reading.source == "annotation_output"
    assert len(votes.reading.sha256) == 64
    assert "format: potato (detected)." in votes.reading.notes
    # The folder above it does as well.
    assert spelt(read_votes(path.parent)) == EXPECTED


def test_the_state_of_each_user(folder, spelt):
    ann = {
        "a1": [[{"schema": "tone", "name": "sad"}, True], [{"schema": "sure", "name": "slider"}, "70"]],
        "a2": [[{"schema": "tone", "name": "glad"}, "true"], [{"schema": "tone", "name": "sad"}, "false"]],
    }
    path = folder(
        {
            "ann": {"user_state.json": json.dumps(state("ann", ann))},
            "folder-2": {"user_state.json": json.dumps(state("bob", {"a1": {"tone": {"glad": "glad"}}}))},
        }
    )
    assert spelt(read_votes(path)) == EXPECTED


def test_a_user_with_both_files_is_read_once(folder, spelt):
    answers = {"a1": [[{"schema": "tone", "name": "sad"}, "sad"]], "a2": [[{"schema": "tone", "name": "glad"}, "glad"]]}
    path = folder(
        {
            "ann": {
                "annotated_instances.jsonl": lines(instance("a1", tone={"sad": "1"})),
                "user_state.json": json.dumps(state("ann", answers), indent=1),
            },
            "bob": {
                "annotated_instances.jsonl": lines(instance("a1", tone={"glad": "2"})),
                "user_state.json": json.dumps({"annotation_order": ["a1"]}),
            },
        }
    )
    assert spelt(read_votes(path)) == EXPECTED


def test_boxes_that_can_be_ticked_together_and_lists_to_pick_from(folder, spelt):
    users = {
        user: {
            "annotated_instances.jsonl": lines(
                *(
                    instance(item, moral=dict.fromkeys(moral, "1"), topic={"select-one": topic})
                    for item, (moral, topic) in answers.items()
                )
            )
        }
        for user, answers in {
            "ann": {"a1": (["care", "harm"], "war"), "a2": (["care"], "sport")},
            "bob": {"a1": (["harm"], "war"), "a2": (["care"], "art")},
        }.items()
    }
    votes = read_votes(folder(users))
    assert votes.questions == ("moral: care", "moral: harm", "topic")
    assert spelt(votes, "moral: care") == [
        ("a1", "ann", "1"),
        ("a1", "bob", "0"),
        ("a2", "ann", "1"),
        ("a2", "bob", "1"),
    ]
    assert spelt(votes, "topic") == [
        ("a1", "ann", "war"), ("a1", "bob", "war"), ("a2", "ann", "sport"), ("a2", "bob", "art"),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "between"), [("annotated_instances.csv", ","), ("annotated_instances.tsv", "\t")])
def test_a_table_with_a_column_for_each_label(name, between, write, spelt):
    rows = [
        [
            "user",
            "instance_id",
            "displayed_text",
            "tone:::sad",
            "tone:::glad",
            "why:::text_box",
            "span_annotation:::who",
        ],
        ["ann", "a1", "text a1", "1", "", "so", "[]"],
        ["ann", "a2", "text a2", "", "2", "", "[]"],
        ["bob", "a1", "text a1", "", "2", "", "[]"],
    ]
    votes = read_votes(write("\n".join(between.join(row) for row in rows), name))
    assert spelt(votes) == EXPECTED
    assert votes.questions == ("tone",)
    assert votes.texts.to_list() == ["text a1", "text a2"]


def test_one_file_of_all_users(write, spelt):
    records = [
        instance("a1", tone={"sad": "1"}) | {"user_id": "ann"},
        instance("a2", tone={"glad": "2"}) | {"user_id": "ann"},
        instance("a1", tone={"glad": "2"}) | {"user_id": "bob"},
    ]
    assert spelt(read_votes(write(lines(*records), "annotated_instances.jsonl"))) == EXPECTED


BAD = {
    "cut off": (
        {"annotated_instances.jsonl": lines(instance("a1", tone={"sad": "1"}))[:-9]},
        "line 1 of .* is no JSON",
    ),
    "state cut off": ({"user_state.json": json.dumps(state("ann", {"a1": []}))[:-9]}, "user_state.json is no JSON"),
    "only free text": (
        {"annotated_instances.jsonl": lines(instance("a1", why={"text_box": "so"}))},
        "Potato, has no votes. Left out: free text or slider 1. Name the folder",
    ),
    "nothing annotated": ({"user_state.json": json.dumps(state("ann", {}))}, "Potato, has no votes. Name the folder"),
    "empty": ({"annotated_instances.jsonl": ""}, r"annotated_instances.jsonl is empty \(0 bytes\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_half_and_wrong_folders_have_one_clear_error(case, folder):
    files, message = BAD[case]
    with pytest.raises(VotesError, match=message) as error:
        read_votes(folder({"ann": files}))
    assert "\n" not in str(error.value)


def test_a_table_that_is_not_potatos(write):
    with pytest.raises(VotesError, match=r"has no column named schema:::label"):
        read_votes(write("user,instance_id,label\na,1,x\n"), format="potato")


def test_a_folder_that_is_called_like_a_file_is_none(folder):
    users = {"bob": "glad", "ann": "sad"}
    files = {
        f"folder-{user}": {"user_state.json": json.dumps(state(user, {"a1": {"tone": {label: label}}}))}
        for user, label in users.items()
    }
    path = folder(files)
    (path / "folder-3" / "user_state.json").mkdir(parents=True)
    assert read_votes(path).annotators.to_list() == ["ann", "bob"]
