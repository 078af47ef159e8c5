"""The table that votes are read from: a path, several Parquet parts, or any dataframe that narwhals knows → `Source`.

Columns are fetched one at a time. Knows nothing of what a column means.

Files on disk → `Source`: CSV, TSV, Excel, Parquet, JSON Lines and JSON arrays of records, each also gzipped.

The extension says what a file is; its first bytes correct it. Knows nothing of what a column means.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import io
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import polars as pl

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.files import no_such_file
from moral_entropy.votes.delimited import UTF8_BOM, is_workbook, marked_encoding, read_delimited, read_workbook, to_utf8
from moral_entropy.votes.options import ReadOptions
from moral_entropy.votes.table import ReadingLog, one_line, shown
from moral_entropy.votes.values import series_of

TOO_SHORT = "Votes need an item, an annotator and a label each"


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
    tool
        The annotation tool that wrote the file, if one did.
    log
        What was left out, and notes, from opening the file.
    """

    name: str
    columns: tuple[str, ...]
    rows: int
    fetch: Callable[[str], pl.Series] = field(repr=False)
    textual: bool = False
    sha256: str = ""
    tool: str = ""
    log: ReadingLog = field(default_factory=ReadingLog, repr=False)

    def column(self, name: str) -> pl.Series:
        """Fetch one column; an error names the file."""
        try:
            return self.fetch(name)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            # Some damaged Parquet files make polars panic, which is no `Exception`.
            msg = f"column {name!r} of {self.name} cannot be read: {one_line(error)}. Write the file anew."
            raise VotesError(msg) from error


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
    >>> import polars as pl
    >>> frame = pl.DataFrame({"item": [1], "label": ["care"]})
    >>> open_source(frame).columns
    ('item', 'label')
    """
    if isinstance(source, (str, Path)) or _is_paths(source):
        opened = open_files(source, options)
    else:
        opened = _open_frame(source)
    return _checked(opened)


def from_polars(frame: pl.DataFrame | pl.LazyFrame, name: str, **facts: Any) -> Source:
    """Wrap a polars frame; a lazy one is read one column at a time."""
    if isinstance(frame, pl.DataFrame):
        return Source(name, tuple(frame.columns), frame.height, frame.get_column, **facts)
    rows = int(frame.select(pl.len()).collect().item())

    def fetch(column: str) -> pl.Series:
        return frame.select(column).collect().to_series()

    return Source(name, tuple(frame.collect_schema().names()), rows, fetch, **facts)


def _is_paths(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and all(isinstance(part, (str, Path)) for part in source)


def _open_frame(source: Any) -> Source:
    import narwhals as nw

    if isinstance(source, (pl.DataFrame, pl.LazyFrame)):
        return from_polars(source, f"a polars {type(source).__name__}")
    try:
        frame = nw.from_native(source)
    except TypeError as error:
        msg = f"votes come from a path or a dataframe, not from {type(source).__name__}."
        raise VotesError(msg) from error
    return _open_narwhals(frame.collect() if isinstance(frame, nw.LazyFrame) else frame)


def _open_narwhals(frame: Any) -> Source:
    kind = str(frame.implementation.value)
    names = frame.columns
    if not all(isinstance(name, str) for name in names):
        msg = f"column {names[0]!r} of the {kind} dataframe has no name. Name the columns by strings."
        raise VotesError(msg)
    if kind in ("polars", "pyarrow"):
        return from_polars(frame.to_polars(), f"a {kind} dataframe")

    def fetch(column: str) -> pl.Series:
        return _fetch_narwhals(frame.get_column(column))

    return Source(f"a {kind} dataframe", tuple(names), len(frame), fetch)


def _fetch_narwhals(column: Any) -> pl.Series:
    empty = column.is_null()
    if column.dtype.is_numeric() and not (empty.any() and column.dtype.is_integer()):
        return pl.Series(column.name, column.to_numpy())
    cells = zip(column.to_list(), empty.to_list(), strict=True)
    return series_of(column.name, [None if gone or cell != cell else cell for cell, gone in cells])


def _checked(source: Source) -> Source:
    if len(source.columns) < 2:
        found = f"only one column, {shown(source.columns)!r}" if source.columns else "no columns"
        msg = (
            f"{source.name} has {found}. {TOO_SHORT}, in columns of their own, separated by "
            "a comma, semicolon, tab or |."
        )
        raise VotesError(msg)
    if not source.rows:
        msg = f"{source.name} has a header ({shown(source.columns)}) but no rows."
        raise VotesError(msg)
    return source


EXTENSIONS = {
    "parquet": "parquet", "pq": "parquet", "csv": "text", "tsv": "text", "tab": "text", "txt": "text",
    "json": "json", "jsonl": "lines", "ndjson": "lines",
}  # fmt: skip
MAGIC_PARQUET, MAGIC_GZIP, MAGIC_ZIP, MAGIC_OLE = b"PAR1", b"\x1f\x8b", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
STANDARD_INPUT = ("-", "/dev/stdin")
MOST_BYTES = 1 << 30
"""Streams, and gzipped files once unpacked, are read up to this size."""

STEP = 1 << 20
LINE = re.compile(rb"[^\n]+")
MOST_LINES = 20_000_000
HALF_CHARACTER = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F][0-9a-fA-F])\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


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
            _copy(stream, file, str(source))
        yield copy


def _copy(stream: BinaryIO, file: BinaryIO, name: str) -> None:
    size = 0
    while block := stream.read(STEP):
        size += len(block)
        if size > MOST_BYTES:
            msg = f"{name!r} holds more than {MOST_BYTES:,} bytes, or never ends. Save what it holds to a file first."
            raise VotesError(msg)
        file.write(block)


def is_stream(source: Any) -> bool:
    """Tell whether a source is standard input, a pipe or a device, which can be read only once."""
    if not isinstance(source, str | Path):
        return False
    path = Path(source)
    return str(source) in STANDARD_INPUT or (exists(path) and not path.is_file() and not path.is_dir())


def exists(path: Path) -> bool:
    """Tell whether there is something at a path; a name that no system can have is an error in words."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except ValueError as error:
        msg = f"the name {str(path)!r} cannot be the name of a file: {error}."
        raise VotesError(msg) from error
    except OSError as error:
        msg = f"{str(path)[:200]!r} cannot be read: {error.strerror}."
        raise VotesError(msg) from error
    return True


