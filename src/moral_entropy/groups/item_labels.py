"""What each group says of each item: rows of `group_items`, and how much of an item's entropy lies between groups.

A group has a label of its own where a truth per group is supported. Then a part of the doubt about "the" label is not
doubt: it goes away as soon as one says whose label is meant.
Axes: **i** item, **g** group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import entr

from moral_entropy.groups.coupled_truths import Truths, YesVotes
from moral_entropy.names import CAMPS
from moral_entropy.ties import tie_key
from moral_entropy.votes.table import Floats, Ints

CELLS_AT_ONCE = 200_000
"""Items times groups whose places are held at once."""


@dataclass(frozen=True, eq=False)
class GroupLabels:
    """What the groups of one column say of the items, on one label.

    Parameters
    ----------
    column
        The column of the groups.
    own
        Whether a truth per group is supported.
    gain
        How much better it tells left-out votes, in nats per annotator.
    yes_ig
        Share of a group's members who are expected to say yes.
    label_ig
        Probability that yes is the group's label.
    weight_g
        Annotators per group.
    """

    column: str
    own: bool
    gain: float
    yes_ig: Floats
    label_ig: Floats
    weight_g: Floats


def labels_of_all(fit: Truths, votes: YesVotes) -> tuple[Floats, Floats]:
    """Return `yes_ig` and `label_ig` of all items, told by a fit to the votes on some of them.

    Parameters
    ----------
    fit
        The fit.
    votes
        The votes of the same annotators on all items.
    """
    n_groups = fit.member_ag.shape[1]
    size = max(CELLS_AT_ONCE // n_groups, 1)
    chunks = [np.arange(first, min(first + size, votes.n_items)) for first in range(0, votes.n_items, size)]
    told = [_told(fit.on(votes.on_items(some_i))) for some_i in chunks]
    yes_ig, label_ig = (np.concatenate([np.empty((0, n_groups)), *some]) for some in zip(*told, strict=True))
    return yes_ig, label_ig


def _told(fit: Truths) -> tuple[Floats, Floats]:
    return fit.yes_ig, fit.label_ig


def count_by_group(votes: YesVotes, group_a: Ints, n_groups: int) -> tuple[Ints, Ints]:
    """Count votes and yes votes by item and group; annotators without a group are left out."""
    known_v = group_a[votes.annotator_v] >= 0
    key_v = votes.item_v[known_v] * n_groups + group_a[votes.annotator_v[known_v]]
    size, shape = votes.n_items * n_groups, (votes.n_items, n_groups)
    votes_ig = np.bincount(key_v, minlength=size).reshape(shape)
    yes_ig = np.bincount(key_v, weights=votes.yes_v[known_v], minlength=size).reshape(shape)
    return votes_ig, yes_ig.astype(np.int64)


def group_item_rows(
    place: Mapping[str, str], items: pl.Series, names: Sequence[str], counts: tuple[Ints, Ints], found: GroupLabels
) -> pl.DataFrame:
    """Return one row per item and group: its votes, what its members are expected to say, and how far groups part.

    Parameters
    ----------
    place
        Question, part, column and label, the same in all rows.
    items
        Ids of the items.
    names
        Names of the groups.
    counts
        Votes and yes votes by item and group.
    found
        What the groups say.
    """
    yes_ig, n_groups = found.yes_ig, len(names)
    between_i = between_groups(yes_ig, found.weight_g) if found.own else np.full(len(yes_ig), np.nan)
    columns: dict[str, Any] = {
        "item": items.gather(np.repeat(np.arange(len(items)), n_groups)),
        "group": pl.Series(list(names), dtype=pl.String).gather(np.tile(np.arange(n_groups), len(items))),
        "n_votes": counts[0].ravel(),
        "n_yes": counts[1].ravel(),
        "p": yes_ig.ravel(),
        "spread": np.repeat(yes_ig.max(axis=1) - yes_ig.min(axis=1), n_groups),
        "between": pl.Series(np.repeat(between_i, n_groups)).fill_nan(None),
    }
    return pl.DataFrame(columns).with_columns(**{name: pl.lit(value) for name, value in place.items()})


def between_groups(yes_ig: Floats, weight_g: Floats) -> Floats:
    """Return the part of an answer's entropy, in nats, that lies between groups: what knowing the group would remove.

    Parameters
    ----------
    yes_ig
        Probability of yes by group.
    weight_g
        How large each group is.

    Examples
    --------
    >>> between_groups(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1.0, 1.0])).round(3)
    array([0.693, 0.   ])
    """
    share_g = weight_g / weight_g.sum()
    return np.asarray(np.maximum(_entropy(yes_ig @ share_g) - _entropy(yes_ig) @ share_g, 0.0))


def _entropy(p: Floats) -> Floats:
    return np.asarray(entr(np.clip(p, 0.0, 1.0)) + entr(1.0 - np.clip(p, 0.0, 1.0)))


def share_between(labels: Sequence[GroupLabels]) -> tuple[str, Floats] | None:
    """Return the share of each item's label entropy that lies between groups, and the column of those groups.

    One column is chosen, as shares of several would overlap: one with a truth per group, a named column before camps,
    the largest gain first. With more than two labels, each is taken as yes in turn: the parts of those
    with a truth per group are added up and divided by the entropies of all. None if no truth per group is supported.

    Parameters
    ----------
    labels
        What groups say of the items of one question, by column and label.

    Examples
    --------
    >>> own = GroupLabels("gender", True, 1.0, np.eye(2), np.array([[1.0, 0.0], [0.9, 0.9]]), np.ones(2))
    >>> column, share_i = share_between([own])
    >>> column, share_i.round(3).tolist()
    ('gender', [1.0, 0.0])
    """
    if not any(one.own for one in labels):
        return None
    column = min(_by_rank(labels))[-1]
    of_column = [one for one in labels if one.column == column]
    total_i = np.sum([_entropy(one.label_ig @ (one.weight_g / one.weight_g.sum())) for one in of_column], axis=0)
    parts = [between_groups(one.label_ig, one.weight_g) for one in of_column if one.own]
    share_i = np.sum(parts, axis=0) / np.where(total_i > 0.0, total_i, 1.0)
    return column, np.clip(share_i, 0.0, 1.0)


def _by_rank(labels: Sequence[GroupLabels]) -> Iterator[tuple[bool, float, int, str]]:
    columns = list(dict.fromkeys(one.column for one in labels if one.own))
    for at, column in enumerate(columns):
        gain = sum(one.gain for one in labels if one.own and one.column == column)
        yield column == CAMPS, -tie_key(gain), at, column
