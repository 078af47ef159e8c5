"""Votes in parts on a cluster: each part has consecutive items; parts share rows of identical items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from moral_entropy.cluster.posterior import PartedLogPosterior, Size, size_of, votes_by_code
from moral_entropy.cluster.rows import agree_on_rows
from moral_entropy.consensus.item_classes import PartialBallot, partial_ballot, votes_of_classes
from moral_entropy.consensus.parts import Part, Parts, Rows, join_rows, make_part
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.states import States
from moral_entropy.votes.table import Ballot, Floats, Ints, Votes
from moral_entropy.workers import Workers

VOTES_PER_PART = 400_000
"""Votes that are sent to a worker as one part: few enough bytes for one task."""


@dataclass(frozen=True, eq=False)
class ClusterParts(Parts):
    """Votes that lie with the workers of a cluster; `votes` has one item per class."""

    @property
    def class_votes(self) -> Votes:
        """Votes with one item per class."""
        return self.votes

    def log_posterior(
        self,
        b: int,
        pseudo_g: Floats,
        pseudo_akv: Floats,
        *,
        threads: int | None = None,
        better_than_chance: bool = False,
        between: States | None = None,
    ) -> PartedLogPosterior:
        """Return the log posterior of a ballot, whose passes are made by the workers."""
        nothing = _no_rows(len(pseudo_akv), pseudo_akv.shape[-1], len(pseudo_g) if between else 1)
        own = (nothing, pseudo_g, pseudo_akv, threads, better_than_chance, between)
        count_votes = partial(self.votes_by_code, b)
        return PartedLogPosterior(*own, parts=self, b=b, sizes=self.sizes(b), count_votes=count_votes)

    @cache  # noqa: B019 (parts live as long as their run)
    def votes_by_code(self, b: int) -> Floats:
        """Count the votes of a ballot by code, of all parts."""
        return np.asarray(self.total(votes_by_code, b))

    @cache  # noqa: B019 (parts live as long as their run)
    def sizes(self, b: int) -> list[Size]:
        """Measure a ballot in every part."""
        return self.fetch_each(size_of, b)

    def rows_by_part(self, b: int) -> list[int]:
        """Count the rows of a ballot in every part."""
        return [size.n_rows for size in self.sizes(b)]

    def fetch_rows(self, b: int, wanted: Ints | None = None) -> Rows:
        """Fetch some rows of a ballot by number, or all."""
        edges = np.cumsum([0, *self.rows_by_part(b)]).tolist()
        asked = [
            self.workers.ask(rows_of_part, part, b, None if wanted is None else _between(wanted, first, last))
            for part, first, last in zip(self.handles, edges[:-1], edges[1:], strict=True)
        ]
        return join_rows(self.workers.fetch_all(asked))


def rows_of_part(part: Part, b: int, wanted: Ints | None) -> Rows:
    """Return some of one part's rows, or all."""
    rows = part.counted_rows(b)
    return rows if wanted is None else rows.take(wanted)


def _between(wanted: Ints, first: int, last: int) -> Ints:
    at, until = np.searchsorted(wanted, [first, last])
    return np.asarray(wanted[at:until] - first)


def _no_rows(n_annotators: int, n_labels: int, n_domains: int) -> Patterns:
    """Return patterns without any rows."""
    nothing = np.zeros(0)
    return Patterns(
        n_annotators=n_annotators,
        n_labels=n_labels,
        start_r=np.zeros(1, dtype=np.int64),
        code_v=nothing.astype(np.int32),
        weight_r=nothing,
        clamp_r=nothing.astype(np.int16),
        row_i=nothing.astype(np.int64),
        n_domains=n_domains,
    )


def send_votes(
    votes: Votes, workers: Workers, *, use_gold: bool = False, by_domain: bool = False, n_parts: int | None = None
) -> ClusterParts:
    """Send votes from this machine to the workers of a cluster.

    Parameters
    ----------
    votes
        What was voted.
    workers
        The workers that shall hold the parts.
    use_gold
        Clamp items of known label to it, as evidence.
    by_domain
        Tell items of different domains apart.
    n_parts
        Parts to cut the items into; by default as many as tasks can run at once, and more for very many votes.
    """
    wanted = n_parts or max(workers.n_threads, -(-votes.n_votes // VOTES_PER_PART))
    told = (use_gold, by_domain, workers.threads_per_task)
    made = [workers.ask(make_part, cut, *told) for cut in cut_votes(votes, wanted)]
    return cluster_parts(workers, agree_on_rows(workers, made), votes, [ballot.votes_a for ballot in votes.ballots])


def cluster_parts(workers: Workers, handles: Sequence[Any], template: Votes, votes_ba: Sequence[Ints]) -> ClusterParts:
    """Make `ClusterParts` of parts that the workers hold; their item classes are fetched.

    Parameters
    ----------
    workers, handles
        The workers, and handles of the parts.
    template
        Questions, labels, annotators and domains.
    votes_ba
        By ballot, how many votes each annotator gave; those without any are left out.
    """
    parts = ClusterParts(workers, handles, template)
    return replace(parts, votes=votes_of_classes(template, parts.classes, votes_ba))


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
    ballots = []
    for ballot in votes.ballots:
        at, until = np.searchsorted(ballot.item_i, [first, last]).tolist()
        ballots.append(some_items(ballot, slice(at, until), ballot.votes_a, first_item=first))
    return replace(
        votes,
        items=votes.items.slice(first, last - first),
        ballots=tuple(ballots),
        domain_i=votes.domain_i[first:last],
        texts=None if votes.texts is None else votes.texts.slice(first, last - first),
        extra={},
    )


def some_items(ballot: Ballot, rows: slice, votes_a: Ints, *, first_item: int = 0) -> PartialBallot:
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
    >>> some = some_items(ballot, slice(3, 5), ballot.votes_a, first_item=3)
    >>> some.item_i.tolist(), some.n_votes, int(some.votes_a.sum())
    ([0, 1], 4, 20)
    """
    start_i = ballot.start_i[rows.start : rows.stop + 1]
    return partial_ballot(
        ballot,
        votes_a,
        item_i=(ballot.item_i[rows] - first_item).astype(np.int32),
        start_i=start_i - start_i[0],
        code_v=ballot.code_v[start_i[0] : start_i[-1]],
        count_i=ballot.count_i[rows],
        gold_i=ballot.gold_i[rows],
        published_i=ballot.published_i[rows],
    )
