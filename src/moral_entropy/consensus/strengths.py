"""How annotators agree beyond chance, and how strong each is by it: the correlation with what all have in common.

Takes `Patterns`, returns sums and figures by pair of annotators, and a strength per annotator. Axes: **a** annotator,
**p** pair, **v** label voted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from moral_entropy.consensus import dependence_kernels as kernels
from moral_entropy.consensus.dependence import LEAST_ITEMS, PairSums, list_pairs, votes_by_annotator
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.votes.table import Floats

STARTS = (0.5, 0.25, 0.0)
"""Quantiles of an annotator's correlations with the others from which the search for their strength begins."""

STEPS, PLAIN_STEPS = 60, 20
"""Steps of that search, and how many of them look at all pairs alike before outlying pairs are set aside."""

CUT = 4.0
"""Standard errors beyond which a pair is outlying."""

FEW = 6
"""Annotators up to which pairs are refitted one by one."""

STRONGEST = 0.995


class Agreements(NamedTuple):
    """How every pair of annotators agrees. Axis: **p** pair."""

    agreed_p: Floats
    chance_p: Floats
    spread_p: Floats
    correlation_p: Floats


def agreement_pairs(patterns: Patterns, *, least_items: float = LEAST_ITEMS) -> PairSums:
    """Add up, for every pair of annotators, agreements and each one's votes by label on the items they share."""
    votes = votes_by_annotator(patterns)
    pairs = list_pairs(patterns, votes, n_sums=1 + 2 * patterns.n_labels, least_items=least_items)
    kernels.add_agreement(
        patterns.start_r, patterns.code_v, patterns.weight_r, patterns.n_labels, *votes,
        pairs.first_p, pairs.second_p, np.full(patterns.n_annotators, -1), pairs.sums_px,
    )  # fmt: skip
    return pairs


def agreement(pairs: PairSums, n_labels: int) -> Agreements:
    """Compute each pair's agreement beyond chance, as a correlation.

    Examples
    --------
    Ten items, agreement on nine, both say each label equally often:

    >>> sums_px = np.array([[9.0, 5.0, 5.0, 5.0, 5.0]])
    >>> pairs = PairSums(2, np.array([0]), np.array([1]), np.array([10.0]), sums_px)
    >>> agreement(pairs, 2).correlation_p
    array([0.8])
    """
    share_px = pairs.sums_px / np.maximum(pairs.shared_p, 1e-300)[:, None]
    agreed_p, one_pv, other_pv = share_px[:, 0], share_px[:, 1 : 1 + n_labels], share_px[:, 1 + n_labels :]
    chance_p = (one_pv * other_pv).sum(axis=1)
    spread_p = np.sqrt(np.maximum((1 - (one_pv**2).sum(axis=1)) * (1 - (other_pv**2).sum(axis=1)), 0.0))
    # Whoever says the same on all items correlates with nobody.
    told_p = spread_p > 1e-9
    correlation_p = np.where(told_p, (agreed_p - chance_p) / np.where(told_p, spread_p, 1.0), 0.0)
    return Agreements(agreed_p, chance_p, spread_p, correlation_p.clip(-1.0, 1.0))


def fit_strength(pairs: PairSums, correlation_p: Floats) -> Floats:
    """Fit R_jl ≈ a_j a_l in absolute deviations, and set outlying pairs aside: `strength_a`.

    Several starts; of the fits the one with the least cost is kept (`_cost`): two copies then cost one pair, while
    calling them perfect costs all pairs of others. Of few annotators some pairs can be fitted in more than one way.
    """
    best_a, least = np.zeros(pairs.n_annotators), np.inf
    if not pairs.n_pairs:
        return best_a
    for quantile in STARTS:
        strength_a = _descend(pairs, correlation_p, _start(pairs, correlation_p, quantile))
        if (cost := _cost(pairs, correlation_p, strength_a)) < least - 1e-6:
            best_a, least = strength_a, cost
    from_a = best_a
    for p in range(pairs.n_pairs if pairs.n_annotators <= FEW else 0):
        # Outlying pairs are set aside from the beginning: plain deviations would lead back.
        strength_a = _descend(pairs, correlation_p, _rescaled(pairs, correlation_p, from_a, p), plain_steps=0)
        if (cost := _cost(pairs, correlation_p, strength_a)) < least - 1e-6:
            best_a, least = strength_a, cost
    return best_a


