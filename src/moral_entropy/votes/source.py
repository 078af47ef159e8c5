"""The table that votes are read from: a path, several Parquet parts, or any dataframe that narwhals knows → `Source`.

Reads CSV, TSV, Excel, Parquet, JSON Lines and JSON arrays of records, each also gzipped. The extension says what a file
is; its first bytes correct it. Columns are fetched one at a time. Knows nothing of what a column means.

Of text, a byte-order mark decides on the encoding; bytes without one are UTF-8, else Windows-1252. The delimiter is
whichever splits the header most; comment lines, titles and blank lines above the header are skipped. Decimal commas
become points where the comma is not the delimiter. The sheet of a workbook is the one that the user names, or the only
one with data (needs the extra `excel`). What is guessed goes into the log.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import json
import lzma
import re
import stat
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from moral_entropy.errors import MissingExtraError, UsageError
from moral_entropy.files import no_such_file
from moral_entropy.options import ReadOptions
from moral_entropy.votes.labels import NUMBER, series_of
from moral_entropy.votes.table import ReadingLog, one_line, refuse, shown

UTF8_BOM = codecs.BOM_UTF8
NOT_WINDOWS = re.compile(
    rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x81\x8d\x8f\x90\x9d]"
    rb"|[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
"""Control characters, bytes without a meaning, and letters of UTF-8: text of Windows-1252 has none of them."""


def to_utf8(data: bytes, name: str, log: ReadingLog | None = None, encoding: str | None = None) -> bytes:
    r"""Return the same text in UTF-8, without a byte-order mark.

    Parameters
    ----------
    data
        Bytes of a whole file.
    name
        Of the file, for errors.
    log
        Where a guess is noted; without one a guess is refused.
    encoding
        The encoding that the user named, if any.

    Examples
    --------
    >>> log = ReadingLog()
    >>> to_utf8("caf\xe9".encode("utf-16"), "votes.csv", log).decode(), to_utf8(b"caf\xe9", "votes.csv", log).decode()
    ('café', 'café')
    >>> log.notes[1]
    'the file is not UTF-8 (byte 0xe9 in line 1) and is read as Windows-1252 (--encoding names another).'
    """
    if not encoding and (encoding := marked_encoding(data)) and log:
        log.note(f"encoding: {encoding.upper()}.")
    if encoding:
        try:
            data = data.decode(encoding).encode()
        except LookupError:
            refuse(f"encoding is {encoding!r}, which Python does not know. Common: utf-8, utf-16, cp1252.", UsageError)
        except (UnicodeError, AssertionError):
            way = "Save it as UTF-8, or name another encoding (--encoding)"
            refuse(f"{name} is not {encoding.upper()} throughout. {way}.")
    data = data.removeprefix(UTF8_BOM)
    if b"\0" in data:
        problem = f"{name} holds {data.count(0):,} zero bytes, the first at {data.index(0):,}"
        refuse(f"{problem}. Copy it anew, save it as UTF-8, or name its encoding (--encoding utf-16-le).")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        at, line = error.start, data.count(b"\n", 0, error.start) + 1
    else:
        return data
    if log is None or NOT_WINDOWS.search(data):
        kind, way = "neither UTF-8 nor Windows-1252", "Save it as UTF-8, or name its encoding (--encoding cp1250)"
        refuse(f"{name} is {kind}: byte {at:,} (line {line:,}) is 0x{data[at]:02x}. {way}.")
    where = f"byte 0x{data[at]:02x} in line {line:,}"
    log.note(f"the file is not UTF-8 ({where}) and is read as Windows-1252 (--encoding names another).")
    return data.decode("cp1252").encode()


def marked_encoding(data: bytes) -> str:
    """Return the encoding that a byte-order mark names; empty for none, and for UTF-8."""
    return "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else ""


# Python refuses cells of more than 128 kB otherwise.
csv.field_size_limit(1 << 30)
DELIMITERS = ",;\t|"
SKIPPED = re.compile(r"\s*(#( .*)?|//.*|% .*|sep=.)?\s*", flags=re.IGNORECASE)
"""A line above the header that is blank, a comment, or a hint for Excel."""

SAMPLE_BYTES, SAMPLE_ROWS = 1 << 16, 30
DECIMAL_COMMA = r"^\s*-?\d+(,\d+)?\s*$"
HALVES = r"^\s*-?\d+(,(0|5|25|50|75))?\s*$"
"""Where 1,3 may be a list of codes, only halves and quarters are numbers."""

LEVELS = " / "
"""Stands between the two levels of a header with merged cells."""
DUPLICATED = "_duplicated_"


def read_delimited(data: bytes, path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read a delimited file; every cell is a text, or null where it is empty.

    Parameters
    ----------
    data
        The file in UTF-8.
    path
        Its name, for errors and for the delimiter that its extension promises.
    log
        Where notes go.
    """
    if b"\n" not in data[:SAMPLE_BYTES]:
        # "CSV (Macintosh)" of Excel.
        data = data.replace(b"\r", b"\n")
    names, delimiter, start, above = find_header(data, path)
    try:
        frame = pl.read_csv(data[start:] if start else data, separator=delimiter, infer_schema=False)
        # A cell that holds whole rows, as after a double quote within a quoted cell (`"a"b"`).
        rows = rf"\n[^\n{re.escape(delimiter)}]*(?:{re.escape(delimiter)}[^\n]*){{{max(frame.width - 1, 1)}}}"
        strays = b'"' in data and any(column.str.contains(rows).any() for column in frame.get_columns())
    except pl.exceptions.PolarsError:
        strays = True
    if strays:
        frame = _row_by_row(data, len(names), delimiter, start, path.name)
    # polars leaves doubled quotes in names.
    names = names if frame.width == len(names) else frame.columns
    return _tidied(frame, names, above, path.name, log, HALVES if delimiter == "," else DECIMAL_COMMA)


