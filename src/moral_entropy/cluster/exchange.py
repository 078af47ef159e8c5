"""Slices in any order → parts by item: all rows of an item in one part, items in the order of one machine.

Parts are ranges of ids, with limits chosen from a sample. Slices that are such ranges already stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.cluster.files import Table, load_slice
from moral_entropy.workers import Workers

SAMPLED = 1_024
"""Size of the sample of items from each slice."""


@dataclass(frozen=True, eq=False)
class Range:
    """The items of a slice: the first, the last, and evenly spaced ones between; None where no row has one."""

    low: Any
    high: Any
    some: pl.Series


def range_of(frame: pl.DataFrame, item: str) -> Range:
    """Return the range of the items of a slice."""
    items = frame.get_column(item).drop_nulls().sort()
    return Range(items.first(), items.last(), items.gather_every(max(1, len(items) // SAMPLED)))


def exchange(workers: Workers, table: Table, loaded: Sequence[Any], n_parts: int) -> list[Any]:
    """Bring all rows of an item into one part, whichever slices they are in.

    Parameters
    ----------
    workers
        The workers.
    table
        The table that the slices belong to.
    loaded
        The rows of each slice.
    n_parts
        Number of parts wanted.

    Returns
    -------
    list
        The rows of each part, in the order of their items.
    """
    ranges: list[Range] = workers.fetch_all(workers.each(range_of, loaded, table.item))
    if (order := in_order(ranges)) is not None and len(loaded) >= n_parts:
        return [loaded[at] for at in order]
    edges = choose_edges([one.some for one in ranges], n_parts)
    pieces = workers.each(cut_rows, loaded, table.item, edges)
    return [workers.ask(join_pieces, *workers.each(pick, pieces, p)) for p in range(len(edges) + 1)]


def in_order(ranges: Sequence[Range]) -> list[int] | None:
    """Return the order in which slices follow each other without sharing an item, or None if they do share."""
    if any(one.low is None for one in ranges):
        return None
    order = sorted(range(len(ranges)), key=lambda at: ranges[at].low)
    apart = all(ranges[one].high < ranges[other].low for one, other in pairwise(order))
    return order if apart else None


def choose_edges(samples: Sequence[pl.Series], n_parts: int) -> pl.Series:
    """Choose items at which parts begin, so that parts have about equally many rows."""
    together = pl.concat([one for one in samples if len(one)] or [samples[0]]).sort()
    at = np.arange(1, n_parts) * len(together) // n_parts
    return together.gather(at).unique().sort() if len(together) else together


def cut_rows(frame: pl.DataFrame, item: str, edges: pl.Series) -> list[pl.DataFrame]:
    """Cut rows by the part their item belongs to, keeping their order; rows without an item go to the first."""
    items = frame.get_column(item)
    part_r = np.zeros(len(items), dtype=np.int64)
    if len(edges):
        known = items.is_not_null().to_numpy()
        part_r[known] = edges.search_sorted(items.drop_nulls(), side="right").to_numpy()
    order = np.argsort(part_r, kind="stable")
    starts = np.searchsorted(part_r[order], np.arange(len(edges) + 2))
    sorted_rows = frame[order]
    return [sorted_rows[first:last] for first, last in pairwise(starts)]


def pick(pieces: Sequence[pl.DataFrame], p: int) -> pl.DataFrame:
    """Return one part's piece of a slice."""
    return pieces[p]


def join_pieces(*pieces: pl.DataFrame) -> pl.DataFrame:
    """Put the pieces of a part together, in the order of the slices."""
    return pl.concat(pieces, how="vertical_relaxed")


def load_slices(workers: Workers, table: Table) -> list[Any]:
    """Submit the reading of every slice; return handles of their rows."""
    return [workers.ask(load_slice, one, table.columns, table.item) for one in table.slices]
