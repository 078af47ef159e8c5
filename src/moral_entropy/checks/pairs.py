"""Do two annotators agree more than their error rates allow? Every pair tested, and all of them pooled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from moral_entropy.checks.residuals import Residuals
from moral_entropy.ties import tie_key
from moral_entropy.votes.table import Floats, Ints

MOMENT_CELLS = 400_000_000
"""Pairs of votes times squared labels times states beyond which the residuals' own moments stand for expected ones."""

FALSE_SHARE = 0.005
"""Expected share of false ones among the pairs named (Benjamini and Hochberg)."""

NOTICEABLE = 0.02
"""Excess agreement below which a dependence, however sure, changes little."""

SCATTERED = 4.0
"""Standard errors by which the pairs' scatter must exceed that of independent votes."""

ABSORBED = 0.1
"""Share of a pair's variance that the fit must leave for the pair to be testable."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Every pair of annotators who share items. Axis: **p** pair.

    Parameters
    ----------
    one_p, other_p
        The two annotators.
    items_p
        Items they share.
    agreement_p, excess_p
        Share of those on which they agree, and by how much that is more than independence given the label predicts.
    error_p, chance_p
        Standard error of the excess, and the excess' two-sided probability under independence; NaN where the fit
        absorbs whatever dependence there may be.
    """

    one_p: Ints
    other_p: Ints
    items_p: Floats
    agreement_p: Floats
    excess_p: Floats
    error_p: Floats
    chance_p: Floats

    @property
    def z_p(self) -> Floats:
        """The excess in standard errors."""
        return self.excess_p / self.error_p

    @property
    def typical(self) -> float:
        """How far agreement typically is from what independence predicts, chance taken out (method of moments)."""
        beyond_p = self.items_p * (self.excess_p**2 - self.error_p**2)
        told_p = ~np.isnan(beyond_p)
        mean = beyond_p[told_p].sum() / max(float(self.items_p[told_p].sum()), 1e-300)
        return float(np.sqrt(max(mean, 0.0)))

    @property
    def n_told(self) -> int:
        """Pairs that can be told from independent ones."""
        return int((~np.isnan(self.error_p)).sum())

    @property
    def scattered(self) -> bool:
        """Whether the pairs scatter surely more than chance has it."""
        # Of n independent standard normals the mean square has a standard error of √(2/n).
        return bool(self.n_told) and self.dispersion - 1.0 > SCATTERED * float(np.sqrt(2.0 / self.n_told))

    @property
    def dispersion(self) -> float:
        """Mean square of the pairs' z: 1 under independence; NaN where no pair can be told."""
        z_p = self.z_p[~np.isnan(self.z_p)]
        return float((z_p**2).mean()) if len(z_p) else float("nan")


@dataclass(frozen=True, eq=False)
class Together:
    """All pairs pooled.

    Parameters
    ----------
    items
        Items with two votes or more.
    agreement, excess, error
        Share of pairs of votes that agree, the excess, and its standard error.
    correlation
        The excess as a correlation of errors.
    """

    items: float
    agreement: float
    excess: float
    error: float
    correlation: float


