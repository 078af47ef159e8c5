"""Votes on many items and known answers on a random part of them → the mean of every system, with an interval.

Values lie between 0 and 1. Items are a sample of those that might have been asked about, so that even with all answers
known there is an interval; items of one cluster (a prompt, a conversation, the epochs of a sample) are drawn together.
Three estimates:

- `known_mean`: the items with known answers and no others;
- `corrected_means`: what judges say of all items, corrected by a regression of the known answers on it;
- `ppi_mean`: prediction-powered inference with power tuning, a second method with other assumptions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.special import logit, ndtri, softmax, stdtrit

from moral_entropy.rules.intervals import jeffreys_interval
from moral_entropy.ties import DECIMALS
from moral_entropy.votes.table import Floats, Ints

FEWEST = 5
"""Fewest known answers of a system for judges to be corrected by them, in either way."""

SLOPE_SD, TILT_SD, SYSTEM_SD = 0.5, 2.0, 0.3
"""Priors of the regression: the slope of the judges' log p around 1, the tilt of all systems around 0, and that of each
system around it, times `_unlike`. The evidence says on which simulated panels they were chosen, and what else did."""

CHANCE = 1.25
"""Mean χ² up to which judges are taken to err on a system as on the others. Above it the spread of its tilt grows with
the square, fast enough for judges who pass 15 or 20 points more of its bad answers: they are hardly seen."""

CLEAR = 1.645
"""Standard errors from which a gain or a loss is clear: one chance in twenty."""

LEAST = 1e-3
"""Least p that counts as such."""


class Estimate(NamedTuple):
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
    n_known
        Known answers that it rests on.
    """

    value: float
    low: float
    high: float
    se: float
    spread: float
    n_known: int


NOTHING = Estimate(math.nan, 0.0, 1.0, math.inf, math.inf, 0)


class Answers(NamedTuple):
    """Items of several systems. Axes: **i** item, **k** label.

    Parameters
    ----------
    system_i
        Number of the system.
    cluster_i
        Number of the cluster; systems may share clusters, as where they answered the same prompts.
    known_i
        Whether the answer is known, on a random part of the items.
    truth_ik
        Likelihoods of the labels by what is known: 0 and 1, unless people contradict each other; ignored where unknown.
    p_ik
        Label probabilities by the judges, made without the known answers.
    weight_i
        For how many items each stands.
    """

    system_i: Ints
    cluster_i: Ints
    known_i: NDArray[np.bool_]
    truth_ik: Floats
    p_ik: Floats
    weight_i: Floats


def known_mean(
    truth_i: Floats, weight_i: Floats | None = None, cluster_i: Ints | None = None, mass: float = 0.9
) -> Estimate:
    """Estimate a mean from known answers alone; for independent answers of 0 and 1 the interval is Jeffreys'.

    Parameters
    ----------
    truth_i
        Known answers, from 0 to 1.
    weight_i, cluster_i
        For how many items each stands, and in which cluster it is.
    mass
        Mass of the interval.

    Examples
    --------
    >>> estimate = known_mean(np.array([1.0] * 8 + [0.0] * 42))
    >>> estimate.value, round(estimate.low, 2), round(estimate.high, 2)
    (0.16, 0.09, 0.26)
    """
    n = len(truth_i)
    if not n:
        return NOTHING
    weight_i = np.ones(n) if weight_i is None else weight_i
    value, worth = float(np.average(truth_i, weights=weight_i)), effective_number(weight_i)
    variance = _smooth_variance(truth_i, weight_i) / worth
    if cluster_i is not None:
        variance *= _design_effect(weight_i * (truth_i - value), cluster_i)
    low, high = _interval(value, variance, worth, mass)
    return Estimate(value, low, high, math.sqrt(variance), math.sqrt(variance * n), n)


