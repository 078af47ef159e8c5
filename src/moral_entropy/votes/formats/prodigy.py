"""Prodigy: what `db-out` writes, one annotated task per line.

A task that shows one label and asks accept or reject is a yes/no question named like the label; one with options is
a choice among them. Ignored tasks, and those about parts of a text or image, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.votes.formats.exported_votes import ITEM_KEY, QUESTION_KEY, ExportedVotes
from moral_entropy.votes.formats.records import Record, first_of, mapping, peek, read_records, scalars, text_of
from moral_entropy.votes.table import ReadingLog

YES_NO = {"accept": "1", "reject": "0"}
PARTS = ("spans", "relations", "arcs", "audio_spans")
"""Keys of tasks that are about parts of an item."""


def detect(path: Path) -> bool:
    """Return whether a file is a Prodigy export."""
    seen = peek(path)
    return (seen.has("_input_hash") or seen.has("_task_hash")) and seen.has("answer")


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of an export."""
    votes = ExportedVotes(path.name, "Prodigy", log)
    for at, task in enumerate(read_records(path), 1):
        item = first_of(task, ITEM_KEY, "_input_hash", "_task_hash")
        item = at if item is None else item
        text = text_of(scalars({name: task.get(name) for name in ("text", "html")}))
        votes.add_item(item, scalars(mapping(task.get("meta"))) | {"text": text})
        for question, label in _answers(task, log):
            votes.add_vote(item, first_of(task, "_annotator_id", "_session_id"), question, label)
    return votes.to_table("Only accepted and rejected tasks are votes; ignored ones are not.")


def _answers(task: Record, log: ReadingLog) -> Iterator[tuple[str, Any]]:
    answer = str(task.get("answer"))
    if answer not in YES_NO:
        log.drop("ignored task" if answer == "ignore" else "task without an answer", 1)
    elif isinstance(task.get("options"), list) or isinstance(task.get("accept"), list):
        if answer == "accept":
            asked = task.get(QUESTION_KEY)
            yield asked if isinstance(asked, str) else "choice", task.get("accept") or []
        else:
            log.drop("rejected choice", 1)
    elif any(task.get(part) for part in PARTS):
        log.drop("task about parts of an item", 1)
    else:
        label = task.get("label")
        yield label if isinstance(label, str) and label.strip() else "answer", YES_NO[answer]
