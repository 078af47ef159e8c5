"""LeWiDi: the files of the shared tasks on learning with disagreements; and our own exports, which follow them.

One JSON object with one key per item: `annotations` and `annotators` in the same order, separated by commas, or, in
the third edition, `annotations` by annotator. `soft_label` is a summary and ignored; `hard_label` can be named as
published. Our exports have one row per question and item, as CSV, JSON Lines or Parquet, with lists `annotators` and
`annotations`; in CSV both are in the cell `votes`, as JSON. The consensus beside them is no vote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.exported_votes import QUESTION_KEY, ExportedVotes
from moral_entropy.votes.formats.records import (
    Record,
    listed,
    mapping,
    paired,
    peek,
    read_json,
    read_records,
    read_rows,
    scalars,
    text_of,
)
from moral_entropy.votes.source import json_value
from moral_entropy.votes.table import ReadingLog

QUESTION = "label"
ABOUT_VOTES = frozenset({"annotations", "annotators", "text", "number of annotations", "number of annotators"})


def detect(path: Path) -> bool:
    """Return whether a file is one of LeWiDi, or an export of ours."""
    seen = peek(path)
    items = {key[0] for key in seen.keys if len(key) == 2 and key[1] == "annotations"}
    return _is_ours(path) or any(seen.has(item, "annotators") or seen.has(item, "soft_label") for item in items)


def _is_ours(path: Path) -> bool:
    seen = peek(path)
    return are_ours([*seen.names, *(key[0] for key in seen.keys if len(key) == 1)])


def are_ours(names: Iterable[str]) -> bool:
    """Return whether a table has the columns of an export of ours.

    Examples
    --------
    >>> are_ours(["question", "item", "soft_label", "votes"]), are_ours(["item", "annotators", "annotations"])
    (True, False)
    """
    columns = set(names)
    return columns >= {"question", "item", "soft_label"} and (
        "votes" in columns or columns >= {"annotators", "annotations"}
    )


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a file."""
    if _is_ours(path):
        return table_of(read_records(path) if peek(path).kind == "json" else read_rows(path, log), path.name, log)
    entries = read_json(path)
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        msg = f"{path.name} is not one JSON object with a record for each item, as LeWiDi's files are."
        raise VotesError(msg)
    votes = ExportedVotes(path.name, "LeWiDi", log)
    for item, entry in entries.items():
        votes.add_item(item, _facts(entry))
        asked = mapping(entry.get("other_info")).get(QUESTION_KEY)
        for annotator, label in _annotations(entry, item, path.name):
            votes.add_vote(item, annotator, asked if isinstance(asked, str) else QUESTION, label)
    return votes.to_table("Files of a test split may come without annotations; take train or dev.")


def table_of(rows: Iterable[Record], name: str, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of an export of ours, one row per question and item."""
    votes = ExportedVotes(name, "moral-entropy", log)
    for row in rows:
        cells = {key: row.get(key) for key in ("item", "question", "text", "domain")}
        if "votes" in row:
            cells = {key: _without_quote(cell) for key, cell in cells.items()}
        item = cells["item"]
        votes.add_item(item, {key: cells[key] for key in ("text", "domain")})
        lists = mapping(json_value(str(row["votes"]).encode(), name)) if row.get("votes") else row
        labels, annotators = (listed(lists.get(column)) for column in ("annotations", "annotators"))
        for annotator, label in paired(labels, annotators, item, name, "export the run again"):
            votes.add_vote(item, annotator, cells["question"], label)
    return votes.to_table("Export the run again: moral-entropy export run/ --to jsonl -o votes.jsonl")


def _without_quote(cell: Any) -> Any:
    """Take away the ' that keeps a spreadsheet from reading a cell as a formula; see `files.without_formulas`."""
    return cell[1:] if isinstance(cell, str) and re.match(r"'+[=+\-@\t\r]", cell) else cell


def _annotations(entry: Record, item: str, name: str) -> Iterable[tuple[Any, Any]]:
    annotations = entry.get("annotations")
    if isinstance(annotations, dict):
        return [(annotator, _split(label)) for annotator, label in annotations.items() if label not in (None, "")]
    labels, annotators = _cells(annotations), _cells(entry.get("annotators"))
    return paired(labels, annotators if labels else [], item, name, "correct it, or take the item out")


def _cells(cell: Any) -> list[str]:
    parts = cell if isinstance(cell, list) else [] if cell is None else str(cell).split(",")
    texts = [str(part).strip() for part in parts]
    return texts if any(texts) else []


def _split(label: Any) -> Any:
    """Split labels such as `neutral,contradiction`; other values stay as they are."""
    return [part.strip() for part in label.split(",")] if isinstance(label, str) and "," in label else label


def _facts(entry: Record) -> dict[str, Any]:
    text = entry.get("text")
    texts = scalars(mapping(text))
    whole = " / ".join(str(part) for part in texts.values()) if texts else text_of(scalars({"text": text}))
    # Other facts come last, so that a domain among them is the domain.
    other = scalars(mapping(entry.get("other_info")), without=[QUESTION_KEY])
    return scalars(entry, without=ABOUT_VOTES) | other | {"text": whole}
