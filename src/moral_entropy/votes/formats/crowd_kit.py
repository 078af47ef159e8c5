"""crowd-kit: a table of task, worker and label.

The columns already say which is which, so the table is returned as it is.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.exported_votes import peek
from moral_entropy.votes.source import open_source
from moral_entropy.votes.table import ReadingLog, shown

TITLE = "crowd-kit"
COLUMNS = ("task", "worker", "label")


def detect(path: Path) -> bool:
    """Return whether a file is a table as crowd-kit reads and writes them."""
    return set(COLUMNS) <= set(peek(path).names)


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame | pl.LazyFrame:
    """Read the table; a Parquet file one column at a time.

    Parameters
    ----------
    path
        A CSV, TSV or Parquet file.
    log
        Where counts and notes go.
    """
    source = open_source(path)
    log.add(source.log)
    if missing := [name for name in COLUMNS if name not in source.columns]:
        found = shown(source.columns)
        msg = f"{path.name} has no column {missing[0]!r}. crowd-kit's are task, worker, label. Found: {found}."
        raise VotesError(msg)
    if peek(path).kind == "parquet":
        return pl.scan_parquet(path, glob=False)
    return pl.DataFrame([source.column(name) for name in source.columns])
