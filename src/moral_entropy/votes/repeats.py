"""Repeats: an annotator who votes twice on one item.

Takes a sorted ballot and the votes it was made from; refuses the repeats, or keeps one vote of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moral_entropy.errors import VotesError
from moral_entropy.votes.table import Ballot, Ints


@dataclass(frozen=True, eq=False)
class Cast:
    """The votes of a ballot in the order of the source. Axis: **v** vote; codes as in the ballot."""

    item_v: Ints
    annotator_v: Ints
    label_v: Ints
    row_v: Ints | None

    def rows(self, at_v: Ints) -> Ints:
        """Give the source's rows of some votes."""
        return at_v if self.row_v is None else self.row_v[at_v]

    def only(self, at_v: Ints) -> Cast:
        """Keep some votes."""
        return Cast(self.item_v[at_v], self.annotator_v[at_v], self.label_v[at_v], self.rows(at_v))


def find_repeats(ballot: Ballot) -> NDArray[np.bool_]:
    """Say of each vote whether the vote before it is by the same annotator on the same item.

    Examples
    --------
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> ballot = ballot_from_codes("care", ("no", "yes"), item_v=[0, 0, 1], annotator_v=[0, 0, 0], label_v=[1, 0, 1])
    >>> find_repeats(ballot).tolist()
    [False, True, False]
    """
    annotator_v = ballot.code_v // np.int32(ballot.n_labels)
    again_v = np.zeros(ballot.n_votes, dtype=np.bool_)
    np.equal(annotator_v[1:], annotator_v[:-1], out=again_v[1:])
    start_i = ballot.start_i[:-1]
    again_v[start_i[start_i < ballot.n_votes]] = False
    return again_v


def refuse_repeats(
    ballot: Ballot,
    again_v: NDArray[np.bool_],
    cast: Cast,
    name_item: Callable[[int], Any],
    name_annotator: Callable[[int], Any],
) -> VotesError:
    """Word the error: how many, and the first pair with both its votes.

    Parameters
    ----------
    ballot, again_v
        The ballot, and which of its votes repeat.
    cast
        Its votes in the order of the source.
    name_item, name_annotator
        Give the id of an item and of an annotator of the ballot.
    """
    first = int(again_v.argmax())
    item = int(np.searchsorted(ballot.start_i, first, side="right")) - 1
    annotator = int(ballot.code_v[first]) // ballot.n_labels
    at_v = np.flatnonzero((cast.item_v == item) & (cast.annotator_v == annotator))[:2]
    votes = [
        f"{ballot.labels[int(label)]!r} (row {int(row) + 1:,})"
        for label, row in zip(cast.label_v[at_v], cast.rows(at_v), strict=True)
    ]
    msg = (
        f"{int(again_v.sum()):,} of {ballot.n_votes:,} votes on {ballot.question!r} repeat an (item, annotator) pair. "
        f"First: item {name_item(item)!r}, annotator {name_annotator(annotator)!r} voted {' and '.join(votes)}. "
        'Choose on_repeat="first", "last" or, to keep each as a vote of its own, "count" (CLI: --on-repeat last).'
    )
    return VotesError(msg)


def one_each(cast: Cast, *, last: bool) -> Cast:
    """Keep the first, or the last, vote of each annotator on each item, in the order of the source."""
    key_v = cast.item_v.astype(np.int64) * (int(cast.annotator_v.max(initial=0)) + 1) + cast.annotator_v
    row_v = cast.rows(np.arange(len(key_v)))
    order = np.lexsort((row_v, key_v))
    differs = key_v[order][1:] != key_v[order][:-1]
    kept = np.append(differs, True) if last else np.insert(differs, 0, True)
    return cast.only(np.sort(order[kept]))
