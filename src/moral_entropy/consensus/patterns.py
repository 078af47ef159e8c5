"""Collapse identical items to weighted rows.

Items with the same set of (annotator, label) pairs have the same posterior under every parameter: one row
with a weight stands for them all. On team-annotated corpora a row stands for several items. Where collapsing does not
pay, every item keeps its own row.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, count_labels

Values = TypeVar("Values", bound=NDArray[Any])

WORTHWHILE = 0.8
"""Collapse when the rows are at most this share of the items."""

SAMPLE = 200_000
"""Items looked at to decide whether collapsing pays."""


def no_domains() -> NDArray[np.int32]:
    """Return the domains of items that are all in one: no list of them."""
    return np.zeros(0, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Domains:
    """The domain of every item of a ballot; one for all, and no list of them, by default."""

    domain_i: NDArray[np.int32] = field(default_factory=no_domains)
    number: int = 1


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
    domain_r: NDArray[np.int32] = field(default_factory=no_domains)
    n_domains: int = 1

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.weight_r)

    @property
    def collapsed(self) -> bool:
        """Whether some items share a row."""
        return self.n_rows < len(self.row_i)

    @cached_property
    def votes_c(self) -> Floats:
        """Number of votes by code; those of identical items are all counted."""
        from moral_entropy.consensus.kernels import count_votes

        votes_c = np.zeros(self.n_annotators * self.n_labels)
        count_votes(self.start_r, self.code_v, self.weight_r, votes_c)
        return votes_c

    @property
    def domains(self) -> Domains:
        """The domain of every item."""
        return Domains(self.domain_r[self.row_i], self.n_domains) if self.n_domains > 1 else Domains()

    @cached_property
    def counts_rk(self) -> NDArray[np.int32]:
        """Number of votes by row and label."""
        return count_labels(self.start_r, self.code_v, self.n_labels)

    def spread(self, values_r: Values) -> Values:
        """Return the value of each item's row, for every item."""
        return cast("Values", values_r[self.row_i]) if self.collapsed else values_r

    def take(self, rows: Ints) -> Patterns:
        """Keep only some rows, with all annotators; every kept row then counts as one item in `row_i`."""
        votes_r = np.diff(self.start_r)[rows]
        start_r = np.concatenate([[0], np.cumsum(votes_r)]).astype(np.int64)
        at_v = np.repeat(self.start_r[rows] - start_r[:-1], votes_r) + np.arange(start_r[-1])
        return Patterns(
            n_annotators=self.n_annotators,
            n_labels=self.n_labels,
            start_r=start_r,
            code_v=self.code_v[at_v],
            weight_r=self.weight_r[rows],
            clamp_r=self.clamp_r[rows],
            row_i=np.arange(len(rows)),
            domain_r=self.domain_r[rows] if self.n_domains > 1 else self.domain_r,
            n_domains=self.n_domains,
        )


def collapse(ballot: Ballot, *, use_gold: bool = False, domains: Domains | None = None) -> Patterns:
    """Collapse a ballot's identical items, where it pays.

    Parameters
    ----------
    ballot
        The votes.
    use_gold
        Clamp items with known truth to it, as evidence.
    domains
        The domain of every item, where domains are told apart: items of two domains are never identical.

    Examples
    --------
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> ballot = ballot_from_codes("q", ("0", "1"), item_v=[0, 1, 2], annotator_v=[0, 0, 0], label_v=[1, 0, 1])
    >>> patterns = collapse(ballot)
    >>> patterns.weight_r, patterns.row_i
    (array([2., 1.]), array([0, 1, 0]))
    """
    clamp_i = ballot.gold_i if use_gold else np.full(ballot.n_items, UNKNOWN, dtype=np.int16)
    clamp_i = np.ascontiguousarray(clamp_i, dtype=np.int16)
    whole = as_rows(ballot, clamp_i, domains)
    if _distinct_share(whole) > WORTHWHILE:
        return whole
    row_i, first_r = _group(whole)
    rows = whole.take(first_r)
    weight_r: Floats = np.bincount(row_i, weights=whole.weight_r, minlength=len(first_r)).astype(np.float64)
    return replace(rows, weight_r=weight_r, row_i=row_i)


def as_rows(ballot: Ballot, clamp_i: NDArray[np.int16], domains: Domains | None = None) -> Patterns:
    """Make one row per item."""
    domains = domains or Domains()
    dtype = np.int32 if ballot.n_items < np.iinfo(np.int32).max else np.int64
    return Patterns(
        n_annotators=ballot.n_annotators,
        n_labels=ballot.n_labels,
        start_r=ballot.start_i,
        code_v=ballot.code_v,
        weight_r=np.where(ballot.votes_i > 0, ballot.count_i, 0.0),
        clamp_r=clamp_i,
        row_i=np.arange(ballot.n_items, dtype=dtype),
        domain_r=domains.domain_i,
        n_domains=domains.number,
    )


def pool_fully(patterns: Patterns) -> Patterns:
    """Return the same votes as if one annotator had cast them all.

    Examples
    --------
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> votes = simulate_votes(n_items=20, n_annotators=4, votes_per_item=3).votes
    >>> pooled = pool_fully(collapse(votes.ballots[0]))
    >>> pooled.n_annotators, bool(pooled.code_v.max() < 2)
    (1, True)
    """
    label_v = (patterns.code_v % patterns.n_labels).astype(np.int64)
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
    order_v = np.lexsort((label_v, row_v))
    return replace(patterns, code_v=label_v[order_v].astype(patterns.code_v.dtype), n_annotators=1)


def forget_domains(patterns: Patterns) -> Patterns:
    """Return the same rows without their domains.

    Examples
    --------
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> votes = simulate_votes(n_items=20, n_annotators=4, votes_per_item=3).votes
    >>> by_domain = collapse(votes.ballots[0], domains=Domains(np.arange(20, dtype=np.int32) % 2, 2))
    >>> by_domain.n_domains, forget_domains(by_domain).n_domains
    (2, 1)
    """
    return replace(patterns, domain_r=no_domains(), n_domains=1)


def _distinct_share(whole: Patterns) -> float:
    # Few annotators make few patterns, however many items there are, and a sample shows it.
    n = min(whole.n_rows, SAMPLE)
    return len(np.unique(hashed(whole, 0, n))) / n if n else 1.0


def _group(whole: Patterns) -> tuple[Ints, Ints]:
    """Number the distinct items by first appearance; return each item's number and each number's first item."""
    for salt in range(8):
        _, first_g, group_i = np.unique(hashed(whole, salt), return_index=True, return_inverse=True)
        order_g = np.argsort(first_g)
        rank_g = np.empty_like(order_g)
        rank_g[order_g] = np.arange(len(order_g))
        row_i, first_r = rank_g[group_i], first_g[order_g]
        from moral_entropy.consensus.kernels import same_rows

        # Two different items almost never have the same hash; if they do, another salt separates them.
        if same_rows(whole.start_r, whole.code_v, whole.clamp_r, whole.domain_r, first_r, row_i):
            return row_i, first_r
    return np.arange(whole.n_rows), np.arange(whole.n_rows)


def hashed(rows: Patterns, salt: int, most: int | None = None) -> NDArray[np.uint64]:
    """Compute 64-bit hashes of the first rows, or of all: of their votes, their known label and their domain."""
    from moral_entropy.consensus.kernels import hash_rows

    hash_r = np.empty(rows.n_rows if most is None else most, dtype=np.uint64)
    hash_rows(rows.start_r, rows.code_v, rows.clamp_r, rows.domain_r, salt, hash_r)
    return hash_r
