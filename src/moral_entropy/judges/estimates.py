"""Votes on many items and known answers on a random part of them → their mean, with an interval.

Values lie between 0 and 1. Items are a sample of those that might have been asked about, so that even with all answers
known there is an interval. Four estimates:

- `gold_alone`: the items with known answers and no others;
- `corrected_mean`: what judges say of all items, corrected by what they miss where the answer is known;
- `ppi_mean`: prediction-powered inference with power tuning, a second method with other assumptions;
- `votes_alone`: no answer is known, so that errors that judges share cannot be seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from moral_entropy.rules.intervals import jeffreys_interval
from moral_entropy.ties import DECIMALS
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

STRATA = 5
"""Most strata that items are sorted into by what the consensus lets one expect."""

FEWEST = 5
"""Fewest known answers of a stratum, and of all for judges to be used at all."""


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval.

    Parameters
    ----------
    value, low, high
        The mean and its interval; all of 0 to 1 where nothing is known.
    se
        Its standard error.
    spread
        Standard deviation of what one more known answer adds: the part of `se` that falls with the number of known
        answers is `spread` over the root of it.
    n_gold
        Known answers that it rests on.
    """

    value: float
    low: float
    high: float
    se: float
    spread: float
    n_gold: int


NOTHING = Estimate(math.nan, 0.0, 1.0, math.inf, math.inf, 0)


def gold_alone(truth_g: Floats, weight_g: Floats | None = None, mass: float = 0.9) -> Estimate:
    """Estimate a mean from known answers alone; for answers of 0 and 1 the interval is Jeffreys'.

    Parameters
    ----------
    truth_g
        Known answers, from 0 to 1.
    weight_g
        For how many items each stands.
    mass
        Mass of the interval.

    Examples
    --------
    >>> found = gold_alone(np.array([1.0] * 8 + [0.0] * 42))
    >>> found.value, round(found.low, 2), round(found.high, 2)
    (0.16, 0.09, 0.26)
    """
    n = len(truth_g)
    if not n:
        return NOTHING
    weight_g = np.ones(n) if weight_g is None else weight_g
    value, worth = float(np.average(truth_g, weights=weight_g)), _worth(weight_g)
    variance = _smooth_variance(truth_g, weight_g)
    low, high = _beta_interval(value, variance / worth, worth, mass)
    return Estimate(value, low, high, math.sqrt(variance / worth), math.sqrt(variance * n / worth), n)


