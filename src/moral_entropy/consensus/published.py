"""The interval of the published p: that of the model's, pooled with the vote share by the same weight."""

from __future__ import annotations

import numpy as np

from moral_entropy.consensus.draws import drawn_posterior
from moral_entropy.consensus.result import QuestionFit
from moral_entropy.consensus.vote_share import smoothed_share
from moral_entropy.ties import highest
from moral_entropy.votes.table import Floats, Ints

ROWS_AT_ONCE = 256
"""Rows whose draws are held together."""


def published_interval(fit: QuestionFit) -> tuple[Floats, Floats]:
    """Compute the central interval of each item's published p: of the positive label of two, else of `label_i`.

    NaN where there are no draws.

    Examples
    --------
    >>> import moral_entropy as me
    >>> votes = me.simulate_votes(n_items=60, n_annotators=4, votes_per_item=3, seed=1).votes
    >>> [one] = me.fit(votes, model="mixed", draws=50).fits
    >>> low_i, high_i = published_interval(one)
    >>> bool((low_i <= one.p_ik[:, 1]).all() and (one.p_ik[:, 1] <= high_i).all())
    True
    """
    bounds = fit.summary.low_i, fit.summary.high_i
    if not fit.pooled:
        return bounds
    two = fit.ballot.n_labels == 2
    label_i = np.broadcast_to(fit.ballot.positive, fit.ballot.n_items) if two else fit.label_i
    # The model's interval is that of its own likeliest label, which of more than two may not be the published one.
    other_n = np.flatnonzero(highest(fit.summary.mean_ik) != label_i) if fit.n_draws and not two else label_i[:0]
    if len(other_n):
        bounds = _with_bounds_of(fit, label_i, other_n)
    bound_xi = np.empty((2, fit.ballot.n_items))
    # Some items at a time: each step would hold a copy of all.
    for some in fit.chunks():
        share_ik = smoothed_share(fit.counts_ik[some], pseudo_votes=fit.first_votes_k)
        weight_i, share_i = fit.share_weight_i[some], share_ik[np.arange(len(share_ik)), label_i[some]]
        for bound_i, published_i in zip(bounds, bound_xi, strict=True):
            published_i[some] = (1.0 - weight_i) * bound_i[some] + weight_i * share_i
    return bound_xi[0], bound_xi[1]


def _with_bounds_of(fit: QuestionFit, label_i: Ints, item_n: Ints) -> tuple[Floats, Floats]:
    """Replace the model's interval of some items by that of another label."""
    bound_xi = np.stack([fit.summary.low_i, fit.summary.high_i])
    tail = (1.0 - fit.options.interval) / 2.0
    for start in range(0, len(item_n), ROWS_AT_ONCE):
        some = item_n[start : start + ROWS_AT_ONCE]
        p_snk = drawn_posterior(fit, fit.patterns, fit.patterns.row_i[some])
        p_sn = p_snk[:, np.arange(len(some)), label_i[some]]
        bound_xi[:, some] = np.quantile(p_sn, [tail, 1.0 - tail], axis=0)
    return bound_xi[0], bound_xi[1]