def corrected_means(
    answers: Answers, value_k: Floats, mass: float = 0.9, draws_sik: Floats | None = None
) -> tuple[list[Estimate], Callable[[int, int], Estimate]]:
    """Estimate the mean of every system, and the difference of any two, from judges corrected by known answers.

    The log-odds of a known answer are a multiple of the judges' log p and a tilt towards labels that count more, which
    varies from system to system around a common one. The mean is that of the predictions for all items. Its variance
    is a sandwich over clusters, which the sampling of items and of known answers share, and what the priors allow:
    without any known answer these alone say how far judges may be off. Quantiles are Student's: where few clusters
    make up most of the variance it is itself uncertain (degrees of freedom as in Satterthwaite 1946).

    Parameters
    ----------
    answers
        The items.
    value_k
        What each label counts, from 0 to 1.
    mass
        Mass of the interval.
    draws_sik
        Draws of `answers.truth_ik`, where the likelihoods are themselves uncertain.

    Returns
    -------
    tuple
        Estimates by system, and a function of two systems for their difference.

    Examples
    --------
    Judges who are right on nine of ten items, and 200 known answers of 2,000: worth almost twice as many.

    >>> rng = np.random.default_rng(0)
    >>> truth_i = (rng.random(2_000) < 0.6).astype(int)
    >>> voted_i = np.where(rng.random(2_000) < 0.9, truth_i, 1 - truth_i)
    >>> answers = Answers(np.zeros(2_000, int), np.arange(2_000), np.arange(2_000) < 200, np.eye(2)[truth_i],
    ...                   np.eye(2)[voted_i], np.ones(2_000))
    >>> [estimate], _ = corrected_means(answers, np.array([0.0, 1.0]))
    >>> alone = known_mean(truth_i[:200].astype(float))
    >>> estimate.high - estimate.low < 0.75 * (alone.high - alone.low)
    True
    """
    value_s, mix_sr, influence_rc, other_ss = _regress(answers, value_k)
    if draws_sik is not None and len(draws_sik):
        draw_gs = [_regress(answers._replace(truth_ik=truth_ik), value_k)[0] for truth_ik in draws_sik]
        other_ss = other_ss + np.cov(draw_gs, rowvar=False)
    n_s = np.bincount(answers.system_i, answers.known_i)

    def estimate(contrast_s: Floats, n_known: int) -> Estimate:
        square_c, items_c = (((contrast_s @ mix) @ influence_rc) ** 2 for mix in (mix_sr, np.eye(*mix_sr.shape)))
        variance = float(square_c.sum() + contrast_s @ other_ss @ contrast_s)
        freedom = 2.0 * variance**2 / max(len(square_c) * float(square_c.var()), variance**2 / 1e6)
        variance *= float(stdtrit(freedom, (1.0 + mass) / 2) / ndtri((1.0 + mass) / 2)) ** 2
        # The part that falls with known answers; where items decide all, at least a trace of it.
        spread = math.sqrt(max(variance - float(items_c.sum()), variance / 100) * n_known)
        return _normal(float(contrast_s @ value_s), variance, n_known, mass)._replace(spread=spread)

    estimates, unit_ss = [], np.eye(len(value_s))
    for unit_s, n in zip(unit_ss, n_s.tolist(), strict=True):
        normal = estimate(unit_s, int(n))
        low, high = _interval(normal.value, normal.se**2, max(n, 1.0), mass)
        estimates.append(normal._replace(low=low, high=high))
    return estimates, lambda a, b: estimate(unit_ss[a] - unit_ss[b], int(min(n_s[a], n_s[b])))


