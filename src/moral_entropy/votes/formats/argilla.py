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
from moral_entropy.votes.formats.exported_votes import ExportedVotes
from moral_entropy.votes.formats.records import (
    Record,
    dicts,
    first_of,
    listed,
    mapping,
    peek,
    read_records,
    read_rows,
    scalars,
    text_of,
)
from moral_entropy.votes.table import ReadingLog

RESPONSES, USERS, STATUS = ".responses", ".responses.users", ".responses.status"
OWN = frozenset({"id", "_server_id", "external_id", "status", "score"})
NO_STATUS = "the responses carry no status: drafts, if there are any, count as votes."


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
    """Read the votes of an export."""
    rows = read_rows(path, log) if peek(path).kind == "parquet" else read_records(path)
    return table_of(rows, path.name, log)


def table_of(rows: Iterable[Record], name: str, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of records that were read already from a file of that name."""
    votes, suggested = ExportedVotes(name, "Argilla", log), set[str]()
    for at, row in enumerate(rows, 1):
        # What a suggestion comes with a probability for is a choice among labels.
        suggestions = mapping(row.get("suggestions")).items()
        suggested |= {question for question, made in suggestions if mapping(made).get("score") is not None}
        item = first_of(row, "id", "external_id", "_server_id")
        item = at if item is None else item
        fields = scalars(mapping(row.get("fields")))
        flat = {name: value for name, value in row.items() if ".responses" not in name and ".suggestion" not in name}
        facts = scalars(flat, without=OWN) | fields | scalars(mapping(row.get("metadata")))
        votes.add_item(item, facts | {"text": text_of(fields or facts)})
        for question, user, value, state in _responses(row):
            status = "" if state is None else str(state).casefold()
            if status not in ("submitted", ""):
                log.drop(f"{status} response", 1)
            elif (label := _label(value)) is None:
                log.drop("response that is no label", 1)
            else:
                if not status:
                    log.note(NO_STATUS)
                votes.add_vote(item, user, question, label)
    hint = "Only submitted responses are votes. Export records that somebody has submitted."
    return votes.to_table(hint, free_text=True, surely=suggested)


def _responses(row: Record) -> Iterator[tuple[str, Any, Any, Any]]:
    """Iterate over question, user, value and status."""
    nested = row.get("responses")
    for question, responses in mapping(nested).items():
        for response in dicts(responses):
            yield question, response.get("user_id"), response.get("value"), response.get("status")
    for response in dicts(nested):
        for question, answer in mapping(response.get("values")).items():
            yield question, response.get("user_id"), mapping(answer).get("value"), response.get("status")
    for name in [name for name in row if name.endswith(USERS)]:
        yield from _flat_responses(row, name.removesuffix(USERS))


def _flat_responses(row: Record, question: str) -> Iterator[tuple[str, Any, Any, Any]]:
    users, values, statuses = (listed(row.get(question + end)) for end in (USERS, RESPONSES, STATUS))
    statuses = statuses or [None] * len(users)
    if not len(users) == len(values) == len(statuses):
        msg = (
            f"a record on {question!r} has {len(values)} responses by {len(users)} users with {len(statuses)} "
            "statuses. There must be one of each; export it anew."
        )
        raise VotesError(msg)
    yield from zip([question] * len(users), users, values, statuses, strict=True)


def _label(value: Any) -> Any:
    """Return a label, a rating or a list of labels; None for spans, rankings and no value."""
    if isinstance(value, list):
        return value if all(isinstance(part, (str, int, float)) for part in value) else None
    return None if isinstance(value, dict) else value
