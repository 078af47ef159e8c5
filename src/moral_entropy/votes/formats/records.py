"""Files of annotation tools → records: what kind of file it is, the names in it, and its plain Python values.

`peek` reads a quarter of a megabyte at most and never fails: what cannot be read has no names. No shape of a record is
taken for granted.
"""

from __future__ import annotations

import gzip
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.votes.columns import guess_column
from moral_entropy.votes.delimited import ZIP_ERRORS as ZIP_ERRORS
from moral_entropy.votes.delimited import checked_utf8, find_header, head_to_utf8
from moral_entropy.votes.source import (
    EXTENSIONS,
    MAGIC_GZIP,
    MAGIC_PARQUET,
    MAGIC_ZIP,
    gunzip,
    head_of,
    is_stream,
    json_array,
    json_lines,
    json_value,
    open_source,
    suffix_of,
)
from moral_entropy.votes.table import ReadingLog, refuse

HEAD_BYTES = 1 << 18
MOST_NESTED = 64
# A string may be cut off at the end of what was read; nothing after its opening quote is structure.
TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]:]', flags=re.DOTALL)

KeyPath = tuple[str, ...]
Record = dict[str, Any]


class Peek(NamedTuple):
    """What lies at a path.

    Parameters
    ----------
    kind
        folder, zip, parquet, json, text, or nothing if there is no such file.
    names
        Columns of a table, members of a zip.
    keys
        Of JSON: every key, with the keys of the objects around it; arrays around it leave no trace.
    lists
        Those keys whose value is an array.
    """

    kind: str
    names: tuple[str, ...] = ()
    keys: frozenset[KeyPath] = frozenset()
    lists: frozenset[KeyPath] = frozenset()

    def has(self, *path: str) -> bool:
        """Return whether there is such a key, named with the keys around it."""
        return path in self.keys


def peek(path: Path) -> Peek:
    """Return what lies at a path, a file or a folder: its kind and the names in it."""
    try:
        facts = path.stat()
    except OSError:
        return Peek("nothing")
    if path.is_dir():
        return Peek("folder")
    # A stream can be read once: its first bytes would be missing when its votes are read.
    return Peek("nothing") if is_stream(path) else _peek_file(path, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=8)
def _peek_file(path: Path, _size: int, _changed: int) -> Peek:
    head = _read_head(path)
    if head.startswith(MAGIC_ZIP) or path.suffix.lower() == ".zip":
        return Peek("zip", _members(path))
    if head.startswith(MAGIC_PARQUET):
        return Peek("parquet", _parquet_columns(path))
    start = head.lstrip()[:1]
    if not start:
        return Peek("nothing")
    if start in (b"[", b"{") and EXTENSIONS.get(suffix_of(path)) != "text":
        keys, lists = key_paths(head)
        return Peek("json", keys=keys, lists=lists)
    try:
        return Peek("text", tuple(find_header(head, path)[0]))
    except VotesError:
        return Peek("text")


