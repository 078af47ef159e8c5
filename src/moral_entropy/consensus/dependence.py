"""Do votes repeat each other? Residual correlation of every pair of annotators, and how many votes the votes are worth.

Takes the votes, the posterior of the states and how annotators vote in each; returns correlations, shrunk towards none,
and the effective number of votes. `near_copies` finds those who copy, from the votes alone. Changes no vote.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from moral_entropy.consensus import dependence_kernels as kernels
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.votes.table import Floats, Ints

LEAST_ITEMS = 10
"""Items a pair of annotators must share to have a correlation."""

PAIRS_AT_ONCE = 65_536
"""Room for pairs of annotators that one call fills."""

SCALES = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Standard deviations of the normals of which correlations are a mixture, beside exactly 0."""

PSEUDO_PAIRS = 10.0
"""Pairs without any correlation that are added before the mixture is learnt."""

NEGLECTED = 0.3
"""Shrunk correlations below this count as 0."""

HARDLY = 1e-3
"""Posterior probability of a correlation of `NEGLECTED` or more below which a pair is not drawn."""

SHRINKING_STEPS = 200
DRAWS = 100
"""Draws of all correlations, for the effective number of votes."""


@dataclass(frozen=True, eq=False)
class PairSums:
    """Sums over the items that two annotators share. Axes: **p** pair, **x** sum.

    Parameters
    ----------
    n_annotators
        How many annotators there are.
    first_p, second_p
        The two annotators; first < second, ascending.
    shared_p
        Items they share; those of weighted rows all counted.
    sums_px
        What was added up; the function that made it says what.
    """

    n_annotators: int
    first_p: Ints
    second_p: Ints
    shared_p: Floats
    sums_px: Floats

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.first_p)

    def take(self, kept_p: NDArray[np.bool_] | Ints) -> PairSums:
        """Keep only some pairs."""
        return PairSums(
            self.n_annotators, self.first_p[kept_p], self.second_p[kept_p], self.shared_p[kept_p], self.sums_px[kept_p]
        )


class AnnotatorVotes(NamedTuple):
    """The votes in the order of annotators: where each annotator's begin, and the row and label of every vote."""

    start_a: NDArray[np.int64]
    row_w: NDArray[np.int64]
    label_w: NDArray[np.int64]


def votes_by_annotator(patterns: Patterns) -> AnnotatorVotes:
    """Sort the votes by annotator."""
    annotator_v, label_v = np.divmod(patterns.code_v.astype(np.int64), patterns.n_labels)
    order_w = np.argsort(annotator_v, kind="stable")
    votes_a = np.bincount(annotator_v, minlength=patterns.n_annotators)
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
    return AnnotatorVotes(np.concatenate([[0], np.cumsum(votes_a)]), row_v[order_w], label_v[order_w])


def list_pairs(patterns: Patterns, votes: AnnotatorVotes, *, n_sums: int, least_items: float) -> PairSums:
    """List the pairs of annotators with enough shared items, their sums still 0."""
    n_annotators, a = patterns.n_annotators, 0
    given = (patterns.start_r, patterns.code_v, patterns.weight_r, patterns.n_labels, votes.start_a, votes.row_w)
    buffers = np.empty(n_annotators, np.int64), np.zeros(n_annotators)
    room = max(PAIRS_AT_ONCE, n_annotators)
    ends_ep, shared_p = np.empty((2, room), np.int64), np.empty(room)
    found: list[tuple[Ints, Floats]] = []
    while a < n_annotators:
        a, n_pairs = kernels.shared_pairs(*given, float(least_items), a, *buffers, ends_ep, shared_p)
        found.append((ends_ep[:, :n_pairs].copy(), shared_p[:n_pairs].copy()))
    all_ep, all_p = (np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True))
    order_p = np.lexsort(all_ep[::-1])
    sums_px = np.zeros((len(order_p), n_sums))
    return PairSums(n_annotators, all_ep[0, order_p], all_ep[1, order_p], all_p[order_p], sums_px)


