"""Amounts: columns that say how many.

Takes a column, returns whole numbers that are not negative, or says which cell is not one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moral_entropy.errors import VotesError
from moral_entropy.votes.source import Source
from moral_entropy.votes.table import UNKNOWN

if TYPE_CHECKING:
    import polars as pl


def read_numbers(source: Source, name: str, *, required: bool = False) -> NDArray[np.int64]:
    """Read how many, row by row; `UNKNOWN` where a cell is empty.

    Parameters
    ----------
    source, name
        The column.
    required
        Whether an empty cell is an error.
    """
    import polars as pl

    column = source.column(name)
    empty = column.is_null()
    if column.dtype == pl.String:
        column = column.str.strip_chars()
        empty = empty | column.is_in(["", "NA", "NaN", "null"])
    number = column.cast(pl.Float64, strict=False).fill_nan(None)
    whole = number.is_not_null() & (number >= 0) & (number == number.floor()) & (number < 2**31)
    bad = ~(whole.fill_null(False) | (pl.Series([False]) if required else empty.fill_null(True)))
    if bad.any():
        raise VotesError(_not_a_count(source.name, name, column, bad))
    return number.fill_null(UNKNOWN).cast(pl.Int64).to_numpy()


def _not_a_count(source: str, name: str, column: pl.Series, bad: pl.Series) -> str:
    first = int(bad.arg_max() or 0)
    return (
        f"{int(bad.sum()):,} cells of column {name!r} in {source} are not whole numbers of 0 or more. "
        f"First: {column[first]!r} (row {first + 1:,}). Correct them, or name another column."
    )
