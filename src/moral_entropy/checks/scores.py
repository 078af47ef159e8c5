"""How good are probabilities? Accuracy, log loss, Brier score and calibration against what was right.

Takes log probabilities, so that nothing has to be clipped: a loss is infinite only where a report said "never".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moral_entropy.rules.grade import BINS, width_bins
from moral_entropy.votes.table import Floats, Ints

REACH = 1.959963984540054
"""Standard errors on either side of a 95% interval: what lies beyond it by chance is one in forty on a side."""


@dataclass(frozen=True)
class Scores:
    """Scores of reported probabilities.

    Parameters
    ----------
    accuracy
        Share of reports whose likeliest label is right; a tie counts in part.
    log_loss
        Mean of minus the log probability of the right label, in nats.
    brier
        Mean squared distance from the right label, halved: of two labels, that of one's probability.
    ece
        Expected calibration error: mean distance between probability and frequency in 15 bins of equal width, averaged
        over the labels asked about.
    n
        How many reports, counted ones as often as they count.
    """

    accuracy: float
    log_loss: float
    brier: float
    ece: float
    n: int


def score(log_p_ik: Floats, right_i: Ints, targets: tuple[int, ...], weight_i: Floats | None = None) -> Scores:
    """Score reports against the right labels.

    Parameters
    ----------
    log_p_ik
        Log probabilities of the labels.
    right_i
        The right labels.
    targets
        Labels whose calibration is looked at: of two labels one is enough.
    weight_i
        How often each report counts; once by default.

    Examples
    --------
    >>> scores = score(np.log([[0.8, 0.2], [0.4, 0.6]]), np.array([0, 0]), targets=(1,))
    >>> scores.accuracy, round(scores.log_loss, 3), round(scores.brier, 2), round(scores.ece, 2)
    (0.5, 0.57, 0.2, 0.4)
    """
    weight_i = np.ones(len(right_i)) if weight_i is None else weight_i
    p_ik = np.exp(log_p_ik)
    truth_ik = np.eye(p_ik.shape[1])[right_i]
    return Scores(
        accuracy=_mean(_credit(log_p_ik, truth_ik), weight_i),
        log_loss=_mean(losses(log_p_ik, right_i), weight_i),
        brier=_mean(0.5 * ((p_ik - truth_ik) ** 2).sum(axis=1), weight_i),
        ece=float(np.mean([calibration_error(p_ik[:, k], truth_ik[:, k], weight_i) for k in targets])),
        n=round(float(weight_i.sum())),
    )


def losses(log_p_ik: Floats, right_i: Ints) -> Floats:
    """Return minus the log probability of each right label."""
    return np.asarray(-np.take_along_axis(log_p_ik, np.asarray(right_i, dtype=np.int64)[:, None], axis=1)[:, 0])


def _mean(value_i: Floats, weight_i: Floats) -> float:
    return float((value_i * weight_i).sum() / weight_i.sum())


def _credit(log_p_ik: Floats, truth_ik: Floats) -> Floats:
    top_ik = log_p_ik == log_p_ik.max(axis=1, keepdims=True)
    return np.asarray((top_ik * truth_ik).sum(axis=1) / top_ik.sum(axis=1))


def calibration_error(p_i: Floats, yes_i: Floats, weight_i: Floats) -> float:
    """Return the mean distance between probability and frequency, in bins of equal width."""
    bin_i = width_bins(p_i)
    gap_b = np.bincount(bin_i, weights=weight_i * (p_i - yes_i), minlength=BINS)
    return float(np.abs(gap_b).sum() / weight_i.sum())


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
    sum_g = np.bincount(number_v, weights=value_v - mean).astype(np.float64)
    reach = REACH * float(np.sqrt((sum_g**2).sum())) / len(value_v)
    return mean, mean - reach, mean + reach