def _read_head(path: Path) -> bytes:
    """Read the first bytes of a file, unzipped and in UTF-8; none where that fails."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if head.startswith(MAGIC_GZIP):
            with gzip.open(path) as file:
                head = file.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        return b""
    return head if head.startswith((MAGIC_ZIP, MAGIC_PARQUET)) else head_to_utf8(head)


def key_paths(head: bytes) -> tuple[frozenset[KeyPath], frozenset[KeyPath]]:
    """List the keys of JSON that may be cut off anywhere, and those whose value is an array.

    Examples
    --------
    >>> keys, lists = key_paths(b'[{"id": 1, "data": {"text": "a: {b"}, "annotations": [{"result": [{"va')
    >>> sorted(keys)
    [('annotations',), ('annotations', 'result'), ('data',), ('data', 'text'), ('id',)]
    >>> sorted(lists)
    [(), ('annotations',), ('annotations', 'result')]
    """
    keys: set[KeyPath] = set()
    lists: set[KeyPath] = set()
    around: list[tuple[KeyPath, KeyPath]] = []
    inside: KeyPath = ()
    value: KeyPath = ()
    string = b""
    for match in TOKEN.finditer(head):
        token = match[0]
        if token == b":":
            value = (*inside, _decoded(string))
            keys.add(value)
        elif token in (b"{", b"["):
            if len(around) > MOST_NESTED:
                break
            if token == b"[":
                lists.add(value)
            around.append((inside, value))
            inside = value
        elif token in (b"}", b"]"):
            inside, value = around.pop() if around else ((), ())
        else:
            string = token
    return frozenset(keys), frozenset(lists)


def _decoded(string: bytes) -> str:
    try:
        return str(json.loads(string))
    except ValueError:
        return string.decode(errors="replace")


def _members(path: Path) -> tuple[str, ...]:
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return ()


def _parquet_columns(path: Path) -> tuple[str, ...]:
    try:
        return tuple(pl.scan_parquet(path, glob=False).collect_schema().names())
    except (OSError, pl.exceptions.PolarsError):
        return ()


def _read_text(path: Path) -> bytes:
    """Read a file that must be UTF-8, gzipped or not, without its byte-order mark."""
    head_of(path)
    raw = path.read_bytes()
    return checked_utf8(gunzip(raw, path.name) if raw.startswith(MAGIC_GZIP) else raw, path.name)


def read_json(path: Path) -> Any:
    """Read a file that is one JSON value."""
    return json_value(_read_text(path), path.name)


def read_records(path: Path) -> list[Record]:
    """Read the records of a JSON array, or of JSON Lines."""
    return parse_records(_read_text(path), path.name)


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
            refuse(f"record {at:,} of {name} is {str(value)[:40]!r}, not a record in braces. Export it anew.")
    return values


def read_rows(path: Path, log: ReadingLog) -> list[Record]:
    """Read the rows of a table: every cell of a CSV is a text, or None where it is empty."""
    source = open_source(path)
    log.add(source.log)
    return pl.DataFrame([source.column(name).alias(name) for name in source.columns]).to_dicts()


def logs_in(
    path: Path, endings: Collection[str], is_log: Callable[[Path], bool], limit: int | None = None
) -> list[Path]:
    """Return the logs of an evaluation tool: those of a folder, of which `limit` files are looked at, or the file."""
    if not path.is_dir():
        return [path] if is_log(path) else []
    return [file for file in sorted(path.iterdir())[:limit] if file.suffix in endings and is_log(file)]


def dicts(value: Any) -> list[Record]:
    """Return the records in a list; none if it is no list.

    Examples
    --------
    >>> dicts([{"id": 1}, "no record"]), dicts(None)
    ([{'id': 1}], [])
    """
    return [part for part in listed(value) if isinstance(part, dict)]


def listed(value: Any) -> list[Any]:
    """Return a list as it is; anything else becomes an empty one."""
    return value if isinstance(value, list) else []


def mapping(value: Any) -> Record:
    """Return a record as it is; anything else becomes an empty one."""
    return value if isinstance(value, dict) else {}


def scalars(record: Record, without: Collection[str] = ()) -> dict[str, Any]:
    """Keep the values that are texts, numbers, true or false, but for some keys.

    Examples
    --------
    >>> scalars({"text": "so", "vector": [1.0], "n": 3, "none": None})
    {'text': 'so', 'n': 3}
    """
    return {
        str(name): value
        for name, value in record.items()
        if name not in without and isinstance(value, (str, int, float, bool))
    }


def first_of(record: Record, *names: str) -> Any:
    """Return the value of the first key that has one other than null or an empty text."""
    return next((record[name] for name in names if record.get(name) not in (None, "")), None)


def text_of(fields: Mapping[str, Any]) -> str | None:
    """Return an item's text: the field with the likeliest name, else the first that is a text and no address.

    Examples
    --------
    >>> text_of({"url": "https://example.org", "article": "So it goes."})
    'So it goes.'
    """
    texts = {name: value for name, value in fields.items() if isinstance(value, str) and value.strip()}
    if likely := guess_column("text", texts):
        return texts[likely]
    return next((text for text in texts.values() if "://" not in text and not text.startswith("/data/")), None)


def last_text(messages: Any, role: str | None = None) -> str | None:
    """Return a prompt as one text: of a list of messages the last one, of anybody or of one role.

    Examples
    --------
    >>> last_text([{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}], role="user")
    '2 + 2?'
    """
    if isinstance(messages, str):
        return messages
    contents = [message.get("content") for message in dicts(messages) if role is None or message.get("role") == role]
    return next((text for text in reversed(contents) if isinstance(text, str)), None)


def paired(labels: list[Any], annotators: list[Any], item: Any, name: str, remedy: str) -> Iterator[tuple[Any, Any]]:
    """Return pairs of annotator and label that lie side by side, and refuse an item with more of either."""
    if len(labels) != len(annotators):
        refuse(
            f"item {item!r} of {name} has {len(labels)} annotations by {len(annotators)} annotators. "
            f"There must be one of each; {remedy}."
        )
    return zip(annotators, labels, strict=True)
