"""Excel workbooks → a table of texts: which sheet, and where its header is.

The sheet is the one that the user names, or the only one with data; several with data end in a question. Needs the
extra `excel`.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moral_entropy.errors import MissingExtraError, UsageError, VotesError
from moral_entropy.votes.delimited import check_header, distinct_names, header_row, note_above, tidied
from moral_entropy.votes.source import ReadingLog, one_line

if TYPE_CHECKING:
    import polars as pl

WORKBOOK = "xl/workbook"
MOST_BYTES = 1 << 30
SAMPLE_ROWS = 30


def is_workbook(data: bytes) -> bool:
    """Return whether a zip file is an Excel workbook."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return any(name.startswith(WORKBOOK) for name in archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False


def read_workbook(
    data: bytes, path: Path, sheet: str | None, log: ReadingLog, *, choosable: bool = True
) -> pl.DataFrame:
    """Read one sheet of a workbook; every cell is a text, or null where it is empty.

    Parameters
    ----------
    data
        Bytes of the workbook.
    path
        Its name, for errors.
    sheet
        Name of the sheet; None for the only one with data.
    log
        Where notes go.
    choosable
        Whether there is an option to name the sheet, as there is for votes.
    """
    try:
        import fastexcel
    except ImportError as error:
        msg = f"{path.name} is an Excel workbook, and reading it needs fastexcel"
        raise MissingExtraError(msg, "excel") from error
    _check_size(data, path.name)
    try:
        book = fastexcel.read_excel(data)
        tables = {name: _cells(book, name) for name in _wanted(book.sheet_names, sheet, path.name)}
    except fastexcel.FastExcelError as error:
        msg = f"{path.name} is a damaged Excel workbook: {one_line(error)}. Save it anew."
        raise VotesError(msg) from error
    filled = {name: cells for name, cells in tables.items() if cells.height > 1 and cells.width > 1}
    if len(filled) > 1:
        raise UsageError(_which_sheet(filled, path.name, choosable=choosable))
    if not filled:
        msg = f"{path.name} has no sheet with a header and rows. Sheets: {', '.join(book.sheet_names)}."
        raise VotesError(msg)
    name, cells = next(iter(filled.items()))
    if len(book.sheet_names) > 1:
        log.note(f"sheet: {name!r} ({'the only one with data' if sheet is None else 'named'}).")
    return _table(cells, f"{path.name}, sheet {name!r}", log)


def _check_size(data: bytes, name: str) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > MOST_BYTES:
        msg = f"{name} unpacks to {size:,} bytes, more than a workbook has. Save the sheet with the votes as CSV."
        raise VotesError(msg)


def _wanted(names: list[str], sheet: str | None, source: str) -> list[str]:
    if sheet is None:
        return names
    found = [name for name in names if name == sheet] or [name for name in names if name.casefold() == sheet.casefold()]
    if not found:
        msg = f"{source} has no sheet {sheet!r}. Sheets: {', '.join(names)}. Name one with --sheet."
        raise UsageError(msg)
    return found[:1]


def _cells(book: Any, name: str) -> pl.DataFrame:
    """Return all cells of a sheet, without rows and columns at the edges that are empty."""
    import polars as pl

    frame: pl.DataFrame = book.load_sheet(name, header_row=None, dtypes="string").to_polars()
    if not frame.width:
        return frame
    blank = pl.all().is_null() | (pl.all().str.strip_chars() == "")
    return frame.filter(~pl.all_horizontal(blank))


def _which_sheet(filled: dict[str, pl.DataFrame], name: str, *, choosable: bool) -> str:
    sheets = ", ".join(f"{sheet!r} ({cells.height - 1:,} rows)" for sheet, cells in filled.items())
    if not choosable:
        return f"{name} has {len(filled)} sheets with data: {sheets}. Save the one that is meant as a file of its own."
    return (
        f"which sheet of {name} holds the votes? {len(filled)} have data: {sheets}. "
        f"Name it with sheet={next(iter(filled))!r} (CLI: --sheet {next(iter(filled))!r})."
    )


def _table(cells: pl.DataFrame, source: str, log: ReadingLog) -> pl.DataFrame:
    """Take the header out of the cells."""
    import polars as pl

    rows = [[cell or "" for cell in row] for row in cells.head(SAMPLE_ROWS).rows()]
    at = header_row(rows)
    check_header(rows[at], source)
    note_above([" ".join(cell for cell in row if cell) for row in rows[:at]], log)
    body = cells.slice(at + 1)
    body.columns = distinct_names(rows[at])
    return tidied(body.filter(~pl.all_horizontal(pl.all().is_null())), log)