def residual_pairs(
    patterns: Patterns, posterior_rz: Floats, vote_azv: Floats, *, least_items: float = LEAST_ITEMS
) -> PairSums:
    """Add up the products of the residuals of every two annotators over the items that they share.

    On an item of state z the residual of annotator j is the vote, as ones and zeros by label, less the probabilities
    T_jz of votes; x = Σ_z r_z (y_j - T_jz)·(y_l - T_lz), with r the posterior of the states, has mean 0 where votes are
    independent given the state. With corners alone the states are the labels.

    Parameters
    ----------
    patterns
        The votes.
    posterior_rz
        Posterior of the states, by row.
    vote_azv
        Probability of each vote by annotator and state.
    least_items
        Shared items a pair must have.

    Returns
    -------
    PairSums
        Sums of x, x², the variance of x under independence, and the variance Σ_z r_z (1 - Σ_v T²) of each residual.

    Examples
    --------
    Two coin tossers who always say the same:

    >>> from moral_entropy.consensus.patterns import collapse
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> item_v, annotator_v = np.divmod(np.arange(20), 2)
    >>> votes = {"item_v": item_v, "annotator_v": annotator_v, "label_v": item_v % 2}
    >>> patterns = collapse(ballot_from_codes("q", ("0", "1"), **votes))
    >>> pairs = residual_pairs(patterns, np.full((2, 2), 0.5), np.full((2, 2, 2), 0.5))
    >>> pairs.shared_p, correlation(pairs).rho_p
    (array([10.]), array([1.]))
    """
    votes = votes_by_annotator(patterns)
    pairs = list_pairs(patterns, votes, n_sums=5, least_items=least_items)
    kernels.add_residuals(
        patterns.start_r, patterns.code_v, patterns.weight_r, patterns.n_labels, *votes,
        np.ascontiguousarray(posterior_rz), np.ascontiguousarray(vote_azv), pairs.first_p, pairs.second_p,
        np.full(patterns.n_annotators, -1), pairs.sums_px,
    )  # fmt: skip
    return pairs


# --- Correlations: sums → ρ, shrunk towards 0 ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Correlations:
    """Residual correlations of pairs of annotators. Axis: **p** pair.

    Parameters
    ----------
    n_annotators, first_p, second_p, shared_p
        As in `PairSums`.
    rho_p, error_p
        The correlation as it was found, and its standard error.
    shrunk_p
        Its posterior mean, with what is typical of all pairs as the prior; 0 where that is below `NEGLECTED`.
    mixture_m
        Share of pairs at exactly 0, then in the normal of each of `SCALES`.
    """

    n_annotators: int
    first_p: Ints
    second_p: Ints
    shared_p: Floats
    rho_p: Floats
    error_p: Floats
    shrunk_p: Floats
    mixture_m: Floats

    def take(self, kept_p: NDArray[np.bool_] | Ints) -> Correlations:
        """Keep only some pairs."""
        kept = {name: getattr(self, name)[kept_p] for name in PAIR_COLUMNS}
        return replace(self, **kept)

    @cached_property
    def posterior(self) -> tuple[Floats, Floats, Floats]:
        """Each pair's probability of every part of the mixture, and the mean and sd of ρ in each."""
        return _posterior(self.rho_p, self.error_p, self.mixture_m)


PAIR_COLUMNS = ("first_p", "second_p", "shared_p", "rho_p", "error_p", "shrunk_p")