def find_header(data: bytes, path: Path) -> tuple[list[str], str, int, list[str]]:
    r"""Find the header: the first line that is no comment, no title and not blank.

    Returns
    -------
    tuple
        Its cells, the delimiter, the position of its first byte, and the lines above it that are not blank.

    Examples
    --------
    >>> find_header(b"# votes of May\nitem;label\n1;5,0\n", Path("votes.csv"))
    (['item', 'label'], ';', 15, ['# votes of May'])
    """
    end = len(data) if len(data) <= SAMPLE_BYTES else data.rfind(b"\n", 0, SAMPLE_BYTES) + 1 or data.find(b"\n") + 1
    lines = io.StringIO(data[: end or None].decode(errors="replace")).readlines()
    first = next((at for at, line in enumerate(lines) if not SKIPPED.fullmatch(line)), 0)
    promised = "\t" if suffix_of(path) in ("tsv", "tab") else ","
    regular, delimiter, rows = None, promised, list[tuple[list[str], int]]()
    for mark in DELIMITERS:
        reader, split = csv.reader(lines[first:], delimiter=mark), list[tuple[list[str], int]]()
        # What follows the header may still be read otherwise.
        with suppress(csv.Error):
            split.extend((row, reader.line_num) for row in islice(reader, SAMPLE_ROWS))
        lengths = [len(row) for row, _ in split if any(map(str.strip, row))]
        width, n_rows = max(Counter(lengths).items(), key=lambda pair: pair[::-1], default=(0, 0))
        # Whether it splits the first two rows alike, then how many rows, into how many cells.
        first_two = len(set(lengths[:2])) == 1 < max(lengths[:2])
        rank = (first_two, n_rows if width > 1 else 0, width, mark == promised)
        if regular is None or rank > regular:
            regular, delimiter, rows = rank, mark, split
    if not rows:
        refuse(f"the first line of {path.name} is no header. Save it as CSV (UTF-8), one row per line.")
    at = _header_row([row for row, _ in rows])
    skipped = first + (rows[at - 1][1] if at else 0)
    start = sum(len(line.encode()) for line in lines[:skipped])
    return rows[at][0], delimiter, start, [text for line in lines[:skipped] if (text := line.strip().rstrip(delimiter))]


