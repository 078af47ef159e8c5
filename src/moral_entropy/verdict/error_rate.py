"""Checked labels → the share of all labels that is wrong, with an interval.

Checked labels alone give Jeffreys' interval; few of them are combined with what crowds alike have shown. Whether
labels are shown to be good enough rests on the exact bound of Clopper and Pearson, which no prior can move.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, expit, logit, ndtr, ndtri, xlog1py, xlogy

from moral_entropy.votes.table import Floats

POINTS = 2_000
"""Shares at which the posterior is computed: as many where the checked labels put their mass, and all over."""

SLOPE, SLOPE_SD = 1.0, 0.5
"""How steeply the logit of the true risk follows that of p, before any label is checked: as p says, give or take. Over
sets with gold it is 0.4 to 1.9."""

NEWTON_STEPS = 25

SQRT_2_PI = math.sqrt(2.0 * math.pi)

MOST_CHECKS = 100_000
"""Largest number of checks that anybody is told to make."""


@dataclass(frozen=True)
class Tally:
    """Checked labels, counted.

    Parameters
    ----------
    checked
        How many were checked.
    wrong
        How many of them are wrong; a tie that is broken at random counts as a part.
    share
        Weighted share of wrong ones: an estimate of the share among all labels.
    worth
        How many equally weighted checks they are worth (Kish 1965).
    gain
        How many times as many they are worth since every certainty is among them in its proportion.
    """

    checked: int
    wrong: float
    share: float
    worth: float
    gain: float = 1.0


def tally(
    wrong_j: Floats | Sequence[float],
    weight_j: Floats | Sequence[float] | None = None,
    risk_j: Floats | Sequence[float] | None = None,
) -> Tally:
    """Count checked labels.

    Parameters
    ----------
    wrong_j
        Whether each is wrong.
    weight_j
        For how many labels each stands.
    risk_j
        How probably each is wrong by p, where one label was drawn from each block of labels that are alike in it.

    Examples
    --------
    >>> tally([1, 0, 0, 0], [1, 1, 1, 1])
    Tally(checked=4, wrong=1.0, share=0.25, worth=4.0, gain=1.0)
    """
    wrong = np.asarray(wrong_j, dtype=float)
    weight = np.ones(len(wrong)) if weight_j is None else np.asarray(weight_j, dtype=float)
    total = float(weight.sum())
    if not total:
        return Tally(0, 0.0, 0.0, 0.0)
    share, worth = float(wrong @ weight) / total, total**2 / float(weight @ weight)
    gain = 1.0 if risk_j is None else _gain(wrong, weight / total, np.asarray(risk_j, dtype=float), worth)
    return Tally(len(wrong), float(wrong.sum()), share, worth, gain)


def _gain(wrong_j: Floats, weight_j: Floats, risk_j: Floats, worth: float) -> float:
    """Return by how much less the share varies than over labels drawn without regard to their risk.

    In a block of labels with the risk r one draw varies by r (1 - r), and without blocks by share (1 - share). How
    steeply the true risk follows that of p is learnt from the checked labels themselves.
    """
    share = float(wrong_j @ weight_j)
    if not 0.0 < share < 1.0:
        return 1.0
    true_j = _true_risk(wrong_j, weight_j * worth, logit(np.clip(risk_j, 1e-6, 1.0 - 1e-6)))
    return float(share * (1.0 - share) / (weight_j @ (true_j * (1.0 - true_j))))


def _true_risk(wrong_j: Floats, count_j: Floats, x_j: Floats) -> Floats:
    """Fit logit risk = a + b x to checked labels by Newton's steps: a is free, b is drawn towards `SLOPE`."""
    share = float(np.average(wrong_j, weights=count_j))
    at, mean = np.array([float(logit(share)), SLOPE]), float(np.average(x_j, weights=count_j))
    basis_jp = np.column_stack([np.ones(len(x_j)), x_j - mean])
    drawn_p = np.array([0.0, 1.0 / SLOPE_SD**2])
    for _ in range(NEWTON_STEPS):
        true_j = expit(basis_jp @ at)
        uphill_p = basis_jp.T @ (count_j * (wrong_j - true_j)) - drawn_p * (at - [0.0, SLOPE])
        curved_pp = basis_jp.T @ (basis_jp * (count_j * true_j * (1.0 - true_j))[:, None]) + np.diag(drawn_p)
        step_p = np.linalg.solve(curved_pp, uphill_p)
        # A long step would leave the part where the curve is not flat.
        at = at + step_p / max(1.0, float(np.abs(step_p).max()))
        if np.abs(step_p).max() < 1e-9:
            break
    return np.asarray(expit(basis_jp @ at))


