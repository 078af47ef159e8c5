"""Assign annotators to items, for simulated votes.

In: how many votes each item gets. Out: different annotators for each item, all equally likely (`assign_evenly`) or in
proportion to how busy they are (`assign_by_weight`). Knows nothing of labels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moral_entropy.votes.table import Floats

FEW_VOTES = 32
"""Up to this many votes per item annotators are drawn one after the other, beyond by ranking random numbers."""

CELLS_AT_ONCE = 4_000_000


def assign_evenly(rng: np.random.Generator, votes_i: NDArray[np.int64], n_annotators: int) -> NDArray[np.int32]:
    """Draw the annotators of each item: all different, every set of them as likely as any other.

    Parameters
    ----------
    rng
        Where the randomness comes from.
    votes_i
        How many annotators each item gets.
    n_annotators
        How many there are to draw from.

    Returns
    -------
    NDArray[np.int32]
        Annotators of the first item ascending, then those of the second, and so on.

    Examples
    --------
    >>> assign_evenly(np.random.default_rng(0), np.array([3, 3]), 3).tolist()
    [0, 1, 2, 0, 1, 2]
    """
    draw = _draw_one_by_one if votes_i.max(initial=0) <= FEW_VOTES else _draw_by_rank
    return draw(rng, votes_i, n_annotators)


def _draw_one_by_one(rng: np.random.Generator, votes_i: NDArray[np.int64], n_annotators: int) -> NDArray[np.int32]:
    # Items with many votes first, so that those still drawing are always a prefix.
    order_i = np.argsort(-votes_i, kind="stable")
    chosen_ti = np.full((votes_i.max(initial=0), len(votes_i)), n_annotators, dtype=np.int32)
    for t in range(len(chosen_ti)):
        n_open = np.count_nonzero(votes_i > t)
        # The new one is the r-th of those not chosen yet. Stepping over the chosen, which are sorted, finds it;
        # once it fits below one of them it takes that place, and the larger is carried on.
        carried_i = rng.integers(n_annotators - t, size=n_open, dtype=np.int32)
        for chosen_i in chosen_ti[:t, :n_open]:
            carried_i += carried_i >= chosen_i
            smaller_i = np.minimum(chosen_i, carried_i)
            np.maximum(chosen_i, carried_i, out=carried_i)
            chosen_i[:] = smaller_i
        chosen_ti[t, :n_open] = carried_i
    chosen_it = np.empty(chosen_ti.shape[::-1], dtype=np.int32)
    chosen_it[order_i] = chosen_ti.T
    return chosen_it[chosen_it < n_annotators]


def _draw_by_rank(rng: np.random.Generator, votes_i: NDArray[np.int64], n_annotators: int) -> NDArray[np.int32]:
    rows_at_once = max(1, CELLS_AT_ONCE // n_annotators)
    parts = []
    for first in range(0, len(votes_i), rows_at_once):
        rows_i = votes_i[first : first + rows_at_once]
        rank_ia = rng.random((len(rows_i), n_annotators)).argsort(axis=1).argsort(axis=1)
        parts.append(np.nonzero(rank_ia < rows_i[:, None])[1].astype(np.int32))
    return np.concatenate(parts)


def assign_by_weight(rng: np.random.Generator, votes_i: NDArray[np.int64], weight_a: Floats) -> NDArray[np.int32]:
    """Draw the annotators of each item one after the other, in proportion to how busy they are.

    Parameters
    ----------
    rng
        Where the randomness comes from.
    votes_i
        How many annotators each item gets, all of them different.
    weight_a
        How busy each annotator is, in any unit; positive.

    Returns
    -------
    NDArray[np.int32]
        Annotators of the first item ascending, then those of the second, and so on.

    Examples
    --------
    >>> annotator_v = assign_by_weight(np.random.default_rng(0), np.ones(1000, dtype=int), np.array([9.0, 1.0]))
    >>> np.bincount(annotator_v).tolist()
    [904, 96]
    """
    n_annotators = len(weight_a)
    below_a = weight_a.cumsum()[:-1] / weight_a.sum()
    chosen_it = np.full((len(votes_i), votes_i.max(initial=0)), n_annotators, dtype=np.int32)
    for t in range(chosen_it.shape[1]):
        open_i = np.flatnonzero(votes_i > t)
        while len(open_i):
            drawn_i = np.searchsorted(below_a, rng.random(len(open_i)), side="right")
            # Where the annotator has already voted on the item, another one is drawn.
            fresh_i = (chosen_it[open_i] != drawn_i[:, None]).all(axis=1)
            chosen_it[open_i[fresh_i], t] = drawn_i[fresh_i]
            open_i = open_i[~fresh_i]
    chosen_it.sort(axis=1)
    return chosen_it[chosen_it < n_annotators]