def _header_row(rows: Sequence[Sequence[str]]) -> int:
    """Return which row is the header: titles above it have one cell, or at most half as many as most rows.

    Examples
    --------
    >>> _header_row([["Survey of May"], [], ["item", "rater", "vote"], ["1", "ann", "yes"]])
    2
    """
    places = [[at + 1 for at, cell in enumerate(row) if cell.strip()] for row in rows]
    widths = Counter(filled[-1] for filled in places if filled)
    # The wider of two that are equally frequent: short rows are titles.
    width = max(widths, key=lambda width: (widths[width], width), default=0)
    wide = (at for at, filled in enumerate(places) if len(filled) > 1 and 2 * filled[-1] > width)
    return next(wide, 0) if width > 1 else 0


def _tidied(
    frame: pl.DataFrame, names: Sequence[str], above: Sequence[str], source: str, log: ReadingLog, number: str
) -> pl.DataFrame:
    """Name the columns; take away empty rows, blanks around names, and nameless columns that say nothing.

    Parameters
    ----------
    frame
        Texts below the header.
    names
        The header, in which names may be twice.
    above
        Lines above the header.
    source
        What was read, for errors.
    log
        Where notes go.
    number
        Pattern of cells that may be numbers with a decimal comma.
    """
    if all(not cell.strip() or NUMBER.fullmatch(cell.strip()) for cell in names):
        problem = f"{source} seems to have no header: its first line is {shown(names)}"
        refuse(f"{problem}. Add a first line with names of columns, such as item,annotator,label.")
    if above:
        lines = "1 line" if len(above) == 1 else f"{len(above)} lines"
        log.note(f"skipped above the header: {lines}, the first is {shown(above[:1])!r}.")
    times: Counter[str] = Counter()
    distinct = []
    for name in map(str.strip, names):
        distinct.append(f"{name}{DUPLICATED}{times[name] - 1}" if times[name] else name)
        times[name] += 1
    frame.columns = distinct
    frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    for name in distinct:
        if not name.split(DUPLICATED)[0] or name.startswith(("Unnamed: ", "__UNNAMED__")):
            number_r = frame.get_column(name).cast(pl.Int64, strict=False)
            if frame.get_column(name).is_null().all():
                frame = frame.drop(name)
            elif not number_r.null_count() and number_r[0] in (0, 1) and (number_r.diff().drop_nulls() == 1).all():
                frame = frame.drop(name)
                log.note("a column without a name numbers the rows and is not read.")
    if twice := sorted(name for name, n in times.items() if n > 1 and name in frame.columns):
        names_of, later = ", ".join(map(repr, twice)), f"{twice[0] + DUPLICATED + '0'!r} and so on"
        log.note(f"the header has {names_of} more than once; the later ones are called {later}.")
    texts = {name: column.drop_nulls().str for name, column in zip(frame.columns, frame.get_columns(), strict=True)}
    commas = [name for name, cells in texts.items() if cells.contains(",").any() and cells.contains(number).all()]
    if commas:
        log.note(f"decimal commas are read as points: {', '.join(commas)}.")
        frame = frame.with_columns(pl.col(commas).str.replace(",", ".", literal=True))
    return frame


def _row_by_row(data: bytes, width: int, delimiter: str, start: int, name: str) -> pl.DataFrame:
    """Read a file in which Polars stumbles over double quotes, such as `5" wide`, or say which line is at fault."""
    lines = io.TextIOWrapper(io.BytesIO(data[start:]), "utf-8", newline="")
    reader, rows = csv.reader(lines, delimiter=delimiter, strict=True), list[list[str | None]]()
    first = line = data.count(b"\n", 0, start) + 1
    try:
        for row in reader:
            if len(row) > width:
                problem = f"line {line:,} of {name} has {len(row)} cells, the header has {width}"
                refuse(f"{problem}. Put texts that contain {delimiter!r} in double quotes.")
            rows.append([*(cell or None for cell in row), *[None] * (width - len(row))])
            line = first + reader.line_num
    except csv.Error:
        quote = "a double quote that swallows the rows after it. Close it, or write it twice"
        refuse(f"line {line:,} of {name} has {quote}.")
    return pl.DataFrame(rows[1:], dict.fromkeys(map(str, range(width)), pl.String), orient="row")


SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
CELL = re.compile(rb'<c r="([A-Z]{1,3})([0-9]{1,7})"')
LONG_NUMBER = re.compile(
    rb'<c r="[A-Z0-9]+"(?: s="[0-9]+")?(?: t="n")?><v>'
    rb"([0-9]{16,}(?:\.0*)?|[0-9](?:\.[0-9]+)?[eE]\+?(?:1[5-9]|[2-9][0-9]))</v>"
)
MOST_CELLS = 50_000_000
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, OSError)


def read_workbook(
    data: bytes, path: Path, sheet: str | None, log: ReadingLog, *, choosable: bool = True
) -> dict[str, pl.DataFrame]:
    """Read the sheet of a workbook that holds data, or those that share their columns; every cell is a text or null.

    Parameters
    ----------
    data
        Bytes of the workbook.
    path
        Its name, for errors.
    sheet
        Name of the sheet; None for the only one with data, or for all that are alike.
    log
        Where notes go.
    choosable
        Whether there is an option to name the sheet, as there is for votes.
    """
    try:
        import fastexcel
        import openpyxl  # noqa: F401
    except ImportError as error:
        problem = f"{path.name} is an Excel workbook, and reading it needs fastexcel"
        raise MissingExtraError(problem, "excel") from error
    _check_sheets(data, path.name)
    try:
        book = fastexcel.read_excel(data)
        names = [name for name in book.sheet_names if sheet is None or name.casefold() == sheet.casefold()]
        if not names:
            sheets = ", ".join(book.sheet_names)
            refuse(f"{path.name} has no sheet {sheet!r}. Sheets: {sheets}. Name one with --sheet.", UsageError)
        cells = {name: book.load_sheet(name, header_row=None, dtypes="string").to_polars() for name in names}
    except fastexcel.FastExcelError as error:
        refuse(f"{path.name} is a damaged Excel workbook: {one_line(error)}. Save it anew.")
    blank = pl.all().is_null() | (pl.all().str.strip_chars() == "")
    cells = {name: frame.filter(~pl.all_horizontal(blank)) for name, frame in cells.items() if frame.width > 1}
    cells = {name: frame for name, frame in cells.items() if frame.height > 1}
    if not cells:
        refuse(f"{path.name} has no sheet with a header and rows. Sheets: {', '.join(book.sheet_names)}.")
    if len(cells) == 1 and len(book.sheet_names) > 1:
        log.note(f"sheet: {next(iter(cells))!r} ({'the only one with data' if sheet is None else 'named'}).")
    tables = {name: _with_header(frame, f"{path.name}, sheet {name!r}", log) for name, frame in cells.items()}
    headers = Counter(frozenset(frame.columns) for frame in tables.values())
    header, n_alike = max(headers.items(), key=lambda pair: pair[1])
    if len(tables) > 1 and (n_alike < 2 or not choosable):
        sheets = ", ".join(f"{sheet!r} ({table.height:,} rows)" for sheet, table in tables.items())
        first = repr(next(iter(tables)))
        way = f"Name the one with the votes: sheet={first} (CLI: --sheet {first})."
        way = way if choosable else "Save the one that is meant as a file of its own."
        refuse(f"{path.name} has {len(tables)} sheets with data: {sheets}. {way}", UsageError)
    log.unread += [f"sheet {name!r}" for name in tables if frozenset(tables[name].columns) != header]
    return {name: frame for name, frame in tables.items() if frozenset(frame.columns) == header}


