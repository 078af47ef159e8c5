"""Label Studio: the JSON export, a list of tasks with their annotations.

A task is an item, `completed_by` the annotator, and a control tag a question. Skipped (cancelled)
annotations, regions and anything but choices and ratings are left out; predictions and drafts are no votes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.votes.formats.exported_votes import ITEM_KEY, ExportedVotes
from moral_entropy.votes.formats.records import Record, dicts, first_of, mapping, peek, read_records, scalars, text_of
from moral_entropy.votes.table import ReadingLog

REGION = frozenset({"start", "end", "x", "y", "points", "format", "startOffset"})
"""What the value of a result has when it is about a part of the item, not the whole."""


def detect(path: Path) -> bool:
    """Return whether a file is a Label Studio export."""
    seen = peek(path)
    by_somebody = seen.has("annotations", "completed_by") or seen.has("annotations", "was_cancelled")
    return seen.kind == "json" and (by_somebody or (("annotations",) in seen.lists and seen.has("data")))


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of an export."""
    votes = ExportedVotes(path.name, "Label Studio", log)
    for at, task in enumerate(read_records(path), 1):
        fields = scalars(mapping(task.get("data")))
        item = fields.pop(ITEM_KEY, task.get("id", at))
        votes.add_item(item, fields | {"text": text_of(fields)})
        for annotation in dicts(task.get("annotations")):
            if annotation.get("was_cancelled"):
                log.drop("skipped annotation", 1)
                continue
            who = annotation.get("completed_by")
            annotator = first_of(who, "email", "username", "id") if isinstance(who, dict) else who
            for question, label in _answers(annotation, log):
                votes.add_vote(item, annotator, question, label)
    return votes.to_table("Export the project as JSON (not JSON-MIN), with completed annotations that make a choice.")


def _answers(annotation: Record, log: ReadingLog) -> Iterator[tuple[str, Any]]:
    results = dicts(annotation.get("result"))
    if not results:
        log.drop("empty annotation", 1)
    for result in results:
        value = mapping(result.get("value"))
        answer = first_of(value, "choices", "rating")
        if answer is None or REGION & value.keys():
            log.drop(f"result of type {result.get('type')!s}", 1)
        else:
            yield str(result.get("from_name", "label")), answer
