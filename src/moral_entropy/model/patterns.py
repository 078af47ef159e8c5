"""Collapse identical items to weighted rows.

Items with the same set of (annotator, label) pairs have the same posterior under every parameter: one row with a
weight stands for them all. Where collapsing does not pay, every item keeps its own row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Votes, count_labels

Values = TypeVar("Values", bound=NDArray[Any])

WORTHWHILE = 0.8
"""Collapse when the rows are at most this share of the items."""

SAMPLE = 200_000
"""Items looked at to decide whether collapsing pays."""

ROWS_AT_ONCE = 1 << 18

FACTS = np.uint64(1 << 40)
"""Added to what is known of an item before it is scrambled: else one vote and one domain could change places."""


@dataclass(frozen=True, eq=False)
class Patterns:
    """Votes by row of identical items. Axes: **r** row, **i** item, **v** vote.

    Parameters
    ----------
    n_annotators, n_labels
        As in the ballot.
    start_r, code_v
        The votes of each row, as in `Ballot`.
    weight_r
        How many items the row stands for; 0 for items without a vote, which carry no information about parameters.
    clamp_r
        Label the row's items are known to have, `UNKNOWN` where it is to be estimated.
    row_i
        The row of every item.
    domain_r, n_domains
        Domain of the row's items, where every domain has a prevalence of its own; else all items are in domain 0.
    """

    n_annotators: int
    n_labels: int
    start_r: NDArray[np.int64]
    code_v: NDArray[np.int32]
    weight_r: Floats
    clamp_r: NDArray[np.int16]
    row_i: Ints
    domain_r: NDArray[np.int32]
    n_domains: int = 1

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.weight_r)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The votes as kernels take them."""
        return self.start_r, self.code_v, self.weight_r, self.clamp_r, self.domain_r

    @cached_property
    def votes_ak(self) -> Floats:
        """Number of votes of every annotator for every label; those of identical items are all counted."""
        votes_c = np.zeros(self.n_annotators * self.n_labels)
        # Some rows at a time: a weight for every vote would be more than the votes themselves.
        for rows in self.chunks():
            start_r = self.start_r[rows.start : rows.stop + 1]
            weight_v = np.repeat(self.weight_r[rows], np.diff(start_r))
            votes_c += np.bincount(self.code_v[start_r[0] : start_r[-1]], weights=weight_v, minlength=len(votes_c))
        return votes_c.reshape(self.n_annotators, -1)

    @cached_property
    def items_d(self) -> Floats:
        """Items with a vote, by domain."""
        if self.n_domains == 1:
            return np.array([self.weight_r.sum()])
        return np.bincount(self.domain_r, weights=self.weight_r, minlength=self.n_domains).astype(np.float64)

    @cached_property
    def counts_rk(self) -> NDArray[np.int32]:
        """Number of votes by row and label."""
        return count_labels(self.start_r, self.code_v, self.n_labels)

    def chunks(self, size: int = ROWS_AT_ONCE) -> list[slice]:
        """Return consecutive slices that cover all rows."""
        return [slice(lo, min(lo + size, self.n_rows)) for lo in range(0, self.n_rows, size)]

    def spread(self, values_r: Values) -> Values:
        """Return the value of each item's row, for every item."""
        return cast("Values", values_r[self.row_i]) if self.n_rows < len(self.row_i) else values_r

    def take(self, rows: Ints) -> Patterns:
        """Keep only some rows, with all annotators; every kept row then counts as one item in `row_i`."""
        votes_r = np.diff(self.start_r)[rows]
        start_r = np.concatenate([[0], np.cumsum(votes_r)]).astype(np.int64)
        at_v = np.repeat(self.start_r[rows] - start_r[:-1], votes_r) + np.arange(start_r[-1])
        return replace(
            self,
            start_r=start_r,
            code_v=self.code_v[at_v],
            weight_r=self.weight_r[rows],
            clamp_r=self.clamp_r[rows],
            row_i=np.arange(len(rows)),
            domain_r=self.domain_r[rows] if self.n_domains > 1 else self.domain_r,
        )

    def every(self, step: int) -> Patterns:
        """Return every n-th row, where all of them would be too much work; itself if the step is 1 or less."""
        return self if step <= 1 else self.take(np.arange(0, self.n_rows, step))

    def sample(self, most_votes: int) -> Patterns:
        """Return every n-th row, so that about `most_votes` votes are left; weights grow by as much."""
        rows = self.every(-(-len(self.code_v) // most_votes))
        return replace(rows, weight_r=rows.weight_r * (self.weight_r.sum() / max(rows.weight_r.sum(), 1.0)))


def collapse(
    ballot: Ballot, *, use_gold: bool = False, domains_from: Votes | None = None, whole: bool = False
) -> Patterns:
    """Collapse a ballot's identical items, where it pays.

    Parameters
    ----------
    ballot
        The votes.
    use_gold
        Clamp items with known truth to it, as evidence.
    domains_from
        The votes that know the domains of the items, where every domain counts on its own: items of two domains are
        never identical, and those without one are a domain of their own, the last. Where there are not several
        domains, or the ballot is one part of a question, all its items are in one.
    whole
        Keep a row for every item.

    Examples
    --------
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> ballot = ballot_from_codes("q", ("0", "1"), item_v=[0, 1, 2], annotator_v=[0, 0, 0], label_v=[1, 0, 1])
    >>> patterns = collapse(ballot)
    >>> patterns.weight_r, patterns.row_i
    (array([2., 1.]), array([0, 1, 0]))
    """
    clamp_i = ballot.gold_i if use_gold else np.full(ballot.n_items, UNKNOWN, dtype=np.int16)
    items = Patterns(
        n_annotators=ballot.n_annotators,
        n_labels=ballot.n_labels,
        start_r=ballot.start_i,
        code_v=ballot.code_v,
        weight_r=np.where(ballot.votes_i > 0, ballot.count_i, 0.0),
        # A copy: what Polars lends is read-only, which kernels refuse.
        clamp_r=np.array(clamp_i, dtype=np.int16),
        row_i=np.arange(ballot.n_items, dtype=np.int32 if ballot.n_items < 2**31 else np.int64),
        domain_r=np.zeros(0, dtype=np.int32),
    )
    if domains_from is not None and len(domains_from.domains) > 1 and not ballot.part:
        domain_i, n_named = domains_from.domain_i[ballot.item_i], len(domains_from.domains)
        domain_i = np.where(domain_i == UNKNOWN, n_named, domain_i).astype(np.int32)
        items = replace(items, domain_r=domain_i, n_domains=n_named + 1)
    if whole or not items.n_rows or len(np.unique(hashes := _hashes(items, SAMPLE))) > WORTHWHILE * len(hashes):
        return items
    # Two items that differ have the same hash once in 10^19.
    _, first_g, group_i = np.unique(_hashes(items, items.n_rows), return_index=True, return_inverse=True)
    # Numbered by first appearance.
    order_g = np.argsort(first_g)
    rank_g = np.empty_like(order_g)
    rank_g[order_g] = np.arange(len(order_g))
    row_i, first_r = rank_g[group_i], first_g[order_g]
    weight_r: Floats = np.bincount(row_i, weights=items.weight_r, minlength=len(first_r)).astype(np.float64)
    return replace(items.take(first_r), weight_r=weight_r, row_i=row_i)


def _hashes(rows: Patterns, limit: int) -> NDArray[np.uint64]:
    """Compute 64-bit hashes of the first rows: of their votes, their known label and their domain."""
    n_rows = min(rows.n_rows, limit)
    hash_r = np.empty(n_rows, dtype=np.uint64)
    for lo in range(0, n_rows, ROWS_AT_ONCE):
        hi = min(lo + ROWS_AT_ONCE, n_rows)
        start_r = rows.start_r[lo : hi + 1]
        mixed_v = _mix(rows.code_v[start_r[0] : start_r[-1]].astype(np.uint64))
        sums_v = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed_v, dtype=np.uint64)])
        at_r = start_r - start_r[0]
        facts_r = rows.clamp_r[lo:hi].astype(np.int64) + 1
        if rows.n_domains > 1:
            facts_r = facts_r * rows.n_domains + rows.domain_r[lo:hi]
        hash_r[lo:hi] = (sums_v[at_r[1:]] - sums_v[at_r[:-1]]) ^ _mix(facts_r.astype(np.uint64) + FACTS)
    return hash_r


def _mix(number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers (the finaliser of splitmix64)."""
    number = (number + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))