def _with_header(cells: pl.DataFrame, name: str, log: ReadingLog) -> pl.DataFrame:
    rows = [[cell or "" for cell in row] for row in cells.head(SAMPLE_ROWS).rows()]
    at = _header_row(rows)
    names = _two_levels(rows[at], rows[at + 1]) if at + 1 < len(rows) else []
    above = [" ".join(cell for cell in row if cell) for row in rows[:at]]
    return _tidied(cells.slice(at + 1 + bool(names)), names or rows[at], above, name, log, HALVES)


def _two_levels(top: Sequence[str], below: Sequence[str]) -> list[str]:
    """Return the names of columns under a header of merged cells, such as `Ann / care`; empty if it is none.

    Examples
    --------
    >>> _two_levels(["id", "Ann", "", "Bob", ""], ["", "care", "harm", "care", "harm"])
    ['id', 'Ann / care', 'Ann / harm', 'Bob / care', 'Bob / harm']
    """
    lower = [name for name in below if name.strip()]
    if not all(a.strip() or b.strip() for a, b in zip(top, below, strict=True)) or len(set(lower)) == len(lower):
        return []
    names, group = [], ""
    for upper, name in zip(top, below, strict=True):
        group = upper.strip() or group
        names.append(f"{group}{LEVELS}{name.strip()}" if name.strip() and group else upper.strip() or name.strip())
    return names if any(not name.strip() for name in top) else []


def _check_sheets(data: bytes, name: str) -> None:
    """Refuse workbooks that unpack to too much, have cells far outside, or ids that Excel keeps as rounded numbers."""
    from openpyxl.utils import column_index_from_string, get_column_letter

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > MOST_BYTES:
                refuse(f"{name} unpacks to {size:,} bytes, more than a workbook has. Save its sheet with votes as CSV.")
            sheets = [archive.read(member) for member in archive.namelist() if SHEET.fullmatch(member)]
    except (*ZIP_ERRORS, RuntimeError) as error:
        refuse(f"{name} is a damaged Excel workbook: {one_line(error)}. Save it anew.")
    for sheet in sheets:
        cells = {(int(row), column_index_from_string(letters.decode())) for letters, row in CELL.findall(sheet)}
        height, width = (max((cell[at] for cell in cells), default=0) for at in (0, 1))
        if width * height > MOST_CELLS and width * height > 100 * len(cells):
            last = get_column_letter(width) + str(height)
            refuse(f"{name} has a lone cell far outside its table, {last}. Delete it, or save the sheet as CSV.")
        if long := LONG_NUMBER.findall(sheet):
            problem = f"{len(long):,} cells of {name} are numbers of 16 digits or more, of which Excel keeps 15"
            refuse(f"{problem}. First: {long[0].decode()}. Format the column as text and enter the ids anew.")


# --- The table and where it comes from ------------------------------------------------------------------------------

EXTENSIONS = {
    "parquet": "parquet", "pq": "parquet", "csv": "text", "tsv": "text", "tab": "text", "txt": "text",
    "json": "json", "jsonl": "lines", "ndjson": "lines"
}  # fmt: skip
MAGIC_PARQUET, MAGIC_GZIP, MAGIC_ZIP, MAGIC_OLE = b"PAR1", b"\x1f\x8b", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
STANDARD_INPUT = ("-", "/dev/stdin")
MOST_BYTES = 1 << 30
"""Streams, and gzipped files once unpacked, are read up to this size."""

