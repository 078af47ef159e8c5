"""Votes on many items and known answers on a random part of them → the mean of every system, with an interval.

Values lie between 0 and 1. Items are a sample of those that might have been asked about, so that even with all answers
known there is an interval; items of one cluster (a prompt, a conversation, the epochs of a sample) are drawn together.
Four estimates:

- `known_mean`: the items with known answers and no others;
- `corrected_means`: what judges say of all items, corrected by what they miss where the answer is known;
- `ppi_mean`: prediction-powered inference with power tuning, a second method with other assumptions;
- `votes_mean`: no answer is known, so that errors that judges share cannot be seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtri, softmax

from moral_entropy.rules.intervals import jeffreys_interval
from moral_entropy.ties import DECIMALS
from moral_entropy.votes.table import Floats, Ints

STRATA = 5
"""Most strata that items are sorted into by what the consensus lets one expect."""

FEWEST = 5
"""Fewest known answers of a stratum, and of all for judges to be used at all."""

LENT = 512.0
"""How many pseudo-answers per stratum a lender adds where known answers bear it out: nearly all, as a half-hearted
prior is neither rejected by known answers nor harmless. Of 0.5 to 8,192 this held best in simulated panels."""

AGAINST_LENDING = 2.0
"""Prior odds of lending nothing against each lender: at even odds differences between systems held in 80% where judges
are lenient on one system, at 2 in 83% (simulated panels, 120 each; without lending 91%, at twice the length)."""

PARTS = 80
"""Parts of the clusters that are left out in turn: enough for a standard error that is 8% off."""

NOBODY, CONSENSUS, PANEL, SYSTEMS = range(4)
"""Who lends pseudo-answers: nobody; the consensus, shifted so that it expects a system's known answers; the same, by
the known answers of all systems; the error rates of judges on all systems."""

STEPS = 40
"""Steps of EM for the pooled error rates; the tables are small, and it has settled long before."""


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
        Probabilities of the known answers; ignored where unknown.
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

    def take(self, at_i: Ints | NDArray[np.bool_]) -> Answers:
        """Return a part of the items."""
        return Answers(*[column[at_i] for column in self])  # type: ignore[arg-type]


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
    answers: Answers, value_k: Floats, mass: float = 0.9, *, parts: int = PARTS
) -> tuple[list[Estimate], dict[tuple[int, int], Estimate]]:
    """Estimate the mean of every system, and of every two the difference, from judges corrected by known answers.

    Items are sorted into strata by what the consensus lets one expect of them. In each stratum of a system the shares
    of the labels have a Dirichlet posterior: its known answers; one pseudo-answer, half as the consensus has it there
    and half as all known answers of the system have it; and many more where known answers bear out the consensus, or
    the error rates of judges on the other systems (`_trust`). Strata count as many items as they have. The variance is
    that of leaving out clusters in turn, and what pseudo-answers may be wrong by.

    Parameters
    ----------
    answers
        The items.
    value_k
        What each label counts, from 0 to 1.
    mass
        Mass of the interval.
    parts
        How many parts of the clusters are left out in turn.

    Returns
    -------
    tuple
        Estimates by system, and of the difference of every two systems.

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
    known_psbk, rest_psb, guess_sbk = _tables(answers, value_k, parts)
    n_systems, n_known_s = len(guess_sbk), known_psbk[0].sum(axis=(1, 2))
    lenders = (NOBODY, CONSENSUS, *[PANEL, SYSTEMS] * int((n_known_s >= FEWEST).sum() > 1))
    alpha_lpsbk = np.stack([_posterior(known_psbk, rest_psb, guess_sbk, lender) for lender in lenders])
    trust_ls = _trust(known_psbk[0], rest_psb[0], guess_sbk, lenders)
    size_psb = known_psbk.sum(axis=-1) + rest_psb
    share_psb = size_psb / size_psb.sum(axis=-1, keepdims=True)
    mean_lpsb = alpha_lpsbk @ value_k / alpha_lpsbk.sum(axis=-1)
    mean_lps = (share_psb * mean_lpsb).sum(axis=-1)
    value_ps = (trust_ls[:, None] * mean_lps).sum(axis=0)
    # What a Dirichlet posterior does not know, and which part of that comes from pseudo-answers.
    # Half an answer of the least value and of the most, as in Jeffreys' interval: a rare label may still be there.
    ends_k = np.bincount([value_k.argmin(), value_k.argmax()], minlength=len(value_k)) / 2.0
    smooth_lsbk = alpha_lpsbk[:, 0] + share_psb[0][..., None] * ends_k
    label_lsbk = smooth_lsbk / smooth_lsbk.sum(axis=-1, keepdims=True)
    variance_lsb = label_lsbk @ value_k**2 - (label_lsbk @ value_k) ** 2
    spread_lsb = share_psb[0] ** 2 * variance_lsb / (smooth_lsbk.sum(axis=-1) + 1.0)
    pseudo_lsb = 1.0 - known_psbk[0].sum(axis=-1) / alpha_lpsbk[:, 0].sum(axis=-1)
    pseudo_s = (trust_ls * ((spread_lsb * pseudo_lsb).sum(axis=-1) + (mean_lps[:, 0] - value_ps[0]) ** 2)).sum(axis=0)
    strata_lsb = share_psb[0] * (mean_lpsb[:, 0] - mean_lps[:, 0, :, None]) ** 2
    worth_s = [effective_number(answers.weight_i[answers.system_i == s]) for s in range(n_systems)]
    items_s = (trust_ls * strata_lsb.sum(axis=-1)).sum(axis=0) / worth_s
    least_s = (trust_ls * spread_lsb.sum(axis=-1)).sum(axis=0) + items_s
    # A variance that was estimated in several strata has lost one degree of freedom in each.
    freedom = n_known_s.sum() / max(n_known_s.sum() - share_psb.shape[-1], 1.0)
    variance_s = np.maximum(freedom * _jackknife(value_ps) + pseudo_s, least_s)
    estimates = []
    for s in range(n_systems):
        value, variance = float(value_ps[0, s]), float(variance_s[s])
        n = int(answers.known_i[answers.system_i == s].sum())
        low, high = _interval(value, variance, max(float(n_known_s[s]), 1.0), mass)
        by_answers = max(variance - items_s[s], variance / 100)
        estimates.append(Estimate(value, low, high, math.sqrt(variance), math.sqrt(by_answers * n), n))
    gaps = {}
    for a, b in permutations(range(n_systems), 2):
        value_p = value_ps[:, a] - value_ps[:, b]
        variance = float(freedom * _jackknife(value_p) + pseudo_s[a] + pseudo_s[b])
        gap = _normal(float(value_p[0]), variance, min(estimates[a].n_known, estimates[b].n_known), mass)
        by_answers = max(variance - items_s[a] - items_s[b], variance / 100)
        gaps[a, b] = replace(gap, spread=math.sqrt(by_answers * gap.n_known))
    return estimates, gaps


