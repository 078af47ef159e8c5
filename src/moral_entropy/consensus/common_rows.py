"""Common rows: the confusion rows that partially pooled annotators vary around, their prior, and their best fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln

from moral_entropy.votes.table import Floats

TYPICAL_VOTES = 20.0
"""Prior median of the concentrations: the common row weighs as much as 20 votes of each annotator."""

MOST_PER_LABEL = 15.0
"""Largest concentration per label that is learnt by variational Bayes, which takes annotators with few votes for more
alike than they are (`docs/adr/0010`)."""


@dataclass(frozen=True, eq=False)
class CommonRows:
    """The confusion rows that annotators have in common. Axes: true **k**, **v**oted.

    Parameters
    ----------
    mean_kv
        The common rows.
    concentration_k
        How many votes each common row is worth in an annotator's own row.
    """

    mean_kv: Floats
    concentration_k: Floats

    @property
    def beta_kv(self) -> Floats:
        """The Dirichlet parameters of every annotator's rows."""
        return self.mean_kv * self.concentration_k[:, None]

    def far_from(self, other: CommonRows) -> float:
        """Return the largest difference in probability or log concentration."""
        mean = np.abs(self.mean_kv - other.mean_kv).max()
        return float(max(mean, np.abs(np.log(self.concentration_k / other.concentration_k)).max()))


def row_score(mean_v: Floats, c: float, prior_v: Floats) -> float:
    """Compute the log prior of a common row (in log ratios) and its concentration (in logs)."""
    return float(prior_v @ np.log(mean_v) + np.log(c) - 2.0 * np.log(TYPICAL_VOTES + c))


def best_row(sum_v: Floats, n_annotators: int, prior_v: Floats) -> tuple[Floats, float]:
    """Find the common row and concentration with the highest posterior, given expected log probabilities.

    Parameters
    ----------
    sum_v
        Sum over annotators of the expected log probability of each vote.
    n_annotators
        Number of annotators.
    prior_v
        Dirichlet prior of the common row.
    """
    from scipy.optimize import minimize

    def loss(x: Floats) -> tuple[float, Floats]:
        mean_v, c = _unpacked(x)
        beta_v = c * mean_v
        value = beta_v @ sum_v - n_annotators * (gammaln(beta_v).sum() - gammaln(c)) + row_score(mean_v, c, prior_v)
        by_beta_v = sum_v - n_annotators * (digamma(beta_v) - digamma(c))
        by_mean_v = c * by_beta_v + prior_v / mean_v
        by_ratio = (mean_v * (by_mean_v - mean_v @ by_mean_v))[1:]
        by_log_c = beta_v @ by_beta_v + 1.0 - 2.0 * c / (TYPICAL_VOTES + c)
        return -float(value), -np.append(by_ratio, by_log_c)

    guess_v = np.exp(sum_v / max(n_annotators, 1)) + 1e-9
    start = np.append(np.log(guess_v[1:] / guess_v[0]), np.log(TYPICAL_VOTES))
    bounds = [(-12.0, 12.0)] * (len(sum_v) - 1) + [(np.log(0.5), np.log(MOST_PER_LABEL * len(sum_v)))]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return _unpacked(found.x)


def _unpacked(x: Floats) -> tuple[Floats, float]:
    ratios = np.append(0.0, x[:-1])
    share_v = np.exp(ratios - ratios.max())
    return share_v / share_v.sum(), float(np.exp(x[-1]))
