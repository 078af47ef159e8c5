"""Our own exports: the items of a run with their votes, one row per question and item, as CSV, JSON Lines or Parquet.

`annotators` and `annotations` lie side by side; in CSV both are in the cell `votes`, as JSON. The consensus beside them
(`label`, `p`, `soft_label`) is no vote.
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
    mapping,
    peek,
    read_records,
    read_rows,
    without_quote,
)
from moral_entropy.votes.source import json_value
from moral_entropy.votes.table import ReadingLog

TITLE = "moral-entropy"
PACKED = "votes"
NEEDED = {"question", "item", "soft_label"}
FACTS = ("text", "domain")


def detect(path: Path) -> bool:
    """Return whether a file is an export of ours."""
    seen = peek(path)
    return is_ours([*seen.names, *(key[0] for key in seen.keys if len(key) == 1)])


def is_ours(names: Iterable[str]) -> bool:
    """Return whether a table has the columns of an export of ours.

    Examples
    --------
    >>> is_ours(["question", "item", "soft_label", "votes"]), is_ours(["item", "annotators", "annotations"])
    (True, False)
    """
    columns = set(names)
    return columns >= NEEDED and (PACKED in columns or columns >= {"annotators", "annotations"})


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of an export.

    Parameters
    ----------
    path
        A CSV, JSON Lines or Parquet file.
    log
        Where counts and notes go.
    """
    rows = read_records(path) if peek(path).kind == "json" else read_rows(path, log)
    return table_of(rows, path.name, log)


def table_of(rows: Iterable[Record], name: str, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of rows that were read already.

    Parameters
    ----------
    rows
        One per question and item.
    name
        Of the file, for errors.
    log
        Where counts and notes go.
    """
    votes = ExportedVotes(name, TITLE, log)
    for row in rows:
        packed = PACKED in row
        cells = {key: without_quote(row.get(key)) if packed else row.get(key) for key in ("item", "question", *FACTS)}
        votes.add_item(cells["item"], {key: cells[key] for key in FACTS})
        for annotator, label in _votes(row, cells["item"], name):
            votes.add_vote(cells["item"], annotator, cells["question"], label)
    return votes.to_table("Export the run again: moral-entropy export run/ --to jsonl -o votes.jsonl")


def _votes(row: Record, item: Any, name: str) -> Iterator[tuple[Any, Any]]:
    lists = mapping(json_value(str(row[PACKED]).encode(), name)) if row.get(PACKED) else row
    annotators, labels = (_listed(lists.get(column)) for column in ("annotators", "annotations"))
    if len(annotators) != len(labels):
        msg = (
            f"item {item!r} of {name} has {len(labels)} annotations by {len(annotators)} annotators. "
            "There must be one of each; export the run again."
        )
        raise VotesError(msg)
    return zip(annotators, labels, strict=True)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
