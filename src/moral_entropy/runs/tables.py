"""Tables of a run folder: how they are written and read back.

Tables are written from chunks, so that none has to fit in memory, and the same rows always make the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import polars as pl

from moral_entropy.errors import RunFolderError
from moral_entropy.runs.folder import MANIFEST, is_run_folder
from moral_entropy.schemas import SCHEMAS

ROWS_PER_GROUP = 262_144


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
    folder = checked_folder(path)
    file = folder / f"{name}.parquet"
    if not file.is_file():
        found = ", ".join(sorted(entry.stem for entry in folder.glob("*.parquet"))) or "none"
        msg = f"{folder} has no table {name!r}. Found: {found}."
        raise RunFolderError(msg)
    try:
        frame = pl.read_parquet(file) if where is None else pl.scan_parquet(file).filter(where).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        msg = f"{file} cannot be read: {str(error).splitlines()[0]}. Run the audit again."
        raise RunFolderError(msg) from error
    lacking = [column for column in SCHEMAS[name] if column not in frame.columns]
    if lacking:
        msg = f"{file} lacks the column {lacking[0]!r}. Run the audit again."
        raise RunFolderError(msg)
    return frame


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
