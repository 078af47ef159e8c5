"""Parquet parts on disk or in an object store → slices of rows that one worker reads at a time.

Selects the columns that the reader needs, and does not look at their values.
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.votes.columns import ColumnRoles, find_columns, missing_column
from moral_entropy.votes.files import is_stream
from moral_entropy.votes.options import ReadOptions
from moral_entropy.votes.source import one_line
from moral_entropy.votes.values import code_ids

ROWS_AT_ONCE = 2_000_000
"""Rows per slice, and about as many per part."""


@dataclass(frozen=True)
class Slice:
    """Some consecutive rows of a file."""

    path: str
    first: int
    rows: int


@dataclass(frozen=True)
class Table:
    """A table of votes in one or several files.

    Parameters
    ----------
    name
        Its name in errors and in the manifest.
    paths
        Its files, in order.
    slices
        Its rows.
    found
        Which column plays which role.
    columns
        The columns to read.
    """

    name: str
    paths: tuple[str, ...]
    slices: tuple[Slice, ...]
    found: ColumnRoles
    columns: tuple[str, ...]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(one.rows for one in self.slices)

    @property
    def item(self) -> str:
        """The column of the items."""
        return self.found.column["item"]


def open_table(
    source: str | Path | Sequence[str | Path], options: ReadOptions, rows_at_once: int = ROWS_AT_ONCE
) -> Table:
    """Find the files of a table, and cut them into slices.

    Parameters
    ----------
    source
        A path or glob of Parquet files, such as "parts/*.parquet" or "s3://bucket/part-*.parquet", or a list of them.
    options
        How the votes shall be read.
    rows_at_once
        Rows per slice.
    """
    paths = _paths(source)
    names, counts = _columns_and_rows(paths)
    name = paths[0].rsplit("/", 1)[-1]
    name = name if len(paths) == 1 else f"{name} … {paths[-1].rsplit('/', 1)[-1]}"
    if not sum(counts):
        msg = f"{name} has columns ({', '.join(names)}) but no rows."
        raise VotesError(msg)
    found = _roles(names, options, name)
    slices = [
        Slice(path, first, min(rows_at_once, rows - first))
        for path, rows in zip(paths, counts, strict=True)
        for first in range(0, rows, rows_at_once)
    ]
    return Table(name, tuple(paths), tuple(slices), found, _wanted(names, found, options))


def has_row_per_vote(source: str | Path | Sequence[str | Path], options: ReadOptions) -> bool:
    """Tell from the names of its columns whether a table of Parquet files has one row per vote."""
    names, _ = _columns_and_rows(_paths(source))
    found = find_columns(names, options, str(source))
    named = found.get("annotator") or found.get("label")
    return bool(named or options.multilabel or options.questions or options.counts)


def _paths(source: str | Path | Sequence[str | Path]) -> list[str]:
    if not isinstance(source, str | Path):
        return [str(path) for path in source]
    if is_stream(source):
        msg = f"{str(source)!r} is a pipe or a device; the workers of a cluster need files that each of them can read."
        raise UsageError(msg)
    if "://" in str(source):
        import fsspec

        files, names = fsspec.core.url_to_fs(str(source))
        found = [files.unstrip_protocol(name) for name in files.glob(names)]
    elif glob.has_magic(str(source)):
        found = glob.glob(str(source))  # noqa: PTH207
    else:
        found = [str(source)]
    if not found:
        msg = f"no file matches {str(source)!r}. Check the path and the folder you are in."
        raise VotesError(msg)
    return sorted(found)


def _columns_and_rows(paths: Sequence[str]) -> tuple[list[str], list[int]]:
    names: list[str] = []
    rows = []
    for path in paths:
        try:
            frame = pl.scan_parquet(path, glob=False)
            found = frame.collect_schema().names()
            rows.append(int(frame.select(pl.len()).collect().item()))
        except (OSError, pl.exceptions.PolarsError) as error:
            msg = f"{path} is no Parquet file that can be read: {one_line(error)}. A cluster reads Parquet only."
            raise VotesError(msg) from error
        if names and set(found) != set(names):
            odd = sorted(set(found) ^ set(names))
            msg = f"{path} and {paths[0]} have different columns. First: {odd[0]!r} is in one of them only."
            raise VotesError(msg)
        names = names or found
    return names, rows


def _roles(names: Sequence[str], options: ReadOptions, name: str) -> ColumnRoles:
    found = find_columns(names, options, name)
    counted = bool(options.counts) or options.of is not None
    needed = {"item": True, "annotator": not options.anonymous, "label": not (options.questions or counted)}
    for role, is_needed in needed.items():
        if is_needed and found.get(role) is None:
            raise missing_column(role, names, name)
    return found


def _wanted(names: Sequence[str], found: ColumnRoles, options: ReadOptions) -> tuple[str, ...]:
    asked = [*found.column.values(), *options.questions, *options.counts, *options.facts]
    if isinstance(options.of, str):
        asked.append(options.of)
    for name in asked:
        if name not in names:
            msg = f"the votes have no column {name!r}. Columns: {', '.join(names)}."
            raise VotesError(msg)
    return tuple(dict.fromkeys(asked))


def load_slice(one: Slice, columns: Sequence[str], item: str) -> pl.DataFrame:
    """Read some rows; items as integers or stripped text."""
    try:
        frame = pl.scan_parquet(one.path, glob=False).select(columns).slice(one.first, one.rows).collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        msg = f"{one.path} is damaged, or workers cannot read it: {one_line(error)}."
        raise VotesError(msg) from error
    return frame.with_columns(_as_ids(frame.get_column(item)))


def _as_ids(column: pl.Series) -> pl.Series:
    ids = code_ids(column)
    if column.dtype.is_float() and not ids.values.dtype.is_integer():
        first = column.drop_nulls()[0]
        msg = f"items ({column.name!r}) are fractions, such as {first}. Write ids as whole numbers or text."
        raise VotesError(msg)
    place = pl.Series(ids.code_r).cast(pl.Int64)
    return ids.values.gather(place.set(place < 0, None)).alias(column.name)


def hash_files(paths: Sequence[str]) -> str:
    """Compute the SHA-256 of the bytes of some files, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with _opened(path) as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _opened(path: str) -> Any:
    if "://" in path:
        import fsspec  # type: ignore[import-untyped,unused-ignore]

        return fsspec.open(path, "rb").open()
    return Path(path).open("rb")