def _open_stream(source: str | Path) -> AbstractContextManager[BinaryIO]:
    if str(source) not in STANDARD_INPUT:
        return Path(source).open("rb")
    if sys.stdin is None:
        msg = "standard input is closed. Name a file with the votes."
        raise VotesError(msg)
    return nullcontext(sys.stdin.buffer)


def open_files(source: str | Path | Sequence[str | Path], options: ReadOptions | None = None) -> Source:
    """Open one file, or the Parquet parts that a glob or a list names.

    Parameters
    ----------
    source
        A path, a glob such as `votes/*.parquet`, or a list of paths.
    options
        What the user asked for: sheet and encoding.
    """
    if isinstance(source, (str, Path)) and (
        (exists(Path(source)) and Path(source).is_file()) or not glob.has_magic(str(source))
    ):
        return _open_file(Path(source), options)
    paths = _parts(source)
    if len(paths) == 1:
        return _open_file(paths[0], options)
    digest = hashlib.sha256()
    for path in paths:
        _check_parquet_part(path)
        hash_into(digest, path)
    return _open_parquet(paths, f"{printable(paths[0])} … {printable(paths[-1])}", digest.hexdigest())


def _open_file(path: Path, asked: ReadOptions | None) -> Source:
    options = asked or ReadOptions()
    head = head_of(path)
    path_name = printable(path)
    if head.startswith(MAGIC_PARQUET):
        _refuse_sheet(options, path_name)
        digest = hashlib.sha256()
        hash_into(digest, path)
        return _open_parquet([path], path_name, digest.hexdigest())
    raw = path.read_bytes()
    data = gunzip(raw, path_name) if raw.startswith(MAGIC_GZIP) else raw
    sha256, log = hashlib.sha256(raw).hexdigest(), ReadingLog()
    kind = _kind(path, data)
    if kind != "excel":
        _refuse_sheet(options, path_name)
    if kind == "parquet":
        return _open_parquet(io.BytesIO(data), path_name, sha256)
    if kind == "excel":
        table = read_workbook(data, path, options.sheet, log, choosable=asked is not None)
        return from_polars(table, path_name, textual=True, sha256=sha256, log=log)
    data = to_utf8(data, path_name, log, options.encoding)
    if kind == "text":
        return from_polars(read_delimited(data, path, log), path_name, textual=True, sha256=sha256, log=log)
    return from_polars(_read_json(data, kind, path_name), path_name, sha256=sha256, log=log)