STEP = 1 << 20
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
    """Open a path or a dataframe.

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
    opened = open_file(Path(source), options) if isinstance(source, (str, Path)) else _open_frame(source)
    if len(opened.columns) < 2:
        columns = f"only one column, {shown(opened.columns)!r}" if opened.columns else "no columns"
        refuse(f"{opened.name} has {columns}. Votes need an item, an annotator and a label, in columns of their own.")
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


def _open_frame(source: Any) -> Source:
    import narwhals.stable.v2 as nw

    if isinstance(source, (pl.DataFrame, pl.LazyFrame)):
        return from_polars(source, f"a polars {type(source).__name__}")
    if isinstance(source, list | Mapping):
        if not source:
            refuse("the list of files is empty. Check the path and the folder you are in.")
        table = _votes_of_map(source, ReadingLog())
        try:
            frame = pl.DataFrame(source, strict=False, infer_schema_length=None) if table is None else table
        except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
            way = "Give a list of dicts, or columns of one length"
            refuse(f"these {len(source):,} records are no table: {one_line(error)}. {way}.")
        return from_polars(frame, "records")
    if hasattr(source, "with_format") and hasattr(source, "features"):
        # A Dataset of Hugging Face: its columns as Arrow has them.
        source = source.with_format("arrow")[:]
    try:
        native = nw.from_native(source)
    except TypeError:
        refuse(f"votes come from a path or a dataframe, not from {type(source).__name__}.")
    if isinstance(native, nw.LazyFrame):
        native = native.collect()
    kind, names = str(native.implementation.value), native.columns
    if not all(isinstance(name, str) for name in names):
        refuse(f"column {names[0]!r} of the {kind} dataframe has no name. Name the columns by strings.")
    try:
        if kind in ("polars", "pyarrow"):
            return from_polars(native.to_polars(), f"a {kind} dataframe")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        refuse(f"the {kind} dataframe has a column that cannot be read: {one_line(error)}. Cast it to text.")

    def fetch(name: str) -> pl.Series:
        column = native.get_column(name)
        empty = column.is_null()
        if column.dtype.is_numeric() and not (empty.any() and column.dtype.is_integer()):
            return pl.Series(column.name, column.to_numpy())
        cells = zip(column.to_list(), empty.to_list(), strict=True)
        return series_of(column.name, [None if gone or cell != cell else cell for cell, gone in cells])

    return Source(f"a {kind} dataframe", tuple(names), len(native), fetch)


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
        standard = str(source) in STANDARD_INPUT
        if standard and sys.stdin is None:
            refuse("standard input is closed. Name a file with the votes.")
        with nullcontext(sys.stdin.buffer) if standard else Path(source).open("rb") as stream, copy.open("wb") as file:
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
    if not isinstance(source, str | Path) or str(source) in STANDARD_INPUT:
        return isinstance(source, str | Path)
    try:
        mode = Path(source).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except ValueError as error:
        refuse(f"the name {str(source)!r} cannot be the name of a file: {error}.")
    except OSError as error:
        refuse(f"{str(source)[:200]!r} cannot be read: {error.strerror}.")
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def open_file(path: Path, choices: ReadOptions | None = None) -> Source:
    """Open a file of any kind."""
    options, name, log = choices or ReadOptions(), printable(path), ReadingLog()
    parquet = head_of(path).startswith(MAGIC_PARQUET)
    raw = b"" if parquet else path.read_bytes()
    data = gunzip(raw, name) if raw.startswith(MAGIC_GZIP) else raw
    kind = "parquet" if parquet else kind_of(path, data)
    if kind != "excel" and options.sheet is not None:
        refuse(f"sheet is {options.sheet!r}, but {name} is no Excel workbook. Leave out sheet (--sheet).", UsageError)
    if kind == "parquet":
        return open_parquet([path] if parquet else io.BytesIO(data), name, digest_of([path]))
    if kind == "excel":
        tables = read_workbook(data, path, options.sheet, log, choosable=choices is not None)
    else:
        tables = {}
        for member, content in (unzip(data, name) if kind == "zip" else {path: data}).items():
            text = to_utf8(content, printable(member), log, options.encoding)
            is_json = kind_of(member, content) != "text"
            tables[member.stem] = (_read_json if is_json else read_delimited)(text, member, log)
    parts = tuple(from_polars(frame, part, textual=kind == "excel") for part, frame in tables.items())
    facts = {"textual": kind in ("excel", "text"), "sha256": hashlib.sha256(raw).hexdigest(), "log": log}
    return from_polars(next(iter(tables.values())), name, parts=parts if len(parts) > 1 else (), **facts)


def unzip(data: bytes, name: str) -> dict[Path, bytes]:
    """Unpack the tables of a zip file in memory: by path, each with its bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = {name: Path(name) for name in archive.namelist() if "__MACOSX" not in name}
            tables = [name for name, path in names.items() if suffix_of(path) in EXTENSIONS and path.name[0] != "."]
            members = [archive.getinfo(name) for name in tables]
            size = sum(member.file_size for member in members)
            if not members or size > MOST_BYTES:
                problem = f"{len(members):,} tables of {size:,} bytes" if members else "no table"
                refuse(f"{name} is a zip file with {problem} in it. Unpack it, and name the file with the votes.")
            contents = {Path(member.filename): archive.read(member) for member in members}
            return {path: content for path, content in contents.items() if content.strip()}
    except (*ZIP_ERRORS, RuntimeError) as error:
        refuse(f"{name} is a damaged or locked zip file: {one_line(error)}. Was it copied whole?")


