"""Which vote is most informative: the expected reduction of an item's label entropy by one more vote.

With label probabilities p and the voter's confusion matrix, it is the mutual information between label and vote: the
entropy of the vote minus its mean entropy given the label. Takes arrays, so that it works both on a fit and on the
tables of a run folder.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from moral_entropy.consensus.model import over_blocks
from moral_entropy.ties import highest, tie_key
from moral_entropy.votes.table import Floats, Ints

MOST_INFORMATIVE = 50
"""Number of annotators considered per item: the most informative if all labels are equally likely."""

NOBODY = -1
"""Index where no annotator is left to ask."""

CELLS_AT_ONCE = 200_000


@dataclass(frozen=True, eq=False)
class NextVotes:
    """The most informative further vote on each item. Axis: **i** item.

    Parameters
    ----------
    gain_i
        Expected reduction of the label entropy by that vote, in nats; where nobody is left to ask, `average_i`.
    annotator_i
        Whose vote it is, by row of the confusion matrices; `NOBODY` where all have voted.
    average_i
        The same for a vote of an average annotator: confusion matrices averaged, weighted by votes given.
    """

    gain_i: Floats
    annotator_i: NDArray[np.int64]
    average_i: Floats


def information_gain(p_ik: Floats, confusion_akv: Floats) -> Floats:
    """Compute the expected reduction of every item's label entropy by one vote of each annotator, in nats: `gain_ia`.

    Parameters
    ----------
    p_ik
        Label probabilities.
    confusion_akv
        Probability of each vote given the label, by annotator.

    Examples
    --------
    A coin toss loses all its entropy to someone who is always right, none to someone who tosses a coin:

    >>> always, coin = np.eye(2), np.full((2, 2), 0.5)
    >>> information_gain(np.array([[0.5, 0.5]]), np.array([always, coin])).round(3)
    array([[0.693, 0.   ]])
    """
    noise_ka = entr(confusion_akv).sum(axis=-1).T
    gain_ia: Floats = -(p_ik @ noise_ka)
    # Label by label, in place: the three-way array of all probabilities would not fit in the cache of a core.
    for confusion_ak in np.moveaxis(confusion_akv, 2, 0):
        chance_ia = np.maximum(p_ik @ confusion_ak.T, 1e-300)
        log_ia = np.log(chance_ia)
        log_ia *= chance_ia
        gain_ia -= log_ia
    # Never negative; rounding can leave about -1e-16.
    return np.maximum(gain_ia, 0.0, out=gain_ia)


def choose_votes(
    p_ik: Floats,
    start_i: Ints,
    code_v: Ints,
    confusion_akv: Floats,
    votes_a: Ints,
    *,
    repeats: bool = False,
    allowed_a: NDArray[np.bool_] | None = None,
) -> NextVotes:
    """Choose for every item the annotator whose vote is most informative, among those who have not voted on it.

    Parameters
    ----------
    p_ik
        Label probabilities.
    start_i, code_v
        The votes so far, as in `Ballot`.
    confusion_akv, votes_a
        How annotators vote, and how many votes they gave.
    repeats
        Whether an annotator may vote on an item again: True for anonymous votes, where one annotator stands for all.
    allowed_a
        Who can be asked; all by default.

    Examples
    --------
    >>> p_ik, confusion_akv = np.array([[0.5, 0.5]]), np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.6, 0.4], [0.4, 0.6]]])
    >>> chosen = choose_votes(p_ik, np.array([0, 1]), np.array([0]), confusion_akv, np.array([5, 5]))
    >>> chosen.annotator_i.tolist(), chosen.gain_i.round(3).tolist()
    ([1], [0.02])
    """
    n_items, (n_annotators, n_labels, _) = len(p_ik), confusion_akv.shape
    asked_m = most_informative(confusion_akv, allowed_a)
    column_a = np.full(n_annotators, NOBODY)
    column_a[asked_m] = np.arange(len(asked_m))
    gain_i, chosen_i = np.zeros(n_items), np.full(n_items, NOBODY)
    step = max(CELLS_AT_ONCE // max(len(asked_m), 1), 1)
    confusion_mkv = confusion_akv[asked_m]

    def choose(first: int, last: int) -> None:
        for n in range(first, last):
            chunk = slice(n * step, min((n + 1) * step, n_items))
            gain_im = information_gain(p_ik[chunk], confusion_mkv)
            if not repeats:
                gain_im[_voted(start_i, code_v, n_labels, column_a, chunk)] = -1.0
            best_i = highest(gain_im)
            gain_i[chunk] = gain_im[np.arange(len(best_i)), best_i]
            chosen_i[chunk] = np.where(gain_i[chunk] >= 0, asked_m[best_i], NOBODY)

    over_blocks(choose, -(-n_items // step) if len(asked_m) else 0, grain=8)
    average_i = information_gain(p_ik, average_confusion(confusion_akv, votes_a)[None])[:, 0]
    return NextVotes(np.where(chosen_i == NOBODY, average_i, gain_i), chosen_i, average_i)


def most_informative(confusion_akv: Floats, allowed_a: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Return the `MOST_INFORMATIVE` annotators, ascending: those who tell most if all labels are equally likely."""
    n_annotators, n_labels, _ = confusion_akv.shape
    at_even_a = information_gain(np.full((1, n_labels), 1.0 / n_labels), confusion_akv)[0]
    candidates = np.arange(n_annotators) if allowed_a is None else np.flatnonzero(allowed_a)
    order = np.argsort(-tie_key(at_even_a[candidates]), kind="stable")
    return np.sort(candidates[order[:MOST_INFORMATIVE]])


def average_confusion(confusion_akv: Floats, votes_a: Ints) -> Floats:
    """Return the team's confusion matrix, annotators weighted by the votes they gave: `confusion_kv`."""
    weight_a = np.maximum(np.asarray(votes_a, dtype=np.float64), 1e-9)
    return np.tensordot(weight_a / weight_a.sum(), confusion_akv, axes=1)


def _voted(start_i: Ints, code_v: Ints, n_labels: int, column_a: Ints, chunk: slice) -> tuple[Ints, Ints]:
    """Return positions (item in the chunk, column) of votes that the considered annotators have already cast."""
    first, last = start_i[chunk.start], start_i[chunk.stop]
    row_v = np.repeat(np.arange(chunk.stop - chunk.start), np.diff(start_i[chunk.start : chunk.stop + 1]))
    column_v = column_a[code_v[first:last] // n_labels]
    cast_v = column_v != NOBODY
    return row_v[cast_v], column_v[cast_v]