@dataclass(frozen=True)
class Belief:
    """A belief about a share: its logit is normal, but that it may be any share at all.

    Parameters
    ----------
    mean, sd
        Of the logit.
    anything
        Probability that the share is unlike all others: then any is as probable.
    """

    mean: float
    sd: float
    anything: float = 0.0

    def quantiles(self, *mass: float) -> tuple[float, ...]:
        """Return the shares below which these masses lie.

        Examples
        --------
        >>> [round(share, 2) for share in Belief(0.0, 1.0).quantiles(0.05, 0.5, 0.95)]
        [0.16, 0.5, 0.84]
        """
        if self.anything == 0.0:
            return tuple(float(expit(self.mean + self.sd * ndtri(one))) for one in mass)
        from scipy.optimize import brentq

        return tuple(float(brentq(lambda share, m=one: self._below(share) - m, 0.0, 1.0, xtol=1e-12)) for one in mass)

    def _below(self, share: float) -> float:
        with np.errstate(divide="ignore"):
            like = float(ndtr((logit(share) - self.mean) / self.sd))
        return (1.0 - self.anything) * like + self.anything * share

    def log_density(self, share: Floats) -> Floats:
        """Compute the log density of shares, up to a constant."""
        at = np.clip(share, 1e-300, 1.0 - 1e-16)
        like = np.exp(-0.5 * ((logit(at) - self.mean) / self.sd) ** 2) / (at * (1.0 - at) * self.sd * SQRT_2_PI)
        return np.asarray(np.log((1.0 - self.anything) * like + self.anything + 1e-300))


@dataclass(frozen=True)
class ErrorRate:
    """The share of all labels that is wrong.

    Parameters
    ----------
    checked, wrong
        How many labels were checked, and how many of them are wrong.
    value, low, high
        The share, and its interval.
    bound
        What the share is at most, by the checked labels alone: it is higher in at most one sheet of twenty (for an
        interval of 90%), whatever the share.
    """

    checked: int
    wrong: float
    value: float
    low: float
    high: float
    bound: float


def error_rate(found: Tally, population: float, *, prior: Belief | None = None, mass: float = 0.9) -> ErrorRate:
    """Estimate the share of wrong labels from checked ones.

    Parameters
    ----------
    found
        The checked labels, taken at random from all.
    population
        How many labels there are. What is checked is known: where most of them were, the interval is narrow.
    prior
        What crowds alike have shown; nothing by default.
    mass
        Mass of the interval.

    Examples
    --------
    >>> rate = error_rate(tally([1] * 8 + [0] * 42), 10_000)
    >>> round(rate.low, 2), rate.value, round(rate.high, 2)
    (0.09, 0.16, 0.26)
    """
    if not found.checked:
        return ErrorRate(0, 0.0, float("nan"), 0.0, 1.0, 1.0)
    unseen = max(1.0 - found.checked / population, 0.0)
    if unseen < 1e-9:
        return ErrorRate(found.checked, found.wrong, found.share, found.share, found.share, found.share)
    # Sampling without replacement is worth that many draws with it.
    n = found.worth / unseen
    wrong, right = found.share * n, (1.0 - found.share) * n
    tail = (1.0 - mass) / 2
    low, high = _quantiles(wrong * found.gain, right * found.gain, prior, (tail, 1.0 - tail))
    if found.share == 0.0 and prior is None:
        low = 0.0
    if found.share == 1.0 and prior is None:
        high = 1.0
    bound = 1.0 if right < 1e-9 else float(betaincinv(wrong + 1.0, right, 1.0 - tail))
    return ErrorRate(found.checked, found.wrong, found.share, low, high, bound)


def _quantiles(wrong: float, right: float, prior: Belief | None, mass: Sequence[float]) -> tuple[float, ...]:
    """Return quantiles of the posterior of a share, under Jeffreys' prior or a given one."""
    if prior is None:
        return tuple(float(betaincinv(wrong + 0.5, right + 0.5, one)) for one in mass)
    # Where the checked labels put their mass, and everywhere else where the prior may have some.
    own = betaincinv(wrong + 0.5, right + 0.5, (np.arange(POINTS) + 0.5) / POINTS)
    share = np.unique(np.concatenate([own, expit(np.linspace(-15.0, 15.0, POINTS))]).clip(1e-300, 1.0 - 1e-16))
    log_density = prior.log_density(share) + xlogy(wrong, share) + xlog1py(right, -share)
    density = np.exp(log_density - log_density.max())
    below = np.concatenate([[0.0], np.cumsum(np.diff(share) * (density[1:] + density[:-1]) / 2)])
    return tuple(float(np.interp(one, below / below[-1], share)) for one in mass)


def checks_needed(share: float, tolerance: float, *, mass: float = 0.9) -> int | None:
    """Return how many random checks would show that no more than `tolerance` is wrong, if `share` is.

    None where the share is not below the tolerance, or where it would take more than anybody checks.

    Examples
    --------
    >>> checks_needed(0.05, 0.10)
    107
    >>> checks_needed(0.12, 0.10) is None
    True
    """
    if share >= tolerance:
        return None
    low, high = 1, MOST_CHECKS
    if _bound(share, high, mass) > tolerance:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _bound(share, middle, mass) <= tolerance else (middle + 1, high)
    return low


def _bound(share: float, n: int, mass: float) -> float:
    return float(betaincinv(share * n + 1.0, (1.0 - share) * n, 1.0 - (1.0 - mass) / 2))
