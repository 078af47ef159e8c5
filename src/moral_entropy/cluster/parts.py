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
from moral_entropy.votes.table import Ballot, Ints, Votes


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
    >>> from moral_entropy.votes.simulate import simulate_votes
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
class Part:
    """What a worker holds.

    Parameters
    ----------
    votes
        Some items and the votes on them; every ballot is a `Share`.
    patterns
        By ballot, the same votes with identical items collapsed.
    """

    votes: Votes
    patterns: tuple[Patterns, ...]

    @cached_property
    def likelihoods(self) -> tuple[LogPosterior, ...]:
        """By ballot, the log posterior without a prior; a task has one thread, as Dask runs several."""
        nothing = ((np.zeros(one.n_labels), one) for one in self.patterns)
        return tuple(
            LogPosterior(one, zero_k, np.zeros((one.n_annotators, one.n_labels, one.n_labels)), threads=1)
            for zero_k, one in nothing
        )


def make_part(votes: Votes, use_gold: bool) -> Part:
    """Collapse the identical items of some votes."""
    return Part(votes, tuple(collapse(ballot, use_gold=use_gold) for ballot in votes.ballots))


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