def weigh_pairs(residuals: Residuals, *, least_items: float, fitted: bool = True) -> Pairs:
    """Test every pair of annotators with enough shared items.

    Parameters
    ----------
    residuals
        Of the fit.
    least_items
        Shared items a pair must have.
    fitted
        Whether the parameters were fitted to these very votes, and have absorbed some of the residuals.
    """
    votes = residuals.votes
    n_labels, n_annotators = votes.patterns.n_labels, np.int64(votes.patterns.n_annotators)
    key_e = votes.one_e // n_labels * n_annotators + votes.other_e // n_labels
    key_p, pair_e = np.unique(key_e, return_inverse=True)
    items_p = np.bincount(pair_e, weights=votes.weight_e, minlength=len(key_p))
    kept_p = np.flatnonzero(items_p >= least_items)
    rank_p = np.full(len(key_p), -1)
    rank_p[kept_p] = np.arange(len(kept_p))
    at_e = np.flatnonzero(rank_p[pair_e] >= 0)
    ends = (key_p[kept_p] // n_annotators, key_p[kept_p] % n_annotators)
    return _tested(residuals, *ends, rank_p[pair_e[at_e]], at_e, fitted)


def _tested(residuals: Residuals, one_p: Ints, other_p: Ints, pair_e: Ints, at_e: Ints, fitted: bool) -> Pairs:
    votes, n_pairs = residuals.votes, len(one_p)
    weight_e, n_labels = votes.weight_e[at_e], votes.patterns.n_labels

    def summed(value_e: Floats) -> Floats:
        return np.bincount(pair_e, weights=weight_e * value_e, minlength=n_pairs).astype(np.float64)

    residual_e = residuals.residual_e[at_e]
    agreed_e = (votes.one_e[at_e] % n_labels == votes.other_e[at_e] % n_labels).astype(np.float64)
    items_p, sum_p = summed(np.ones(len(at_e))), summed(residual_e)
    second_p, third_p = _moments(residuals, residual_e, at_e, summed)
    shape = (votes.patterns.n_rows, n_pairs)
    by_row = csr_array((residual_e, (votes.row_e[at_e], pair_e)), shape=shape)
    variance_p = second_p - (residuals.absorbed(by_row) if fitted else 0.0)
    told_p = variance_p > ABSORBED * second_p
    error_p = np.sqrt(np.where(told_p, variance_p, np.nan))
    skew_p = (third_p / error_p**3).clip(-2.0, 2.0)
    return Pairs(
        one_p, other_p, items_p,
        agreement_p=summed(agreed_e) / items_p,
        excess_p=sum_p / items_p,
        error_p=error_p / items_p,
        chance_p=_two_sided(sum_p / error_p, skew_p),
    )  # fmt: skip


def _moments(
    residuals: Residuals, residual_e: Floats, at_e: Ints, summed: Callable[[Floats], Floats]
) -> tuple[Floats, Floats]:
    if len(at_e) * residuals.n_labels**2 * residuals.states.n_states > MOMENT_CELLS:
        # So many labels that expected moments would take minutes: the residuals' own will do.
        return summed(residual_e**2), summed(residual_e**3)
    second_e, third_e = residuals.moments(at_e)
    return summed(second_e), summed(third_e)


def _two_sided(z_p: Floats, skew_p: Floats) -> Floats:
    """Compute two-sided chances; rare labels make residuals skewed, and a normal tail would raise false alarms."""
    # Loaded here, as no audit needs it.
    from scipy.stats import pearson3

    chance_p = np.full(len(z_p), np.nan)
    told = ~np.isnan(z_p)
    if told.any():
        above = pearson3.sf(z_p[told], skew_p[told])
        chance_p[told] = np.minimum(2.0 * np.minimum(above, 1.0 - above), 1.0)
    return chance_p


def dependent_pairs(pairs: Pairs) -> Ints:
    """Pick the pairs whose votes are surely and noticeably dependent, surest first."""
    from scipy.stats import false_discovery_control

    told_p = np.flatnonzero(~np.isnan(pairs.chance_p))
    if not len(told_p):
        return told_p
    adjusted: Floats = false_discovery_control(pairs.chance_p[told_p], method="bh")
    sure_p = told_p[(adjusted <= FALSE_SHARE) & (np.abs(pairs.excess_p[told_p]) >= NOTICEABLE)]
    return sure_p[np.argsort(-tie_key(np.abs(pairs.z_p[sure_p])), kind="stable")]


def pool_pairs(residuals: Residuals, *, fitted: bool = True) -> Together | None:
    """Pool all pairs of votes: by how much independence given the label fails overall; None without a pair.

    Parameters
    ----------
    residuals, fitted
        As in `weigh_pairs`.
    """
    votes = residuals.votes
    weight_e = votes.weight_e
    total = float(weight_e.sum())
    if not total:
        return None
    n_rows, n_labels = votes.patterns.n_rows, votes.patterns.n_labels
    sum_r = np.bincount(votes.row_e, weights=residuals.residual_e, minlength=n_rows)
    paired_r = np.bincount(votes.row_e, minlength=n_rows) > 0
    weight_r = votes.patterns.weight_r
    absorbed = float(residuals.absorbed(csr_array(sum_r[:, None]))[0]) if fitted else 0.0
    variance = max(float(weight_r @ sum_r**2) - absorbed, 0.0)
    excess = float(weight_r @ sum_r)
    agreed_e = votes.one_e % n_labels == votes.other_e % n_labels
    return Together(
        items=float(weight_r[paired_r].sum()),
        agreement=float(weight_e[agreed_e].sum()) / total,
        excess=excess / total,
        error=float(np.sqrt(variance)) / total,
        correlation=excess / max(float(weight_e @ residuals.scale_e), 1e-300),
    )
