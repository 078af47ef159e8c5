"""Intervals: central ones over draws, and those of shares that were counted.

Draws may have no value or an infinite one. Returns two ends per figure, whatever the figures are.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from moral_entropy.votes.table import Floats


def central_interval(value_ms: Floats, mass: float) -> tuple[Floats, Floats]:
    """Compute the central interval of each row, leaving out NaN; NaN where nothing is left.

    Parameters
    ----------
    value_ms
        One row per figure, one column per draw; infinities are values like others.
    mass
        Mass of the interval, such as 0.9.

    Examples
    --------
    >>> central_interval(np.array([[1.0, 2.0, 3.0, np.nan]]), 0.5)
    (array([1.5]), array([2.5]))
    """
    if value_ms.shape[1] == 0:
        return np.full(len(value_ms), np.nan), np.full(len(value_ms), np.nan)
    sorted_ms, row_m = np.sort(value_ms, axis=1), np.arange(len(value_ms))
    last_m = (np.count_nonzero(~np.isnan(value_ms), axis=1) - 1).clip(min=0)
    ends, tail = [], (1.0 - mass) / 2.0
    for share in (tail, 1.0 - tail):
        at_m = share * last_m
        below_m = np.floor(at_m).astype(np.int64)
        low_m, high_m = sorted_ms[row_m, below_m], sorted_ms[row_m, np.minimum(below_m + 1, last_m)]
        with np.errstate(invalid="ignore"):
            between_m = low_m + (at_m - below_m) * (high_m - low_m)
        # Two infinities have no difference; a quantile that falls on one draw needs none.
        ends.append(np.where((low_m == high_m) | (at_m == below_m), low_m, between_m))
    return ends[0], ends[1]


def beta_interval(
    successes: ArrayLike, failures: ArrayLike, mass: float, prior: float | Literal["exact"] = 0.5
) -> tuple[Floats, Floats]:
    """Compute the central interval of shares that were counted.

    Parameters
    ----------
    successes, failures
        How many were so, and how many were not; they need not be whole.
    mass
        Mass of the interval, such as 0.9.
    prior
        Pseudo-counts either way, ½ for Jeffreys' interval; or "exact": Clopper and Pearson (1934), NaN where nothing
        was counted.

    Examples
    --------
    >>> [end.round(3).tolist() for end in beta_interval([9, 0], [1, 10], 0.9)]
    [[0.669, 0.0], [0.982, 0.171]]
    >>> [end.round(3).tolist() for end in beta_interval(9, 1, 0.9, prior="exact")]
    [0.606, 0.995]
    """
    yes, no, tail = np.asarray(successes, dtype=float), np.asarray(failures, dtype=float), (1.0 - mass) / 2.0
    if prior != "exact":
        return betaincinv(yes + prior, no + prior, tail), betaincinv(yes + prior, no + prior, 1.0 - tail)
    low = np.where(yes > 0, betaincinv(np.maximum(yes, 1e-9), no + 1.0, tail), 0.0)
    high = np.where(no > 0, betaincinv(yes + 1.0, np.maximum(no, 1e-9), 1.0 - tail), 1.0)
    n_positive = yes + no > 0
    return np.where(n_positive, low, np.nan), np.where(n_positive, high, np.nan)


def exact_interval(hits_m: ArrayLike, n_m: ArrayLike, mass: float) -> tuple[Floats, Floats]:
    """Compute the exact interval of `hits_m` out of `n_m`: see `beta_interval`."""
    return beta_interval(hits_m, np.subtract(n_m, hits_m), mass, prior="exact")


def jeffreys_interval(hits_m: Floats, n_m: Floats, mass: float) -> tuple[Floats, Floats]:
    """Compute Jeffreys' interval of shares that were counted: half a pseudo-count on each side.

    Parameters
    ----------
    hits_m, n_m
        How many of how many.
    mass
        Mass of the interval, such as 0.9.

    Examples
    --------
    >>> low, high = jeffreys_interval(np.array([9.0]), np.array([10.0]), 0.9)
    >>> low.round(3), high.round(3)
    (array([0.669]), array([0.982]))
    """
    return beta_interval(hits_m, n_m - hits_m, mass)