def corrected_mean(
    gold_i: Ints, p_ik: Floats, value_k: Floats, weight_i: Floats | None = None, mass: float = 0.9
) -> Estimate:
    """Estimate a mean from what judges say of all items, corrected by the known answers of some.

    Items are sorted into strata by what the consensus lets one expect of them. In each, the shares of the labels have a
    Dirichlet posterior: its known answers, and one pseudo-answer, half as the consensus has it there and half as all
    known answers together have it. Strata count as many items as they have. The interval allows for half an answer of
    the least and the most value more. The consensus never saw the known answers; where it tells nothing about them, the
    estimate is that of the known answers alone.

    Parameters
    ----------
    gold_i
        Known labels, or `UNKNOWN`; known on a random part of the items.
    p_ik
        Label probabilities by the judges, made without the known labels.
    value_k
        What each label counts, from 0 to 1.
    weight_i
        For how many items each stands.
    mass
        Mass of the interval.

    Examples
    --------
    Judges who are right on nine of ten items, and 200 known answers of 2,000: worth almost twice as many.

    >>> rng = np.random.default_rng(0)
    >>> truth_i = (rng.random(2_000) < 0.6).astype(int)
    >>> voted_i = np.where(rng.random(2_000) < 0.9, truth_i, 1 - truth_i)
    >>> gold_i = np.where(np.arange(2_000) < 200, truth_i, UNKNOWN)
    >>> found = corrected_mean(gold_i, np.eye(2)[voted_i], np.array([0.0, 1.0]))
    >>> alone = gold_alone(truth_i[:200].astype(float))
    >>> found.high - found.low < 0.75 * (alone.high - alone.low)
    True
    """
    weight_i = np.ones(len(gold_i)) if weight_i is None else weight_i
    known_i = gold_i != UNKNOWN
    n, total = int(known_i.sum()), float(weight_i.sum())
    if n == len(gold_i) or n < FEWEST:
        return gold_alone(value_k[gold_i[known_i]], weight_i[known_i], mass)
    stratum_i = strata(p_ik @ value_k, known_i)
    pooled_k = _shares(gold_i[known_i], weight_i[known_i], len(value_k))
    alpha_bk, share_b = [], []
    for here_i in (stratum_i == b for b in range(stratum_i.max() + 1)):
        counts_k = _counts(gold_i[here_i & known_i], weight_i[here_i & known_i], len(value_k))
        expected_k = np.average(p_ik[here_i], axis=0, weights=weight_i[here_i])
        alpha_bk.append(counts_k + (expected_k + pooled_k) / 2)
        share_b.append(float(weight_i[here_i].sum()) / total)
    value = _over_strata(np.array(alpha_bk), np.array(share_b), value_k)[0]
    # Half an answer of the least value and of the most, as in Jeffreys' interval: a rare label that none of few known
    # answers has may still be there.
    rare_k = 0.5 * (np.eye(len(value_k))[value_k.argmin()] + np.eye(len(value_k))[value_k.argmax()])
    smooth, gold, between = _over_strata(
        np.array(alpha_bk) + np.multiply.outer(share_b, rare_k), np.array(share_b), value_k
    )
    # A variance that was estimated in several strata has lost one degree of freedom in each.
    gold *= n / (n - len(share_b))
    whole = gold + between / total
    low, high = _beta_with_halves(value, smooth * (1.0 - smooth) / whole - 1.0, mass)
    return Estimate(value, low, high, math.sqrt(whole), math.sqrt(gold * n), n)


def strata(guess_i: Floats, known_i: NDArray[np.bool_]) -> Ints:
    """Sort items into strata by a guess from 0 to 1: five of equal width, merged until each has known answers.

    Examples
    --------
    >>> strata(np.array([0.0, 0.05, 0.5, 0.95, 1.0]).repeat(5), np.arange(25) % 5 > 0).tolist()[::5]
    [0, 0, 0, 1, 1]
    """
    # Rounded: a guess at the edge of a stratum shall not go by its last bits.
    bin_i = np.minimum((np.round(guess_i, DECIMALS) * STRATA).astype(int), STRATA - 1)
    bins = [[b] for b in np.unique(bin_i).tolist()]
    while len(bins) > 1:
        known_b = [int((known_i & np.isin(bin_i, some)).sum()) for some in bins]
        least = int(np.argmin(known_b))
        if known_b[least] >= FEWEST:
            break
        beside = [b for b in (least - 1, least + 1) if 0 <= b < len(bins)]
        other = min(beside, key=lambda b: known_b[b])
        first = min(least, other)
        bins[first : first + 2] = [bins[first] + bins[first + 1]]
    place_b = np.zeros(STRATA, dtype=np.int64)
    for place, some in enumerate(bins):
        place_b[some] = place
    return np.asarray(place_b[bin_i])


def _counts(label_g: Ints, weight_g: Floats, n_labels: int) -> Floats:
    """Count known labels, weighted ones as the equally weighted ones that they are worth."""
    if not len(label_g):
        return np.zeros(n_labels)
    counts_k = np.bincount(label_g, weights=weight_g, minlength=n_labels)
    return np.asarray(counts_k * _worth(weight_g) / weight_g.sum())


def _shares(label_g: Ints, weight_g: Floats, n_labels: int) -> Floats:
    counts_k = _counts(label_g, weight_g, n_labels) + 0.5
    return np.asarray(counts_k / counts_k.sum())