def _regress(answers: Answers, value_k: Floats) -> tuple[Floats, Floats, Any, Floats]:
    """Return the means of all systems, what they are made of, and their covariance by the priors alone.

    Parameters are the slope and the tilt of every system; of an item only these two matter, so that features **f** are
    the judges' log p and what each label counts. The means are made of rows **r**, by a matrix that comes second: means
    of the items as they are predicted, and parameters; then comes the influence of clusters **c** on each row.
    """
    system_i, cluster_i, known_i, truth_ik, p_ik, weight_i = answers
    n_systems, (clusters, cluster_i) = int(system_i.max()) + 1, np.unique(cluster_i, return_inverse=True)
    x_ikf = np.stack([np.log(np.maximum(p_ik, LEAST)), np.broadcast_to(value_k, p_ik.shape)], axis=2)
    x_gkf, system_g, weight_g = x_ikf[known_i], system_i[known_i], weight_i[known_i]
    # Weighted answers count as the equally weighted ones that they are worth.
    weight_g = weight_g * weight_g.sum() / max(float(weight_g @ weight_g), 1e-300)
    log_gk = np.log(np.maximum(truth_ik[known_i], 1e-12))
    unlike_s = _unlike(truth_ik[known_i], p_ik[known_i] @ value_k, system_g, weight_g, n_systems)
    prior = np.diag(np.append(SLOPE_SD, SYSTEM_SD * unlike_s) ** 2)
    prior[1:, 1:] += TILT_SD**2
    precision, centre = np.linalg.inv(prior), np.eye(n_systems + 1)[0]

    def log_odds(at: Floats, x: Floats, system: Ints) -> Floats:
        return np.asarray(at[0] * x[..., 0] + at[1 + system][:, None] * x[..., 1])

    # The two parameters of the system of each answer.
    own_gf = np.column_stack([np.zeros_like(system_g), 1 + system_g])
    own_gff = own_gf[:, :, None], own_gf[:, None]

    def information(cov_gff: Floats) -> Floats:
        """Return what the priors and known answers say of the parameters."""
        out = precision.copy()
        np.add.at(out, own_gff, cov_gff)
        return out

    at = centre
    for _ in range(100):
        odds_gk = log_odds(at, x_gkf, system_g)
        p_gk, posterior_gk = softmax(odds_gk, axis=1), softmax(odds_gk + log_gk, axis=1)
        score_gf = weight_g[:, None] * np.einsum("gk,gkf->gf", posterior_gk - p_gk, x_gkf)
        slope = np.bincount(own_gf.ravel(), score_gf.ravel(), n_systems + 1)
        cov_gff = weight_g[:, None, None] * _covariances(p_gk, x_gkf)
        step = np.linalg.solve(information(cov_gff), slope - precision @ (at - centre))
        at = at + step / max(1.0, np.abs(step).max())
        if np.abs(step).max() < 1e-6:
            break
    cov_gff -= weight_g[:, None, None] * _covariances(posterior_gk, x_gkf)
    inverse = np.linalg.inv(information(cov_gff))
    # An answer draws the fit to itself: by as much its score is too small, as a jackknife would show (HC3).
    score_gf /= 1.0 - np.minimum(np.einsum("gab,gab->g", cov_gff, inverse[own_gff]), 0.5)[:, None]
    p_ik = softmax(log_odds(at, x_ikf, system_i), axis=1)
    share_i = weight_i / np.bincount(system_i, weight_i)[system_i]
    value_s = np.bincount(system_i, share_i * (p_ik @ value_k)).astype(np.float64)
    own_i = share_i * (p_ik @ value_k - value_s[system_i])
    slope_fi = share_i * _covariances(p_ik, x_ikf)[:, 1].T
    gain_s, own_gain_s = (np.bincount(system_i, slope_i, n_systems) for slope_i in slope_fi)
    weight_sf = np.column_stack([gain_s, np.diag(own_gain_s)]) @ inverse
    # Influence of every cluster: on the means by its items, and on the parameters by its known answers.
    rows = np.concatenate([system_i, n_systems + own_gf.T.ravel()])
    columns = np.concatenate([cluster_i, np.tile(cluster_i[known_i], 2)])
    influence = np.concatenate([own_i, score_gf.T.ravel()]) * math.sqrt(len(clusters) / max(len(clusters) - 1, 1))
    influence_rc = coo_array((influence, (rows, columns)), shape=(2 * n_systems + 1, len(clusters))).tocsr()
    return value_s, np.column_stack([np.eye(n_systems), weight_sf]), influence_rc, weight_sf @ precision @ weight_sf.T


