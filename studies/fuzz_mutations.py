"""Mutations of files: bytes changed, cells and JSON values replaced, columns retyped, archives damaged inside."""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
from fuzz_files import Made

CELLS = (
    "", "NA", "?", "-", "nan", "inf", "-0.0", "1e308", "1e-320", "9" * 30, "9" * 5000, "0x10", "true", "none", "NULL",
    "=1+1", "'", '"', '"""', "\x1b[31m", "\x00", "\ufeff", "\u202e", "\u2028", "é", "e\u0301", "🧑🏽‍🚀", "\udc80",
    "[" * 300, '{"a": ' * 300, "a,b;c|d\te", " spaced ", "x" * 5000, "(all)", "constructor", "__proto__", "../../etc",
    "1,5", "1.5", "2024-01-01", "<script>", "%s{}", "item", "label",
)  # fmt: skip
"""Texts that some program somewhere takes for something else."""

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 2**53 + 1, 2**63, 2**64, 10**400, 1e308, [], {}, [[]], [None], {"": None},
    {"value": 1}, [1, "a", None], [{"choices": ["care"]}], {"a": {"a": {"a": {}}}},
)  # fmt: skip
DTYPES = (pl.Int8, pl.Int64, pl.UInt64, pl.Int128, pl.Float32, pl.Float64, pl.Boolean, pl.Categorical, pl.Binary)
PIECES = (b",", b";", b"\t", b"\n", b"\r", b'"', b"\0", b"\xff", b"\xef\xbb\xbf", b"# ", b"NA", b"9" * 40, b"[", b"{",
          b"}", b"\\ud800", b"\\u0000", b":null,", b"PAR1", b"\x1f\x8b", b"PK\x03\x04")  # fmt: skip


def mutated(made: Made, draw: random.Random) -> tuple[Made, str]:
    """Return the same files with one of them mutated, once or a few times, and what was done."""
    inner = draw.choice(sorted(made.files))
    content, done = made.files[inner], []
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        way = draw.choice(WAYS)
        try:
            content = way(content, draw)
        except (Exception, pl.exceptions.PanicException):
            # What is damaged already can only be damaged byte by byte.
            content = change_bytes(content, draw)
            way = change_bytes
        done.append(way.__name__)
    changed = replace(made, files=made.files | {inner: content})
    return changed, f"{made.name}{inner}: {', '.join(done)}"


def change_bytes(content: bytes, draw: random.Random) -> bytes:
    """Change, remove, insert or repeat some bytes."""
    changed = bytearray(content)
    at, what = draw.randrange(len(changed) + 1), draw.random()
    if what < 0.3:
        changed[at : at + 1] = bytes([draw.randrange(256)])
    elif what < 0.5:
        del changed[at : at + draw.choice((1, 3, 20, 200))]
    elif what < 0.8:
        changed[at:at] = draw.choice(PIECES)
    else:
        some = changed[at : at + draw.choice((1, 10, 100))]
        changed[at:at] = some * draw.choice((1, 2, 50))
    return bytes(changed)


def cut(content: bytes, draw: random.Random) -> bytes:
    """Cut the end off."""
    return content[: draw.randrange(len(content) + 1)]


def change_lines(content: bytes, draw: random.Random) -> bytes:
    """Repeat, remove or swap lines."""
    lines = content.split(b"\n")
    one, other, what = draw.randrange(len(lines)), draw.randrange(len(lines)), draw.random()
    if what < 0.35:
        lines.insert(one, lines[other])
    elif what < 0.6:
        del lines[one]
    else:
        lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def change_cell(content: bytes, draw: random.Random) -> bytes:
    """Put something else into a cell of a delimited file."""
    lines = content.decode().split("\n")
    at = draw.choice((0, draw.randrange(len(lines))))
    cells = lines[at].split(",")
    cells[draw.randrange(len(cells))] = draw.choice(CELLS)
    lines[at] = ",".join(cells)
    return "\n".join(lines).encode(errors="surrogateescape")


def change_column(content: bytes, draw: random.Random) -> bytes:
    """Put something else into all cells of a column of a delimited file."""
    rows = [line.split(",") for line in content.decode().split("\n")]
    column, cell = draw.randrange(len(rows[0])), draw.choice(CELLS)
    for row in rows[1:]:
        if len(row) > column:
            row[column] = cell if draw.random() < 0.8 else row[column]
    return "\n".join(",".join(row) for row in rows).encode(errors="surrogateescape")


def change_json(content: bytes, draw: random.Random) -> bytes:
    """Put something else in the place of one value of a JSON file, or rename one key."""
    text = content.decode()
    if "\n{" in text:
        lines = text.split("\n")
        at = draw.randrange(len(lines))
        lines[at] = json.dumps(_changed(json.loads(lines[at]), draw))
        return "\n".join(lines).encode()
    return json.dumps(_changed(json.loads(text), draw)).encode()


def _changed(value: Any, draw: random.Random) -> Any:
    if not isinstance(value, dict | list) or not value or draw.random() < 0.1:
        return draw.choice((*VALUES, *CELLS))
    changed = value.copy()
    if isinstance(value, list):
        at = draw.randrange(len(value))
        changed[at] = _changed(value[at], draw)
        return changed
    key = draw.choice(sorted(value))
    if draw.random() < 0.2:
        changed[draw.choice((*CELLS, *value))] = changed.pop(key)
    else:
        changed[key] = _changed(value[key], draw)
    return changed


def inside(content: bytes, draw: random.Random) -> bytes:
    """Mutate what is inside a gzipped file or a zip archive, and pack it again."""
    way = draw.choice((change_bytes, cut, change_lines, change_cell, change_json))
    if content.startswith(b"\x1f\x8b"):
        return gzip.compress(way(gzip.decompress(content), draw), mtime=0)
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(packed, "w") as after:
        names = before.namelist()
        chosen = draw.choice(names)
        for name in names:
            inner = before.read(name)
            after.writestr(name, way(inner, draw) if name == chosen else inner)
    return packed.getvalue()


def change_type(content: bytes, draw: random.Random) -> bytes:
    """Give a column of a Parquet file another type, another name, or strange values."""
    frame = pl.read_parquet(content)
    name, what = draw.choice(frame.columns), draw.random()
    column = frame[name]
    if what < 0.4:
        codes = column.rank("dense")
        changed = codes.cast(pl.String).cast(pl.Binary) if (kind := draw.choice(DTYPES)) == pl.Binary else codes
        changed = changed.cast(pl.String) if kind == pl.Categorical else changed
        frame = frame.with_columns(changed.cast(kind, strict=False).alias(name))
    elif what < 0.6:
        frame = frame.with_columns(draw.choice((pl.concat_list(name), pl.struct(name).alias(name), pl.lit(None),
                                                pl.duration(days=pl.int_range(pl.len())))).alias(name))  # fmt: skip
    elif what < 0.8:
        cells = column.cast(pl.String).to_list()
        cells[draw.randrange(len(cells))] = draw.choice([cell for cell in CELLS if cell.isprintable()])
        frame = frame.with_columns(pl.Series(name, cells))
    else:
        frame = frame.rename({name: draw.choice(("x", "gold", "text", "count", "é", "constructor"))})
    written = io.BytesIO()
    frame.write_parquet(written)
    return written.getvalue()


WAYS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    change_bytes, change_bytes, cut, change_lines, change_cell, change_cell, change_column, change_json, change_json,
    inside, change_type,
)  # fmt: skip
