"""Consensus: what a fit returns, frozen and complete.

One `QuestionFit` per ballot, side by side in a `Consensus`: parameters at the mode, how the search ended, draws, and
every item's probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from moral_entropy.findings import Finding
from moral_entropy.model.copies import Groups
from moral_entropy.model.draws import Curvature, posterior_draws
from moral_entropy.model.patterns import Patterns
from moral_entropy.model.posterior import Parameters
from moral_entropy.model.priors import Priors
from moral_entropy.model.recalibration import Recalibration, recalibrate
from moral_entropy.model.search import SecondMode
from moral_entropy.model.states import States
from moral_entropy.options import FitOptions
from moral_entropy.ties import labels_of
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Votes

SURE, FEW_VOTES = 0.99, 10
"""Posterior probability of a Youden index below 0 from which an annotator is called below chance, and the votes below
which an annotator is called nothing at all."""

ANNOTATORS_AT_ONCE = 1_024


@dataclass(frozen=True)
class Search:
    """How the search for the mode ended.

    Parameters
    ----------
    solver
        "em" or "adam".
    log_posterior
        At the mode, constants left out.
    steepness
        Largest derivative left, in units of the parameter's standard error with all labels known.
    passes
        Passes over the votes, all starts together.
    converged
        Whether the steepness met the tolerance.
    modes
        Log posterior reached from each start, by the name of the start.
    """

    solver: str
    log_posterior: float
    steepness: float
    passes: int
    converged: bool
    modes: dict[str, float]


@dataclass(frozen=True, eq=False, kw_only=True)
class QuestionFit:
    """The consensus on one ballot. Axes: **i** item, **a** annotator, true **k**, **v**oted, **d**omain, **s** draw.

    Parameters
    ----------
    ballot, patterns
        The votes that were fitted, and the same with identical items collapsed, as they count.
    states
        The states that an item can be in: the labels alone under the paper's model.
    mode, drawn
        Weights of the states and confusion, at the mode and in every draw.
    pseudo
        Pseudo-counts of both, as they were at the mode: the prior.
    log_density_s
        Log density of each draw under the Gaussian it came from, up to a constant.
    search, curvature, second_mode
        How the mode was found, what it looks like, and the highest other mode if it came close.
    options
        The options of the fit.
    counted_groups
        Annotators whose votes were counted as one: groups of several, the one who stands for it first.
    p_ik
        The published label probabilities. Default model: those at the mode, pooled with the vote share; the paper's
        model: the mean over draws.
    posterior_ik, model_ik
        The model's own label probabilities at the mode, and as they enter p: the same, or the mean over draws.
    share_weight_i
        Weight of the vote share in p; 0 under the paper's model.
    low_i, high_i
        Central interval of p over the draws: of the positive label of two, else of the published one; NaN without
        draws, and where p is the vote share alone.
    below_a
        Posterior probability that an annotator's Youden index is below 0, at most a half where a search that begins
        with that annotator's answers ends elsewhere; NaN without draws.
    epistemic_i
        What the draws disagree about: entropy of their mean minus their mean entropy, in nats. NaN without draws.
    interior_i, ambiguity_i
        Posterior mass between labels, and the mean entropy of the item's place there, at the mode.
    item_prior, p_votes_ik
        What is known of the items from elsewhere, such as their texts, with its worth in votes; and p without it where
        it counts.
    """

    ballot: Ballot
    patterns: Patterns
    states: States
    mode: Parameters
    drawn: Parameters
    pseudo: Parameters
    log_density_s: Floats
    below_a: Floats
    search: Search
    curvature: Curvature
    second_mode: SecondMode | None
    options: FitOptions
    counted_groups: Groups
    p_ik: Floats
    posterior_ik: Floats
    model_ik: Floats
    share_weight_i: Floats
    low_i: Floats
    high_i: Floats
    epistemic_i: Floats
    interior_i: Floats
    ambiguity_i: Floats
    item_prior: tuple[Floats, Floats | float] | None = None
    p_votes_ik: Floats | None = None

    @property
    def question(self) -> str:
        """Name of the question."""
        return self.ballot.question

    @property
    def confusion_akv(self) -> Floats:
        """Confusion rows at the mode."""
        return self.mode.confusion_akv

    @property
    def confusion_sakv(self) -> Floats:
        """The same in every draw."""
        return self.drawn.confusion_akv

    @property
    def n_draws(self) -> int:
        """How many posterior draws there are."""
        return len(self.drawn.weight_dg)

    @property
    def prevalence_k(self) -> Floats:
        """The labels' shares of all items, at the mode."""
        return np.asarray(self.over_domains(self.mode.weight_dg) @ self.states.label_gk)

    @property
    def prevalence_sk(self) -> Floats:
        """The same in every draw."""
        return np.asarray(self.over_domains(self.drawn.weight_dg) @ self.states.label_gk)

    def over_domains(self, value_dx: Floats) -> Floats:
        """Average over domains, the second to last axis, by their items."""
        return np.asarray(np.einsum("d,...dx->...x", self.patterns.items_d / self.patterns.items_d.sum(), value_dx))

    @cached_property
    def share_k(self) -> Floats:
        """Share of each label among the items: the one estimate of the prevalence that tables and screen show."""
        return np.asarray(self.prevalence_sk.mean(axis=0)) if self.n_draws else self.prevalence_k

    @cached_property
    def counts_ik(self) -> Ints:
        """Votes per item and label as they were counted: those of annotators counted as one only once."""
        return self.patterns.counts_rk[self.patterns.row_i] if self.counted_groups else self.ballot.counts_ik

    @cached_property
    def label_i(self) -> NDArray[np.int16]:
        """Index of the consensus label: see `labels_of`."""
        return labels_of(self.p_ik, self.ballot.positive, ordered=self.ballot.levels is not None).astype(np.int16)

    @cached_property
    def supported_i(self) -> NDArray[np.bool_]:
        """Whether anybody voted for the label; of the levels of a scale, for it, or below and above it."""
        chosen_ik = self.ballot.counts_ik > 0
        if self.ballot.levels is not None:
            chosen_ik = np.logical_or.accumulate(chosen_ik, axis=1)
            chosen_ik &= np.logical_or.accumulate(self.ballot.counts_ik[:, ::-1] > 0, axis=1)[:, ::-1]
        return np.asarray(chosen_ik[np.arange(self.ballot.n_items), self.label_i])

    @cached_property
    def known_i(self) -> NDArray[np.bool_]:
        """Whose label was given as evidence."""
        return np.asarray(self.patterns.clamp_r[self.patterns.row_i] != UNKNOWN)

    @cached_property
    def recalibrated(self) -> tuple[Floats, Recalibration] | None:
        """The published p recalibrated by the gold of other items, and what was learnt; None without such gold.

        Gold that was evidence in the fit is not learnt from. p itself never looks at gold.
        """
        gold_i = np.where(self.known_i, UNKNOWN, self.ballot.gold_i)
        if (gold_i == UNKNOWN).all():
            return None
        p_ik, recalibration = recalibrate(self.p_ik, gold_i, count_i=self.ballot.count_i, seed=self.options.seed)
        return np.where(self.known_i[:, None], self.p_ik, p_ik), recalibration

    def draws_of(self, rows: Ints) -> Floats:
        """Compute the model's label probabilities of some rows of `patterns` in every draw: `p_srk`."""
        return posterior_draws(self.patterns, self.states, self.drawn, rows)

    def chunks(self, size: int = 65_536) -> Iterator[slice]:
        """Yield consecutive slices of the items, so that draws × items need not be held in memory at once."""
        for start in range(0, self.ballot.n_items, size):
            yield slice(start, min(start + size, self.ballot.n_items))


