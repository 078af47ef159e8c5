"""Langfuse: exported scores, as JSON (an array, or a page of the API), JSON Lines or CSV.

A score of a trace or observation is a vote. Its name is the question; `question/judge` or `question:judge` names the
judge too. Of people (source ANNOTATION) the author is the judge, of others what the metadata call judge, model or
evaluator, else the source.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.votes.formats.exported_votes import NO_VERDICT, ExportedVotes, verdict_in
from moral_entropy.votes.formats.records import (
    Record,
    dicts,
    first_of,
    mapping,
    peek,
    read_json,
    read_records,
    read_rows,
    scalars,
    text_of,
)
from moral_entropy.votes.table import ReadingLog

SPLIT = re.compile(r"\s*[/:]\s*")
JUDGE = ("judge", "model", "evaluator")


def detect(path: Path) -> bool:
    """Return whether a file has exported scores."""
    head = peek(path)
    inside = [key[-1] for key in head.keys if len(key) == 1 or (len(key) == 2 and key[0] == "data")]
    names = {_plain(name) for name in (head.names if head.kind == "text" else inside)}
    return names >= {"traceid", "name", "source"} and bool({"value", "stringvalue"} & names)


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of an export."""
    votes = ExportedVotes(path.name, "Langfuse", log)
    for record in _rows(path, log):
        row = {_plain(name): value for name, value in record.items()}
        item = first_of(row, "observationid", "traceid", "sessionid")
        if item is None:
            log.drop("score of no trace", 1)
            continue
        metadata = scalars(mapping(row.get("metadata")))
        about = scalars(metadata, without=JUDGE)
        votes.add_item(item, about | {"text": text_of(about)})
        question, *judges = SPLIT.split(str(row.get("name") or "score"), maxsplit=1)
        votes.add_vote(item, judges[0] if judges else _judge(row, metadata), question, _value(row), missing=NO_VERDICT)
    return votes.to_table("Export scores of traces or observations.")


def _rows(path: Path, log: ReadingLog) -> list[Record]:
    head = peek(path)
    if head.kind != "json":
        return read_rows(path, log)
    return dicts(mapping(read_json(path)).get("data")) if ("data",) in head.lists else read_records(path)


def _plain(name: Any) -> str:
    return str(name).replace("_", "").replace(" ", "").casefold()


def _judge(row: Record, metadata: dict[str, Any]) -> str:
    source = str(row.get("source") or "").casefold()
    if source == "annotation":
        return str(first_of(row, "authoruserid", "authorusername", "author", "authorid") or "annotation")
    return str(first_of(metadata, *JUDGE) or source or "score")


def _value(row: Record) -> Any:
    """Return the vote: the text of a category, else the number."""
    text, value = first_of(row, "stringvalue"), row.get("value")
    if text is not None and str(row.get("datatype") or "CATEGORICAL").upper() != "NUMERIC":
        return text
    if not isinstance(value, str):
        return value
    try:
        float(value)
    except ValueError:
        return verdict_in(value)
    return value
