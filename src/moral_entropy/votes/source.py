"""The table that votes are read from: a path, several Parquet parts, or any dataframe that narwhals knows → `Source`.

Reads CSV, TSV, Excel, Parquet, JSON Lines and JSON arrays of records, each also gzipped. The extension says what a file
is; its first bytes correct it. Columns are fetched one at a time. Knows nothing of what a column means.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import polars as pl

from moral_entropy.errors import UsageError
from moral_entropy.files import no_such_file
from moral_entropy.options import ReadOptions
from moral_entropy.votes.delimited import (
    UTF8_BOM,
    ZIP_ERRORS,
    is_workbook,
    marked_encoding,
    read_delimited,
    read_workbook,
    to_utf8,
)
from moral_entropy.votes.table import ReadingLog, one_line, refuse, shown
from moral_entropy.votes.values import series_of

EXTENSIONS = {
    "parquet": "parquet", "pq": "parquet", "csv": "text", "tsv": "text", "tab": "text", "txt": "text",
    "json": "json", "jsonl": "lines", "ndjson": "lines"
}  # fmt: skip
MAGIC_PARQUET, MAGIC_GZIP, MAGIC_ZIP, MAGIC_OLE = b"PAR1", b"\x1f\x8b", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
STANDARD_INPUT = ("-", "/dev/stdin")
MOST_BYTES = 1 << 30
"""Streams, and gzipped files once unpacked, are read up to this size."""

STEP = 1 << 20
MOST_MEMBERS = 10_000
MOST_LINES = 20_000_000
HALF_CHARACTER = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F][0-9a-fA-F])\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


@dataclass(frozen=True, eq=False)
class Source:
    """A table whose columns are fetched one at a time.

    Parameters
    ----------
    name
        File name, or the kind of dataframe.
    columns
        Names of its columns.
    rows
        Number of rows.
    fetch
        Function that returns a column by name.
    textual
        Whether the file has no types, so that every cell is a text.
    sha256
        Of the file's bytes; empty for a dataframe.
    log
        What was left out, and notes.
    stacked
        Rows of the file, where columns of a sheet were put below each other; else 0.
    parts
        The sheets of a workbook, where several share their columns; else empty.
    """

    name: str
    columns: tuple[str, ...]
    rows: int
    fetch: Callable[[str], pl.Series] = field(repr=False)
    textual: bool = False
    sha256: str = ""
    log: ReadingLog = field(default_factory=ReadingLog, repr=False)
    stacked: int = 0
    parts: tuple[Source, ...] = ()

    def column(self, name: str) -> pl.Series:
        """Fetch one column; an error names the file."""
        try:
            return self.fetch(name)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            # Some damaged Parquet files make polars panic, which is no `Exception`.
            refuse(f"column {name!r} of {self.name} cannot be read: {one_line(error)}. Write the file anew.")


def open_source(source: Any, options: ReadOptions | None = None) -> Source:
    """Open a path, a glob or list of Parquet parts, or a dataframe.

    Parameters
    ----------
    source
        What `read_votes` was given.
    options
        What the user asked for: sheet and encoding of a file.

    Examples
    --------
    >>> frame = pl.DataFrame({"item": [1], "label": ["care"]})
    >>> open_source(frame).columns
    ('item', 'label')
    """
    paths = isinstance(source, (list, tuple)) and all(isinstance(part, (str, Path)) for part in source)
    opened = open_files(source, options) if paths or isinstance(source, (str, Path)) else _open_frame(source)
    if len(opened.columns) < 2:
        columns = f"only one column, {shown(opened.columns)!r}" if opened.columns else "no columns"
        refuse(
            f"{opened.name} has {columns}. Votes need an item, an annotator and a label each, in columns of their own, "
            "separated by a comma, semicolon, tab or |."
        )
    if not opened.rows:
        refuse(f"{opened.name} has a header ({shown(opened.columns)}) but no rows.")
    return opened


def from_polars(frame: pl.DataFrame | pl.LazyFrame, name: str, **facts: Any) -> Source:
    """Wrap a polars frame; a lazy one is read one column at a time."""
    if isinstance(frame, pl.DataFrame):
        return Source(name, tuple(frame.columns), frame.height, frame.get_column, **facts)
    rows = int(frame.select(pl.len()).collect().item())

    def fetch(column: str) -> pl.Series:
        return frame.select(column).collect().to_series()

    return Source(name, tuple(frame.collect_schema().names()), rows, fetch, **facts)


def _frame_of_records(source: list[Any] | Mapping[Any, Any]) -> pl.DataFrame:
    """Return records, columns by name, or {annotator: {item: label}}, as a table."""
    values = list(source.values()) if isinstance(source, Mapping) else source
    if isinstance(source, Mapping) and (table := _votes_of_map(source, ReadingLog())) is not None:
        return table
    try:
        return pl.DataFrame(source, strict=False, infer_schema_length=None)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        why = str(error).splitlines()[0]
        refuse(f"these {len(values):,} records are no table: {why}. Give a list of dicts, or columns of one length.")


def _open_frame(source: Any) -> Source:
    import narwhals.stable.v2 as nw

    if isinstance(source, (pl.DataFrame, pl.LazyFrame)):
        return from_polars(source, f"a polars {type(source).__name__}")
    if isinstance(source, list | Mapping):
        return from_polars(_frame_of_records(source), "records")
    if hasattr(source, "with_format") and hasattr(source, "features"):
        # A Dataset of Hugging Face: its columns as Arrow has them.
        source = source.with_format("arrow")[:]
    try:
        frame = nw.from_native(source)
    except TypeError:
        refuse(f"votes come from a path or a dataframe, not from {type(source).__name__}.")
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    kind, names = str(frame.implementation.value), frame.columns
    if not all(isinstance(name, str) for name in names):
        refuse(f"column {names[0]!r} of the {kind} dataframe has no name. Name the columns by strings.")
    if kind in ("polars", "pyarrow"):
        return from_polars(frame.to_polars(), f"a {kind} dataframe")

    def fetch(name: str) -> pl.Series:
        column = frame.get_column(name)
        empty = column.is_null()
        if column.dtype.is_numeric() and not (empty.any() and column.dtype.is_integer()):
            return pl.Series(column.name, column.to_numpy())
        cells = zip(column.to_list(), empty.to_list(), strict=True)
        return series_of(column.name, [None if gone or cell != cell else cell for cell, gone in cells])

    return Source(f"a {kind} dataframe", tuple(names), len(frame), fetch)


# --- Paths and streams --------------------------------------------------------------------------------------------


@contextmanager
def on_disk(source: Any) -> Iterator[Any]:
    """Replace a stream by a temporary file with all its bytes; anything else stays as it is.

    A file is read several times: to detect its format, to hash it, column by column. A stream can be read only once.

    Parameters
    ----------
    source
        "-" or "/dev/stdin" for standard input, the path of a pipe or a device, or any other source of votes.

    Yields
    ------
    Any
        The path of the copy, which has the name of the stream, or `source` itself.
    """
    if not is_stream(source):
        yield source
        return
    with TemporaryDirectory(prefix="moral-entropy-") as folder:
        copy = Path(folder) / Path("stdin" if str(source) in STANDARD_INPUT else source).name
        with _open_stream(source) as stream, copy.open("wb") as file:
            size = 0
            while block := stream.read(STEP):
                size += len(block)
                if size > MOST_BYTES:
                    holds = f"{str(source)!r} holds more than {MOST_BYTES:,} bytes, or never ends."
                    refuse(f"{holds} Save what it holds to a file first.")
                file.write(block)
        yield copy


def is_stream(source: Any) -> bool:
    """Tell whether a source is standard input, a pipe or a device, which can be read only once."""
    if not isinstance(source, str | Path):
        return False
    path = Path(source)
    return str(source) in STANDARD_INPUT or (_exists(path) and not path.is_file() and not path.is_dir())


def _exists(path: Path) -> bool:
    """Tell whether there is something at a path; a name that no system can have is an error in words."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except ValueError as error:
        refuse(f"the name {str(path)!r} cannot be the name of a file: {error}.")
    except OSError as error:
        refuse(f"{str(path)[:200]!r} cannot be read: {error.strerror}.")
    return True


