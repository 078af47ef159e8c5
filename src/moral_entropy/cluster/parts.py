"""Parts: some items with all that was said of them, as a worker holds them.

A part is `Votes` of its own. Its items are its own; questions, labels, domains and annotators, and how many votes each
annotator gave, are those of the whole, so that what is worked out on a part can be added up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from moral_entropy.consensus.model import LogPosterior
from moral_entropy.consensus.patterns import Patterns, collapse
from moral_entropy.consensus.pooling import pool_fully
from moral_entropy.votes.table import Ballot, Floats, Ints, Votes


@dataclass(frozen=True, eq=False)
class Share(Ballot):
    """The votes on one question of some of its items; `votes_a` are the annotators' votes on all of them."""

    votes_a: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def share_of(ballot: Ballot, rows: slice, votes_a: Ints, *, first_item: int = 0) -> Share:
    """Take consecutive items of a ballot, with all its annotators.

    Parameters
    ----------
    ballot
        The votes.
    rows
        Which items, by position.
    votes_a
        How many votes each annotator gave in all.
    first_item
        Where the part's own list of items begins in `Votes.items`.

    Examples
    --------
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> ballot = simulate_votes(n_items=10, n_annotators=4, votes_per_item=2).votes.ballots[0]
    >>> share = share_of(ballot, slice(3, 5), ballot.votes_a, first_item=3)
    >>> share.item_i.tolist(), share.n_votes, int(share.votes_a.sum())
    ([0, 1], 4, 20)
    """
    start_i = ballot.start_i[rows.start : rows.stop + 1]
    same = {one.name: getattr(ballot, one.name) for one in fields(Ballot)}
    return Share(
        **same
        | {
            "item_i": (ballot.item_i[rows] - first_item).astype(np.int32),
            "start_i": start_i - start_i[0],
            "code_v": ballot.code_v[start_i[0] : start_i[-1]],
            "count_i": ballot.count_i[rows],
            "gold_i": ballot.gold_i[rows],
            "published_i": ballot.published_i[rows],
        },
        votes_a=np.asarray(votes_a, dtype=np.int64),
    )


@dataclass(frozen=True, eq=False)
class OwnRows:
    """The rows of identical items that a part answers for in the fit, in order. Axis: **r** row.

    Items that several parts have in common are a row of the first of them, for all: the rows of all parts, one below
    the other, are those of one machine.

    Parameters
    ----------
    patterns
        The votes of each row; `row_i` says nothing.
    count_r
        How many items the row stands for, with or without votes.
    """

    patterns: Patterns
    count_r: Floats


@dataclass(frozen=True, eq=False)
class Part:
    """What a worker holds.

    Parameters
    ----------
    votes
        Some items and the votes on them; every ballot is a `Share`.
    patterns
        By ballot, the same votes with identical items collapsed.
    own
        By ballot, the rows the part answers for in the fit.
    """

    votes: Votes
    patterns: tuple[Patterns, ...]
    own: tuple[OwnRows, ...]

    @cached_property
    def likelihoods(self) -> tuple[LogPosterior, ...]:
        """By ballot, the log posterior of its own rows without a prior."""
        return tuple(likelihood_of(one.patterns) for one in self.own)


def likelihood_of(patterns: Patterns) -> LogPosterior:
    """Give a log posterior without a prior; it has one thread, as Dask runs several tasks."""
    n_labels = patterns.n_labels
    return LogPosterior(patterns, np.zeros(n_labels), np.zeros((patterns.n_annotators, n_labels, n_labels)), threads=1)


def make_part(votes: Votes, use_gold: bool) -> Part:
    """Collapse the identical items of some votes, as if nobody else had any."""
    patterns = tuple(collapse(ballot, use_gold=use_gold) for ballot in votes.ballots)
    own = (OwnRows(one, items_by_row(one, ballot)) for one, ballot in zip(patterns, votes.ballots, strict=True))
    return Part(votes, patterns, tuple(own))


def pool_part(part: Part) -> Part:
    """Give the same votes as if one annotator had cast them all."""
    own = (replace(one, patterns=pool_fully(one.patterns)) for one in part.own)
    return replace(part, patterns=tuple(map(pool_fully, part.patterns)), own=tuple(own))


def items_by_row(patterns: Patterns, ballot: Ballot) -> Floats:
    """Count the items of every row, those without votes too: `count_r`."""
    return np.bincount(patterns.row_i, weights=ballot.count_i, minlength=patterns.n_rows).astype(np.float64)


def cut_votes(votes: Votes, n_parts: int) -> Iterator[Votes]:
    """Cut votes into parts of consecutive items, with about equally many votes each.

    Parameters
    ----------
    votes
        What was voted.
    n_parts
        How many parts; fewer where there are fewer items.
    """
    before_i = np.zeros(votes.n_items + 1, dtype=np.int64)
    for ballot in votes.ballots:
        before_i[ballot.item_i + 1] += ballot.votes_i
    before_i = np.cumsum(before_i)
    aims = np.arange(1, n_parts) * before_i[-1] / n_parts
    edges = np.unique([0, *np.searchsorted(before_i, aims), votes.n_items])
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        yield _items_between(votes, first, last)


def _items_between(votes: Votes, first: int, last: int) -> Votes:
    shares = []
    for ballot in votes.ballots:
        at, until = np.searchsorted(ballot.item_i, [first, last]).tolist()
        shares.append(share_of(ballot, slice(at, until), ballot.votes_a, first_item=first))
    return replace(
        votes,
        items=votes.items.slice(first, last - first),
        ballots=tuple(shares),
        domain_i=votes.domain_i[first:last],
        texts=None if votes.texts is None else votes.texts.slice(first, last - first),
        extra={name: values.slice(first, last - first) for name, values in votes.extra.items()},
    )
