"""What a file or folder is, from its first bytes.

Takes a path, returns what kind of thing lies there and the names in it: columns of a table, keys of JSON, members
of a zip. Reads a quarter of a megabyte at most, and never fails: what cannot be read has no names.
"""

from __future__ import annotations

import gzip
import json
import re
import zipfile
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from moral_entropy.errors import VotesError
from moral_entropy.votes.delimited import find_header
from moral_entropy.votes.encodings import head_to_utf8
from moral_entropy.votes.files import (
    EXTENSIONS,
    MAGIC_GZIP,
    MAGIC_PARQUET,
    MAGIC_ZIP,
    is_stream,
)

HEAD_BYTES = 1 << 18
MOST_NESTED = 64
# A string may be cut off at the end of what was read; nothing after its opening quote is structure.
TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]:]', flags=re.DOTALL)

KeyPath = tuple[str, ...]


@dataclass(frozen=True)
class Peek:
    """What lies at a path.

    Parameters
    ----------
    kind
        What it is; "nothing" if there is no such file.
    names
        Columns of a table, members of a zip.
    keys
        Of JSON: every key, with the keys of the objects around it; arrays around it leave no trace.
    lists
        Those keys whose value is an array.
    """

    kind: Literal["folder", "zip", "parquet", "json", "text", "nothing"]
    names: tuple[str, ...] = ()
    keys: frozenset[KeyPath] = frozenset()
    lists: frozenset[KeyPath] = frozenset()

    def has(self, *path: str) -> bool:
        """Return whether there is such a key, named with the keys around it."""
        return path in self.keys


def peek(path: Path) -> Peek:
    """Return what lies at a path: its kind and the names in it.

    Parameters
    ----------
    path
        A file, gzipped or not, or a folder.
    """
    try:
        facts = path.stat()
    except OSError:
        return Peek("nothing")
    if path.is_dir():
        return Peek("folder")
    if is_stream(path):
        # A stream can be read once: its first bytes would be missing when its votes are read.
        return Peek("nothing")
    return _peek_file(path, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=8)
def _peek_file(path: Path, _size: int, _changed: int) -> Peek:
    head = read_head(path)
    if head.startswith(MAGIC_ZIP) or path.suffix.lower() == ".zip":
        return Peek("zip", _members(path))
    if head.startswith(MAGIC_PARQUET):
        return Peek("parquet", _parquet_columns(path))
    start = head.lstrip()[:1]
    if not start:
        return Peek("nothing")
    suffixes = [suffix.lstrip(".").lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    if start in (b"[", b"{") and EXTENSIONS.get(suffixes[-1] if suffixes else "") != "text":
        keys, lists = key_paths(head)
        return Peek("json", keys=keys, lists=lists)
    try:
        return Peek("text", tuple(find_header(head, path).names))
    except VotesError:
        return Peek("text")


def read_head(path: Path) -> bytes:
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

    Parameters
    ----------
    head
        The beginning of a JSON value, or of several in a row.

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
    import polars as pl

    try:
        return tuple(pl.scan_parquet(path, glob=False).collect_schema().names())
    except (OSError, pl.exceptions.PolarsError):
        return ()
