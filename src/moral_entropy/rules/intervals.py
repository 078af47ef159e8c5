"""Intervals: central ones over draws, and exact ones of shares that were counted.

Draws may have no value or an infinite one. Returns two ends per figure, whatever the figures are.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv

from moral_entropy.votes.table import Floats, Ints


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
    tail = (1.0 - mass) / 2.0
    low_m, high_m = quantiles(value_ms, tail, 1.0 - tail)
    return low_m, high_m


def quantiles(value_ms: Floats, *shares: float) -> list[Floats]:
    """Compute quantiles of each row, leaving out NaN; NaN where nothing is left.

    Examples
    --------
    >>> quantiles(np.array([[1.0, 2.0, 4.0, np.nan]]), 0.25, 0.5)
    [array([1.5]), array([2.])]
    """
    sorted_ms = np.sort(value_ms, axis=1)
    n_m = np.count_nonzero(~np.isnan(value_ms), axis=1)
    return [_quantile(sorted_ms, n_m, share) for share in shares]


def stretched(ends: tuple[Floats, Floats], centre_m: Floats, value_me: Floats) -> tuple[Floats, Floats]:
    """Move each interval from its centre to each of several values; return the ends of all of them and itself together.

    Parameters
    ----------
    ends
        The ends of the intervals; NaN stays NaN.
    centre_m
        The figures that the intervals are of.
    value_me
        Other values of the same figures; NaN is left out. An infinite one is an end itself.

    Examples
    --------
    >>> stretched((np.array([0.2]), np.array([0.4])), np.array([0.3]), np.array([[0.3, 0.5, np.nan]]))
    (array([0.2]), array([0.6]))
    """
    with np.errstate(invalid="ignore"):
        shift_me = value_me - centre_m[:, None]
    low_me, high_me = (np.where(np.isinf(shift_me), value_me, end_m[:, None] + shift_me) for end_m in ends)
    low_m, high_m = np.fmin(np.fmin.reduce(low_me, axis=1), ends[0]), np.fmax(np.fmax.reduce(high_me, axis=1), ends[1])
    return np.where(np.isnan(ends[0]), np.nan, low_m), np.where(np.isnan(ends[1]), np.nan, high_m)


def exact_interval(hits_m: Floats, n_m: Floats, mass: float) -> tuple[Floats, Floats]:
    """Compute the exact interval (Clopper and Pearson 1934) of shares that were counted; NaN where nothing was.

    Parameters
    ----------
    hits_m, n_m
        How many of how many.
    mass
        Mass of the interval, such as 0.9.

    Examples
    --------
    >>> low, high = exact_interval(np.array([9.0]), np.array([10.0]), 0.9)
    >>> low.round(3), high.round(3)
    (array([0.606]), array([0.995]))
    """
    tail, rest_m = (1.0 - mass) / 2.0, n_m - hits_m
    low_m = np.where(hits_m > 0, betaincinv(np.maximum(hits_m, 1e-9), rest_m + 1.0, tail), 0.0)
    high_m = np.where(rest_m > 0, betaincinv(hits_m + 1.0, np.maximum(rest_m, 1e-9), 1.0 - tail), 1.0)
    counted_m = n_m > 0
    return np.where(counted_m, low_m, np.nan), np.where(counted_m, high_m, np.nan)


def _quantile(sorted_ms: Floats, n_m: Ints, share: float) -> Floats:
    if sorted_ms.shape[1] == 0:
        return np.full(len(sorted_ms), np.nan)
    at_m = share * (n_m - 1).clip(min=0)
    below_m = np.floor(at_m).astype(np.int64)
    above_m = np.minimum(below_m + 1, (n_m - 1).clip(min=0))
    row_m = np.arange(len(sorted_ms))
    low_m, high_m = sorted_ms[row_m, below_m], sorted_ms[row_m, above_m]
    with np.errstate(invalid="ignore"):
        between_m = low_m + (at_m - below_m) * (high_m - low_m)
    # Two infinities have no difference; a quantile that falls on one draw needs none.
    return np.where((low_m == high_m) | (at_m == below_m), low_m, between_m)