def _over_strata(alpha_bk: Floats, share_b: Floats, value_k: Floats) -> tuple[float, float, float]:
    """Return mean and variance of the mean value of strata with Dirichlet shares of labels, and how strata vary."""
    share_bk = alpha_bk / alpha_bk.sum(axis=1, keepdims=True)
    mean_b = share_bk @ value_k
    variance_b = (share_bk @ value_k**2 - mean_b**2) / (alpha_bk.sum(axis=1) + 1.0)
    mean = float(share_b @ mean_b)
    return mean, float(share_b**2 @ variance_b), max(float(share_b @ mean_b**2) - mean**2, 0.0)


def ppi_mean(
    truth_g: Floats,
    guess_g: Floats,
    guess_u: Floats,
    weight_g: Floats | None = None,
    weight_u: Floats | None = None,
    mass: float = 0.9,
) -> Estimate:
    """Estimate a mean by prediction-powered inference with power tuning (Angelopoulos, Duchi & Zrnic 2023, PPI++).

    The mean is λ mean(guess_u) + mean(truth_g - λ guess_g), λ = cov(truth, guess) / ((1 + n/N) var(guess)) kept between
    0 and 1, its variance λ² var(guess_u) / N + var(truth_g - λ guess_g) / n, and its interval normal.

    Parameters
    ----------
    truth_g, guess_g
        Known answers, and what was predicted of the same items.
    guess_u
        Predictions of the items without a known answer.
    weight_g, weight_u
        For how many items each stands.
    mass
        Mass of the interval.

    Examples
    --------
    >>> found = ppi_mean(np.array([1.0, 0, 1, 0, 1, 0]), np.array([1.0, 0, 1, 0, 1, 1]), np.array([1.0, 0, 1, 1]))
    >>> round(found.value, 3)
    0.526
    """
    weight_g = np.ones(len(truth_g)) if weight_g is None else weight_g
    weight_u = np.ones(len(guess_u)) if weight_u is None else weight_u
    if len(truth_g) < 2:
        return NOTHING
    n, lam = _worth(weight_g), 0.0
    if len(guess_u):
        lam = _power(truth_g, guess_g, guess_u, weight_g, weight_u)
    rest_g = truth_g - lam * guess_g
    value, variance = float(np.average(rest_g, weights=weight_g)), _population_variance(rest_g, weight_g)
    whole = variance / n
    if len(guess_u):
        value += lam * float(np.average(guess_u, weights=weight_u))
        whole += lam**2 * _population_variance(guess_u, weight_u) / _worth(weight_u)
    half = float(ndtri((1.0 + mass) / 2)) * math.sqrt(whole)
    return Estimate(value, value - half, value + half, math.sqrt(whole), math.sqrt(variance), len(truth_g))


def _power(truth_g: Floats, guess_g: Floats, guess_u: Floats, weight_g: Floats, weight_u: Floats) -> float:
    guess_i, weight_i = np.concatenate([guess_g, guess_u]), np.concatenate([weight_g, weight_u])
    variance = _population_variance(guess_i, weight_i)
    if variance < 1e-12:
        return 0.0
    off_g = guess_g - np.average(guess_g, weights=weight_g)
    covariance = float(np.average(off_g * (truth_g - np.average(truth_g, weights=weight_g)), weights=weight_g))
    lam = covariance / ((1.0 + _worth(weight_g) / _worth(weight_u)) * variance)
    return min(max(lam, 0.0), 1.0)