def _open_stream(source: str | Path) -> AbstractContextManager[BinaryIO]:
    if str(source) not in STANDARD_INPUT:
        return Path(source).open("rb")
    if sys.stdin is None:
        refuse("standard input is closed. Name a file with the votes.")
    return nullcontext(sys.stdin.buffer)


def open_files(source: str | Path | Sequence[str | Path], options: ReadOptions | None = None) -> Source:
    """Open one file, or the Parquet parts that a list of paths names."""
    if isinstance(source, (str, Path)):
        return _open_file(Path(source), options)
    paths = sorted(Path(name) for name in source)
    if not paths:
        refuse("the list of files is empty. Check the path and the folder you are in.")
    if len(paths) == 1:
        return _open_file(paths[0], options)
    return _open_parquet(paths, f"{_printable(paths[0])} … {_printable(paths[-1])}", digest_of(paths))


def _open_file(path: Path, choices: ReadOptions | None) -> Source:
    options, name, log = choices or ReadOptions(), _printable(path), ReadingLog()
    parquet = head_of(path).startswith(MAGIC_PARQUET)
    raw = b"" if parquet else path.read_bytes()
    data = gunzip(raw, name) if raw.startswith(MAGIC_GZIP) else raw
    kind = "parquet" if parquet else _kind(path, data)
    if kind != "excel" and options.sheet is not None:
        refuse(f"sheet is {options.sheet!r}, but {name} is no Excel workbook. Leave out sheet (--sheet).", UsageError)
    if kind == "parquet":
        return _open_parquet([path] if parquet else io.BytesIO(data), name, digest_of([path]))
    facts = {"textual": kind in ("excel", "text"), "sha256": hashlib.sha256(raw).hexdigest(), "log": log}
    if kind == "excel":
        tables = read_workbook(data, path, options.sheet, log, choosable=choices is not None)
    elif kind == "zip":
        members = unzip(data, name)
        tables = {member.stem: _parse(text, member, log, options) for member, text in members.items()}
    else:
        return from_polars(_parse(data, path, log, options), name, **facts)
    parts = tuple(from_polars(frame, part, textual=kind == "excel") for part, frame in tables.items())
    return from_polars(next(iter(tables.values())), name, parts=parts if len(parts) > 1 else (), **facts)


