"""Consensus: what a fit returns.

One `QuestionFit` per ballot, side by side in a `Consensus`. Frozen, and complete: parameters at the mode,
how the search for the mode ended, the curvature, the posterior draws, and every item's probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moral_entropy.consensus.common_rows import CommonRows
from moral_entropy.consensus.dependence import EffectiveVotes
from moral_entropy.consensus.model import Parameters
from moral_entropy.consensus.near_copies import NearCopies
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.recalibration import Recalibration, recalibrate
from moral_entropy.consensus.states import States, corners
from moral_entropy.consensus.tempering import Exponent
from moral_entropy.consensus.vote_share import first_votes, pool_with_share, share_weight
from moral_entropy.findings import Finding
from moral_entropy.ties import labels_of, settle_halves
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Votes


@dataclass(frozen=True)
class Climb:
    """How the search for the mode ended.

    Parameters
    ----------
    solver
        "em" or "adam".
    log_posterior
        At the mode: marginal likelihood, plus (alpha - 1) log prevalence, plus (beta - 1) log confusion;
        constants left out.
    gradient_norm
        Largest absolute derivative of it, in log-ratio coordinates.
    passes
        Passes over the votes, all starts together.
    converged
        Whether the gradient met the tolerance.
    modes
        Log posterior reached from each start, by the name of the start.
    flat
        Whether the search was ended on a plateau instead, where further passes gained nothing that matters.
    """

    solver: str
    log_posterior: float
    gradient_norm: float
    passes: int
    converged: bool
    modes: dict[str, float]
    flat: bool = False


@dataclass(frozen=True)
class Rival:
    """The highest mode that is not the best one.

    Parameters
    ----------
    start
        The start that leads to it.
    distance
        How many nats lower it is.
    changed
        Share of items whose consensus label would be another.
    prevalence_k
        The prevalence there.
    """

    start: str
    distance: float
    changed: float
    prevalence_k: tuple[float, ...]


@dataclass(frozen=True)
class Curvature:
    """What the Laplace step found at the mode.

    Parameters
    ----------
    method
        "dense", "krylov", or "none" when no draws were asked for.
    coordinates
        "jeffreys", "paper", "jacobian" or "logit-mode".
    positive_definite
        Whether the curvature is that of a maximum.
    smallest
        Smallest eigenvalue of the curvature relative to that with all labels known: the share of information
        left in the worst direction. NaN where it was not computed.
    """

    method: str
    coordinates: str
    positive_definite: bool
    smallest: float


@dataclass(frozen=True, eq=False)
class DrawSummary:
    """Each item's posterior over the draws. Axes: **i** item, **k** label.

    Parameters
    ----------
    mean_ik
        Mean over draws of the label probabilities: the model's own, and the paper's p.
    low_i, high_i
        Central interval of one label's probability in `mean_ik`: the positive one of two labels, else the likeliest.
    expected_entropy_i
        Mean over draws of the entropy of the label probabilities, in nats.
    ambiguity_i
        Mean over draws of the expected entropy of where the item lies between the labels, in nats; 0 if items have one
        true label.
    interior_i
        Posterior probability that the item lies between labels; 0 if items have one true label.
    """

    mean_ik: Floats
    low_i: Floats
    high_i: Floats
    expected_entropy_i: Floats
    ambiguity_i: Floats
    interior_i: Floats


def nothing_between(n_items: int) -> Floats:
    """Return 0 for every item, as one number that takes no memory: ambiguity where items have one true label.

    Examples
    --------
    >>> nothing_between(3)
    array([0., 0., 0.])
    """
    return np.broadcast_to(0.0, (n_items,))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Weights of the states between labels, as fitted. Axes: **d** domain, **g** group of states, **s** draw.

    Parameters
    ----------
    states
        The states.
    weight_dg, weight_sdg
        Weights at the mode, and in every draw; one domain where domains are not told apart.
    items_d
        Items with a vote, by domain.
    votes_k
        Votes by label.
    strength
        Pseudo-items with which every domain's weights are drawn towards the common ones; infinite with one domain.
    """

    states: States
    weight_dg: Floats
    weight_sdg: Floats
    items_d: Floats
    votes_k: Floats
    strength: float = float("inf")

    @property
    def prevalence_k(self) -> Floats:
        """The labels' shares of all items, at the mode."""
        return self._over_domains(self.weight_dg)

    @property
    def prevalence_sk(self) -> Floats:
        """The same in every draw."""
        return self._over_domains(self.weight_sdg)

    def _over_domains(self, weight_dg: Floats) -> Floats:
        share_d = self.items_d / self.items_d.sum()
        return self.states.prevalence_k(np.einsum("d,...dg->...g", share_d, weight_dg))