def votes_alone(value_i: Floats, square_i: Floats, weight_i: Floats, mean_s: Floats, mass: float = 0.9) -> Estimate:
    """Estimate a mean without known answers: sampling of items, and what is not known of the judges.

    Parameters
    ----------
    value_i, square_i
        What judges let one expect of each item's answer, and of its square.
    weight_i
        For how many items each stands.
    mean_s
        The mean over all items in each posterior draw; empty where there are none.
    mass
        Mass of the interval.
    """
    value, worth = float(np.average(value_i, weights=weight_i)), float(weight_i.sum())
    items = max(float(np.average(square_i, weights=weight_i)) - value**2, 0.0) / worth
    whole = items + (float(np.var(mean_s)) if len(mean_s) else 0.0)
    # Half an item of each kind more: where judges agree on everything there is still something to doubt.
    low, high = _beta_interval(value, whole + 0.25 / (worth + 1.0) ** 2, worth, mass)
    return Estimate(value, low, high, math.sqrt(whole), math.inf, 0)


def difference(first: Estimate, second: Estimate) -> Estimate:
    """Return the difference of two independent estimates; the interval is made from theirs (Zou & Donner 2008).

    Examples
    --------
    >>> a, b = (gold_alone(np.repeat([1.0, 0.0], counts)) for counts in ([80, 20], [60, 40]))
    >>> found = difference(a, b)
    >>> round(found.value, 2), round(found.low, 2), round(found.high, 2)
    (0.2, 0.09, 0.3)
    """
    value = first.value - second.value
    if math.isnan(value):
        return Estimate(value, -1.0, 1.0, math.inf, math.inf, 0)
    low = value - math.hypot(first.value - first.low, second.high - second.value)
    high = value + math.hypot(first.high - first.value, second.value - second.low)
    spread = math.hypot(first.spread, second.spread)
    return Estimate(value, low, high, math.hypot(first.se, second.se), spread, min(first.n_gold, second.n_gold))


def gold_needed(found: Estimate, limit: float, mass: float = 0.9) -> int | None:
    """Return how many known answers would tell on which side of a limit a mean is, if it is where it seems to be.

    None where no number of them would: then it takes more items.

    Examples
    --------
    >>> found = gold_alone(np.repeat([1.0, 0.0], [32, 18]))
    >>> gold_needed(found, 0.55), gold_needed(found, found.value) is None
    (78, True)
    """
    distance = abs(found.value - limit) / float(ndtri((1.0 + mass) / 2))
    if not found.n_gold or not math.isfinite(found.spread):
        return None
    left = distance**2 - max(found.se**2 - found.spread**2 / found.n_gold, 0.0)
    return math.ceil(found.spread**2 / left - 1e-9) if left > 1e-12 else None


# --- Parts ---------------------------------------------------------------------------------------------------------


def _worth(weight_i: Floats) -> float:
    """Return how many equally weighted items some are worth (Kish 1965)."""
    return float(weight_i.sum() ** 2 / (weight_i @ weight_i))


def _population_variance(value_i: Floats, weight_i: Floats) -> float:
    mean = np.average(value_i, weights=weight_i)
    return float(np.average((value_i - mean) ** 2, weights=weight_i))


def _smooth_variance(truth_g: Floats, weight_g: Floats) -> float:
    """Return the variance of known answers and half an answer of 0 and of 1 more: never 0."""
    weight = np.concatenate([weight_g / weight_g.mean(), [0.5, 0.5]])
    return _population_variance(np.concatenate([truth_g, [0.0, 1.0]]), weight)


def _beta_interval(value: float, variance: float, worth: float, mass: float) -> tuple[float, float]:
    """Return the interval of a share that varies as if it rested on so many independent items of 0 and 1."""
    inside = (value * worth + 0.5) / (worth + 1.0)
    low, high = _beta_with_halves(value, inside * (1.0 - inside) / variance, mass)
    return (0.0 if value <= 0.0 else low), (1.0 if value >= 1.0 else high)


def _beta_with_halves(value: float, n: float, mass: float) -> tuple[float, float]:
    """Return Jeffreys' interval of a share found in as many items as n."""
    low, high = jeffreys_interval(np.asarray(value * n), np.asarray(n), mass)
    return float(low), float(high)
