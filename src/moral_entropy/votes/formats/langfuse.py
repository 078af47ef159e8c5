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

from moral_entropy.votes.formats.exported_votes import (
    NO_VERDICT,
    ExportedVotes,
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
    verdict_in,
)
from moral_entropy.votes.table import ReadingLog

TITLE = "Langfuse"
SPLIT = re.compile(r"\s*[/:]\s*")
JUDGE = ("judge", "model", "evaluator")


def detect(path: Path) -> bool:
    """Return whether a file has exported scores."""
    seen = peek(path)
    if seen.kind == "text":
        return _are_scores(seen.names)
    inside = [key[-1] for key in seen.keys if len(key) == 1 or (len(key) == 2 and key[0] == "data")]
    return _are_scores(inside)


def _are_scores(names: Any) -> bool:
    known = {_plain(name) for name in names}
    return "traceid" in known and {"name", "source"} <= known and bool({"value", "stringvalue"} & known)


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of an export.

    Parameters
    ----------
    path
        The JSON, JSON Lines or CSV file.
    log
        Where counts and notes go.
    """
    votes = ExportedVotes(path.name, TITLE, log)
    for row in map(_with_plain_names, _rows(path, log)):
        item = first_of(row, "observationid", "traceid", "sessionid")
        if item is None:
            log.drop("score of no trace", 1)
            continue
        metadata = scalars(mapping(row.get("metadata")))
        about = {name: value for name, value in metadata.items() if name not in JUDGE}
        votes.add_item(item, about | {"text": text_of(about)})
        question, *named = SPLIT.split(str(row.get("name") or "score"), maxsplit=1)
        judge = named[0] if named else _judge(row, metadata)
        votes.add_vote(item, judge, question, _value(row), missing=NO_VERDICT)
    return votes.to_table("Export scores of traces or observations.")


def _rows(path: Path, log: ReadingLog) -> list[Record]:
    seen = peek(path)
    if seen.kind != "json":
        return read_rows(path, log)
    return dicts(mapping(read_json(path)).get("data")) if ("data",) in seen.lists else read_records(path)


def _plain(name: Any) -> str:
    return str(name).replace("_", "").replace(" ", "").casefold()


def _with_plain_names(row: Record) -> Record:
    return {_plain(name): value for name, value in row.items()}


def _judge(row: Record, metadata: dict[str, Any]) -> str:
    source = str(row.get("source") or "").casefold()
    if source == "annotation":
        return str(first_of(row, "authoruserid", "authorusername", "author", "authorid") or "annotation")
    return str(first_of(metadata, *JUDGE) or source or "score")


def _value(row: Record) -> Any:
    """Return the vote: the text of a category, else the number."""
    text = first_of(row, "stringvalue")
    if text is not None and str(row.get("datatype") or "CATEGORICAL").upper() != "NUMERIC":
        return text
    value = row.get("value")
    return verdict_in(value) if isinstance(value, str) and not _is_number(value) else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
