from __future__ import annotations

import json

import polars as pl
import pytest

from moral_entropy.errors import VotesError
from moral_entropy.votes.read import read_votes

U1, U2, U3 = (f"0000000{n}-aaaa-4bbb-8ccc-000000000000" for n in (1, 2, 3))
FLAT = [
    {
        "id": "r1", "status": "completed", "_server_id": "s1", "text": "so it goes", "source": "press",
        "tone.responses": ["sad", "glad", "sad"], "tone.responses.users": [U1, U2, U3],
        "tone.responses.status": ["submitted", "submitted", "draft"],
        "tone.suggestion": "sad", "tone.suggestion.score": 0.9, "tone.suggestion.agent": "m",
    },
    {
        "id": "r2", "status": "pending", "_server_id": "s2", "text": "and on", "source": "blog",
        "tone.responses": ["glad", "sad"], "tone.responses.users": [U1, U2],
        "tone.responses.status": ["submitted", "discarded"],
        "tone.suggestion": None, "tone.suggestion.score": None, "tone.suggestion.agent": None,
    },
    {
        "id": "r3", "status": "pending", "_server_id": "s3", "text": "none", "source": "blog", "tone.responses": None,
        "tone.responses.users": None, "tone.responses.status": None, "tone.suggestion": None,
        "tone.suggestion.score": None, "tone.suggestion.agent": None,
    },
]  # fmt: skip
EXPECTED = [("r1", U1, "sad"), ("r1", U2, "glad"), ("r2", U1, "glad")]


def nested(record):
    """The same record as version 2 lays it out when it is not flattened, with a status for each response."""
    cells = [record[f"tone.responses{end}"] or [] for end in ("", ".users", ".status")]
    responses = [dict(zip(("value", "user_id", "status"), cell, strict=True)) for cell in zip(*cells, strict=True)]
    return {
        "id": record["id"], "fields": {"text": record["text"]}, "metadata": {"source": record["source"]},
        "suggestions": {"tone": {"value": "sad", "score": 0.9, "agent": "m"}}, "responses": {"tone": responses},
        "vectors": {}, "status": record["status"], "_server_id": record["_server_id"],
    }  # fmt: skip


def by_user(record):
    """The same record as version 1 lays it out."""
    responses = [
        {"user_id": response["user_id"], "status": response["status"], "values": {"tone": {"value": response["value"]}}}
        for response in nested(record)["responses"]["tone"]
    ]
    return {"external_id": record["id"], "fields": {"text": record["text"]}, "metadata": {}, "responses": responses}


@pytest.mark.parametrize("layout", [dict, nested, by_user], ids=["flat", "nested", "by user"])
def test_only_submitted_responses_are_votes(layout, write, spelt):
    votes = read_votes(write(json.dumps([layout(record) for record in FLAT]), "export.json"))
    assert votes.questions == ("tone",)
    assert spelt(votes) == EXPECTED
    assert votes.items.to_list() == ["r1", "r2", "r3"]
    assert votes.texts.to_list() == ["so it goes", "and on", "none"]
    assert votes.reading.dropped["draft response"] == votes.reading.dropped["discarded response"] == 1
    assert "format: argilla (detected)." in votes.reading.notes


def test_parquet_is_read_as_well(tmp_path, spelt):
    pl.DataFrame(FLAT).write_parquet(tmp_path / "train.parquet")
    votes = read_votes(tmp_path / "train.parquet")
    assert spelt(votes) == EXPECTED
    assert votes.domains == ("blog", "press")


def test_responses_without_a_status_count_and_that_is_said(write, spelt):
    records = [nested(record) for record in FLAT[:1]]
    for response in records[0]["responses"]["tone"]:
        del response["status"]
    votes = read_votes(write(json.dumps(records), "export.json"))
    assert spelt(votes) == [("r1", U1, "sad"), ("r1", U2, "glad"), ("r1", U3, "sad")]
    assert any("carry no status" in note for note in votes.reading.notes)


def answered(item, user, **answers):
    record = {"id": item, "text": f"text {item}"}
    for question, value in answers.items():
        record |= {
            f"{question}.responses": [value], f"{question}.responses.users": [user],
            f"{question}.responses.status": ["submitted"],
        }  # fmt: skip
    return record


def test_questions_of_every_kind(write, spelt):
    spans = [{"label": "who", "start": 0, "end": 2}]
    records = [
        answered(n, U1, moral=[["care"], ["care", "harm"]][n % 2], stars=n % 3, why=f"because of {n}", spans=spans)
        for n in range(8)
    ]
    votes = read_votes(write(json.dumps(records), "export.json"))
    assert votes.questions == ("moral: harm", "stars")
    assert spelt(votes, "moral: harm") == [(n, U1, str(n % 2)) for n in range(8)]
    assert spelt(votes, "stars") == [(n, U1, str(n % 3)) for n in range(8)]
    assert votes.reading.dropped["response that is no label"] == 8
    assert "answers that look like free text are left out: 'why'." in votes.reading.notes


def test_an_export_of_drafts_is_refused(write):
    drafts = [record | {"tone.responses.status": ["draft"] * len(record["tone.responses"])} for record in FLAT[:2]]
    with pytest.raises(VotesError, match=r"Argilla, has no votes. Left out: draft response 5. Only submitted") as error:
        read_votes(write(json.dumps(drafts), "export.json"))
    assert "\n" not in str(error.value)


def test_responses_without_their_users_are_refused(write):
    with pytest.raises(VotesError, match=r"'tone' has 3 responses by 1 users with 3 statuses"):
        read_votes(write(json.dumps([FLAT[0] | {"tone.responses.users": [U1]}]), "export.json"))


def test_a_cut_off_export_is_refused(write):
    with pytest.raises(VotesError, match=r"export.json is no JSON: .* in line 1. Was it written to the end"):
        read_votes(write(json.dumps(FLAT)[:300], "export.json"))