def _refuse_sheet(options: ReadOptions, name: str) -> None:
    if options.sheet is not None:
        msg = f"sheet is {options.sheet!r}, but {name} is no Excel workbook. Leave out sheet (--sheet)."
        raise UsageError(msg)


def printable(path: Path) -> str:
    """Return the name of a file, with a mark for every byte that no screen and no manifest can show."""
    return path.name.encode(errors="replace").decode()


def _parts(source: str | Path | Sequence[str | Path]) -> list[Path]:
    one = isinstance(source, (str, Path))
    names = glob.glob(str(source)) if one else [str(part) for part in source]  # type: ignore[union-attr]  # noqa: PTH207
    if not names:
        what = f"no file matches {str(source)!r}" if one else "the list of files is empty"
        msg = f"{what}. Check the path and the folder you are in."
        raise VotesError(msg)
    return sorted(Path(name) for name in names)


def _check_parquet_part(path: Path) -> None:
    if not head_of(path).startswith(MAGIC_PARQUET):
        msg = f"{path.name} is not a Parquet file. Only Parquet can be read in several parts; join the others first."
        raise VotesError(msg)


def head_of(path: Path) -> bytes:
    """Read a file's first bytes, or say why there are none."""
    if is_stream(path):
        msg = f"{str(path)!r} is a pipe or a device, which can be read only once. Save what it holds to a file first."
        raise VotesError(msg)
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except FileNotFoundError as error:
        raise no_such_file(path) from error
    except IsADirectoryError as error:
        msg = f"{str(path)!r} is a folder. Name a file, or Parquet parts as {str(path / '*.parquet')!r}."
        raise VotesError(msg) from error
    except OSError as error:
        msg = f"{str(path)!r} cannot be read: {error.strerror}."
        raise VotesError(msg) from error
    if not head:
        msg = f"{printable(path)} is empty (0 bytes). Was it written to the end?"
        raise VotesError(msg)
    return head


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
        msg = f"{name} is a damaged gzip file: {one_line(error)}. Was it copied whole?"
        raise VotesError(msg) from error
    if len(data) > MOST_BYTES:
        msg = f"{name} unpacks to more than {MOST_BYTES:,} bytes. Unpack it first, or write the votes as Parquet."
        raise VotesError(msg)
    return data


