"""Potato: one folder per user with `annotated_instances.jsonl` or `user_state.json`, or one table of them all.

A schema is a question. Its answers are by label, with a value for each label that was chosen; a table has one column
`schema:::label` for each. Free text, sliders and spans are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.exported_votes import ExportedVotes
from moral_entropy.votes.formats.records import (
    dicts,
    first_of,
    listed,
    mapping,
    peek,
    read_json,
    read_records,
    read_rows,
)
from moral_entropy.votes.table import ReadingLog

LINES, STATE = "annotated_instances.jsonl", "user_state.json"
IN_STATE = "instance_id_to_label_to_value"
COLUMN = ":::"
PICKED = "select-one"
"""The one key of a drop-down list; the label is its value."""

NO_CLASS = frozenset({"text_box", "textbox", "slider", "number", "text"})
NOT_CHOSEN = (None, "", False, 0, "0", "false", "False")

Answers = Iterable[tuple[str, str, Any]]
"""Schema, label, value."""


def detect(path: Path) -> bool:
    """Return whether a folder or file is Potato's output."""
    seen = peek(path)
    if seen.kind == "folder":
        return bool(data_files(path))
    if seen.kind == "json":
        return seen.has(IN_STATE) or (seen.has("label_annotations") and seen.has("displayed_text"))
    return any(COLUMN in name for name in seen.names)


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of the folder of all users' folders, of one user's file, or of a table."""
    votes = ExportedVotes(path.name, "Potato", log)
    for user, item, text, answers in _instances(path, log):
        votes.add_item(item, {"text": text})
        for schema, labels in _chosen(answers, log).items():
            votes.add_vote(item, user, schema, labels)
    return votes.to_table("Name the folder that holds a folder for each user, or a table with schema:::label columns.")


def data_files(folder: Path) -> list[Path]:
    """Find one file for each user, one or two folders down; the state where it holds answers, else the lines."""
    file_of: dict[Path, Path] = {}
    for name in (LINES, STATE):
        for path in sorted([*folder.glob(f"*/{name}"), *folder.glob(f"*/*/{name}")]):
            if path.is_file() and (name == LINES or path.parent not in file_of or peek(path).has(IN_STATE)):
                file_of[path.parent] = path
    return [file_of[user] for user in sorted(file_of)]


def _instances(path: Path, log: ReadingLog) -> Iterator[tuple[Any, Any, Any, Answers]]:
    """Iterate over user, item, text and answers of everything annotated."""
    if path.is_dir():
        for file in data_files(path):
            yield from _instances(file, log)
    elif peek(path).kind == "text":
        yield from _of_table(path, log)
    elif peek(path).has(IN_STATE):
        state = mapping(read_json(path))
        user = first_of(state, "user_id") or path.parent.name
        for item, answers in mapping(state.get(IN_STATE)).items():
            yield user, item, None, _of_state(answers)
    else:
        for record in read_records(path):
            user = first_of(record, "user_id", "user") or path.parent.name
            text = record.get("displayed_text")
            yield user, first_of(record, "id", "instance_id"), text, _of_schemas(record.get("label_annotations"))


def _of_table(path: Path, log: ReadingLog) -> Iterator[tuple[Any, Any, Any, Answers]]:
    rows = read_rows(path, log)
    columns = [(name, *name.split(COLUMN, 1)) for name in rows[0] if COLUMN in name]
    if not columns:
        msg = f"{path.name} has no column named schema:::label, as Potato's tables have."
        raise VotesError(msg)
    for row in rows:
        answers = [(schema, label, row[name]) for name, schema, label in columns if schema != "span_annotation"]
        user = first_of(row, "user", "user_id", "annotator")
        yield user, first_of(row, "instance_id", "id"), row.get("displayed_text"), answers


def _of_schemas(schemas: Any) -> Answers:
    """List answers that are laid out by schema, then by label."""
    by_schema = mapping(schemas).items()
    return [(schema, label, value) for schema, labels in by_schema for label, value in mapping(labels).items()]


def _of_state(answers: Any) -> Answers:
    """List answers laid out as pairs of a record, with schema and name, and a value; or by schema."""
    if isinstance(answers, dict):
        return _of_schemas(answers)
    pairs = [pair for pair in listed(answers) if isinstance(pair, list) and len(pair) == 2]
    return [(str(label.get("schema")), str(label.get("name")), pair[1]) for pair in pairs for label in dicts(pair[:1])]


def _chosen(answers: Answers, log: ReadingLog) -> dict[str, list[str]]:
    """Return the labels chosen in every schema that was answered."""
    chosen: dict[str, list[str]] = {}
    for schema, label, value in answers:
        if value in NOT_CHOSEN:
            continue
        if label in NO_CLASS:
            log.drop("free text or slider", 1)
        else:
            chosen.setdefault(schema, []).append(str(value) if label == PICKED else label)
    return chosen