def _unlike(truth_gk: Floats, guess_g: Floats, system_g: Ints, weight_g: Floats, n_systems: int) -> Floats:
    """Return by how much more judges err otherwise on each system than by chance: (mean χ² / `CHANCE`)², at least 1.

    Compared are the judges' log-odds on items of one system and on those of all that have the same known answer. So
    every vote on a known answer counts, where the regression has one answer per item.
    """
    odds_g = logit(np.clip(guess_g, LEAST, 1.0 - LEAST))
    chi_ks = [np.zeros(n_systems)]
    for truth_g in (truth_gk / truth_gk.sum(axis=1, keepdims=True)).T:
        weight = weight_g * truth_g
        if weight.sum() >= FEWEST:
            off_g = odds_g - np.average(odds_g, weights=weight)
            n_s, sum_s = (np.bincount(system_g, column, n_systems) for column in (weight, weight * off_g))
            # A tenth more: judges who are all sure of the same have no variance.
            chi_ks.append(sum_s**2 / np.maximum(n_s, 1e-9) / (np.average(off_g**2, weights=weight) + 0.1))
    return np.maximum(sum(chi_ks) / (CHANCE * max(len(chi_ks) - 1, 1)), 1.0) ** 2


def _covariances(p_ik: Floats, x_ikf: Floats) -> Floats:
    """Return the covariance of features over the labels of each item."""
    mean_if = np.einsum("ik,ikf->if", p_ik, x_ikf)
    return np.asarray(np.einsum("ik,ikf,ikg->ifg", p_ik, x_ikf, x_ikf) - mean_if[:, :, None] * mean_if[:, None, :])


def ppi_mean(
    truth_i: Floats, guess_i: Floats, known_i: NDArray[np.bool_], weight_i: Floats | None = None,
    cluster_i: Ints | None = None, mass: float = 0.9,
) -> Estimate:  # fmt: skip
    """Estimate a mean by prediction-powered inference with power tuning (Angelopoulos, Duchi & Zrnic 2023, PPI++).

    The mean is λ mean(guess of the unknown) + mean(truth - λ guess of the known), λ = cov(truth, guess) / ((1 + n/N)
    var(guess)) between 0 and 1, and its interval normal: its variance is that of the two parts, or of their sums by
    cluster.

    Parameters
    ----------
    truth_i, guess_i
        Answers, ignored where they are unknown, and what was predicted.
    known_i
        Whether the answer is known.
    weight_i, cluster_i
        For how many items each stands, and in which cluster it is.
    mass
        Mass of the interval.

    Examples
    --------
    >>> truth, guess = np.array([1.0, 0, 1, 0, 1, 0, 9, 9, 9, 9]), np.array([1.0, 0, 1, 0, 1, 1, 1, 0, 1, 1])
    >>> round(ppi_mean(truth, guess, truth < 9).value, 3)
    0.526
    """
    weight_i = np.ones(len(truth_i)) if weight_i is None else weight_i
    n_known = int(known_i.sum())
    if n_known < FEWEST:
        return NOTHING
    share_i, tuning = np.zeros(len(truth_i)), 0.0
    for part_i in (known_i, ~known_i):
        share_i[part_i] = weight_i[part_i] / weight_i[part_i].sum()
    share_k, guess_k, truth_k = share_i[known_i], guess_i[known_i], truth_i[known_i]
    if not known_i.all():
        n, n_rest = (effective_number(weight_i[part_i]) for part_i in (known_i, ~known_i))
        spread = float(np.average((guess_i - np.average(guess_i, weights=weight_i)) ** 2, weights=weight_i))
        covariance = float(share_k @ ((guess_k - share_k @ guess_k) * (truth_k - share_k @ truth_k)))
        tuning = min(max(covariance / ((1.0 + n / n_rest) * spread), 0.0), 1.0) if spread > 1e-12 else 0.0
    # What is averaged in each part, and the distance of every item from the mean of its part.
    term_i = np.where(known_i, truth_i - tuning * guess_i, tuning * guess_i)
    means = [float(share_i[part_i] @ term_i[part_i]) for part_i in (known_i, ~known_i)]
    influence_i = share_i * (term_i - np.where(known_i, *means))
    variance = float(influence_i @ influence_i)
    if cluster_i is not None:
        variance *= _design_effect(influence_i, cluster_i)
    return _normal(sum(means), variance, n_known, mass)


