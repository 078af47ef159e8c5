"""Which vote is most informative: the expected reduction of an item's label entropy by one more vote.

With label probabilities p and the voter's confusion matrix, it is the mutual information between label and vote. Where
items may lie between labels, it is the entropy of the labels' mean shares, less its expectation after the vote: what no
vote can remove is no part of it. Takes arrays, so that it works both on a fit and on the tables of a run folder.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from moral_entropy.model.threads import over_blocks
from moral_entropy.ties import highest, tie_key
from moral_entropy.votes.table import Floats, Ints

MOST_INFORMATIVE = 50
"""Number of annotators considered per item: the most informative if all labels are equally likely."""

NOBODY = -1
"""Index where no annotator is left to ask."""

CELLS_AT_ONCE = 200_000


def information_gain(p_iz: Floats, vote_azv: Floats, mix_zk: Floats | None = None) -> Floats:
    """Compute the expected reduction of every item's label entropy by one vote of each annotator, in nats: `gain_ia`.

    Parameters
    ----------
    p_iz
        Probabilities of the states that an item can be in.
    vote_azv
        Probability of each vote given the state, by annotator.
    mix_zk
        How much of each label a state has; by default the states are the labels.

    Examples
    --------
    A coin toss loses all its entropy to someone who is always right, none to someone who tosses a coin:

    >>> always, coin = np.eye(2), np.full((2, 2), 0.5)
    >>> information_gain(np.array([[0.5, 0.5]]), np.array([always, coin])).round(3)
    array([[0.693, 0.   ]])

    An item that surely lies between two labels loses nothing, whoever votes:

    >>> voter = np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])
    >>> information_gain(np.array([[0.0, 0.0, 1.0]]), voter[None], np.array([[1, 0], [0, 1], [0.5, 0.5]])).round(3)
    array([[0.]])
    """
    if mix_zk is None or len(mix_zk) == mix_zk.shape[1]:
        # What a vote tells of a state that is a label: the entropy of the vote, less its mean entropy given the label.
        gain_ia: Floats = -(p_iz @ entr(vote_azv).sum(axis=-1).T)
    else:
        gain_ia = np.repeat(entr(p_iz @ mix_zk).sum(axis=1)[:, None], len(vote_azv), axis=1)
        for vote_az in np.moveaxis(vote_azv, 2, 0):
            for mix_z in mix_zk.T:
                gain_ia += _times_log(p_iz @ (vote_az * mix_z).T)
    # Vote by vote, in place: the three-way array of all probabilities would not fit in the cache of a core.
    for vote_az in np.moveaxis(vote_azv, 2, 0):
        gain_ia -= _times_log(p_iz @ vote_az.T)
    # Never negative; rounding can leave about -1e-16.
    return np.maximum(gain_ia, 0.0, out=gain_ia)


def _times_log(chance_ia: Floats) -> Floats:
    """Compute x log x, in place."""
    np.maximum(chance_ia, 1e-300, out=chance_ia)
    log_ia = np.log(chance_ia)
    log_ia *= chance_ia
    return log_ia


def choose_votes(
    p_iz: Floats | Callable[[slice], Floats],
    start_i: Ints,
    code_v: Ints,
    vote_azv: Floats,
    votes_a: Ints,
    *,
    mix_zk: Floats | None = None,
    repeats: bool = False,
    allowed_a: NDArray[np.bool_] | None = None,
) -> tuple[Floats, Ints]:
    """Choose for every item the annotator whose vote is most informative, among those who have not voted on it.

    Parameters
    ----------
    p_iz
        Probabilities of the states that items can be in, or a function that computes those of some items.
    start_i, code_v
        The votes so far, as in `Ballot`.
    vote_azv, votes_a
        How annotators vote given the state, labels first; and how many votes they gave.
    mix_zk
        How much of each label a state has; by default the states are the labels.
    repeats
        Whether an annotator may vote on an item again: True for anonymous votes, where one annotator stands for all.
    allowed_a
        Who can be asked; all by default.

    Returns
    -------
    tuple
        `gain_i`, the expected reduction of the label entropy by that vote, in nats, and `annotator_i`, whose it is, by
        row of `vote_azv`. Where all have voted it is `NOBODY`, and the gain that of an average annotator: confusion
        matrices averaged, weighted by votes given.

    Examples
    --------
    >>> p_ik, confusion_akv = np.array([[0.5, 0.5]]), np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.6, 0.4], [0.4, 0.6]]])
    >>> gain_i, annotator_i = choose_votes(p_ik, np.array([0, 1]), np.array([0]), confusion_akv, np.array([5, 5]))
    >>> annotator_i.tolist(), gain_i.round(3).tolist()
    ([1], [0.02])
    """
    n_items, (n_annotators, _, n_labels) = len(start_i) - 1, vote_azv.shape
    asked_m = most_informative(vote_azv[:, :n_labels], allowed_a)
    column_a = np.full(n_annotators, NOBODY)
    column_a[asked_m] = np.arange(len(asked_m))
    gain_i, chosen_i, average_i = np.zeros(n_items), np.full(n_items, NOBODY), np.empty(n_items)
    step = max(CELLS_AT_ONCE // max(len(asked_m), 1), 1)
    vote_mzv = vote_azv[asked_m]
    average_zv = np.average(vote_azv, axis=0, weights=np.maximum(votes_a, 1e-9))

    def choose(first: int, last: int) -> None:
        for n in range(first, last):
            chunk = slice(n * step, min((n + 1) * step, n_items))
            some_iz = p_iz(chunk) if callable(p_iz) else p_iz[chunk]
            average_i[chunk] = information_gain(some_iz, average_zv[None], mix_zk)[:, 0]
            if not len(asked_m):
                continue
            gain_im = information_gain(some_iz, vote_mzv, mix_zk)
            if not repeats:
                start_n = start_i[chunk.start : chunk.stop + 1]
                column_v = column_a[code_v[start_n[0] : start_n[-1]] // n_labels]
                row_v, cast_v = np.repeat(np.arange(len(some_iz)), np.diff(start_n)), column_v != NOBODY
                gain_im[row_v[cast_v], column_v[cast_v]] = -1.0
            best_i = highest(gain_im)
            gain_i[chunk] = gain_im[np.arange(len(best_i)), best_i]
            chosen_i[chunk] = np.where(gain_i[chunk] >= 0, asked_m[best_i], NOBODY)

    over_blocks(choose, -(-n_items // step), grain=8)
    return np.where(chosen_i == NOBODY, average_i, gain_i), chosen_i


def most_informative(confusion_akv: Floats, allowed_a: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Return the `MOST_INFORMATIVE` annotators, ascending: those who tell most if all labels are equally likely."""
    n_annotators, n_labels, _ = confusion_akv.shape
    at_even_a = information_gain(np.full((1, n_labels), 1.0 / n_labels), confusion_akv)[0]
    candidates = np.arange(n_annotators) if allowed_a is None else np.flatnonzero(allowed_a)
    order = np.argsort(-tie_key(at_even_a[candidates]), kind="stable")
    return np.sort(candidates[order[:MOST_INFORMATIVE]])
