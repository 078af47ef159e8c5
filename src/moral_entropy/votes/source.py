"""The table that votes are read from: a path, several Parquet parts, or any dataframe that narwhals knows → `Source`.

Columns are fetched one at a time. Knows nothing of what a column means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moral_entropy.errors import VotesError
from moral_entropy.votes.columns import shown
from moral_entropy.votes.values import series_of

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl

    from moral_entropy.votes.options import ReadOptions

TOO_SHORT = "Votes need an item, an annotator and a label each"


@dataclass
class ReadingLog:
    """What was left out while reading, and notes for the user.

    Parameters
    ----------
    dropped
        Number of rows or votes left out, by reason.
    notes
        One sentence each.
    varied
        By column about items: how many items have several rows, and how many of these several values.
    """

    dropped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    varied: dict[str, tuple[int, int]] = field(default_factory=dict)

    def drop(self, reason: str, n: int) -> None:
        """Add to the count of what was left out for a reason."""
        if n:
            self.dropped[reason] = self.dropped.get(reason, 0) + int(n)

    def note(self, sentence: str) -> None:
        """Add a note, unless it is there already."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def add(self, other: ReadingLog) -> None:
        """Add what another log holds."""
        for reason, n in other.dropped.items():
            self.drop(reason, n)
        for sentence in other.notes:
            self.note(sentence)


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
        import polars as pl

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
        from moral_entropy.votes.files import open_files

        opened = open_files(source, options)
    else:
        opened = _open_frame(source)
    return _checked(opened)


def from_polars(frame: pl.DataFrame | pl.LazyFrame, name: str, **facts: Any) -> Source:
    """Wrap a polars frame; a lazy one is read one column at a time."""
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return Source(name, tuple(frame.columns), frame.height, frame.get_column, **facts)
    rows = int(frame.select(pl.len()).collect().item())

    def fetch(column: str) -> pl.Series:
        return frame.select(column).collect().to_series()

    return Source(name, tuple(frame.collect_schema().names()), rows, fetch, **facts)


def one_line(error: BaseException) -> str:
    """Return the first line of an error's message, without its full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".: ") if lines else type(error).__name__


def _is_paths(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and all(isinstance(part, (str, Path)) for part in source)


def _open_frame(source: Any) -> Source:
    import narwhals as nw
    import polars as pl

    if isinstance(source, (pl.DataFrame, pl.LazyFrame)):
        return from_polars(source, f"a polars {type(source).__name__}")
    try:
        frame = nw.from_native(source)
    except TypeError as error:
        msg = f"votes come from a path or a dataframe, not from {type(source).__name__}."
        raise VotesError(msg) from error
    return _open_narwhals(frame.collect() if isinstance(frame, nw.LazyFrame) else frame)


def _open_narwhals(frame: nw.DataFrame[Any]) -> Source:
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


def _fetch_narwhals(column: nw.Series[Any]) -> pl.Series:
    import polars as pl

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