def printable(path: Path) -> str:
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
        refuse(f"{printable(path)} is empty (0 bytes). Was it written to the end?")
    return head


def digest_of(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of files one after the other, read block by block."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(STEP):
                digest.update(block)
    return digest.hexdigest()


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


def kind_of(path: Path, data: bytes) -> str:
    """Return what a file holds: excel, parquet, text, json or lines."""
    suffix, marked = suffix_of(path), marked_encoding(data)
    promised = EXTENSIONS.get(suffix, "")
    start = b"" if marked else data.removeprefix(UTF8_BOM).lstrip()[:1]
    if data.startswith(MAGIC_PARQUET):
        return "parquet"
    if data.startswith(MAGIC_ZIP):
        with suppress(OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
            if any(name.startswith("xl/workbook") for name in zipfile.ZipFile(io.BytesIO(data)).namelist()):
                return "excel"
        if suffix not in ("xlsx", "xlsm"):
            return "zip"
    problems = {
        "is a damaged Excel workbook. Save it anew.": data.startswith(MAGIC_ZIP),
        "is a workbook of an Excel before 2007. Save it as .xlsx or as CSV (UTF-8).": data.startswith(MAGIC_OLE),
        "is an archive of files (tar). Unpack it, and name the file with the votes.": data[257:262] == b"ustar",
        "holds nothing but blank space. Was it written to the end?": not start and not marked,
        "is not a Parquet file, whatever its name says: it does not start with PAR1.": promised == "parquet",
        "is not an Excel workbook, whatever its name says. Save it anew.": (
            suffix == "xlsx" and b"\0" in data[:4096] and not marked
        ),
    }
    for problem, is_so in problems.items():
        if is_so:
            refuse(f"{printable(path)} {problem}")
    return promised if promised == "text" else {b"[": "json", b"{": "lines"}.get(start, promised or "text")


def open_parts(paths: Sequence[Path]) -> Source:
    """Open the Parquet files that are parts of one table."""
    name = f"{printable(min(paths))} … {printable(max(paths))}"
    return open_parquet(sorted(paths), name, digest_of(sorted(paths)))


def tables_in(folder: Path) -> list[Path]:
    """Return the tables in a folder, if they are of one kind and no Parquet parts; hidden files are none."""
    files = [path for path in sorted(folder.iterdir()) if not path.name.startswith((".", "~"))]
    tables = [path for path in files if suffix_of(path) in {*EXTENSIONS, "xlsx"} - {"parquet"}]
    return tables if len(tables) > 1 and len(set(map(suffix_of, tables))) == 1 else []


def open_parquet(source: Any, name: str, sha256: str = "") -> Source:
    """Open a Parquet file, parts of one, or its bytes; columns are read one at a time."""
    try:
        return from_polars(pl.scan_parquet(source, glob=False), name, sha256=sha256)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        refuse(f"{name} is a damaged or truncated Parquet file: {one_line(error)}. Write or copy it anew.")


# --- JSON ---------------------------------------------------------------------------------------------------------


def json_records(data: bytes, name: str, *, array: bool) -> list[dict[str, Any]]:
    """Parse a JSON array of records, or JSON Lines: one record per line."""
    lines = enumerate(data.split(b"\n"), 1)
    records = json_value(data, name) if array else [json_value(line, name, at) for at, line in lines if line.strip()]
    if not isinstance(records, list):
        refuse(f"{name} holds one {type(records).__name__}, not a list of votes. Write a JSON array of records.")
    for at, record in enumerate(records, 1):
        if not isinstance(record, dict):
            refuse(f"record {at:,} of {name} is no record but {json.dumps(record)[:40]}. Write {{…}} for each vote.")
    return records


def json_value(data: bytes, name: str, line: int = 0) -> Any:
    """Parse a file that is one JSON value, or one line of a file."""
    try:
        return parse_json(data)
    except json.JSONDecodeError as error:
        if line:
            refuse(f"line {line:,} of {name} is no JSON: {error.msg}. JSON Lines have one record per line.")
        refuse(f"{name} is no JSON: {error.msg} in line {error.lineno:,}. Was it written to the end?")
    except RecursionError:
        refuse(f"{name} is JSON nested too deeply to be read. Check what wrote it.")
    except ValueError:
        refuse(f"{name} holds a number of more than 4,300 digits. Check what wrote it.")


def _read_text(path: Path) -> bytes:
    """Read a file that must be UTF-8, gzipped or not, without its byte-order mark."""
    head_of(path)
    raw = path.read_bytes()
    return to_utf8(gunzip(raw, path.name) if raw.startswith(MAGIC_GZIP) else raw, path.name)


def read_json(path: Path) -> Any:
    """Read a file that is one JSON value."""
    return json_value(_read_text(path), path.name)


def read_records(path: Path) -> list[dict[str, Any]]:
    """Read the records of a JSON array, or of JSON Lines."""
    data = _read_text(path)
    return json_records(data, path.name, array=data.lstrip().startswith(b"["))


def parse_json(data: bytes) -> Any:
    r"""Parse JSON; half a character (`\ud800` alone), which no table can hold, becomes a mark.

    Examples
    --------
    >>> parse_json(rb'"\ud800 \ud83d\ude00"') == "\ufffd \U0001f600"
    True
    """
    return json.loads(HALF_CHARACTER.sub(rb"\\ufffd", data) if b"\\u" in data else data)


def _read_json(data: bytes, path: Path, log: ReadingLog) -> pl.DataFrame:
    array = kind_of(path, data) == "json"
    if not array:
        with suppress(ValueError, RecursionError):
            if (table := _votes_of_map(parse_json(data), log)) is not None:
                return table
    records = json_records(data, printable(path), array=array)
    keys = dict.fromkeys(key for record in records for key in record)
    return pl.DataFrame([series_of(key, [record.get(key) for record in records]) for key in keys])


def _votes_of_map(outer: Any, log: ReadingLog) -> pl.DataFrame | None:
    """Read labels by annotator and item, `{"ann": {"t1": "yes"}}`, or by item and annotator; None for anything else."""
    parts = list(outer.values()) if isinstance(outer, Mapping) else []
    if len(parts) < 2 or not all(isinstance(part, Mapping) for part in parts):
        return None
    votes = [(key, name, label) for key, inner in outer.items() for name, label in inner.items()]
    # There are fewer people than items.
    by_annotator = len(outer) <= len({name for _, name, _ in votes})
    roles = ("annotator", "item", "label") if by_annotator else ("item", "annotator", "label")
    log.note(f"labels by {roles[0]}, then by {roles[1]} (guessed: there are fewer annotators than items).")
    return pl.DataFrame([series_of(role, [vote[at] for vote in votes]) for at, role in enumerate(roles)])
