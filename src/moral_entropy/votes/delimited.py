"""CSV and its relatives → a table of texts: which delimiter, where the header is, what stands above it.

Takes UTF-8. The delimiter is whichever splits the header most; comment lines, titles and blank lines above the header
are skipped and said. Decimal commas become points where the comma is not the delimiter.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from moral_entropy.errors import VotesError
from moral_entropy.votes.columns import shown
from moral_entropy.votes.source import ReadingLog, one_line
from moral_entropy.votes.values import NUMBER

if TYPE_CHECKING:
    import polars as pl

DELIMITERS = ",;\t|"
COMMENTS = ("# ", "//", "% ")
SAMPLE_BYTES, SAMPLE_ROWS = 1 << 16, 30
DECIMAL_COMMA = r"^\s*-?\d+(,\d+)?\s*$"
DUPLICATED = "_duplicated_"
SHOWN = 60


@dataclass(frozen=True)
class Header:
    """The header of a delimited file.

    Parameters
    ----------
    names
        Its cells.
    delimiter
        What separates them.
    start
        Position of its first byte.
    above
        The lines above it that are neither blank nor a hint such as `sep=;`, without empty cells at their end.
    """

    names: list[str]
    delimiter: str
    start: int = 0
    above: tuple[str, ...] = ()


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
    import polars as pl

    data = _with_line_ends(data)
    header = find_header(data, path)
    check_header(header.names, path.name)
    try:
        frame = pl.read_csv(data[header.start :] if header.start else data, separator=header.delimiter,
                            infer_schema=False)  # fmt: skip
    except pl.exceptions.NoDataError as error:
        msg = f"{path.name} has no header and no rows."
        raise VotesError(msg) from error
    except pl.exceptions.PolarsError as error:
        raise VotesError(_ragged(data, header, path.name) or _unreadable(path.name, error)) from error
    if frame.width == len(header.names):
        # polars leaves doubled quotes in names.
        frame.columns = distinct_names(header.names)
    note_above(header.above, log)
    frame = tidied(frame.filter(~pl.all_horizontal(pl.all().is_null())), log)
    return frame if header.delimiter == "," else _with_decimal_points(frame, log)


def find_header(data: bytes, path: Path) -> Header:
    r"""Find the header: the first line that is no comment, no title and not blank.

    Examples
    --------
    >>> find_header(b"# votes of May\nitem;label\n1;5,0\n", Path("votes.csv"))
    Header(names=['item', 'label'], delimiter=';', start=15, above=('# votes of May',))
    """
    lines = _sample(data)
    first, hint = _first_line(lines)
    try:
        # A tie goes to the delimiter that the extension promises.
        promised = hint or ("\t" if ".tsv" in path.suffixes or ".tab" in path.suffixes else ",")
        delimiter, sure = _most_splitting(lines[first], promised)
        delimiter = hint or delimiter
        rows, ends = _rows(lines[first:], delimiter, 2)
        at = 0
        regular = sure and len(rows) > 1 and len(rows[0]) == len(rows[1]) and _filled(rows[0]) > 1
        if not regular and len(lines) > first + 1:
            delimiter = hint or _most_regular(lines[first:], delimiter)
            rows, ends = _rows(lines[first:], delimiter, SAMPLE_ROWS)
            at = header_row(rows)
    except csv.Error as error:
        msg = f"the first line of {path.name} is no header: {error}. Save it as CSV (UTF-8), one row per line."
        raise VotesError(msg) from error
    skipped = first + (ends[at - 1] if at else 0)
    start = sum(len(line.encode()) for line in lines[:skipped])
    said = (line.strip().rstrip(delimiter) for line in lines[:skipped])
    above = tuple(text for text in said if text and not _delimiter_hint(text))
    return Header(rows[at] if rows else [], delimiter, start, above)


def header_row(rows: Sequence[Sequence[str]]) -> int:
    """Return which row is the header: titles above it have one cell, or at most half as many as most rows.

    Examples
    --------
    >>> header_row([["Survey of May"], [], ["item", "rater", "vote"], ["1", "ann", "yes"]])
    2
    """
    width = _usual_width(rows)
    if width < 2:
        return 0
    wide = (at for at, row in enumerate(rows) if _filled(row) > 1 and 2 * _length(row) > width)
    return next(wide, 0)


def check_header(names: Sequence[str], source: str) -> None:
    """Refuse a first line of numbers alone, which is a vote and no header."""
    if all(not cell.strip() or NUMBER.fullmatch(cell.strip()) for cell in names):
        msg = (
            f"{source} seems to have no header: its first line is {shown(names)}. "
            "Add a first line with the names of the columns, such as item,annotator,label."
        )
        raise VotesError(msg)


def note_above(above: Sequence[str], log: ReadingLog) -> None:
    """Note the lines above the header that were skipped."""
    if above:
        first = above[0] if len(above[0]) <= SHOWN else f"{above[0][:SHOWN]}…"
        lines = "1 line" if len(above) == 1 else f"{len(above)} lines"
        log.note(f"skipped above the header: {lines}, the first is {first!r}.")


def tidied(frame: pl.DataFrame, log: ReadingLog) -> pl.DataFrame:
    """Take the blanks off column names, and take away columns without a name that are empty or number the rows."""
    blank = [name for name in frame.columns if _is_unnamed(name)]
    gone = [name for name in blank if _says_nothing(frame.get_column(name))]
    if any(not frame.get_column(name).is_null().all() for name in gone):
        log.note("a column without a name numbers the rows and is not read.")
    frame = frame.drop(gone)
    plain = [name.strip() for name in frame.columns]
    if plain != frame.columns and len(set(plain)) == len(plain):
        frame.columns = plain
    twice = sorted({name.split(DUPLICATED)[0] for name in frame.columns if DUPLICATED in name})
    if twice:
        log.note(
            f"the header has {', '.join(map(repr, twice))} more than once; the later ones are called "
            f"{twice[0] + DUPLICATED + '0'!r} and so on."
        )
    return frame


def distinct_names(names: Sequence[str]) -> list[str]:
    """Number the later ones of columns with the same name."""
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        before = seen.get(name, 0)
        distinct.append(f"{name}{DUPLICATED}{before - 1}" if before else name)
        seen[name] = before + 1
    return distinct


def _is_unnamed(name: str) -> bool:
    return not name.split(DUPLICATED)[0].strip() or name.startswith(("Unnamed: ", "__UNNAMED__"))


def _says_nothing(column: pl.Series) -> bool:
    import polars as pl

    number = column.cast(pl.Int64, strict=False)
    if column.is_null().all():
        return True
    return number.null_count() == 0 and number[0] in (0, 1) and bool((number.diff().drop_nulls() == 1).all())


def _with_line_ends(data: bytes) -> bytes:
    """Return the data with line feeds; old files of the Macintosh have carriage returns alone."""
    head = data[:SAMPLE_BYTES]
    return data.replace(b"\r", b"\n") if b"\n" not in head and b"\r" in head else data


def _sample(data: bytes) -> list[str]:
    """Return the first lines, with their ends."""
    head = data[:SAMPLE_BYTES]
    if len(data) > SAMPLE_BYTES and b"\n" in head:
        head = head[: head.rindex(b"\n") + 1]
    elif len(data) > SAMPLE_BYTES:
        end = data.find(b"\n")
        head = data[: end + 1 if end >= 0 else len(data)]
    return re.findall(r"[^\n]*\n|[^\n]+", head.decode(errors="replace")) or [""]


def _first_line(lines: Sequence[str]) -> tuple[int, str]:
    """Return the first line that is neither blank nor a comment nor a hint, and the delimiter that a hint names."""
    hint = ""
    for at, line in enumerate(lines):
        text = line.strip()
        hint = _delimiter_hint(text) or hint
        if text and not _delimiter_hint(text) and not _is_comment(text, lines[at + 1 : at + 2]):
            return at, hint
    return 0, hint


def _delimiter_hint(text: str) -> str:
    found = re.fullmatch(r"sep=(.)", text, flags=re.IGNORECASE)
    return found[1] if found and found[1] in DELIMITERS else ""


def _is_comment(text: str, following: Sequence[str]) -> bool:
    if text == "#" or text.startswith(COMMENTS):
        return True
    if not text.startswith("#"):
        return False
    # A header may begin with a number sign too: then the line below has as many cells.
    return not any(
        text.count(delimiter) and text.count(delimiter) == line.count(delimiter)
        for line in following
        for delimiter in DELIMITERS
    )


def _most_splitting(line: str, promised: str) -> tuple[str, bool]:
    """Return the delimiter that splits a line most, and whether it is the only one that splits it."""
    line = line.rstrip("\r\n")
    widths = {mark: len(next(csv.reader([line], delimiter=mark), [])) for mark in DELIMITERS}
    best = max(DELIMITERS, key=lambda delimiter: (widths[delimiter], delimiter == promised))
    return best, sum(width > 1 for width in widths.values()) == 1


def _most_regular(lines: Sequence[str], before: str) -> str:
    """Return the delimiter that splits the most rows into the same number of cells; `before` wins a tie."""

    def regularity(delimiter: str) -> tuple[int, int, bool]:
        rows, _ = _rows(lines, delimiter, SAMPLE_ROWS)
        widths = Counter(len(row) for row in rows if _filled(row))
        width = max(widths, key=lambda width: (widths[width], width), default=0)
        return (widths[width] if width > 1 else 0, width, delimiter == before)

    return max(DELIMITERS, key=regularity)


def _rows(lines: Sequence[str], delimiter: str, most: int) -> tuple[list[list[str]], list[int]]:
    """Split the first rows into cells; also return how many lines have been read after each."""
    reader = csv.reader(lines, delimiter=delimiter)
    rows, ends = [], []
    for row in reader:
        rows.append(row)
        ends.append(reader.line_num)
        if len(rows) >= most:
            break
    return rows, ends


def _usual_width(rows: Sequence[Sequence[str]]) -> int:
    widths = Counter(_length(row) for row in rows if _filled(row))
    # The wider of two that are equally frequent: short rows are titles.
    return max(widths, key=lambda width: (widths[width], width), default=0)


def _filled(row: Sequence[str | None]) -> int:
    return sum(bool(cell and cell.strip()) for cell in row)


def _length(row: Sequence[str | None]) -> int:
    """Return the number of cells without empty ones at the end."""
    return max((at + 1 for at, cell in enumerate(row) if cell and cell.strip()), default=0)


def _ragged(data: bytes, header: Header, name: str) -> str:
    """Find the first row that has more cells than the header."""
    lines = io.TextIOWrapper(io.BytesIO(data[header.start :]), "utf-8", newline="")
    rows = csv.reader(lines, delimiter=header.delimiter)
    width, before = len(header.names), data.count(b"\n", 0, header.start)
    try:
        for row in rows:
            if len(row) > width:
                return (
                    f"line {before + rows.line_num:,} of {name} has {len(row)} cells, the header has {width}. "
                    f"Put texts that contain {header.delimiter!r} in double quotes."
                )
    except csv.Error:
        pass
    return ""


def _unreadable(name: str, error: Exception) -> str:
    return f"{name} cannot be read: {one_line(error)}. Is a double quote left open?"


def _with_decimal_points(frame: pl.DataFrame, log: ReadingLog) -> pl.DataFrame:
    import polars as pl

    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    commas = [
        name
        for name in texts
        if (cells := frame.get_column(name).drop_nulls()).str.contains(",", literal=True).any()
        and cells.str.contains(DECIMAL_COMMA).all()
    ]
    if commas:
        log.note(f"decimal commas are read as points: {', '.join(commas)}.")
    return frame.with_columns(pl.col(commas).str.replace(",", ".", literal=True)) if commas else frame
