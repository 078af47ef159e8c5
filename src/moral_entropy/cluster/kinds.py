"""Kinds: items that no rule and no statistic of counts can tell apart, each kind once with how many items it has.

Rules, agreement between annotators and gold look at an item's domain, its votes by label, its gold and its published
label. However many items there are, these combinations are few: they fit on the driver, as `Votes` with counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.audit.cells import number_rows
from moral_entropy.cluster.parts import Part, Share
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Votes

DOMAIN, GOLD, PUBLISHED, COUNTS = 0, 1, 2, slice(3, None)
"""Columns of a kind."""


@dataclass(frozen=True, eq=False)
class Kinds:
    """The kinds of a ballot's items. Axes: **n** kind, **f** fact: domain, gold, published, votes by label.

    Parameters
    ----------
    fact_nf
        What items of a kind have in common; sorted.
    weight_n
        How many items they stand for.
    """

    fact_nf: NDArray[np.int64]
    weight_n: Floats


def facts_of(votes: Votes, ballot: Ballot) -> NDArray[np.int64]:
    """Give the facts of every item of a ballot: `fact_if`."""
    columns = (votes.domain_i[ballot.item_i], ballot.gold_i, ballot.published_i)
    return np.column_stack([*columns, ballot.counts_ik]).astype(np.int64)


def kinds_of_part(part: Part) -> list[Kinds]:
    """Sort the items of each ballot of a part into kinds."""
    found = []
    for ballot in part.votes.ballots:
        fact_if = facts_of(part.votes, ballot)
        kind_i, first_n = numbered(fact_if)
        weight_n = np.bincount(kind_i, weights=ballot.count_i, minlength=len(first_n)).astype(np.float64)
        found.append(Kinds(fact_if[first_n], weight_n))
    return found


def numbered(fact_if: Ints) -> tuple[Ints, Ints]:
    """Number distinct items in the order of their facts; give each number's first item."""
    return number_rows([column_i - UNKNOWN for column_i in fact_if.T])


def add_kinds(several: Sequence[Kinds]) -> Kinds:
    """Add up the kinds of several parts."""
    fact_xf, weight_x = (np.concatenate([getattr(one, name) for one in several]) for name in ("fact_nf", "weight_n"))
    kind_x, first_n = numbered(fact_xf)
    return Kinds(fact_xf[first_n], np.bincount(kind_x, weights=weight_x, minlength=len(first_n)).astype(np.float64))


def place_of(fact_if: Ints, fact_nf: Ints) -> NDArray[np.int64]:
    """Find every item's kind among sorted kinds.

    Examples
    --------
    >>> place_of(np.array([[0, 2], [0, 1]]), np.array([[0, 1], [0, 2], [1, 0]])).tolist()
    [1, 0]
    """
    own_i, first_m = numbered(fact_if)
    kind_x, _ = numbered(np.concatenate([fact_nf, fact_if[first_m]]))
    return np.asarray(kind_x[len(fact_nf) :][own_i], dtype=np.int64)


def votes_of_kinds(template: Votes, kinds: Sequence[Kinds], votes_ba: Sequence[Ints]) -> Votes:
    """Give votes with an item a kind: right in all that depends on counts, silent on who voted.

    Parameters
    ----------
    template
        Questions, labels, annotators and domains.
    kinds
        By ballot.
    votes_ba
        By ballot, how many votes each annotator gave; those without any are left out.
    """
    ends = np.cumsum([0, *(len(one.fact_nf) for one in kinds)])
    made = zip(template.ballots, kinds, votes_ba, ends[:-1], strict=True)
    return replace(
        template,
        items=pl.Series(range(ends[-1]), dtype=pl.Int64),
        ballots=tuple(_ballot_of_kinds(ballot, one, votes_a, first) for ballot, one, votes_a, first in made),
        domain_i=np.concatenate([one.fact_nf[:, DOMAIN] for one in kinds]).astype(np.int32),
        texts=None,
        extra={},
    )


def _ballot_of_kinds(ballot: Ballot, kinds: Kinds, votes_a: Ints, first: int) -> Share:
    counts_nk = kinds.fact_nf[:, COUNTS]
    n_kinds, n_labels = counts_nk.shape
    kept_a = np.flatnonzero(votes_a)
    # Counts do not say whose votes they are: all are put down to the first annotator, and nobody may ask.
    label_v = np.repeat(np.tile(np.arange(n_labels), n_kinds), counts_nk.ravel())
    return Share(
        question=ballot.question,
        labels=ballot.labels,
        positive=ballot.positive,
        item_i=np.arange(first, first + n_kinds, dtype=np.int32),
        annotator_a=ballot.annotator_a[kept_a],
        start_i=np.concatenate([[0], np.cumsum(counts_nk.sum(axis=1))]).astype(np.int64),
        code_v=label_v.astype(np.int32),
        count_i=kinds.weight_n,
        gold_i=kinds.fact_nf[:, GOLD].astype(np.int16),
        published_i=kinds.fact_nf[:, PUBLISHED].astype(np.int16),
        part=ballot.part,
        votes_a=np.asarray(votes_a)[kept_a].astype(np.int64),
    )
