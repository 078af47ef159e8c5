"""Smoothed vote shares: the plainest estimate of label probabilities, and their average with the posterior."""

from __future__ import annotations

import numpy as np

from moral_entropy.votes.table import Floats, Ints


def smoothed_share(counts_ik: Ints, *, pseudo_votes: float = 0.5) -> Floats:
    """Compute each item's share of votes by label, after adding some pseudo-votes to every label.

    Examples
    --------
    >>> smoothed_share(np.array([[3, 0]]))
    array([[0.875, 0.125]])
    """
    smooth_ik = counts_ik + pseudo_votes
    return np.asarray(smooth_ik / smooth_ik.sum(axis=1, keepdims=True), dtype=np.float64)


def pool_with_share(posterior_ik: Floats, counts_ik: Ints, *, pseudo_votes: float = 0.5) -> Floats:
    """Average label probabilities with the smoothed vote share, half and half.

    Where the model has given a class another meaning than the voters did, the share keeps the average near theirs.

    Examples
    --------
    >>> pool_with_share(np.array([[1.0, 0.0]]), np.array([[1, 1]]))
    array([[0.75, 0.25]])
    """
    return 0.5 * (posterior_ik + smoothed_share(counts_ik, pseudo_votes=pseudo_votes))
