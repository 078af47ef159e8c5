"""Central intervals over draws, where some draws have no value and some an infinite one.

Takes figures with one column per draw; returns two ends per figure, whatever the figures are.
"""

from __future__ import annotations

import numpy as np

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
    sorted_ms = np.sort(value_ms, axis=1)
    n_m = np.count_nonzero(~np.isnan(value_ms), axis=1)
    tail = (1.0 - mass) / 2.0
    return _quantile(sorted_ms, n_m, tail), _quantile(sorted_ms, n_m, 1.0 - tail)


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
