"""Two tables, or two sets of facts, that should be the same → where they differ, and by how much, in words.

Words, counts and orders must be the same. Figures may differ by 1e-9, which is what other processors are allowed to
(`docs/reference/run-folder.md`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

SAME = 1e-9
"""Figures this close, absolutely or as a share, are the same on another processor."""

KEYS = ("question", "domain", "item", "annotator", "rule", "reference", "label", "metric", "class", "true", "voted",
        "side", "figure", "kind", "rank", "word")  # fmt: skip
"""Columns that tell a reader which row is meant."""


@dataclass(frozen=True)
class Agreement:
    """How two tables compare.

    Parameters
    ----------
    differences
        One phrase per kind of difference; none where the tables agree.
    largest
        The largest distance between two figures that were still taken to be the same; 0 for bit for bit.
    """

    differences: tuple[str, ...]
    largest: float

    @property
    def words(self) -> str:
        """The outcome as one phrase."""
        if self.differences:
            return "; ".join(self.differences)
        return "bit for bit" if self.largest == 0.0 else f"up to {self.largest:.0e}"


def compare_tables(written: pl.DataFrame, computed: pl.DataFrame, *, same: float = SAME) -> Agreement:
    """Compare a table as it was written with the same table computed again.

    Parameters
    ----------
    written, computed
        The tables. Columns that only the first has (those of `--keep`) cannot be computed and are left alone.
    same
        How far apart figures may be.

    Examples
    --------
    >>> one = pl.DataFrame({"item": ["a", "b"], "p": [0.25, 0.5]})
    >>> compare_tables(one, one.with_columns(p=pl.Series([0.25, 0.75]))).words
    "1 of 2 values of p differs; item 'b': 0.5 written, 0.75 computed"
    """
    lacking = [name for name in computed.columns if name not in written.columns]
    if lacking:
        return Agreement((f"column {lacking[0]} is missing",), 0.0)
    if written.height != computed.height:
        return Agreement((_rows_apart(written, computed),), 0.0)
    differences: list[str] = []
    largest = 0.0
    for name in computed.columns:
        apart = _apart(written[name], computed[name], same)
        if apart.any():
            differences.append(_values_apart(name, written, computed, apart))
        elif computed[name].dtype.is_float():
            distance_r = (written[name] - computed[name]).abs().fill_nan(0.0).fill_null(0.0).to_numpy()
            largest = max(largest, float(distance_r.max(initial=0.0)))
    return Agreement(tuple(differences), largest)


def _apart(written: pl.Series, computed: pl.Series, same: float) -> pl.Series:
    """Mark the rows in which two columns differ."""
    if written.dtype != computed.dtype:
        written = written.cast(computed.dtype, strict=False)
    apart = written.ne_missing(computed)
    if not computed.dtype.is_float():
        return apart
    near = (written - computed).abs() <= same * computed.abs().clip(lower_bound=1.0)
    return apart & ~near.fill_null(value=False)


def _values_apart(name: str, written: pl.DataFrame, computed: pl.DataFrame, apart: pl.Series) -> str:
    n, first = int(apart.sum()), int(apart.arg_true()[0])
    verb = "differs" if n == 1 else "differ"
    values = f"{_shown(written[name][first])} written, {_shown(computed[name][first])} computed"
    return f"{n:,} of {written.height:,} values of {name} {verb}; {row_name(computed, first)}: {values}"


def _rows_apart(written: pl.DataFrame, computed: pl.DataFrame) -> str:
    counts = f"{written.height:,} rows written, {computed.height:,} computed"
    keys = [name for name in KEYS if name in computed.columns and written[name].dtype == computed[name].dtype]
    for label, one, other in (("missing", computed, written), ("too much", written, computed)):
        alone = one.join(other, on=keys, how="anti", nulls_equal=True, maintain_order="left")
        if keys and alone.height:
            return f"{counts}; first row {label}: {row_name(alone, 0)}"
    return counts


def row_name(frame: pl.DataFrame, row: int) -> str:
    """Name a row by the columns that tell it from others, or by its number.

    Examples
    --------
    >>> row_name(pl.DataFrame({"rule": ["any"], "metric": ["fpr"], "value": [0.1]}), 0)
    "rule 'any', metric 'fpr'"
    """
    keys = [name for name in KEYS if name in frame.columns and frame[name][row] not in (None, "", "(all)")]
    return ", ".join(f"{name} {_shown(frame[name][row])}" for name in keys) or f"row {row + 1:,}"


def fact_differences(written: Any, computed: Any, where: str = "", *, same: float = SAME) -> Iterator[str]:
    """Yield where two sets of plain facts differ.

    Examples
    --------
    >>> list(fact_differences({"seed": 1, "votes": [3, 4]}, {"seed": 0, "votes": [3, 4]}))
    ['seed: 1 written, 0 computed']
    """
    if isinstance(written, Mapping) and isinstance(computed, Mapping):
        for name in [*computed, *(name for name in written if name not in computed)]:
            at = f"{where}.{name}" if where else str(name)
            yield from fact_differences(written.get(name), computed.get(name), at, same=same)
    elif isinstance(written, list | tuple) and isinstance(computed, list | tuple) and len(written) == len(computed):
        for n, (one, other) in enumerate(zip(written, computed, strict=True)):
            yield from fact_differences(one, other, f"{where}[{n}]", same=same)
    elif not _same_fact(written, computed, same):
        yield f"{where}: {_shown(written)} written, {_shown(computed)} computed"


def _same_fact(one: Any, other: Any, same: float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=same, abs_tol=same)
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _shown(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
