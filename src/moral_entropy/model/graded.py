"""Rows of raters on ordered levels: what a rater's own rows are drawn to, given expected votes by level.

Half of it is the crowd's common row as the rater bends it: tilted up or down, to the middle or the ends, sharper or
flatter. The other half is a graded row: a rating is the level plus a bias plus normal noise, rounded, open at both
ends of the scale. Both are mixtures over a grid of types, whose shares are learnt from all raters.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np
from scipy.special import ndtr, softmax

from moral_entropy.votes.table import Floats

STRENGTH = 15.0
"""Votes' weight with which rows are drawn to both. Of 8, 15 and 25, and of graded rows beside the plain common row
with 5, 10, 15, 30 and 60, this predicts left-out votes best on nine questions of seven sets (seed 0)."""

BIASES, SPREADS = 9, 7
"""Graded types: biases within 1.5 levels of five, and spreads from .15 to 2.5 of them, on a geometric grid."""

TILTS, BENDS, SHARPNESS = np.linspace(-1.2, 1.2, 7), (-0.3, 0.0, 0.3), (0.4, 1.0, 2.0)
"""Bent types: log odds per level of five, the same per squared level, and the exponent of the common row."""

ROUNDS = 5
"""Rounds in which the shares of the types are learnt."""


@lru_cache(maxsize=8)
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


@lru_cache(maxsize=8)
def _bends(n_labels: int) -> tuple[Floats, Floats]:
    """Return what bent types add to the logs of a row, `bend_tv`, and the exponents of the row."""
    width, from_middle_v = np.sqrt(5.0 / n_labels), np.arange(n_labels) - (n_labels - 1) / 2.0
    tilt_t, bend_t, sharp_t = np.array(list(product(TILTS, BENDS, SHARPNESS))).T[..., None]
    return width * tilt_t * from_middle_v + width**2 * bend_t * from_middle_v**2, sharp_t


def _rows(row_tkv: Floats) -> Floats:
    row_tkv = np.maximum(row_tkv, 1e-6)
    return np.asarray(row_tkv / row_tkv.sum(axis=-1, keepdims=True))


def prior_rows(votes_akv: Floats, common_kv: Floats) -> Floats:
    """Return what the rows of every rater are drawn to: half the bent common rows, half the graded ones."""
    n_labels = len(common_kv)
    bend_tv, sharp_t = _bends(n_labels)
    bent_tkv = _rows(softmax(sharp_t[..., None] * np.log(common_kv) + bend_tv[:, None, :], axis=-1))
    return 0.5 * (_mixture(votes_akv, bent_tkv) + _mixture(votes_akv, graded_types(n_labels)))


def _mixture(votes_akv: Floats, row_tkv: Floats) -> Floats:
    """Return every rater's mean row over the types, as probable as their expected votes by level make them."""
    n_types = len(row_tkv)
    log_at = votes_akv.reshape(len(votes_akv), -1) @ np.log(row_tkv).reshape(n_types, -1).T
    share_t, p_at = np.full(n_types, 1.0 / n_types), np.empty_like(log_at)
    for _ in range(ROUNDS):
        p_at = softmax(log_at + np.log(share_t), axis=1)
        share_t = (p_at.sum(axis=0) + 1.0 / n_types) / (len(p_at) + 1.0)
    return np.tensordot(p_at, row_tkv, axes=1)