def _kind(path: Path, data: bytes) -> str:
    name = printable(path)
    if data.startswith(MAGIC_ZIP):
        if is_workbook(data):
            return "excel"
        msg = f"{name} is a zip file or a damaged Excel workbook. Unpack it, or save the sheet with the votes anew."
        raise VotesError(msg)
    if data.startswith(MAGIC_OLE):
        msg = f"{name} is a workbook of an Excel before 2007. Save it as .xlsx or as CSV (UTF-8)."
        raise VotesError(msg)
    if data.startswith(MAGIC_PARQUET):
        return "parquet"
    start = b"" if marked_encoding(data) else data.removeprefix(UTF8_BOM).lstrip()[:1]
    if not start and not marked_encoding(data):
        msg = f"{name} holds nothing but blank space. Was it written to the end?"
        raise VotesError(msg)
    suffixes = [suffix.lstrip(".").lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    said = EXTENSIONS.get(suffixes[-1], "") if suffixes else ""
    if said == "parquet":
        msg = f"{name} is not a Parquet file, whatever its name says: it does not start with PAR1."
        raise VotesError(msg)
    if suffixes[-1:] == ["xlsx"] and b"\0" in data[:4096] and not marked_encoding(data):
        msg = f"{name} is not an Excel workbook, whatever its name says: it does not start with PK. Save it anew."
        raise VotesError(msg)
    if said == "text":
        return said
    return {b"[": "json", b"{": "lines"}.get(start, said or "text")


def _open_parquet(source: Any, name: str, sha256: str) -> Source:
    try:
        return from_polars(pl.scan_parquet(source, glob=False), name, sha256=sha256)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        msg = f"{name} is a damaged or truncated Parquet file: {one_line(error)}. Write or copy it anew."
        raise VotesError(msg) from error


def _read_json(data: bytes, kind: str, name: str) -> pl.DataFrame:
    records = json_array(data, name) if kind == "json" else json_lines(data, name)
    return _frame_of_records(records, name)


def json_array(data: bytes, name: str) -> list[Any]:
    """Parse a JSON array of records."""
    records = json_value(data, name)
    if not isinstance(records, list):
        msg = f"{name} holds one {type(records).__name__}, not a list of votes. Write a JSON array of records."
        raise VotesError(msg)
    return records


def json_value(data: bytes, name: str) -> Any:
    """Parse a file that is one JSON value."""
    try:
        return parse_json(data)
    except json.JSONDecodeError as error:
        msg = f"{name} is no JSON: {error.msg} in line {error.lineno:,}. Was it written to the end?"
        raise VotesError(msg) from error
    except RecursionError as error:
        raise VotesError(_too_deep(name)) from error
    except ValueError as error:
        raise VotesError(_too_long(name)) from error


def parse_json(data: bytes) -> Any:
    r"""Parse JSON; half a character (`\ud800` alone), which no table can hold, becomes a mark.

    Examples
    --------
    >>> parse_json(rb'"\ud800 \ud83d\ude00"') == "\ufffd \U0001f600"
    True
    """
    return json.loads(HALF_CHARACTER.sub(rb"\\ufffd", data) if b"\\u" in data else data)


def _too_long(name: str) -> str:
    return f"{name} holds a number of more than 4,300 digits. Check what wrote it."


def _too_deep(name: str) -> str:
    return f"{name} is JSON nested too deeply to be read. Check what wrote it."


def json_lines(data: bytes, name: str) -> list[Any]:
    """Parse JSON Lines: one record per line."""
    if (lines := data.count(b"\n")) > MOST_LINES:
        msg = f"{name} has {lines:,} lines, more than JSON Lines can be read from. Write the votes as Parquet."
        raise VotesError(msg)
    records = []
    for found in LINE.finditer(data):
        line = found[0]
        if not line.strip():
            continue
        try:
            records.append(parse_json(line))
        except json.JSONDecodeError as error:
            number = data.count(b"\n", 0, found.start()) + 1
            msg = f"line {number:,} of {name} is no JSON: {error.msg}. JSON Lines have one record per line."
            raise VotesError(msg) from error
        except RecursionError as error:
            raise VotesError(_too_deep(name)) from error
        except ValueError as error:
            raise VotesError(_too_long(name)) from error
    return records


def _frame_of_records(records: list[Any], name: str) -> pl.DataFrame:
    columns: dict[str, list[Any]] = {}
    for at, record in enumerate(records):
        if not isinstance(record, dict):
            msg = f"record {at + 1:,} of {name} is no record but {json.dumps(record)[:40]}. Write {{…}} for each vote."
            raise VotesError(msg)
        for key, value in record.items():
            cells = columns.setdefault(key, [])
            cells.extend([None] * (at - len(cells)))
            cells.append(value)
    for cells in columns.values():
        cells.extend([None] * (len(records) - len(cells)))
    return pl.DataFrame([series_of(key, cells) for key, cells in columns.items()])
