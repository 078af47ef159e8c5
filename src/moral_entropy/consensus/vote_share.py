"""Smoothed vote shares: the plainest estimate of label probabilities, and its pool with the model's."""

from __future__ import annotations

import numpy as np

from moral_entropy.votes.table import Floats, Ints

LEAST_SHARE, MOST_SHARE = 0.2, 0.6
"""Weight of the smoothed share in the published p: where the item is surely one label, and where it lies between."""


HALF_A_VOTE = 0.5
"""Pseudo-votes per label that a share begins with."""


def first_votes(votes_k: Floats) -> Floats:
    """Compute the pseudo-votes that the share in the published p begins with: half a vote per label.

    Of two labels, one is often rare: their two half votes are shared out as all votes are.

    Parameters
    ----------
    votes_k
        All votes by label.

    Examples
    --------
    >>> first_votes(np.array([899.5, 99.5]))
    array([0.9, 0.1])
    >>> first_votes(np.array([50.0, 30.0, 20.0]))
    array([0.5, 0.5, 0.5])
    """
    if len(votes_k) != 2:
        return np.full(len(votes_k), HALF_A_VOTE)
    return np.asarray((votes_k + HALF_A_VOTE) / (votes_k.sum() + 2 * HALF_A_VOTE))


def smoothed_share(counts_ik: Ints, *, pseudo_votes: float | Floats = HALF_A_VOTE) -> Floats:
    """Compute each item's share of votes by label, after adding some pseudo-votes to every label.

    Examples
    --------
    >>> smoothed_share(np.array([[3, 0]]))
    array([[0.875, 0.125]])
    >>> smoothed_share(np.array([[3, 0]]), pseudo_votes=np.array([0.8, 0.2]))
    array([[0.95, 0.05]])
    """
    smooth_ik = counts_ik + pseudo_votes
    return np.asarray(smooth_ik / smooth_ik.sum(axis=1, keepdims=True), dtype=np.float64)


def share_weight(interior_i: Floats) -> Floats:
    """Compute the weight of the smoothed share in the published p, from the posterior mass between labels.

    Examples
    --------
    >>> share_weight(np.array([0.0, 0.3, 1.0]))
    array([0.2, 0.5, 0.6])
    """
    return np.minimum(MOST_SHARE, LEAST_SHARE + interior_i)


def pool_with_share(
    posterior_ik: Floats, counts_ik: Ints, weight_i: Floats, *, pseudo_votes: float | Floats = HALF_A_VOTE
) -> Floats:
    """Average label probabilities with the smoothed vote share, which has some weight on each item.

    Where the model has given a class another meaning than the voters did, the share keeps the average near theirs.

    Examples
    --------
    >>> pool_with_share(np.array([[1.0, 0.0]]), np.array([[1, 1]]), np.array([0.5]))
    array([[0.75, 0.25]])
    """
    share_ik = smoothed_share(counts_ik, pseudo_votes=pseudo_votes)
    return (1.0 - weight_i[:, None]) * posterior_ik + weight_i[:, None] * share_ik