def _parse(data: bytes, path: Path, log: ReadingLog, options: ReadOptions) -> pl.DataFrame:
    """Parse a text file: CSV and the like, JSON, or JSON Lines."""
    name, kind = _printable(path), _kind(path, data)
    data = to_utf8(data, name, log, options.encoding)
    return read_delimited(data, path, log) if kind == "text" else _read_json(data, kind, name, log)


def unzip(data: bytes, name: str) -> dict[Path, bytes]:
    """Unpack the tables of a zip file in memory: by path, each with its bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [member for member in archive.infolist() if _is_table(Path(member.filename))]
            size = sum(member.file_size for member in members)
            if not members or size > MOST_BYTES or len(members) > MOST_MEMBERS:
                problem = f"{len(members):,} tables of {size:,} bytes" if members else "no table"
                refuse(f"{name} is a zip file with {problem} in it. Unpack it, and name the file with the votes.")
            contents = {Path(member.filename): archive.read(member) for member in members}
            return {path: content for path, content in contents.items() if content.strip()}
    except (*ZIP_ERRORS, RuntimeError) as error:
        refuse(f"{name} is a damaged or locked zip file: {one_line(error)}. Was it copied whole?")


def _is_table(path: Path) -> bool:
    return suffix_of(path) in EXTENSIONS and "__MACOSX" not in path.parts and not path.name.startswith(".")


def _printable(path: Path) -> str:
    """Return the name of a file, with a mark for every byte that no screen and no manifest can show."""
    return path.name.encode(errors="replace").decode()


def head_of(path: Path) -> bytes:
    """Read a file's first bytes, or say why there are none."""
    if is_stream(path):
        refuse(f"{str(path)!r} is a pipe or a device, which can be read only once. Save what it holds to a file first.")
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except FileNotFoundError as error:
        raise no_such_file(path) from error
    except IsADirectoryError:
        refuse(f"{str(path)!r} is a folder. Name a file, or Parquet parts as {str(path / '*.parquet')!r}.")
    except OSError as error:
        refuse(f"{str(path)!r} cannot be read: {error.strerror}.")
    if not head:
        refuse(f"{_printable(path)} is empty (0 bytes). Was it written to the end?")
    return head