def correlation(pairs: PairSums) -> Correlations:
    """Compute the residual correlation of every pair, and shrink it as far as the pair's own error asks for.

    ρ = Σx / √(ΣV_j ΣV_l); its error is the larger of the scatter found and the one that independence predicts. The true
    correlations are taken as a mixture of a point at 0 and normals around 0 whose shares are learnt from all pairs
    (adaptive shrinkage): where most pairs are independent, noise shrinks to nothing while a copy stays.

    Parameters
    ----------
    pairs
        Of `residual_pairs`.
    """
    total_p, square_p, variance_p, first_p, second_p = pairs.sums_px.T
    # A pair without a doubt about any vote has nothing to correlate.
    scale_p = np.sqrt(np.maximum(first_p * second_p, 1e-300))
    told_p = np.minimum(first_p, second_p) > 1e-9
    rho_p = np.where(told_p, total_p / scale_p, 0.0)
    error_p = np.where(told_p, np.sqrt(np.maximum(square_p, variance_p)) / scale_p, 1.0)
    mixture_m = learn_mixture(rho_p, error_p)
    mean_p = np.einsum("pm,pm->p", *_posterior(rho_p, error_p, mixture_m)[:2])
    return Correlations(
        pairs.n_annotators, pairs.first_p, pairs.second_p, pairs.shared_p, rho_p, error_p,
        shrunk_p=np.where(mean_p >= NEGLECTED, np.minimum(mean_p, 1.0), 0.0), mixture_m=mixture_m,
    )  # fmt: skip


def learn_mixture(rho_p: Floats, error_p: Floats) -> Floats:
    """Learn by EM which share of pairs is at 0 and which in the normal of each scale: `mixture_m`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> learn_mixture(rng.normal(0, 0.1, 500), np.full(500, 0.1))[0] > 0.9
    np.True_
    """
    n_parts = 1 + len(SCALES)
    log_pm = _log_likelihood(rho_p, error_p)
    likelihood_pm = np.exp(log_pm - log_pm.max(axis=1, keepdims=True))
    mixture_m = np.full(n_parts, 1.0 / n_parts)
    for _ in range(SHRINKING_STEPS):
        # Σ_p l_pm π_m / Σ_m l_pm π_m: two products of a matrix and a vector.
        mass_m = mixture_m * ((1.0 / np.maximum(likelihood_pm @ mixture_m, 1e-300)) @ likelihood_pm)
        mass_m[0] += PSEUDO_PAIRS
        mixture_m = mass_m / mass_m.sum()
    return mixture_m


def _log_likelihood(rho_p: Floats, error_p: Floats) -> Floats:
    variance_pm = error_p[:, None] ** 2 + np.array([0.0, *SCALES]) ** 2
    return np.asarray(-0.5 * (np.log(variance_pm) + rho_p[:, None] ** 2 / variance_pm))


def _posterior(rho_p: Floats, error_p: Floats, mixture_m: Floats) -> tuple[Floats, Floats, Floats]:
    """Return each pair's probability of every part of the mixture, and the mean and sd of ρ in each."""
    joint_pm = _log_likelihood(rho_p, error_p) + np.log(np.maximum(mixture_m, 1e-300))
    share_pm = np.exp(joint_pm - logsumexp(joint_pm, axis=1, keepdims=True))
    squares_m = np.array([0.0, *SCALES]) ** 2
    kept_pm = squares_m / (squares_m + error_p[:, None] ** 2)
    return share_pm, kept_pm * rho_p[:, None], np.sqrt(kept_pm) * error_p[:, None]


def draw_correlations(found: Correlations, rng: np.random.Generator) -> Floats:
    """Draw all correlations once from their posteriors, each pair by itself; those below `NEGLECTED` are 0."""
    share_pm, mean_pm, sd_pm = found.posterior
    chosen_p = (share_pm.cumsum(axis=1) < rng.random(len(share_pm))[:, None]).sum(axis=1).clip(max=len(SCALES))
    at_p = np.arange(len(chosen_p))
    drawn_p = mean_pm[at_p, chosen_p] + sd_pm[at_p, chosen_p] * rng.standard_normal(len(at_p))
    return np.where(drawn_p >= NEGLECTED, np.minimum(drawn_p, 1.0), 0.0)


# --- The effective number of votes ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EffectiveVotes:
    """How many independent votes the votes are worth.

    Parameters
    ----------
    pairs
        The pairs of annotators whose votes are correlated.
    votes, effective
        Votes per item, and effective votes per item: means over the items with a vote.
    low, high
        Interval of `effective` over draws of the correlations from their shrinkage posteriors, each pair by itself;
        correlations below `NEGLECTED` count as 0 in every draw. It holds what is unsure about correlations, not about
        which items were asked, nor about the fit.
    """

    pairs: Correlations
    votes: float
    effective: float
    low: float
    high: float


