"""The density a fit's draws are meant to come from, in log-ratio coordinates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from moral_entropy.consensus.ground import Ground
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.pooling import pool_fully
from moral_entropy.consensus.result import QuestionFit


def ground_of(fit: QuestionFit, threads: int | None = None) -> Ground:
    """Give the log posterior of a fit in both coordinates; with common rows, given those that were learnt.

    Examples
    --------
    >>> from moral_entropy.consensus.fit import fit
    >>> from moral_entropy.votes.simulate import simulate_votes
    >>> one = fit(simulate_votes(n_items=50, n_annotators=4, votes_per_item=3).votes, draws=0).fits[0]
    >>> abs(ground_of(one).simplex.expect(mode_of(one)).log_posterior - one.climb.log_posterior) < 1e-9
    True
    """
    patterns, beta_akv = fit.patterns, fit.beta_akv
    if fit.pooling == "full":
        patterns, beta_akv = pool_fully(patterns), beta_akv[:1]
    log_ratio = LogPosterior(patterns, fit.alpha_k, np.ascontiguousarray(beta_akv), threads)
    if fit.common is not None:
        return Ground(log_ratio, log_ratio)
    return Ground(replace(log_ratio, pseudo_k=fit.alpha_k - 1.0, pseudo_akv=log_ratio.pseudo_akv - 1.0), log_ratio)


def mode_of(fit: QuestionFit) -> Parameters:
    """Give the mode of a fit, one matrix where it was fitted for all."""
    confusion_akv = fit.confusion_akv[:1] if fit.pooling == "full" else fit.confusion_akv
    return Parameters(np.log(fit.prevalence_k), np.log(confusion_akv))


def bounded(fit: QuestionFit) -> bool:
    """Whether its annotators were kept at chance or above, so that its density ends there."""
    return fit.n_draws > 0 and fit.log_density_s is None and fit.common is None


def log_posterior_of(fit: QuestionFit) -> LogPosterior:
    """Give the density a fit climbed, with a row of its own for every annotator even where they share one matrix."""
    less = 0.0 if fit.common is not None else 1.0
    return LogPosterior(fit.patterns, fit.alpha_k - less, fit.beta_akv - less)
