"""MTurk: the results of a batch, one row per assignment.

A HIT is an item, a worker an annotator, and what follows `Answer.` a question: `Answer.tone` holds a label (or
several, separated by |), `Answer.tone.sad` whether a box was ticked, `Answer.tone.label` the label of a classifier,
`Answer.taskAnswers` all of them as JSON. Rejected assignments are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.votes.formats.exported_votes import ExportedVotes
from moral_entropy.votes.formats.records import Record, dicts, peek, read_rows, text_of
from moral_entropy.votes.source import parse_json
from moral_entropy.votes.table import ReadingLog

ANSWER, INPUT = "Answer.", "Input."
TICKED = {"true": True, "on": True, "false": False, "off": False}
CLASSIFIER = ("label", "labels")
SEPARATOR = "|"


def detect(path: Path) -> bool:
    """Return whether a file holds the results of an MTurk batch."""
    names = peek(path).names
    return {"HITId", "WorkerId"} <= set(names) and any(name.startswith(ANSWER) for name in names)


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a batch."""
    rows = read_rows(path, log)
    votes = ExportedVotes(path.name, "MTurk", log)
    boxes = tick_boxes(rows)
    for row in rows:
        inputs = {name: cell for name, cell in row.items() if name.startswith(INPUT)}
        text = text_of({name.removeprefix(INPUT): cell for name, cell in inputs.items()})
        votes.add_item(row.get("HITId"), inputs | {"text": text})
        if str(row.get("AssignmentStatus") or "").casefold() == "rejected":
            log.drop("rejected assignment", 1)
            continue
        for question, label in _answers(row, boxes):
            votes.add_vote(row.get("HITId"), row.get("WorkerId"), question, label)
    return votes.to_table("Take a batch with assignments that were not rejected, and Answer. columns.", free_text=True)


def tick_boxes(rows: Sequence[Record]) -> dict[str, list[str]]:
    """Find the questions whose options have columns of their own, with those options.

    Examples
    --------
    >>> tick_boxes([{"Answer.tone.sad": "true", "Answer.tone.glad": "false", "Answer.sure.on": "true"}])
    {'tone': ['sad', 'glad']}
    """
    options: dict[str, list[str]] = {}
    for name in rows[0] if rows else ():
        question, dot, option = name.removeprefix(ANSWER).rpartition(".")
        cells = {str(row[name]).strip().casefold() for row in rows if row[name] is not None} - {""}
        if name.startswith(ANSWER) and dot and cells <= TICKED.keys():
            options.setdefault(question, []).append(option)
    return {question: names for question, names in options.items() if len(names) > 1}


def _answers(row: Record, boxes: dict[str, list[str]]) -> Iterator[tuple[str, Any]]:
    for question, options in boxes.items():
        cells = {option: row.get(f"{ANSWER}{question}.{option}") for option in options}
        if any(cell not in (None, "") for cell in cells.values()):
            yield question, [option for option, cell in cells.items() if TICKED.get(str(cell).casefold())]
    for name, cell in row.items():
        if not name.startswith(ANSWER) or cell is None or not str(cell).strip():
            continue
        question, _, option = name.removeprefix(ANSWER).rpartition(".")
        if name == "Answer.taskAnswers":
            yield from _json_answers(str(cell))
        elif question not in boxes:
            yield question if option in CLASSIFIER and question else name.removeprefix(ANSWER), _label(str(cell))


def _label(cell: str) -> Any:
    if cell.startswith("[") and isinstance(labels := _parsed(cell), list):
        return labels
    return [part.strip() for part in cell.split(SEPARATOR)] if SEPARATOR in cell else cell


def _json_answers(cell: str) -> Iterator[tuple[str, Any]]:
    for form in dicts(_parsed(cell)):
        for question, answer in form.items():
            if not isinstance(answer, dict):
                yield question, answer
            elif named := [answer[name] for name in CLASSIFIER if name in answer]:
                yield question, named[0]
            elif all(isinstance(ticked, bool) for ticked in answer.values()):
                options = [option for option, ticked in answer.items() if ticked]
                # A lone box is a yes/no question; of several, those ticked are the answer.
                yield question, options if len(answer) > 1 else bool(options)


def _parsed(cell: str) -> Any:
    try:
        return parse_json(cell.encode(errors="replace"))
    except (ValueError, RecursionError):
        return None
