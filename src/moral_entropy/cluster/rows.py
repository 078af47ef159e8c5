"""Rows of identical items across parts: each row is assigned to one part, with the number of items of all parts.

One machine collapses all identical items, if that pays. Parts do the same by hashes of 128 bits: each row is assigned
to the first part that has it. Rows are then numbered as on one machine, so that evenly spaced or randomly chosen rows
are the same for any number of parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.cluster.exchange import pick
from moral_entropy.consensus.parts import Part, Rows, items_by_row
from moral_entropy.consensus.patterns import SAMPLE, WORTHWHILE, Domains, as_rows, hashed
from moral_entropy.votes.table import Ints
from moral_entropy.workers import Workers

ROWS_AT_ONCE = 4_000_000
"""Approximate number of rows whose hashes are compared in one task."""


def agree_on_rows(workers: Workers, parts: Sequence[Any]) -> list[Any]:
    """Assign rows to parts; return the parts, each with its rows.

    Parameters
    ----------
    workers, parts
        The workers, and parts in the order of their items.
    """
    sizes_pb = workers.fetch_all(workers.each(sizes_of_part, parts))
    own_bp = [_agree(workers, parts, b, sizes_p) for b, sizes_p in enumerate(zip(*sizes_pb, strict=True))]
    return [workers.ask(with_rows, part, *own_b) for part, own_b in zip(parts, zip(*own_bp, strict=True), strict=True)]


def _agree(workers: Workers, parts: Sequence[Any], b: int, sizes_p: Sequence[tuple[int, int]]) -> list[Any]:
    items_p, rows_p = zip(*sizes_p, strict=True)
    if not _pays(workers, parts, b, items_p):
        return workers.each(rows_of_items, parts, b)
    n_buckets = max(1, -(-sum(rows_p) // ROWS_AT_ONCE))
    buckets = workers.each(hashes_in_buckets, parts, b, n_buckets)
    assigned = [workers.ask(assign_to_first, *workers.each(pick, buckets, h)) for h in range(n_buckets)]
    return [workers.ask(own_rows, part, b, *workers.each(pick, assigned, p)) for p, part in enumerate(parts)]


def _pays(workers: Workers, parts: Sequence[Any], b: int, items_p: Sequence[int]) -> bool:
    """Return whether collapsing pays, judged by the first items as on one machine."""
    before_p = np.cumsum([0, *items_p[:-1]]).tolist()
    asked = [
        workers.ask(hashes_of_first_items, part, b, SAMPLE - before)
        for part, before in zip(parts, before_p, strict=True)
        if before < SAMPLE
    ]
    hash_i = np.concatenate(workers.fetch_all(asked))
    return bool(len(hash_i)) and len(np.unique(hash_i)) / len(hash_i) <= WORTHWHILE


def sizes_of_part(part: Part) -> list[tuple[int, int]]:
    """Count items and rows of every ballot of one part."""
    return [(ballot.n_items, one.n_rows) for ballot, one in zip(part.votes.ballots, part.patterns, strict=True)]


def hashes_of_first_items(part: Part, b: int, most: int) -> Ints:
    """Compute the hashes of the first items of one part."""
    patterns = part.patterns[b]
    return hashed(patterns, 0)[patterns.row_i[:most]]


def rows_of_items(part: Part, b: int) -> Rows:
    """Make every item of one part a row."""
    ballot, patterns = part.votes.ballots[b], part.patterns[b]
    if patterns.collapsed:
        told = patterns.domain_r[patterns.row_i] if patterns.n_domains > 1 else patterns.domain_r
        patterns = as_rows(ballot, patterns.clamp_r[patterns.row_i], Domains(told, patterns.n_domains))
    return Rows(patterns, np.asarray(ballot.count_i, dtype=np.float64))


def hashes_in_buckets(part: Part, b: int, n_buckets: int) -> list[pl.DataFrame]:
    """Compute the hashes of one part's rows, with their numbers of items, in buckets by hash."""
    patterns = part.patterns[b]
    one_r, other_r = hashed(patterns, 0), hashed(patterns, 1)
    columns = {
        "one": one_r,
        "other": other_r,
        "row": np.arange(patterns.n_rows),
        "weight": patterns.weight_r,
        "count": items_by_row(patterns, part.votes.ballots[b]),
    }
    bucket_r = one_r % np.uint64(n_buckets)
    return [pl.DataFrame({name: column[bucket_r == h] for name, column in columns.items()}) for h in range(n_buckets)]


def assign_to_first(*pieces: pl.DataFrame) -> list[pl.DataFrame]:
    """Assign each row of a bucket to the first part that has it, with the items of all; return the rows by part."""
    together = pl.concat([piece.with_columns(part=pl.lit(p)) for p, piece in enumerate(pieces)])
    first = together.group_by("one", "other", maintain_order=True).agg(
        pl.col("part", "row").first(), pl.col("weight", "count").sum()
    )
    by_part = first.partition_by("part", as_dict=True)
    return [by_part.get((p,), first.clear()).select("row", "weight", "count") for p in range(len(pieces))]


def own_rows(part: Part, b: int, *pieces: pl.DataFrame) -> Rows:
    """Select the rows that are assigned to one part."""
    mine = pl.concat(pieces).sort("row")
    rows = part.patterns[b].take(mine["row"].to_numpy())
    return Rows(replace(rows, weight_r=mine["weight"].to_numpy()), mine["count"].to_numpy())


def with_rows(part: Part, *own: Rows) -> Part:
    """Return a part with the rows assigned to it."""
    return replace(part, agreed=own)