def _jackknife(value_ps: Floats) -> Floats:
    """Return the variance of means by what they are without each part of the clusters; the first are with all."""
    out_ps = value_ps[1:]
    return np.asarray((len(out_ps) - 1) / len(out_ps) * ((out_ps - out_ps.mean(axis=0)) ** 2).sum(axis=0))


def _tables(answers: Answers, value_k: Floats, parts: int) -> tuple[Floats, Floats, Floats]:
    """Count known answers and other items by system and stratum: of all items, then without each part of the clusters.

    Returns known answers `known_psbk`, other items `rest_psb`, and what the consensus expects there `guess_sbk`.
    """
    system_i, known_i, n_labels = answers.system_i, answers.known_i, len(value_k)
    stratum_i = strata(answers.p_ik @ value_k, known_i)
    n_systems, n_strata = int(system_i.max()) + 1, int(stratum_i.max()) + 1
    cell_i = system_i * n_strata + stratum_i
    # Weighted answers count as the equally weighted ones that they are worth.
    weight_known = answers.weight_i[known_i]
    worth = weight_known.sum() / max(float(weight_known @ weight_known), 1e-300)
    weight_i = answers.weight_i * np.where(known_i, worth, 1.0)
    clusters, cluster_i = np.unique(answers.cluster_i, return_inverse=True)
    n_parts = min(parts, len(clusters))
    part_c = np.random.default_rng(len(clusters)).permutation(len(clusters)) % n_parts
    flat_i = part_c[cluster_i] * n_systems * n_strata + cell_i
    shape = (n_parts, n_systems, n_strata)
    size = n_parts * n_systems * n_strata
    rest_psb = np.bincount(flat_i, weights=weight_i * ~known_i, minlength=size).reshape(shape)
    weight_ik = weight_i[:, None] * answers.truth_ik * known_i[:, None]
    known_psbk = np.stack([np.bincount(flat_i, column, size).reshape(shape) for column in weight_ik.T], axis=-1)
    guess_ik = answers.weight_i[:, None] * answers.p_ik
    guess_sbk = np.stack([np.bincount(cell_i, column, size // n_parts) for column in guess_ik.T], axis=-1) + 1e-9
    guess_sbk = guess_sbk.reshape(n_systems, n_strata, n_labels)
    counts = (np.concatenate([table.sum(axis=0)[None], table.sum(axis=0) - table]) for table in (known_psbk, rest_psb))
    return *counts, guess_sbk / guess_sbk.sum(axis=-1, keepdims=True)


def _posterior(known_psbk: Floats, rest_psb: Floats, guess_sbk: Floats, lender: int) -> Floats:
    """Return the Dirichlet parameters of the labels in every stratum: `alpha_psbk`; the axis p may be absent.

    Error rates P(stratum | label) are shared by all systems, shares of labels are each system's own; both are fitted by
    EM, in which items without a known answer count by their posterior.
    """
    pooled_sk = known_psbk.sum(axis=-2) + 0.5
    pooled_sk = pooled_sk / pooled_sk.sum(axis=-1, keepdims=True)
    alpha_sbk = known_psbk + (guess_sbk + pooled_sk[..., None, :]) / 2.0
    if lender == NOBODY:
        return np.asarray(alpha_sbk)
    if lender in (CONSENSUS, PANEL):
        axes = (-2,) if lender == CONSENSUS else (-3, -2)
        return np.asarray(alpha_sbk + LENT * _calibrated(known_psbk, guess_sbk, axes))
    label_sbk = alpha_sbk / alpha_sbk.sum(axis=-1, keepdims=True)
    for _ in range(STEPS):
        count_sbk = known_psbk + rest_psb[..., None] * label_sbk
        rate_bk = count_sbk.sum(axis=-3, keepdims=True) + 0.5
        rate_bk = rate_bk / rate_bk.sum(axis=-2, keepdims=True)
        share_sk = count_sbk.sum(axis=-2, keepdims=True) + 0.5
        prior_sbk = rate_bk * share_sk / share_sk.sum(axis=-1, keepdims=True)
        prior_sbk = prior_sbk / prior_sbk.sum(axis=-1, keepdims=True)
        label_sbk = (alpha_sbk + LENT * prior_sbk) / (alpha_sbk.sum(axis=-1, keepdims=True) + LENT)
    return np.asarray(alpha_sbk + LENT * prior_sbk)


def _calibrated(known_psbk: Floats, guess_sbk: Floats, axes: tuple[int, ...]) -> Floats:
    """Shift what the consensus expects, by one bias per label, so that over `axes` known answers are as it says."""
    known_k, known_sb = known_psbk.sum(axis=axes, keepdims=True), known_psbk.sum(axis=-1, keepdims=True)
    shifted_sbk = np.broadcast_to(guess_sbk, known_psbk.shape)
    for _ in range(STEPS // 2):
        expected_k = (known_sb * shifted_sbk).sum(axis=axes, keepdims=True)
        shifted_sbk = shifted_sbk * (known_k + 0.5) / (expected_k + 0.5)
        shifted_sbk = shifted_sbk / shifted_sbk.sum(axis=-1, keepdims=True)
    return np.asarray(shifted_sbk)


def _trust(known_sbk: Floats, rest_sb: Floats, guess_sbk: Floats, lenders: Sequence[int]) -> Floats:
    """Return how far each lender is trusted for every system, by how well it predicts known answers: `trust_ls`.

    The likelihood of a system's known answers is Dirichlet-multinomial in every stratum, around what the consensus
    expects, or the error rates of the other systems.
    """
    log_ls = np.zeros((len(lenders), len(known_sbk)))
    log_ls[0] = math.log(AGAINST_LENDING)
    for s, own_bk in enumerate(known_sbk):
        others_sbk, rest_without = known_sbk.copy(), rest_sb.copy()
        others_sbk[s] = 0.0
        rest_without[s] += own_bk.sum(axis=-1)
        for at, lender in enumerate(lenders):
            alpha_bk = _posterior(others_sbk, rest_without, guess_sbk, lender)[s]
            total_b, known_b = alpha_bk.sum(axis=-1), own_bk.sum(axis=-1)
            log_ls[at, s] += (gammaln(alpha_bk + own_bk) - gammaln(alpha_bk)).sum()
            log_ls[at, s] += (gammaln(total_b) - gammaln(total_b + known_b)).sum()
    return np.asarray(softmax(log_ls, axis=0))


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
        known_b = [int((known_i & np.isin(bin_i, members)).sum()) for members in bins]
        least = int(np.argmin(known_b))
        if known_b[least] >= FEWEST:
            break
        neighbours = [b for b in (least - 1, least + 1) if 0 <= b < len(bins)]
        first = min(least, min(neighbours, key=lambda b: known_b[b]))
        bins[first : first + 2] = [bins[first] + bins[first + 1]]
    place_b = np.zeros(STRATA, dtype=np.int64)
    for place, members in enumerate(bins):
        place_b[members] = place
    return np.asarray(place_b[bin_i])


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
    if n_known < 2:
        return NOTHING
    share_k, n = weight_i[known_i] / weight_i[known_i].sum(), effective_number(weight_i[known_i])
    truth_k, guess_k, tuning = truth_i[known_i], guess_i[known_i], 0.0
    if not known_i.all():
        n_rest = effective_number(weight_i[~known_i])
        share_u = weight_i[~known_i] / weight_i[~known_i].sum()
        spread = float(np.average((guess_i - np.average(guess_i, weights=weight_i)) ** 2, weights=weight_i))
        covariance = float(share_k @ ((guess_k - share_k @ guess_k) * (truth_k - share_k @ truth_k)))
        tuning = min(max(covariance / ((1.0 + n / n_rest) * spread), 0.0), 1.0) if spread > 1e-12 else 0.0
    residual_k = truth_k - tuning * guess_k
    value, influence_i = float(share_k @ residual_k), np.zeros(len(truth_i))
    influence_i[known_i] = share_k * (residual_k - value)
    if not known_i.all():
        mean = float(share_u @ guess_i[~known_i])
        value += tuning * mean
        influence_i[~known_i] = tuning * share_u * (guess_i[~known_i] - mean)
    variance = float(influence_i @ influence_i)
    if cluster_i is not None:
        variance *= _design_effect(influence_i, cluster_i)
    return _normal(value, variance, n_known, mass)


def votes_mean(answers: Answers, value_k: Floats, mean_s: Floats, mass: float = 0.9) -> Estimate:
    """Estimate the mean of one system without known answers: sampling of items, and what is not known of the judges.

    Parameters
    ----------
    answers
        The items.
    value_k
        What each label counts.
    mean_s
        The mean over all items in each posterior draw; empty where there are none.
    mass
        Mass of the interval.
    """
    value_i, weight_i = answers.p_ik @ value_k, answers.weight_i
    value, worth = float(np.average(value_i, weights=weight_i)), float(weight_i.sum())
    square = float(np.average(answers.p_ik @ value_k**2, weights=weight_i))
    items = max(square - value**2, 0.0) / worth * _design_effect(weight_i * (value_i - value), answers.cluster_i)
    variance = items + (float(np.var(mean_s)) if len(mean_s) else 0.0)
    # Half an item of each kind more: where judges agree on everything there is still something to doubt.
    low, high = _interval(value, variance + 0.25 / (worth + 1.0) ** 2, worth, mass)
    return Estimate(value, low, high, math.sqrt(variance), math.inf, 0)


def with_variance(estimate: Estimate, variance: float) -> Estimate:
    """Return an estimate that varies by so much more, its interval wider in proportion.

    Examples
    --------
    >>> wider = with_variance(Estimate(0.5, 0.4, 0.6, 0.03, 0.3, 100), 0.0016)
    >>> round(wider.se, 3), round(wider.low, 3)
    (0.05, 0.333)
    """
    if not estimate.se or not math.isfinite(estimate.se):
        return estimate
    se = math.sqrt(estimate.se**2 + variance)
    low, high = (estimate.value + (end - estimate.value) * se / estimate.se for end in (estimate.low, estimate.high))
    return replace(estimate, se=se, low=low, high=high)


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


def answers_needed(estimate: Estimate, limit: float, mass: float = 0.9) -> int | None:
    """Return how many known answers would tell on which side of a limit a mean is, if it is where it seems to be.

    None where no number of them would: then it takes more items.

    Examples
    --------
    >>> estimate = known_mean(np.repeat([1.0, 0.0], [32, 18]))
    >>> answers_needed(estimate, 0.55), answers_needed(estimate, estimate.value) is None
    (78, True)
    """
    distance = abs(estimate.value - limit) / float(ndtri((1.0 + mass) / 2))
    if not estimate.n_known or not math.isfinite(estimate.spread):
        return None
    remaining = distance**2 - max(estimate.se**2 - estimate.spread**2 / estimate.n_known, 0.0)
    return math.ceil(estimate.spread**2 / remaining - 1e-9) if remaining > 1e-12 else None


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
