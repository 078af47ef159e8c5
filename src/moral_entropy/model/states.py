"""States: where an item may lie between the labels.

Under the paper's model an item is in one of K states, its true label. Under the mixed model it may also lie between two
labels: an annotator then votes as for the one label with some probability, as for the other with the rest. The states
are a grid: the K corners, which are the labels, and some points on each edge between two of them. With corners only,
everything computed from states is the paper's.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
from scipy.special import entr

from moral_entropy.votes.table import Floats

MOST_LABELS = 12
"""Most labels for items to lie between two of them: above, the pairs of labels are more than votes could tell apart."""

MANY_NUMBERS = 1 << 20
"""Drawn numbers from which on how annotators vote by state is computed draw by draw."""


class States:
    """A grid of states. Axes: **z** state, **k** label, **g** group of states that share a weight.

    Parameters
    ----------
    n_labels
        Number of labels.
    points
        States on each edge between two labels; 0 for the corners alone.
    ordered
        Whether labels are levels of a scale: only neighbours have states between them.

    Attributes
    ----------
    corners_only
        Whether every state is a label: the paper's model.
    n_groups, n_states
        Number of weights, one per label and one per edge; number of states.
    group_z, size_g
        The weight that each state has a part of; states per weight: an edge's is spread evenly over its points.
    ends_ze, share_z
        The two labels of each state, of a corner the same; how much of the first of them it has.
    mix_zk, ambiguity_z
        How much of each label a state has, its place on the simplex; the entropy of that place, in nats.
    label_gk
        How much of each label an item of a group has on average.

    Examples
    --------
    >>> States(2, points=1).mix_zk.tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    """

    def __init__(self, n_labels: int, points: int = 0, *, ordered: bool = False) -> None:
        pairs = combinations(range(n_labels if points else 0), 2)
        edges = np.array([pair for pair in pairs if pair[1] - pair[0] == 1 or not ordered], dtype=np.int64)
        n_edges, corner_k, edges = len(edges), np.arange(n_labels), edges.reshape(-1, 2)
        self.n_labels, self.points, self.corners_only = n_labels, points, points == 0
        self.n_groups, self.n_states = n_labels + n_edges, n_labels + n_edges * points
        self.group_z = np.concatenate([corner_k, n_labels + np.repeat(np.arange(n_edges), points)])
        self.size_g: Floats = np.bincount(self.group_z).astype(np.float64)
        self.ends_ze = np.concatenate([np.stack([corner_k, corner_k], axis=1), np.repeat(edges, points, axis=0)])
        inner = np.arange(points, 0, -1) / (points + 1)
        self.share_z: Floats = np.concatenate([np.ones(n_labels), np.tile(inner, n_edges)])
        self.mix_zk, at_z = np.zeros((self.n_states, n_labels)), np.arange(self.n_states)
        self.mix_zk[at_z, self.ends_ze[:, 1]] = 1.0 - self.share_z
        self.mix_zk[at_z, self.ends_ze[:, 0]] += self.share_z
        self.ambiguity_z: Floats = entr(self.mix_zk).sum(axis=1)
        self.label_gk: Floats = self.add_groups(self.mix_zk.T).T / self.size_g[:, None]

    def add_groups(self, values_z: Floats) -> Floats:
        """Add up values along the last axis, states to groups."""
        return np.add.reduceat(values_z, np.searchsorted(self.group_z, np.arange(self.n_groups)), axis=-1)

    def weight_of_states(self, weight_g: Floats) -> Floats:
        """Spread the weights of groups, along the last axis, over their states."""
        return np.asarray((weight_g / self.size_g)[..., self.group_z])

    def votes_azv(self, confusion_akv: Floats) -> Floats:
        """Compute how every annotator votes on an item in each state; leading axes (draws) are kept.

        Examples
        --------
        >>> States(2, points=1).votes_azv(np.array([[[0.9, 0.1], [0.3, 0.7]]])).round(2).tolist()
        [[[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]]]
        """
        if self.corners_only:
            return confusion_akv
        if confusion_akv.ndim > 3 and confusion_akv.size > MANY_NUMBERS:
            # Draw by draw: with very many annotators each step would hold a copy of all.
            vote_sazv = np.empty((*confusion_akv.shape[:-2], self.n_states, confusion_akv.shape[-1]))
            for draw, confusion in zip(vote_sazv, confusion_akv, strict=True):
                draw[:] = self.votes_azv(confusion)
            return vote_sazv
        first, second = (confusion_akv.take(end_z, axis=-2) for end_z in self.ends_ze.T)
        # In place: these arrays are large over draws, and made in every pass.
        first *= self.share_z[:, None]
        second *= 1.0 - self.share_z[:, None]
        first += second
        return np.asarray(first)


@cache
def between_labels(n_labels: int, *, ordered: bool = False) -> States:
    """Return the states of the mixed model: finer where there are few labels, corners alone where there are very many.

    Examples
    --------
    >>> [between_labels(n_labels).n_states for n_labels in (2, 3, 4, 5, 8, 28)]
    [9, 12, 22, 35, 36, 28]
    """
    if n_labels > MOST_LABELS:
        return States(n_labels)
    return States(n_labels, points=7 if n_labels == 2 else 3 if n_labels <= 6 else 1, ordered=ordered)