@dataclass(frozen=True, eq=False)
class SilentRows:
    """Confusion rows of annotators who were counted with others, and so have no vote in the fit.

    Parameters
    ----------
    annotators
        Who they are, by position.
    mean_akv, draw_sakv
        Their rows, given the posterior of the fit: the mean, and draws.
    """

    annotators: Ints
    mean_akv: Floats
    draw_sakv: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class ParameterFit:
    """The parameters of one ballot, as fitted. Axes: **a** annotator, true **k**, **v**oted, **s** draw.

    Parameters
    ----------
    prevalence_k, confusion_akv
        Parameters at the mode.
    climb, curvature
        How the mode was found, and what it looks like.
    rival
        The highest mode that is not the best one, if it came close.
    prevalence_sk, confusion_sakv
        Posterior draws of the parameters.
    alpha_g, beta_akv
        The Dirichlet priors of weights and confusion; with partial pooling, those learnt from the votes.
    exponent
        The power each item's likelihood is raised to; 1 for the model itself.
    mixture
        Weights of the states between labels, under the mixed model, where the prevalence follows from them.
    common
        The rows annotators were found to have in common, where they were partially pooled.
    copies
        Annotators whose votes copy each other, counted as one as far as the options say so; None where nobody looked.
    silent
        Rows of those who were counted with others; in `confusion_akv` theirs are the prior's.
    worth
        How many independent votes the votes are worth; None where nobody looked.
    options
        The options of the fit.
    log_density_s
        Log density of each draw under the Gaussian it came from, up to a constant; None where draws are not from that
        Gaussian alone: bounded by chance, or with uncertain common rows.
    """

    prevalence_k: Floats
    confusion_akv: Floats
    climb: Climb
    curvature: Curvature
    rival: Rival | None = None
    prevalence_sk: Floats
    confusion_sakv: Floats
    alpha_g: Floats
    beta_akv: Floats
    exponent: Exponent
    options: FitOptions
    mixture: Mixture | None = None
    common: CommonRows | None = None
    copies: NearCopies | None = None
    silent: SilentRows | None = None
    worth: EffectiveVotes | None = None
    log_density_s: Floats | None = None

    @cached_property
    def evidence_akv(self) -> Floats:
        """Likelihood of every vote by true label at the mode, as items use it: the tempered confusion."""
        return _powered(self.confusion_akv, self.exponent.value)

    @cached_property
    def evidence_sakv(self) -> Floats:
        """The same in every draw."""
        return _powered(self.confusion_sakv, self.exponent.value)

    @cached_property
    def at(self) -> Parameters:
        """The parameters at the mode, as a pass over the votes takes them: one matrix per annotator."""
        weight = self.prevalence_k if self.mixture is None else self.mixture.weight_dg
        return Parameters(np.log(weight), np.log(self.confusion_akv))

    @property
    def mode(self) -> Parameters:
        """The same as it was looked for: one matrix for all where annotators were fully pooled."""
        return replace(self.at, log_confusion_akv=self.at.log_confusion_akv[:1]) if self.pooling == "full" else self.at

    @property
    def between(self) -> States | None:
        """The states of items, where they may lie between labels; None under the paper's model."""
        return None if self.mixture is None else self.mixture.states

    @property
    def states(self) -> States:
        """The states an item can be in: the labels alone under the paper's model."""
        return self.between or corners(self.confusion_akv.shape[-1])

    @property
    def weight_dg(self) -> Floats:
        """Weights of the groups of states by domain, at the mode; under the paper's model the prevalence."""
        return self.prevalence_k[None] if self.mixture is None else self.mixture.weight_dg

    @property
    def weight_sdg(self) -> Floats:
        """The same in every draw."""
        return self.prevalence_sk[:, None] if self.mixture is None else self.mixture.weight_sdg

    @cached_property
    def rows_akv(self) -> Floats:
        """Confusion rows of all annotators, to be shown: those who were counted with others have their own."""
        return self._with_silent(self.confusion_akv, None if self.silent is None else self.silent.mean_akv)

    @cached_property
    def rows_sakv(self) -> Floats:
        """The same in every draw."""
        return self._with_silent(self.confusion_sakv, None if self.silent is None else self.silent.draw_sakv)

    def _with_silent(self, confusion: Floats, own: Floats | None) -> Floats:
        if self.silent is None or own is None:
            return confusion
        confusion = confusion.copy()
        confusion[..., self.silent.annotators, :, :] = own
        return confusion

    @property
    def pooling(self) -> str:
        """How annotators were pooled: "none", "partial" or "full"."""
        return self.options.pooling

    @cached_property
    def share_k(self) -> Floats:
        """Share of each label among the items: the mean over the draws, the mode's where there are none.

        The one estimate of the prevalence that tables, findings and the screen show; `prevalence_k` is the mode's.
        """
        return np.asarray(self.prevalence_sk.mean(axis=0)) if self.n_draws else self.prevalence_k

    @property
    def n_draws(self) -> int:
        """How many posterior draws there are."""
        return len(self.prevalence_sk)

    def for_annotators(self, n_annotators: int) -> ParameterFit:
        """Return the same with one matrix per annotator, where one was fitted for all."""
        if len(self.confusion_akv) == n_annotators:
            return self
        matrices: dict[str, Any] = {}
        for name in ("confusion_akv", "confusion_sakv", "beta_akv"):
            *lead, _, n_true, n_voted = (one := getattr(self, name)).shape
            matrices[name] = np.broadcast_to(one, (*lead, n_annotators, n_true, n_voted))
        return replace(self, **matrices)

    def on_items(self, ballot: Ballot, patterns: Patterns, posterior_ik: Floats, summary: DrawSummary) -> QuestionFit:
        """Add the results for some items: return a `QuestionFit`."""
        parameters: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(ParameterFit)}
        return QuestionFit(**parameters, ballot=ballot, patterns=patterns, posterior_ik=posterior_ik, summary=summary)