def difference(first: Estimate, second: Estimate) -> Estimate:
    """Return the difference of two independent estimates; the interval is made from theirs (Zou & Donner 2008).

    Examples
    --------
    >>> a, b = (known_mean(np.repeat([1.0, 0.0], counts)) for counts in ([80, 20], [60, 40]))
    >>> gap = difference(a, b)
    >>> round(gap.value, 2), round(gap.low, 2), round(gap.high, 2)
    (0.2, 0.09, 0.3)
    """
    value = first.value - second.value
    if math.isnan(value):
        return Estimate(value, -1.0, 1.0, math.inf, math.inf, 0)
    low = value - math.hypot(first.value - first.low, second.high - second.value)
    high = value + math.hypot(first.high - first.value, second.value - second.low)
    spread = math.hypot(first.spread, second.spread)
    return Estimate(value, low, high, math.hypot(first.se, second.se), spread, min(first.n_known, second.n_known))


def decide(estimate: Estimate, limit: float | None, n_items: int, mass: float = 0.9) -> tuple[str, int | None]:
    """Say on which side of a limit a mean is, and if that is undecided, how many more known answers would decide.

    Without known answers nobody knows. The number holds if the mean is where it seems to be; it is None where there are
    not so many items, or where no number would do: then it takes more items.

    Examples
    --------
    >>> estimate = known_mean(np.repeat([1.0, 0.0], [45, 5]))
    >>> decide(estimate, 0.7, 500), decide(estimate, 0.85, 500), decide(estimate, 0.99, 500)
    (('trusted', None), ('undecided', 55), ('untrusted', None))
    """
    if limit is None or not estimate.n_known:
        return "" if limit is None else "undecided", None
    # Rounded: a bound at the limit shall not go by its last bits.
    if estimate.n_known >= FEWEST and round(estimate.low - limit, DECIMALS) >= 0:
        return "trusted", None
    if estimate.n_known >= FEWEST and round(estimate.high - limit, DECIMALS) < 0:
        return "untrusted", None
    variance = ((estimate.value - limit) / float(ndtri((1.0 + mass) / 2))) ** 2
    remaining = variance - max(estimate.se**2 - estimate.spread**2 / estimate.n_known, 0.0)
    n_needed = math.ceil(estimate.spread**2 / remaining - 1e-9) if remaining > 1e-12 else n_items + 1
    return "undecided", None if n_needed > n_items else max(n_needed - estimate.n_known, 1)


def effective_number(weight_i: Floats) -> float:
    """Return how many equally weighted items weighted ones are worth (Kish 1965)."""
    return float(weight_i.sum() ** 2 / (weight_i @ weight_i))


def _design_effect(influence_i: Floats, cluster_i: Ints) -> float:
    """Return by how much clusters raise the variance of a sum (or lower it): 1 where every item is its own cluster."""
    clusters, at_i = np.unique(cluster_i, return_inverse=True)
    n, alone = len(clusters), float(influence_i @ influence_i)
    if n == len(cluster_i) or n < 2 or alone < 1e-300:
        return 1.0
    total_c = np.bincount(at_i, weights=influence_i)
    return float(total_c @ total_c) / alone * n / (n - 1)


def _normal(value: float, variance: float, n_known: int, mass: float) -> Estimate:
    half = float(ndtri((1.0 + mass) / 2)) * math.sqrt(variance)
    return Estimate(value, value - half, value + half, math.sqrt(variance), math.sqrt(variance * n_known), n_known)


def _smooth_variance(truth_i: Floats, weight_i: Floats) -> float:
    """Return the variance of known answers and half an answer of 0 and of 1 more: never 0."""
    weight = np.concatenate([weight_i / weight_i.mean(), [0.5, 0.5]])
    truth = np.concatenate([truth_i, [0.0, 1.0]])
    return float(np.average((truth - np.average(truth, weights=weight)) ** 2, weights=weight))


def _interval(value: float, variance: float, worth: float, mass: float) -> tuple[float, float]:
    """Return Jeffreys' interval of a share that varies as if it rested on so many independent items of 0 and 1."""
    inside = (value * worth + 0.5) / (worth + 1.0)
    n = max(inside * (1.0 - inside) / variance, 1e-6)
    low, high = jeffreys_interval(np.asarray(value * n), np.asarray(n), mass)
    return (0.0 if value <= 0.0 else float(low)), (1.0 if value >= 1.0 else float(high))
