"""Tables of a run folder: how they are written and read back.

Tables are written from chunks, so that none has to fit in memory, and the same rows always make the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import polars as pl

from moral_entropy.errors import RunFolderError
from moral_entropy.runs.folder import MANIFEST, is_run_folder
from moral_entropy.schemas import SCHEMAS

ROWS_PER_GROUP = 262_144
SMALL = 1 << 20
"""Bytes up to which a table is kept in memory once it has been read, as long as its file is the same."""

IDS = ("item", "annotator")
"""Columns that are integers where all ids of the input were."""


def write_table(path: Path, schema: pl.Schema, chunks: Callable[[], Iterable[pl.DataFrame]]) -> None:
    """Write chunks of rows to one Parquet file without ever holding more than a few of them.

    Parameters
    ----------
    path
        The file.
    schema
        Its columns, in order; every chunk must have exactly these.
    chunks
        Called once, when writing begins.
    """
    from polars.io.plugins import register_io_source

    def source(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        for chunk in chunks():
            yield chunk.select(with_columns or schema.names())

    frame = register_io_source(source, schema=schema, validate_schema=True)
    # A fixed size of row groups keeps the bytes the same whatever the number of threads.
    frame.sink_parquet(path, compression="zstd", row_group_size=ROWS_PER_GROUP, maintain_order=True)


def read_table(path: str | Path, name: str, *, where: pl.Expr | None = None) -> pl.DataFrame:
    """Read one table of a run folder back, or some rows of it.

    Parameters
    ----------
    path
        The run folder.
    name
        One of `SCHEMAS`, such as "items" or "audit".
    where
        Which rows to read; all by default.

    Examples
    --------
    >>> read_table("nowhere", "items")
    Traceback (most recent call last):
    ...
    moral_entropy.errors.RunFolderError: nowhere is no run folder: there is no such folder. ...
    """
    rows, file = scan_table(path, name), Path(path) / f"{name}.parquet"
    try:
        return _read_whole(file) if where is None else rows.filter(where).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(file, error) from error


def scan_table(path: str | Path, name: str) -> pl.LazyFrame:
    """Scan one table of a run folder, after a look at its columns and their types.

    Parameters
    ----------
    path
        The run folder.
    name
        One of `SCHEMAS`.
    """
    folder = checked_folder(path)
    file = folder / f"{name}.parquet"
    if not file.exists():
        found = ", ".join(sorted(entry.stem for entry in folder.glob("*.parquet"))) or "none"
        msg = f"{folder} has no table {name!r}. Found: {found}."
        raise RunFolderError(msg)
    try:
        # An audit on a cluster writes tables of items as folders of part files.
        scanned = pl.scan_parquet(sorted(file.glob("*.parquet")) if file.is_dir() else file, glob=False)
        _check_columns(file, scanned.collect_schema(), SCHEMAS[name])
        return scanned
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(file, error) from error


def _read_whole(file: Path) -> pl.DataFrame:
    if file.is_dir():
        return pl.read_parquet(sorted(file.glob("*.parquet")), glob=False)
    state = file.stat()
    if state.st_size > SMALL:
        return pl.read_parquet(file)
    # A copy of the columns' names and not of their rows: whoever adds a column has it alone.
    return _read_once(file, (state.st_ino, state.st_size, state.st_mtime_ns)).clone()


@lru_cache(maxsize=32)
def _read_once(file: Path, _state: tuple[int, int, int]) -> pl.DataFrame:
    return pl.read_parquet(file)


def _check_columns(file: Path, found: pl.Schema, wanted: pl.Schema) -> None:
    """Refuse a table that lacks a column, or has one of another type; ids may be integers."""
    for column, kind in wanted.items():
        if column not in found:
            msg = f"{file} lacks the column {column!r}. Run the audit again."
            raise RunFolderError(msg)
        ids = column in IDS and found[column].is_integer()
        if not (found[column] == kind or ids or (kind.is_integer() and found[column].is_integer())):
            msg = f"{file} has {found[column]} in the column {column!r}, not {kind}. Run the audit again."
            raise RunFolderError(msg)


def _unreadable(file: Path, error: Exception) -> RunFolderError:
    return RunFolderError(f"{file} cannot be read: {str(error).splitlines()[0]}. Run the audit again.")


def checked_folder(path: str | Path) -> Path:
    """Return the path of a run folder; raise a `RunFolderError` that says why it is none."""
    folder = Path(path)
    if not folder.is_dir():
        why = "it is a file" if folder.exists() else "there is no such folder"
    elif not is_run_folder(folder):
        why = f"it has no {MANIFEST}"
    else:
        return folder
    msg = f"{folder} is no run folder: {why}. Make one with: moral-entropy audit votes.csv -o {folder}"
    raise RunFolderError(msg)