@dataclass(frozen=True, eq=False)
class Consensus:
    """The consensus on every question.

    Parameters
    ----------
    votes
        What was fitted.
    fits
        One per ballot of `votes`, in the same order.
    priors
        The priors of the fit.
    options
        The options of the fit; `refit` repeats it with some of them changed.
    """

    votes: Votes
    fits: tuple[QuestionFit, ...]
    priors: Priors
    options: FitOptions

    @property
    def interval(self) -> float:
        """Mass of every central interval, such as 0.9."""
        return self.options.interval

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Reasons to doubt the fits, found by the fits themselves; `fit` has warned of them."""
        from moral_entropy.model.findings import fit_findings

        return tuple(finding for fit in self.fits for finding in fit_findings(self, fit))

    @property
    def converged(self) -> bool:
        """Whether every search for a mode met its tolerance."""
        return all(fit.search.converged for fit in self.fits)

    @cached_property
    def p_ik(self) -> Floats:
        """The published label probabilities; items of all fits one below the other."""
        return np.concatenate([fit.p_ik for fit in self.fits])


def youden(confusion_akv: Floats) -> Floats:
    """Return the Youden index of each confusion matrix: 0 at chance, 1 without error, negative below chance.

    With two labels it is sensitivity + specificity - 1. With K labels it is (K · mean of the diagonal - 1) / (K - 1),
    which is the same for K = 2, and is 0 for whoever guesses however many labels there are.

    Examples
    --------
    >>> youden(np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.8, 0.2]]])).round(6)
    array([ 0.5, -0.6])
    >>> float(youden(np.full((3, 3), 1 / 3)).round(6))
    0.0
    """
    trace_a = np.trace(confusion_akv, axis1=-2, axis2=-1)
    return np.asarray((trace_a - 1.0) / (confusion_akv.shape[-1] - 1.0))


def below_chance(fit: QuestionFit) -> Floats:
    """Return every annotator's probability of a Youden index below 0: by gold where there is enough, else by the fit.

    NaN without gold and draws: `below_a`.
    """
    ballot, below_a = fit.ballot, fit.below_a.copy()
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    known_v = np.flatnonzero(ballot.gold_i[item_v] != UNKNOWN)
    if not len(known_v):
        return below_a
    count_akv = np.zeros_like(fit.confusion_akv)
    annotator_v, label_v = np.divmod(ballot.code_v[known_v], ballot.n_labels)
    np.add.at(count_akv, (annotator_v, ballot.gold_i[item_v[known_v]], label_v), ballot.count_i[item_v[known_v]])
    enough_a = count_akv.sum(axis=(1, 2)) >= FEW_VOTES
    # Beta(1 + right, K - 1 + wrong) for each label's rate; their mean is about normal.
    total_ak = count_akv.sum(axis=-1) + ballot.n_labels
    rate_ak = (np.diagonal(count_akv, axis1=1, axis2=2) + 1.0) / total_ak
    spread_a = np.sqrt((rate_ak * (1.0 - rate_ak) / (total_ak + 1.0)).sum(axis=1))
    by_gold_a = ndtr((1.0 - rate_ak.sum(axis=1)) / spread_a)
    return np.where(enough_a, by_gold_a, below_a)


def surely_below_chance(below_a: Floats, votes_a: Ints) -> NDArray[np.bool_]:
    """Tell which annotators are below chance: surely, and with enough votes to say so.

    Examples
    --------
    >>> surely_below_chance(np.array([0.999, 0.97, 0.999, np.nan]), np.array([40, 40, 9, 40])).tolist()
    [True, False, False, False]
    """
    return np.asarray((below_a >= SURE) & (votes_a >= FEW_VOTES))
