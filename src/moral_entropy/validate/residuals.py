"""Residuals of every two votes on an item, given the consensus, and what the fit absorbs of them.

With the label summed out, the residual of two annotators' votes is the expected product of their errors:

    r = Σ_k p_k Σ_v (1[a voted v] - θ_a,k,v) (1[b voted v] - θ_b,k,v),

whose mean over items is the agreement beyond what independence given the label predicts. It is the score of a
dependence between the two, so its variance is reduced by what the fit has already absorbed: the residuals' regression
on the scores of prevalence and confusion (a Lagrange multiplier test).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, solve_triangular
from scipy.sparse import csr_array

from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.validate.links import evenly
from moral_entropy.votes.table import Floats, Ints

MOST_PAIRS_OF_VOTES = 4_000_000
"""Pairs of votes on one item that are looked at; of more, evenly spaced items."""

MOST_PARAMETERS = 2_500
"""Parameters up to which the fit's own share in the residuals is taken out; beyond, tests are cautious instead."""

MOST_WORK = 2e10
"""The same, as pairs times squared parameters."""

PAIRS_AT_ONCE = 4_096


@dataclass(frozen=True, eq=False)
class VotePairs:
    """Two votes on one item, for all items and pairs of their voters. Axes: **e** pair of votes, **r** row.

    Parameters
    ----------
    row_e
        The row of the patterns.
    one_e, other_e
        The codes of the two votes, the lower annotator first.
    """

    patterns: Patterns
    row_e: Ints
    one_e: Ints
    other_e: Ints

    @property
    def weight_e(self) -> Floats:
        """How many items each stands for."""
        return self.patterns.weight_r[self.row_e]