@dataclass(frozen=True, eq=False, kw_only=True)
class QuestionFit(ParameterFit):
    """The consensus on one ballot: its parameters, and its items. Further axis: **i** item.

    Parameters
    ----------
    ballot
        The votes that were fitted.
    patterns
        The same votes with identical items collapsed.
    posterior_ik
        Label probabilities at the mode (`p_map`).
    summary
        Every item's probabilities over the draws.
    """

    ballot: Ballot
    patterns: Patterns
    posterior_ik: Floats
    summary: DrawSummary

    @property
    def question(self) -> str:
        """Name of the question."""
        return self.ballot.question

    @cached_property
    def counts_ik(self) -> Ints:
        """Votes per item and label as they were counted: those of annotators counted as one only once."""
        if self.copies is None or not self.copies.any:
            return self.ballot.counts_ik
        return self.patterns.counts_rk[self.patterns.row_i]

    @property
    def counted_groups(self) -> list[Ints]:
        """Annotators whose votes were counted as one: groups of several, the one who stands for it first."""
        counted = self.copies is not None and self.copies.any and self.options.counts_once
        return self.copies.groups if self.copies is not None and counted else []

    @property
    def pooled(self) -> bool:
        """Whether the published p is pooled with the vote share; the paper's model publishes its own."""
        return self.options.model == "mixed"

    @property
    def first_votes_k(self) -> Floats:
        """Pseudo-votes that the share in the published p begins with: see `first_votes`."""
        return first_votes(np.zeros(self.ballot.n_labels) if self.mixture is None else self.mixture.votes_k)

    @cached_property
    def share_weight_i(self) -> Floats:
        """Weight of the smoothed vote share in the published p: see `share_weight`.

        0 under the paper's model, where nobody voted, and where the label was given as evidence.
        """
        if not self.pooled:
            return nothing_between(self.ballot.n_items)
        known_i = self.patterns.clamp_r[self.patterns.row_i] != UNKNOWN
        return np.where(known_i | (self.ballot.votes_i == 0), 0.0, share_weight(self.summary.interior_i))

    @cached_property
    def p_ik(self) -> Floats:
        """Label probabilities as they are published: the model's mean over draws, pooled with the vote share."""
        if not self.pooled:
            return self.summary.mean_ik
        p_ik = np.empty_like(self.summary.mean_ik)
        # Some items at a time: each step would hold a copy of all.
        for some in self.chunks():
            mean_ik, counts_ik = self.summary.mean_ik[some], self.counts_ik[some]
            weight_i, first_k = self.share_weight_i[some], self.first_votes_k
            p_ik[some] = pool_with_share(mean_ik, counts_ik, weight_i, pseudo_votes=first_k)
        return settle_halves(p_ik)

    @cached_property
    def label_i(self) -> NDArray[np.int16]:
        """Index of the consensus label: see `labels_of`."""
        return labels_of(self.p_ik, self.ballot.positive).astype(np.int16)

    @cached_property
    def recalibrated(self) -> tuple[Floats, Recalibration] | None:
        """The published p recalibrated by the gold of other items, and what was learnt; None without such gold.

        Gold that was evidence in the fit is not learnt from. p itself never looks at gold.
        """
        known_i = self.patterns.clamp_r[self.patterns.row_i] != UNKNOWN
        gold_i = np.where(known_i, UNKNOWN, self.ballot.gold_i)
        if (gold_i == UNKNOWN).all():
            return None
        p_ik, learnt = recalibrate(self.p_ik, gold_i, count_i=self.ballot.count_i, seed=self.options.seed)
        return (np.where(known_i[:, None], self.p_ik, p_ik) if known_i.any() else p_ik), learnt

    def chunks(self, size: int = 65_536) -> Iterator[slice]:
        """Yield consecutive slices of the items, so that draws × items need not be held in memory at once."""
        for start in range(0, self.ballot.n_items, size):
            yield slice(start, min(start + size, self.ballot.n_items))


def _powered(confusion: Floats, exponent: float) -> Floats:
    return confusion if exponent == 1.0 else confusion**exponent


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
    def seed(self) -> int:
        """Seed of the draws."""
        return self.options.seed

    @property
    def interval(self) -> float:
        """Mass of every central interval, such as 0.9."""
        return self.options.interval

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Reasons to doubt the fits, found by the fits themselves; `fit` has warned of them."""
        from moral_entropy.consensus.fit_findings import fit_findings

        return fit_findings(self)

    @property
    def converged(self) -> bool:
        """Whether every search for a mode met its tolerance."""
        return all(fit.climb.converged for fit in self.fits)

    @cached_property
    def posterior_ik(self) -> Floats:
        """The model's posterior mean of the label probabilities; items of all fits one below the other."""
        return np.concatenate([fit.summary.mean_ik for fit in self.fits])

    @cached_property
    def p_ik(self) -> Floats:
        """The published label probabilities; items of all fits one below the other."""
        return np.concatenate([fit.p_ik for fit in self.fits])
