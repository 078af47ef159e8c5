"""Argilla: records with the responses of several users, flat or nested, from JSON or Parquet.

Flat, a question has the columns `q.responses`, `q.responses.users` and `q.responses.status`; nested, a record holds
`responses`, by question (version 2) or by user (version 1). Only submitted responses are votes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.exported_votes import (
    ExportedVotes,
    Record,
    dicts,
    first_of,
    mapping,
    peek,
    read_records,
    read_rows,
    scalars,
    text_of,
)
from moral_entropy.votes.table import ReadingLog

TITLE = "Argilla"
RESPONSES, USERS, STATUS = ".responses", ".responses.users", ".responses.status"
OWN = frozenset({"id", "_server_id", "external_id", "status", "score"})
NO_STATUS = "the responses carry no status: drafts, if there are any, count as votes."

Response = tuple[str, Any, Any, str]
"""Question, user, value, status."""


def detect(path: Path) -> bool:
    """Return whether a file is an Argilla export."""
    seen = peek(path)
    if seen.kind == "parquet":
        return is_flat(seen.names)
    by_user = seen.has("responses", "values") and seen.has("responses", "user_id")
    by_question = any(len(key) == 3 and key[0] == "responses" and key[2] == "user_id" for key in seen.keys)
    return is_flat([key[0] for key in seen.keys if len(key) == 1]) or by_user or by_question


def is_flat(names: Iterable[str]) -> bool:
    """Return whether a table has Argilla's columns of responses and their users.

    Examples
    --------
    >>> is_flat(["id", "tone.responses", "tone.responses.users"]), is_flat(["id", "responses"])
    (True, False)
    """
    return any(name.endswith(USERS) for name in names)


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of an export.

    Parameters
    ----------
    path
        A JSON or Parquet file.
    log
        Where counts and notes go.
    """
    rows = read_rows(path, log) if peek(path).kind == "parquet" else read_records(path)
    return table_of(rows, path.name, log)


def table_of(rows: Iterable[Record], name: str, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of records that were read already.

    Parameters
    ----------
    rows
        The records.
    name
        Of the file, for errors.
    log
        Where counts and notes go.
    """
    votes, suggested = ExportedVotes(name, TITLE, log), set[str]()
    for at, row in enumerate(rows, 1):
        # What a suggestion comes with a probability for is a choice among labels.
        suggested |= {
            question
            for question, one in mapping(row.get("suggestions")).items()
            if mapping(one).get("score") is not None
        }
        item = first_of(row, "id", "external_id", "_server_id")
        item = at if item is None else item
        fields = _fields(row)
        votes.add_item(item, fields | {"text": text_of(_texts(row, fields))})
        for question, user, value, status in _responses(row):
            if status not in ("submitted", ""):
                log.drop(f"{status} response", 1)
            elif (label := _label(value)) is None:
                log.drop("response that is no label", 1)
            else:
                if not status:
                    log.note(NO_STATUS)
                votes.add_vote(item, user, question, label)
    return votes.to_table(
        "Only submitted responses are votes. Export records that somebody has submitted.",
        free_text=True,
        surely=suggested,
    )


def _fields(row: Record) -> dict[str, Any]:
    """Return the facts about the item: fields and metadata or, in a flat row, whatever is no response."""
    nested = mapping(row.get("fields")) | mapping(row.get("metadata"))
    flat = {name: value for name, value in row.items() if ".responses" not in name and ".suggestion" not in name}
    return scalars({name: value for name, value in flat.items() if name not in OWN}) | scalars(nested)


def _texts(row: Record, fields: dict[str, Any]) -> dict[str, Any]:
    return scalars(mapping(row.get("fields"))) or fields


def _responses(row: Record) -> Iterator[Response]:
    nested = row.get("responses")
    if isinstance(nested, dict):
        for question, responses in nested.items():
            for response in dicts(responses):
                yield question, response.get("user_id"), response.get("value"), _status(response.get("status"))
    for response in dicts(nested):
        for question, answer in mapping(response.get("values")).items():
            yield question, response.get("user_id"), mapping(answer).get("value"), _status(response.get("status"))
    for name in [name for name in row if name.endswith(USERS)]:
        yield from _flat_responses(row, name.removesuffix(USERS))


def _flat_responses(row: Record, question: str) -> Iterator[Response]:
    users, values, statuses = (_listed(row.get(question + end)) for end in (USERS, RESPONSES, STATUS))
    statuses = statuses or [None] * len(users)
    if not len(users) == len(values) == len(statuses):
        msg = (
            f"a record on {question!r} has {len(values)} responses by {len(users)} users with {len(statuses)} "
            "statuses. There must be one of each; export it anew."
        )
        raise VotesError(msg)
    for user, value, status in zip(users, values, statuses, strict=True):
        yield question, user, value, _status(status)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _status(status: Any) -> str:
    return "" if status is None else str(status).casefold()


def _label(value: Any) -> Any:
    """Return a label, a rating or a list of labels; None for spans, rankings and no value."""
    if isinstance(value, list):
        return value if all(isinstance(part, (str, int, float)) for part in value) else None
    return None if isinstance(value, dict) else value