def pair_votes(patterns: Patterns, *, anonymous: bool = False) -> VotePairs:
    """Pair up the votes of every item.

    Parameters
    ----------
    patterns
        The votes.
    anonymous
        Whether all votes share one annotator, so that a pair may be of the same.
    """
    votes_r = np.diff(patterns.start_r)
    rows, firsts, seconds = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for m in np.unique(votes_r[votes_r >= 2]):
        row_r = np.flatnonzero((votes_r == m) & (patterns.weight_r > 0))
        one, other = np.triu_indices(m, 1)
        rows.append(np.repeat(row_r, len(one)))
        firsts.append((patterns.start_r[row_r, None] + one).ravel())
        seconds.append((patterns.start_r[row_r, None] + other).ravel())
    row_e = np.concatenate(rows)
    one_e, other_e = (patterns.code_v[np.concatenate(parts)] for parts in (firsts, seconds))
    apart_e = (one_e // patterns.n_labels != other_e // patterns.n_labels) | anonymous
    return VotePairs(patterns, row_e[apart_e], one_e[apart_e], other_e[apart_e])


@dataclass(frozen=True, eq=False)
class Residuals:
    """The residuals of a fit, and what the fit absorbs of them.

    Parameters
    ----------
    log_posterior
        Of the fit, on evenly spaced items where there are very many votes.
    at
        Its mode.
    votes
        The pairs of votes.
    seen
        Share of the items that are looked at; the mode was fitted to all of them.
    """

    log_posterior: LogPosterior
    at: Parameters
    votes: VotePairs
    seen: float = 1.0

    @cached_property
    def posterior_rk(self) -> Floats:
        """Label probabilities of every row."""
        return self.log_posterior.posterior_rk(self.at)

    @cached_property
    def confusion_akv(self) -> Floats:
        """Confusion at the mode."""
        return self.at.confusion_akv

    @cached_property
    def residual_e(self) -> Floats:
        """The residual of every pair of votes."""
        n_labels = self.confusion_akv.shape[-1]
        a_e, said_a_e = np.divmod(self.votes.one_e, n_labels)
        b_e, said_b_e = np.divmod(self.votes.other_e, n_labels)
        total_e = np.zeros(len(a_e))
        for k in range(n_labels):
            total_e += self.posterior_rk[self.votes.row_e, k] * self._product(k, a_e, said_a_e, b_e, said_b_e)
        return total_e

    def _product(self, k: int, a_e: Ints, said_a_e: Ints | int, b_e: Ints, said_b_e: Ints | int) -> Floats:
        """Sum over labels the product of two votes' errors, were the true label `k`."""
        both_e = np.einsum("ev,ev->e", self.confusion_akv[a_e, k], self.confusion_akv[b_e, k])
        cross_e = self.confusion_akv[b_e, k, said_a_e] + self.confusion_akv[a_e, k, said_b_e]
        product_e: Floats = np.equal(said_a_e, said_b_e) - cross_e + both_e
        return product_e

    @cached_property
    def scale_e(self) -> Floats:
        """What the residual would be on average if the two votes' errors were one and the same."""
        spread_ak = 1.0 - (self.confusion_akv**2).sum(axis=-1)
        n_labels = spread_ak.shape[1]
        a_e, b_e = self.votes.one_e // n_labels, self.votes.other_e // n_labels
        mean_e: Floats = (
            self.posterior_rk[self.votes.row_e] * np.sqrt((spread_ak[a_e] * spread_ak[b_e]).clip(min=0.0))
        ).sum(axis=1)
        return mean_e

    def moments(self, at_e: Ints) -> tuple[Floats, Floats]:
        """Compute second and third moments of some residuals under independence, given the item's other votes."""
        n_labels = self.confusion_akv.shape[-1]
        a_e, said_a_e = np.divmod(self.votes.one_e[at_e], n_labels)
        b_e, said_b_e = np.divmod(self.votes.other_e[at_e], n_labels)
        likelihood_ek = self.confusion_akv[a_e, :, said_a_e] * self.confusion_akv[b_e, :, said_b_e]
        others_ek = self.posterior_rk[self.votes.row_e[at_e]] / np.maximum(likelihood_ek, 1e-300)
        others_ek /= others_ek.sum(axis=1, keepdims=True)
        second_e, third_e = np.zeros((2, len(at_e)))
        for u in range(n_labels):
            for v in range(n_labels):
                chance_ek = others_ek * self.confusion_akv[a_e, :, u] * self.confusion_akv[b_e, :, v]
                chance_e = np.maximum(chance_ek.sum(axis=1), 1e-300)
                sum_e = sum(chance_ek[:, k] * self._product(k, a_e, u, b_e, v) for k in range(n_labels))
                second_e += sum_e * sum_e / chance_e
                third_e += sum_e**3 / chance_e**2
        return second_e, third_e

    @cached_property
    def scores(self) -> csr_array:
        """Gradient of every row's log likelihood, in log ratios: `score_rp`."""
        patterns, n_labels = self.votes.patterns, self.confusion_akv.shape[-1]
        row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
        a_v, said_v = np.divmod(patterns.code_v, n_labels)
        values = [(self.posterior_rk - self.at.prevalence_k)[:, k] for k in range(1, n_labels)]
        rows = [np.arange(patterns.n_rows)] * (n_labels - 1)
        columns = [np.full(patterns.n_rows, k) for k in range(n_labels - 1)]
        for k in range(n_labels):
            for v in range(1, n_labels):
                values.append(self.posterior_rk[row_v, k] * ((said_v == v) - self.confusion_akv[a_v, k, v]))
                columns.append((n_labels - 1) * (1 + a_v * n_labels + k) + v - 1)
                rows.append(row_v)
        at = (np.concatenate(rows), np.concatenate(columns))
        return csr_array((np.concatenate(values), at), shape=(patterns.n_rows, self.log_posterior.n_parameters))

    @cached_property
    def factor(self) -> Floats | None:
        """Lower Cholesky factor of the information about the parameters; None where there are too many of them."""
        if self.log_posterior.n_parameters > MOST_PARAMETERS:
            return None
        weighted = self.scores.multiply(self.votes.patterns.weight_r[:, None]).tocsr()
        information_pp = (self.scores.T @ weighted).toarray() / self.seen
        information_pp[np.diag_indices_from(information_pp)] += self._prior_information()
        try:
            return np.asarray(np.tril(cho_factor(information_pp, lower=True)[0]))
        except LinAlgError:
            return None

    def _prior_information(self) -> Floats:
        """What the priors add for each parameter, and a trifle where they add nothing."""
        at, pseudo_k, pseudo_akv = self.at, self.log_posterior.pseudo_k, self.log_posterior.pseudo_akv
        prevalence = pseudo_k.sum() * (at.prevalence_k * (1.0 - at.prevalence_k))[1:]
        spread_akv = at.confusion_akv * (1.0 - at.confusion_akv)
        confusion = pseudo_akv.sum(axis=-1, keepdims=True) * spread_akv[..., 1:]
        return np.concatenate([prevalence, confusion.ravel()]) + 1e-6

    def absorbed(self, residual_rp: csr_array) -> Floats:
        """Compute the variance that the fit absorbs of sums over rows, one column per sum."""
        absorbed_p = np.zeros(residual_rp.shape[1])
        if len(absorbed_p) * self.log_posterior.n_parameters**2 > MOST_WORK or self.factor is None:
            return absorbed_p
        weighted = residual_rp.multiply(self.votes.patterns.weight_r[:, None]).tocsc()
        for start in range(0, residual_rp.shape[1], PAIRS_AT_ONCE):
            some = slice(start, start + PAIRS_AT_ONCE)
            cross = (self.scores.T @ weighted[:, some]).toarray()
            absorbed_p[some] = (solve_triangular(self.factor, cross, lower=True) ** 2).sum(axis=0)
        return absorbed_p


def residuals_of(log_posterior: LogPosterior, at: Parameters, *, anonymous: bool = False) -> Residuals:
    """Prepare the residuals of a fit.

    Parameters
    ----------
    log_posterior, at
        Of the fit, and its mode.
    anonymous
        Whether all votes share one annotator.
    """
    some = evenly(log_posterior.patterns, MOST_PAIRS_OF_VOTES)
    small = replace(log_posterior, patterns=some)
    seen = float(some.weight_r.sum()) / max(float(log_posterior.patterns.weight_r.sum()), 1e-300)
    return Residuals(small, at, pair_votes(some, anonymous=anonymous), seen)
