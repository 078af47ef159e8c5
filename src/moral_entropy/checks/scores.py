"""How good are probabilities? Accuracy, log loss, Brier score, calibration error and AUC against what was right.

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


def accuracy(p_ik: Floats, label_i: Ints, weight_i: Floats | None = None) -> float:
    """Return the share of items whose likeliest label is right; a tie counts in part."""
    top_ik = p_ik >= p_ik.max(axis=1, keepdims=True) - TIE
    return float(np.average(_of_right(top_ik / top_ik.sum(axis=1, keepdims=True), label_i), weights=weight_i))


def log_losses(p_ik: Floats, label_i: Ints) -> Floats:
    """Return minus the log probability of each right label, in nats; infinite where it was called impossible."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(_of_right(p_ik, label_i)))


def log_loss(p_ik: Floats, label_i: Ints, weight_i: Floats | None = None) -> float:
    """Return the mean of `log_losses`.

    Examples
    --------
    >>> p_ik, label_i = np.array([[0.8, 0.2], [0.4, 0.6]]), np.array([0, 0])
    >>> [round(score(p_ik, label_i), 2) for score in (accuracy, log_loss, brier, calibration_error)]
    [0.5, 0.57, 0.2, 0.4]
    """
    return float(np.average(log_losses(p_ik, label_i), weights=weight_i))


def brier(p_ik: Floats, label_i: Ints, weight_i: Floats | None = None) -> float:
    """Return the mean squared distance from the right label, halved: of two labels, that of one's probability."""
    truth_ik = np.eye(p_ik.shape[1])[label_i]
    return float(np.average(0.5 * ((p_ik - truth_ik) ** 2).sum(axis=1), weights=weight_i))


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
    no_l = np.bincount(level_i, weights=weight_i * np.equal(yes_i, 0))
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


def _of_right(value_ik: Floats, label_i: Ints) -> Floats:
    return np.asarray(np.take_along_axis(value_ik, np.asarray(label_i, dtype=np.int64)[:, None], axis=1)[:, 0])
