"""Sets: cells that name several labels, such as `care,harm`.

Takes a column and its separator, returns the distinct sets and one code per row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from moral_entropy.votes.labels import LabelMap, Tally, check_few, note_map
from moral_entropy.votes.table import UNKNOWN, Ints
from moral_entropy.votes.values import canonical_label, count_codes, distinct_cells, recode, sort_labels

if TYPE_CHECKING:
    import polars as pl

LIST_SEPARATOR = "\x1f"
NO_YES = ("0", "1")


@dataclass(frozen=True, eq=False)
class CodedSets:
    """A column of label sets as codes. Axis: **r** row.

    Parameters
    ----------
    sets
        The distinct sets; an empty one names no label that is left.
    code_r
        For every row the position of its set; `UNKNOWN` where the cell is empty.
    """

    sets: tuple[frozenset[str], ...]
    code_r: Ints

    @property
    def labels(self) -> list[str]:
        """All labels of all sets, sorted."""
        return sort_labels(label for cell in self.sets for label in cell)

    def named(self) -> Iterator[tuple[str, Ints]]:
        """Give for each label whether (1) or not (0) each set names it."""
        for label in self.labels:
            yield label, np.array([label in cell for cell in self.sets], dtype=np.int16)


def code_sets(column: pl.Series, separator: str, change: LabelMap, tally: Tally) -> CodedSets:
    """Code a column whose cells name several labels.

    Parameters
    ----------
    column
        Texts such as `care,harm`, or lists of labels. An empty text is no vote; an empty list names nothing.
    separator
        What stands between two labels.
    change
        Merges and leaves out labels; a set from which all are gone is empty, and still a vote.
    tally
        Where remarks go.

    Examples
    --------
    >>> import polars as pl
    >>> cells = code_sets(pl.Series(["care, harm", "", "care"]), ",", LabelMap(), Tally())
    >>> [sorted(cell) for cell in cells.sets], cells.code_r.tolist()
    ([['care'], ['care', 'harm']], [1, -1, 0])
    """
    import polars as pl

    lists = isinstance(column.dtype, pl.List)
    if lists:
        column = column.cast(pl.List(pl.String)).list.join(LIST_SEPARATOR)
    found, code_r = distinct_cells(column.cast(pl.String))
    cells = [_split(cell, LIST_SEPARATOR if lists else separator) for cell in found.to_list()]
    check_few(len({label for cell in cells for label in cell}), column.name, len(column))
    _note_changes(cells, count_codes(code_r, len(found)), change, tally)
    changed = [_changed(cell, change) if cell or lists else None for cell in cells]
    order = {cell: k for k, cell in enumerate(sorted({cell for cell in changed if cell is not None}, key=sorted))}
    places = [UNKNOWN if cell is None else order[cell] for cell in changed]
    return CodedSets(tuple(order), recode(code_r, places))


def _split(cell: str, separator: str) -> tuple[str, ...]:
    if canonical_label(cell) is None:
        return ()
    names = [canonical_label(name) for name in cell.split(separator)]
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _changed(cell: tuple[str, ...], change: LabelMap) -> frozenset[str]:
    return frozenset(label for name in cell if (label := change(name)) is not None)


def _note_changes(cells: list[tuple[str, ...]], n_c: Ints, change: LabelMap, tally: Tally) -> None:
    if not change.target:
        return
    moved = gone = 0
    for cell, n in zip(cells, n_c, strict=True):
        moved += sum(int(n) for name in cell if change(name) not in (name, None))
        gone += sum(int(n) for name in cell if change(name) is None)
    note_map(change, {name for cell in cells for name in cell}, moved, tally)
    if gone:
        tally.note(f"the label map left out {gone:,} mentions of a label; their votes still count as no to the others.")