def digest_of(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of files one after the other, read block by block."""
    digest = hashlib.sha256()
    for path in paths:
        hash_into(digest, path)
    return digest.hexdigest()


def hash_into(digest: Any, path: Path) -> None:
    """Add a file's bytes to a digest, block by block."""
    with path.open("rb") as file:
        while block := file.read(STEP):
            digest.update(block)


def gunzip(raw: bytes, name: str) -> bytes:
    """Unpack gzipped bytes, up to a limit."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        refuse(f"{name} is a damaged gzip file: {one_line(error)}. Was it copied whole?")
    if len(data) > MOST_BYTES:
        refuse(f"{name} unpacks to more than {MOST_BYTES:,} bytes. Unpack it first, or write the votes as Parquet.")
    return data


def suffix_of(path: Path) -> str:
    """Return the last extension of a file but for .gz, in lower case and without its point."""
    return next((suffix[1:].lower() for suffix in reversed(path.suffixes) if suffix.lower() != ".gz"), "")


def _kind(path: Path, data: bytes) -> str:
    """Return what a file holds: excel, parquet, text, json or lines."""
    suffix, marked = suffix_of(path), marked_encoding(data)
    promised = EXTENSIONS.get(suffix, "")
    start = b"" if marked else data.removeprefix(UTF8_BOM).lstrip()[:1]
    problem = ""
    if data.startswith(MAGIC_ZIP):
        if is_workbook(data):
            return "excel"
        if suffix not in ("xlsx", "xlsm"):
            return "zip"
        problem = "is a damaged Excel workbook. Save it anew"
    elif data.startswith(MAGIC_OLE):
        problem = "is a workbook of an Excel before 2007. Save it as .xlsx or as CSV (UTF-8)"
    elif data[257:262] == b"ustar":
        problem = "is an archive of files (tar). Unpack it, and name the file with the votes"
    elif data.startswith(MAGIC_PARQUET):
        return "parquet"
    elif not start and not marked:
        problem = "holds nothing but blank space. Was it written to the end?"
    elif promised == "parquet":
        problem = "is not a Parquet file, whatever its name says: it does not start with PAR1"
    elif suffix == "xlsx" and b"\0" in data[:4096] and not marked:
        problem = "is not an Excel workbook, whatever its name says: it does not start with PK. Save it anew"
    if problem:
        refuse(f"{_printable(path)} {problem}{'' if problem.endswith('?') else '.'}")
    return promised if promised == "text" else {b"[": "json", b"{": "lines"}.get(start, promised or "text")


def _open_parquet(source: Any, name: str, sha256: str) -> Source:
    try:
        return from_polars(pl.scan_parquet(source, glob=False), name, sha256=sha256)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        refuse(f"{name} is a damaged or truncated Parquet file: {one_line(error)}. Write or copy it anew.")


# --- JSON ---------------------------------------------------------------------------------------------------------


def json_array(data: bytes, name: str) -> list[Any]:
    """Parse a JSON array of records."""
    records = json_value(data, name)
    if not isinstance(records, list):
        refuse(f"{name} holds one {type(records).__name__}, not a list of votes. Write a JSON array of records.")
    return records


def json_value(data: bytes, name: str, line: int = 0) -> Any:
    """Parse a file that is one JSON value, or one line of a file."""
    try:
        return parse_json(data)
    except json.JSONDecodeError as error:
        refuse(
            f"line {line:,} of {name} is no JSON: {error.msg}. JSON Lines have one record per line."
            if line
            else f"{name} is no JSON: {error.msg} in line {error.lineno:,}. Was it written to the end?"
        )
    except RecursionError:
        refuse(f"{name} is JSON nested too deeply to be read. Check what wrote it.")
    except ValueError:
        refuse(f"{name} holds a number of more than 4,300 digits. Check what wrote it.")


def parse_json(data: bytes) -> Any:
    r"""Parse JSON; half a character (`\ud800` alone), which no table can hold, becomes a mark.

    Examples
    --------
    >>> parse_json(rb'"\ud800 \ud83d\ude00"') == "\ufffd \U0001f600"
    True
    """
    return json.loads(HALF_CHARACTER.sub(rb"\\ufffd", data) if b"\\u" in data else data)


def json_lines(data: bytes, name: str) -> list[Any]:
    """Parse JSON Lines: one record per line."""
    if (lines := data.count(b"\n")) > MOST_LINES:
        refuse(f"{name} has {lines:,} lines, more than JSON Lines can be read from. Write the votes as Parquet.")
    lines_of = enumerate(data.split(b"\n"), 1)
    return [json_value(line, name, number) for number, line in lines_of if line.strip()]


def _read_json(data: bytes, kind: str, name: str, log: ReadingLog) -> pl.DataFrame:
    if kind == "lines" and (table := _json_map(data, log)) is not None:
        return table
    records = json_array(data, name) if kind == "json" else json_lines(data, name)
    for at, record in enumerate(records, 1):
        if not isinstance(record, dict):
            problem = f"record {at:,} of {name} is no record but {json.dumps(record)[:40]}"
            refuse(f"{problem}. Write {{…}} for each vote.")
    keys = dict.fromkeys(key for record in records for key in record)
    return pl.DataFrame([series_of(key, [record.get(key) for record in records]) for key in keys])


def _json_map(data: bytes, log: ReadingLog) -> pl.DataFrame | None:
    try:
        return _votes_of_map(parse_json(data), log)
    except (ValueError, RecursionError):
        return None


def _votes_of_map(outer: Any, log: ReadingLog) -> pl.DataFrame | None:
    """Read labels by annotator and item, `{"ann": {"t1": "yes"}}`, or by item and annotator; None for anything else."""
    if (
        not isinstance(outer, Mapping)
        or len(outer) < 2
        or not all(isinstance(part, Mapping) for part in outer.values())
    ):
        return None
    votes = [(key, name, label) for key, inner in outer.items() for name, label in inner.items()]
    # There are fewer people than items.
    by_annotator = len(outer) <= len({name for _, name, _ in votes})
    roles = ("annotator", "item", "label") if by_annotator else ("item", "annotator", "label")
    log.note(f"labels by {roles[0]}, then by {roles[1]} (guessed: there are fewer annotators than items).")
    return pl.DataFrame([series_of(role, [vote[at] for vote in votes]) for at, role in enumerate(roles)])
