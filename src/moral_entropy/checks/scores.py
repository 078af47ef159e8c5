"""How good are probabilities? Log loss, calibration error and AUC against what was right.

Plain functions of probabilities `p_ik` and right labels `label_i`; items may count several times (`weight_i`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moral_entropy.ties import TIE
from moral_entropy.votes.table import Floats, Ints

Bools = NDArray[np.bool_]

BINS = 15
"""Bins of the calibration error."""

REACH = 1.959963984540054
"""Standard errors on either side of a 95% interval."""


def log_losses(p_ik: Floats, label_i: Ints) -> Floats:
    """Return minus the log probability of each right label, in nats; infinite where it was called impossible."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(p_ik[np.arange(len(p_ik)), label_i]))


def calibration_error(p_ik: Floats, label_i: Ints, weight_i: Floats | None = None) -> float:
    """Return the expected calibration error, averaged over the labels; of two labels one says it all."""
    labels = [1] if p_ik.shape[1] == 2 else range(p_ik.shape[1])
    return float(np.mean([calibration_gap(p_ik[:, k], label_i == k, weight_i) for k in labels]))


def calibration_gap(p_i: Floats, yes_i: Floats | Bools, weight_i: Floats | None = None) -> float:
    """Return the mean distance between the probability of an event and its frequency, in bins of equal width."""
    weight_i = np.ones(len(p_i)) if weight_i is None else weight_i
    bin_i = np.searchsorted(np.linspace(0.0, 1.0, BINS + 1)[1:-1], p_i - TIE)
    return float(np.abs(np.bincount(bin_i, weights=weight_i * (p_i - yes_i))).sum() / weight_i.sum())


def auc(p_i: Floats, yes_i: Floats | Bools, weight_i: Floats | None = None) -> float:
    """Return the probability that a positive item has a higher p than a negative one; NaN where one kind is missing.

    Examples
    --------
    >>> auc(np.array([0.1, 0.4, 0.4, 0.9]), np.array([0, 0, 1, 1]))
    0.875
    """
    weight_i = np.ones(len(p_i)) if weight_i is None else weight_i
    _, level_i = np.unique(p_i, return_inverse=True)
    yes_l = np.bincount(level_i, weights=weight_i * yes_i)
    no_l = np.bincount(level_i, weights=weight_i * (1.0 - np.asarray(yes_i, dtype=np.float64)))
    pairs = yes_l.sum() * no_l.sum()
    return float(yes_l @ (np.cumsum(no_l) - 0.5 * no_l) / pairs) if pairs else float("nan")


def mean_interval(value_v: Floats, group_v: Ints) -> tuple[float, float, float]:
    """Return a mean and its 95% interval, values of one group not being independent.

    Examples
    --------
    Twice the same group is one piece of evidence:

    >>> [round(x, 2) for x in mean_interval(np.array([0.0, 1.0]), np.array([0, 1]))]
    [0.5, -0.19, 1.19]
    >>> [round(x, 2) for x in mean_interval(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0, 0, 1, 1]))]
    [0.5, -0.19, 1.19]
    """
    mean = float(value_v.mean())
    _, number_v = np.unique(group_v, return_inverse=True)
    reach = REACH * float(np.sqrt((np.bincount(number_v, weights=value_v - mean) ** 2).sum())) / len(value_v)
    return mean, mean - reach, mean + reach


def smoothed_share(counts_ik: Ints) -> Floats:
    """Compute each item's share of votes by label, after adding half a vote to every label.

    Examples
    --------
    >>> smoothed_share(np.array([[3, 0]]))
    array([[0.875, 0.125]])
    """
    smooth_ik = counts_ik + 0.5
    return np.asarray(smooth_ik / smooth_ik.sum(axis=1, keepdims=True))
