"""Residuals of every two votes on an item, given the consensus, and what the fit absorbs of them.

With the item's state z summed out (its label; under the mixed model its place between labels), the residual of two
annotators' votes is the expected product of their errors:

    r = Σ_z p_z Σ_v (1[a voted v] - T_a,z,v) (1[b voted v] - T_b,z,v),

T_a,z,v being the probability that a votes v on an item in state z. Its mean over items is the agreement beyond what
independence given the state predicts. It is the score of a
dependence between the two, so its variance is reduced by what the fit has already absorbed: the residuals' regression
on the scores of weights and confusion (a Lagrange multiplier test).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, solve_triangular
from scipy.sparse import csr_array

from moral_entropy.checks.links import evenly
from moral_entropy.consensus.components import vote_scores
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.states import States
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
    def posterior_rz(self) -> Floats:
        """Probabilities of the states of every row: of its labels under the paper's model."""
        return self.log_posterior.posterior_rz(self.at)

    @property
    def states(self) -> States:
        """The states of items."""
        return self.log_posterior.states

    @cached_property
    def vote_azv(self) -> Floats:
        """How annotators vote on an item in each state, at the mode: the confusion under the paper's model."""
        return self.states.votes_azv(self.at.confusion_akv)

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return int(self.vote_azv.shape[-1])

    @cached_property
    def residual_e(self) -> Floats:
        """The residual of every pair of votes."""
        a_e, said_a_e = np.divmod(self.votes.one_e, self.n_labels)
        b_e, said_b_e = np.divmod(self.votes.other_e, self.n_labels)
        total_e = np.zeros(len(a_e))
        for z in range(self.states.n_states):
            total_e += self.posterior_rz[self.votes.row_e, z] * self._product(z, a_e, said_a_e, b_e, said_b_e)
        return total_e

    def _product(self, z: int, a_e: Ints, said_a_e: Ints | int, b_e: Ints, said_b_e: Ints | int) -> Floats:
        """Sum over labels the product of two votes' errors, were the item in state `z`."""
        both_e = np.einsum("ev,ev->e", self.vote_azv[a_e, z], self.vote_azv[b_e, z])
        cross_e = self.vote_azv[b_e, z, said_a_e] + self.vote_azv[a_e, z, said_b_e]
        product_e: Floats = np.equal(said_a_e, said_b_e) - cross_e + both_e
        return product_e

    @cached_property
    def scale_e(self) -> Floats:
        """What the residual would be on average if the two votes' errors were one and the same."""
        spread_az = 1.0 - (self.vote_azv**2).sum(axis=-1)
        a_e, b_e = self.votes.one_e // self.n_labels, self.votes.other_e // self.n_labels
        mean_e: Floats = (
            self.posterior_rz[self.votes.row_e] * np.sqrt((spread_az[a_e] * spread_az[b_e]).clip(min=0.0))
        ).sum(axis=1)
        return mean_e

    def moments(self, at_e: Ints) -> tuple[Floats, Floats]:
        """Compute second and third moments of some residuals under independence, given the item's other votes."""
        a_e, said_a_e = np.divmod(self.votes.one_e[at_e], self.n_labels)
        b_e, said_b_e = np.divmod(self.votes.other_e[at_e], self.n_labels)
        likelihood_ez = self.vote_azv[a_e, :, said_a_e] * self.vote_azv[b_e, :, said_b_e]
        others_ez = self.posterior_rz[self.votes.row_e[at_e]] / np.maximum(likelihood_ez, 1e-300)
        others_ez /= others_ez.sum(axis=1, keepdims=True)
        second_e, third_e = np.zeros((2, len(at_e)))
        for u in range(self.n_labels):
            for v in range(self.n_labels):
                chance_ez = others_ez * self.vote_azv[a_e, :, u] * self.vote_azv[b_e, :, v]
                chance_e = np.maximum(chance_ez.sum(axis=1), 1e-300)
                sum_e = sum(chance_ez[:, z] * self._product(z, a_e, u, b_e, v) for z in range(self.states.n_states))
                second_e += sum_e * sum_e / chance_e
                third_e += sum_e**3 / chance_e**2
        return second_e, third_e

    @cached_property
    def scores(self) -> csr_array:
        """Gradient of every row's log likelihood, in log ratios: `score_rp`."""
        patterns = self.votes.patterns
        row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
        weight_dg, domain_r = np.atleast_2d(self.at.weight_g), self._domain_r
        excess_rg = (self.states.add_groups(self.posterior_rz) - weight_dg[domain_r])[:, 1:]
        n_other, n_own = excess_rg.shape[1], self.n_labels * (self.n_labels - 1)
        own_vt = self._vote_scores(row_v)
        first_v = self.log_posterior.n_weights + patterns.code_v // self.n_labels * n_own
        values = np.concatenate([excess_rg.ravel(), own_vt.ravel()])
        rows = np.concatenate([np.repeat(np.arange(patterns.n_rows), n_other), np.repeat(row_v, n_own)])
        columns = [domain_r[:, None] * n_other + np.arange(n_other), first_v[:, None] + np.arange(n_own)]
        at = (rows, np.concatenate([column.ravel() for column in columns]))
        return csr_array((values, at), shape=(patterns.n_rows, self.log_posterior.n_parameters))

    @property
    def _domain_r(self) -> Ints:
        patterns = self.votes.patterns
        return patterns.domain_r if patterns.n_domains > 1 else np.zeros(patterns.n_rows, dtype=np.int32)

    def _vote_scores(self, row_v: Ints) -> Floats:
        """Compute the expected score of every vote, by log ratio of its annotator: `score_vt`."""
        code_v, score_czt = self.votes.patterns.code_v, vote_scores(self.states, self.at.confusion_akv)
        score_vt = np.zeros((len(code_v), score_czt.shape[-1]))
        for z in range(self.states.n_states):
            score_vt += self.posterior_rz[row_v, z, None] * score_czt[code_v, z]
        return score_vt

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
        at, pseudo_g, pseudo_akv = self.at, self.log_posterior.pseudo_g, self.log_posterior.pseudo_akv
        spread_g = at.weight_g * (1.0 - at.weight_g)
        weights = pseudo_g.sum(axis=-1, keepdims=True) * spread_g[..., 1:]
        spread_akv = at.confusion_akv * (1.0 - at.confusion_akv)
        confusion = pseudo_akv.sum(axis=-1, keepdims=True) * spread_akv[..., 1:]
        return np.concatenate([weights.ravel(), confusion.ravel()]) + 1e-6

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