def _descend(pairs: PairSums, correlation_p: Floats, strength_a: Floats, plain_steps: int = PLAIN_STEPS) -> Floats:
    """Move each strength in turn to where the deviations of its pairs are least."""
    root_p, nearest = np.sqrt(pairs.shared_p), 0.2
    for step in range(STEPS):
        strength_a = kernels.rank_one_step(
            pairs.first_p, pairs.second_p, root_p, correlation_p, CUT / root_p, strength_a, nearest, step >= plain_steps
        )
        nearest = max(0.9 * nearest, 0.01)
    return strength_a


def _cost(pairs: PairSums, correlation_p: Floats, strength_a: Floats) -> float:
    """Add up the deviations in standard errors, those of outlying pairs only so far.

    An outlying pair costs the less the more it looks like two copies: `CUT` standard errors where all of their
    correlation is their own, twice that where hardly any is, since then nothing explains the pair.
    """
    own_p = residual_correlation(pairs, correlation_p, strength_a).clip(0.0, 1.0)
    return float(np.minimum(deviation(pairs, correlation_p, strength_a), CUT * (2.0 - own_p)).sum())


def _rescaled(pairs: PairSums, correlation_p: Floats, strength_a: Floats, p: int) -> Floats:
    """Scale two annotators so that their pair is fitted, and all others the opposite way.

    What the two have in common with the others stays. Moving one strength at a time never gets there.
    """
    two = np.array([pairs.first_p[p], pairs.second_p[p]])
    product = float(strength_a[two].prod())
    if product * correlation_p[p] <= 0.0:
        return strength_a
    scale = np.sqrt(correlation_p[p] / product)
    rescaled_a = strength_a / scale
    rescaled_a[two] = strength_a[two] * scale
    return np.asarray(rescaled_a.clip(-STRONGEST, STRONGEST))


def _start(pairs: PairSums, correlation_p: Floats, quantile: float) -> Floats:
    """Begin with the root of a quantile of each annotator's correlations; 0 for those without any."""
    end_q = np.concatenate([pairs.first_p, pairs.second_p])
    sorted_q = np.tile(correlation_p, 2)[np.lexsort((np.tile(correlation_p, 2), end_q))]
    degree_a = np.bincount(end_q, minlength=pairs.n_annotators)
    has_a = degree_a > 0
    at_a = (np.cumsum(degree_a) - degree_a + np.floor(quantile * (degree_a - 1)).astype(np.int64))[has_a]
    strength_a = np.zeros(pairs.n_annotators)
    strength_a[has_a] = np.sqrt(sorted_q[at_a].clip(0.01, 0.98))
    return strength_a


def residual_correlation(pairs: PairSums, correlation_p: Floats, strength_a: Floats) -> Floats:
    """Compute what correlation is left between two annotators beyond their strengths, as a partial correlation."""
    one_p, other_p = strength_a[pairs.first_p], strength_a[pairs.second_p]
    left_p = np.sqrt((1.0 - one_p**2) * (1.0 - other_p**2))
    return np.asarray(((correlation_p - one_p * other_p) / left_p).clip(-1.0, 1.0))


def deviation(pairs: PairSums, correlation_p: Floats, strength_a: Floats) -> Floats:
    """Return how many standard errors each pair's correlation is off the strengths."""
    fitted_p = strength_a[pairs.first_p] * strength_a[pairs.second_p]
    return np.asarray(np.abs(correlation_p - fitted_p) * np.sqrt(pairs.shared_p) / (1.0 - fitted_p**2))
