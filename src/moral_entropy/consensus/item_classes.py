"""Item classes: items that no rule and no statistic of counts can tell apart, each class once with its number of items.

Rules, agreement between annotators and gold look at an item's domain, its votes by label, its gold and its published
label. However many items there are, these combinations are few. Takes `Votes`, returns classes, or `Votes` with one
item per class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Votes

DOMAIN, GOLD, PUBLISHED, COUNTS = 0, 1, 2, slice(3, None)
"""Columns of `fact_nf`."""


@dataclass(frozen=True, eq=False)
class PartialBallot(Ballot):
    """The votes on one question of some of its items; `votes_a` counts the annotators' votes on all of them."""

    votes_a: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def partial_ballot(ballot: Ballot, votes_a: Ints, **changes: object) -> PartialBallot:
    """Make a partial ballot of a ballot, some of its fields changed."""
    same = {one.name: getattr(ballot, one.name) for one in fields(Ballot)}
    return PartialBallot(**same | changes, votes_a=np.asarray(votes_a, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class ItemClasses:
    """The classes of a ballot's items. Axes: **n** class, **f** fact: domain, gold, published, votes by label.

    Parameters
    ----------
    fact_nf
        What items of a class have in common; sorted.
    weight_n
        How many items it stands for.
    """

    fact_nf: NDArray[np.int64]
    weight_n: Floats


def facts_of(votes: Votes, ballot: Ballot) -> list[Ints]:
    """Return the facts of every item of a ballot, column by column: `fact_fi`."""
    return [votes.domain_i[ballot.item_i], ballot.gold_i, ballot.published_i, *ballot.counts_ik.T]


def classify(fact_fi: Sequence[Ints], count_i: Floats) -> tuple[ItemClasses, Ints]:
    """Sort items into classes by their facts; return the classes, and each item's class."""
    class_i, first_n = _numbered(fact_fi)
    weight_n = np.bincount(class_i, weights=count_i, minlength=len(first_n)).astype(np.float64)
    fact_nf = np.column_stack([fact_i[first_n] for fact_i in fact_fi]).astype(np.int64)
    # Classes are few: 16 bits per item are enough nearly always.
    narrow = np.uint16 if len(first_n) <= 1 << 16 else np.int64
    return ItemClasses(fact_nf, weight_n), class_i.astype(narrow)


def _numbered(fact_fi: Iterable[Ints]) -> tuple[Ints, Ints]:
    """Number distinct items in the order of their facts; return each item's number, and each number's first item."""
    return number_rows(fact_i - UNKNOWN for fact_i in fact_fi)


def add_classes(several: Sequence[ItemClasses]) -> ItemClasses:
    """Add up the classes of several parts."""
    if len(several) == 1:
        return several[0]
    fact_xf, weight_x = (np.concatenate([getattr(one, name) for one in several]) for name in ("fact_nf", "weight_n"))
    return classify(list(fact_xf.T), weight_x)[0]


def place_of(fact_mf: Ints, fact_nf: Ints) -> NDArray[np.int64]:
    """Find the position of some distinct facts among sorted ones that hold them all.

    Examples
    --------
    >>> place_of(np.array([[0, 2], [0, 1]]), np.array([[0, 1], [0, 2], [1, 0]])).tolist()
    [1, 0]
    """
    class_x, _ = _numbered(np.concatenate([fact_nf, fact_mf]).T)
    return np.asarray(class_x[len(fact_nf) :], dtype=np.int64)


def votes_of_classes(template: Votes, classes: Sequence[ItemClasses], votes_ba: Sequence[Ints]) -> Votes:
    """Make votes with one item per class: right in all that depends on counts; who cast a vote is not kept.

    Parameters
    ----------
    template
        Questions, labels, annotators and domains.
    classes
        By ballot.
    votes_ba
        By ballot, how many votes each annotator gave; those without any are left out.
    """
    ends = np.cumsum([0, *(len(one.fact_nf) for one in classes)])
    made = zip(template.ballots, classes, votes_ba, ends[:-1], strict=True)
    return replace(
        template,
        items=pl.Series(range(ends[-1]), dtype=pl.Int64),
        ballots=tuple(_ballot_of_classes(ballot, one, votes_a, first) for ballot, one, votes_a, first in made),
        domain_i=np.concatenate([one.fact_nf[:, DOMAIN] for one in classes]).astype(np.int32),
        texts=None,
        extra={},
    )


def _ballot_of_classes(ballot: Ballot, classes: ItemClasses, votes_a: Ints, first: int) -> PartialBallot:
    counts_nk = classes.fact_nf[:, COUNTS]
    n_classes, n_labels = counts_nk.shape
    kept_a = np.flatnonzero(votes_a)
    # Counts do not say who voted: every vote is written as the first annotator's, and no caller may rely on it.
    label_v = np.repeat(np.tile(np.arange(n_labels), n_classes), counts_nk.ravel())
    return partial_ballot(
        ballot,
        np.asarray(votes_a)[kept_a],
        item_i=np.arange(first, first + n_classes, dtype=np.int32),
        annotator_a=ballot.annotator_a[kept_a],
        start_i=np.concatenate([[0], np.cumsum(counts_nk.sum(axis=1))]).astype(np.int64),
        code_v=label_v.astype(np.int32),
        count_i=classes.weight_n,
        gold_i=classes.fact_nf[:, GOLD].astype(np.int16),
        published_i=classes.fact_nf[:, PUBLISHED].astype(np.int16),
    )


def number_rows(columns: Iterable[Ints]) -> tuple[Ints, Ints]:
    """Number the distinct rows of some columns of small whole numbers; return also each number's first row.

    Examples
    --------
    >>> number_rows([np.array([0, 1, 0]), np.array([2, 2, 2])])
    (array([0, 1, 0]), array([0, 1]))
    """
    key_i: NDArray[np.int64] | None = None
    size = 1
    for column_i in columns:
        n = int(column_i.max(initial=0)) + 1
        if key_i is None:
            key_i, size = column_i.astype(np.int64), n
            continue
        if n == 1:
            # The same everywhere, such as no gold at all: it tells no rows apart.
            continue
        if size > np.iinfo(np.int64).max // n:
            distinct, key_i = np.unique(key_i, return_inverse=True)
            size = len(distinct)
        # In place: there may be very many rows.
        key_i *= n
        key_i += column_i
        size *= n
    if key_i is not None and size <= max(4 * len(key_i), 1 << 16):
        return _number_by_table(key_i, size)
    _, first_g, group_i = np.unique(key_i, return_index=True, return_inverse=True)  # type: ignore[call-overload]
    return group_i, first_g


def _number_by_table(key_i: NDArray[np.int64], size: int) -> tuple[Ints, Ints]:
    """Number the keys that occur, without sorting them: with a table of all possible keys."""
    first_k = np.full(size, -1)
    # Of several writes to one place the last one stays: written backwards, that is the first item.
    first_k[key_i[::-1]] = np.arange(len(key_i))[::-1]
    seen_k = first_k >= 0
    return (np.cumsum(seen_k) - 1)[key_i], first_k[seen_k]
