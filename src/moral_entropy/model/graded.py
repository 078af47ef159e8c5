"""Rows of raters on ordered levels: what a rater's own rows are drawn to, given expected votes by level.

A third of it is the common row as the rater bends it: tilted up or down, to the middle or the ends, sharper or
flatter. A third is a graded row: a rating is the level plus a bias plus normal noise, rounded, open at both ends of the
scale. The last third is whichever of both the rater's votes make more probable. All are mixtures over a grid of types,
whose shares are learnt from all raters. How many votes it weighs is learnt too.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import digamma, ndtr, softmax

from moral_entropy.votes.table import Floats

STRENGTHS = (3.0, 20.0)
"""Least and most votes' weight with which rows are drawn to it. Between them, the weight under which the expected votes
are most probable. With 30 at most, left-out votes of seven sets (seed 10) are predicted .2% better and web's labels are
worse against gold (mean error .213 for .205); with 15 at most .4% worse (.204)."""

BIASES, SPREADS = 9, 7
"""Graded types: biases within 1.5 levels of five, and spreads from .15 to 2.5 of them, on a geometric grid."""

TILTS, BENDS, SHARPNESS = np.linspace(-1.2, 1.2, 7), (-0.3, 0.0, 0.3), (0.4, 1.0, 2.0)
"""Bent types: log odds per level of five, the same per squared level, and the exponent of the common row."""

ROUNDS = 5
"""Rounds in which the shares of the types are learnt."""


def graded_types(n_labels: int) -> Floats:
    """Return the rows of every graded type: `row_tkv`.

    Examples
    --------
    >>> graded_types(5)[4, 0].round(2).tolist()
    [1.0, 0.0, 0.0, 0.0, 0.0]
    """
    width = np.sqrt(n_labels / 5.0)
    grid = np.meshgrid(width * np.linspace(-1.5, 1.5, BIASES), width * np.geomspace(0.15, 2.5, SPREADS))
    bias_t, spread_t = (axis.ravel() for axis in grid)
    bound_b = np.concatenate([[-np.inf], np.arange(n_labels - 1) + 0.5, [np.inf]])
    centre_tk = np.arange(n_labels) + bias_t[:, None]
    return _rows(np.diff(ndtr((bound_b - centre_tk[..., None]) / spread_t[:, None, None]), axis=-1))


def _bends(n_labels: int) -> tuple[Floats, Floats]:
    """Return what bent types add to the logs of a row, `bend_tv`, and the exponents of the row."""
    width, from_middle_v = np.sqrt(5.0 / n_labels), np.arange(n_labels) - (n_labels - 1) / 2.0
    tilt_t, bend_t, sharp_t = np.array(list(product(TILTS, BENDS, SHARPNESS))).T[..., None]
    return width * tilt_t * from_middle_v + width**2 * bend_t * from_middle_v**2, sharp_t


def _rows(row_tkv: Floats) -> Floats:
    row_tkv = np.maximum(row_tkv, 1e-6)
    return np.asarray(row_tkv / row_tkv.sum(axis=-1, keepdims=True))


def prior_votes(votes_akv: Floats, common_kv: Floats) -> Floats:
    """Return the pseudo-votes of every rater's rows: thirds of bent rows, of graded ones, and of both together."""
    bend_tv, sharp_t = _bends(len(common_kv))
    bent_tkv = _rows(softmax(sharp_t[..., None] * np.log(common_kv) + bend_tv[:, None, :], axis=-1))
    row_tkv = np.concatenate([bent_tkv, graded_types(len(common_kv))])
    log_at = votes_akv.reshape(len(votes_akv), -1) @ np.log(row_tkv).reshape(len(row_tkv), -1).T
    p_at = np.zeros_like(log_at)
    for types in (slice(len(bent_tkv)), slice(len(bent_tkv), None), slice(None)):
        p_at[:, types] += _probabilities(log_at[:, types]) / 3.0
    row_akv = np.tensordot(p_at, row_tkv, axes=1)
    return strength(votes_akv, row_akv) * row_akv


def _probabilities(log_at: Floats) -> Floats:
    """Return how probable every type is for every rater, given the log likelihoods: shares are learnt with them."""
    likelihood_at = np.exp(log_at - log_at.max(axis=1, keepdims=True))
    p_at = np.ones_like(log_at)
    for _ in range(ROUNDS):
        p_at = likelihood_at * (p_at.sum(axis=0) + 1.0 / log_at.shape[1])
        p_at /= p_at.sum(axis=1, keepdims=True)
    return p_at


def strength(votes_akv: Floats, row_akv: Floats) -> float:
    """Return the weight, in votes, under which rows drawn around others make votes most probable: see `STRENGTHS`.

    Votes of a row are then Dirichlet-multinomial.

    Examples
    --------
    >>> row_akv = np.array([[[0.5, 0.5]]])
    >>> strength(np.array([[[50.0, 50.0]]]), row_akv), strength(np.array([[[90.0, 10.0]]]), row_akv)
    (20.0, 3.0)
    """
    from scipy.optimize import brentq

    total_ak, bounds = votes_akv.sum(axis=-1), np.log(STRENGTHS)

    def slope(log_weight: float) -> float:
        weight = np.exp(log_weight)
        gain_akv = row_akv * (digamma(votes_akv + weight * row_akv) - digamma(weight * row_akv))
        return float(gain_akv.sum() + (digamma(weight) - digamma(total_ak + weight)).sum())

    at_least, at_most = map(slope, bounds)
    if at_least <= 0.0 or at_most >= 0.0:
        return STRENGTHS[at_least > 0.0]
    return float(np.exp(brentq(slope, *bounds)))
