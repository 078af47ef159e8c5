"""Records: the JSON or the table in a file, as plain Python values, none of them trusted to have a shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moral_entropy.errors import VotesError
from moral_entropy.votes.files import (
    MAGIC_GZIP,
    UTF8_BOM,
    check_utf8,
    gunzip,
    head_of,
    json_array,
    json_lines,
    json_value,
)
from moral_entropy.votes.source import open_source

Record = dict[str, Any]


def read_text(path: Path) -> bytes:
    """Read a file that must be UTF-8, gzipped or not, without its byte-order mark."""
    head_of(path)
    raw = path.read_bytes()
    data = gunzip(raw, path.name) if raw.startswith(MAGIC_GZIP) else raw
    check_utf8(data, path.name)
    return data.removeprefix(UTF8_BOM)


def read_json(path: Path) -> Any:
    """Read a file that is one JSON value."""
    return json_value(read_text(path), path.name)


def read_records(path: Path) -> list[Record]:
    """Read the records of a JSON array, or of JSON Lines."""
    return parse_records(read_text(path), path.name)


def parse_records(data: bytes, name: str) -> list[Record]:
    r"""Parse a JSON array of records, or JSON Lines, and refuse anything in it that is no record.

    Examples
    --------
    >>> parse_records(b'{"id": 1}\n{"id": 2}', "export.jsonl")
    [{'id': 1}, {'id': 2}]
    """
    values = json_array(data, name) if data.lstrip().startswith(b"[") else json_lines(data, name)
    for at, value in enumerate(values, 1):
        if not isinstance(value, dict):
            msg = f"record {at:,} of {name} is {str(value)[:40]!r}, not a record in braces. Export it anew."
            raise VotesError(msg)
    return values


def read_rows(path: Path) -> list[Record]:
    """Read the rows of a table: every cell of a CSV is a text, or None where it is empty."""
    import polars as pl

    source = open_source(path)
    return pl.DataFrame([source.column(name).alias(name) for name in source.columns]).to_dicts()


def dicts(value: Any) -> list[Record]:
    """Give the records in a list; none if it is no list.

    Examples
    --------
    >>> dicts([{"id": 1}, "no record"]), dicts(None)
    ([{'id': 1}], [])
    """
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def mapping(value: Any) -> Record:
    """Give a record, an empty one if it is none."""
    return value if isinstance(value, dict) else {}


def scalars(record: Record) -> dict[str, Any]:
    """Keep what is a text, a number, true or false.

    Examples
    --------
    >>> scalars({"text": "so", "vector": [1.0], "n": 3, "none": None})
    {'text': 'so', 'n': 3}
    """
    return {str(name): value for name, value in record.items() if isinstance(value, (str, int, float, bool))}


def first_of(record: Record, *names: str) -> Any:
    """Give the first of some keys that has a value other than null or an empty text."""
    return next((record[name] for name in names if record.get(name) not in (None, "")), None)