def effective_votes(patterns: Patterns, found: Correlations, *, mass: float = 0.9, seed: int = 0) -> EffectiveVotes:
    """Compute the effective number of votes: a vote counts 1 / (1 + the correlations with the others on the item).

    Parameters
    ----------
    patterns
        The votes, near-copies included.
    found
        Correlations of the pairs.
    mass
        Probability mass of the interval.
    seed
        Of the draws.

    Examples
    --------
    Three votes on every item, two of them always the same:

    >>> from moral_entropy.consensus.patterns import collapse
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> votes = {"item_v": [0, 0, 0], "annotator_v": [0, 1, 2], "label_v": [1, 1, 0]}
    >>> patterns = collapse(ballot_from_codes("q", ("0", "1"), **votes))
    >>> one = np.ones(1)
    >>> copies = Correlations(3, np.array([0]), np.array([1]), 99 * one, one, 1e-6 * one, one, np.eye(7)[6])
    >>> round(effective_votes(patterns, copies).effective, 3)
    2.0
    """
    votes_r = np.diff(patterns.start_r).astype(np.float64)
    n_items = max(float(patterns.weight_r.sum()), 1e-300)
    votes = float(patterns.weight_r @ votes_r) / n_items
    found = found.take(_perhaps(found))
    rows = _rows_with_pairs(patterns, found)
    some, lost = patterns.take(rows), []
    rng = np.random.default_rng(seed)
    for _ in range(DRAWS):
        drawn_r = effective_by_row(some, found, draw_correlations(found, rng))
        lost.append(float(some.weight_r @ (votes_r[rows] - drawn_r)) / n_items)
    high, low = np.quantile(lost, [(1 - mass) / 2, (1 + mass) / 2])
    effective, low, high = (votes - float(value) for value in (np.mean(lost), low, high))
    return EffectiveVotes(found.take(found.shrunk_p > 0), votes, effective, low, high)


def _perhaps(found: Correlations) -> NDArray[np.bool_]:
    """Tell which pairs may have a correlation that is not neglected."""
    share_pm, mean_pm, sd_pm = _posterior(found.rho_p, found.error_p, found.mixture_m)
    chance_p = (share_pm * ndtr((mean_pm - NEGLECTED) / np.maximum(sd_pm, 1e-12))).sum(axis=1)
    return np.asarray(chance_p > HARDLY)


def _rows_with_pairs(patterns: Patterns, found: Correlations) -> Ints:
    """Find the rows on which two or more of the annotators in some pairs voted: all others keep all their votes."""
    paired_a = np.zeros(patterns.n_annotators, dtype=np.int64)
    paired_a[found.first_p], paired_a[found.second_p] = 1, 1
    before_v = np.concatenate([[0], np.cumsum(paired_a[patterns.code_v // patterns.n_labels])])
    return np.flatnonzero(np.diff(before_v[patterns.start_r]) >= 2)


def effective_by_row(patterns: Patterns, found: Correlations, rho_p: Floats) -> Floats:
    """Compute each row's effective number of votes, given the correlations of the pairs."""
    kept_p = rho_p > 0
    effective_r: Floats = np.diff(patterns.start_r).astype(np.float64)
    if not kept_p.any():
        return effective_r
    ends = np.concatenate([found.first_p[kept_p], found.second_p[kept_p]])
    others = np.concatenate([found.second_p[kept_p], found.first_p[kept_p]])
    order_q = np.argsort(ends, kind="stable")
    degree_a = np.bincount(ends, minlength=found.n_annotators)
    start_a = np.concatenate([[0], np.cumsum(degree_a)])
    rho_q = np.tile(rho_p[kept_p], 2)[order_q]
    kernels.add_effective(
        patterns.start_r, patterns.code_v, patterns.n_labels, start_a, others[order_q], rho_q, effective_r
    )
    return effective_r
