"""The density a fit's draws are meant to come from, in log-ratio coordinates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from moral_entropy.consensus.densities import Densities
from moral_entropy.consensus.draws import log_ratios
from moral_entropy.consensus.model import LogPosterior, Parameters, over_blocks
from moral_entropy.consensus.patterns import Patterns, pool_fully
from moral_entropy.consensus.result import QuestionFit
from moral_entropy.validate import draw_kernels as kernels
from moral_entropy.votes.table import Floats

BLOCK_ROWS = 2_048


def densities_of(fit: QuestionFit, threads: int | None = None) -> Densities:
    """Return the log posterior of a fit in both coordinates; with common rows, given those that were learnt.

    Examples
    --------
    >>> from moral_entropy.consensus.fit import fit
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> one = fit(simulate_votes(n_items=50, n_annotators=4, votes_per_item=3).votes, draws=0).fits[0]
    >>> abs(densities_of(one).simplex.expect(mode_of(one)).log_posterior - one.climb.log_posterior) < 1e-9
    True
    """
    patterns, beta_akv = fit.patterns, fit.beta_akv
    if fit.pooling == "full":
        patterns, beta_akv = pool_fully(patterns), beta_akv[:1]
    chance = fit.options.better_than_chance
    log_ratio = LogPosterior(patterns, fit.alpha_k, np.ascontiguousarray(beta_akv), threads, better_than_chance=chance)
    if fit.common is not None:
        return Densities(log_ratio, log_ratio)
    return Densities(replace(log_ratio, pseudo_k=fit.alpha_k - 1.0, pseudo_akv=log_ratio.pseudo_akv - 1.0), log_ratio)


def mode_of(fit: QuestionFit) -> Parameters:
    """Return the mode of a fit, one matrix where it was fitted for all."""
    confusion_akv = fit.confusion_akv[:1] if fit.pooling == "full" else fit.confusion_akv
    return Parameters(np.log(fit.prevalence_k), np.log(confusion_akv))


def log_posterior_of(fit: QuestionFit) -> LogPosterior:
    """Return the density whose mode was looked for, each annotator with rows of their own even where all share one."""
    less = 0.0 if fit.common is not None else 1.0
    return LogPosterior(fit.patterns, fit.alpha_k - less, fit.beta_akv - less)


def drawn_of(fit: QuestionFit, draws: int) -> Parameters:
    """Return the first draws of a fit, one matrix where it was fitted for all."""
    confusion_sakv = fit.confusion_sakv[:draws, :1] if fit.pooling == "full" else fit.confusion_sakv[:draws]
    return Parameters(np.log(fit.prevalence_sk[:draws]), np.log(confusion_sakv))


def log_over_label0(patterns: Patterns, drawn: Parameters, threads: int | None = None) -> Floats:
    """Compute the log likelihood at many draws, relative to all items being of label 0: `log_s`; a sum over rows."""
    push_cks, base_ks = log_ratios(drawn.prevalence_k, drawn.confusion_akv)
    rows = (patterns.start_r, patterns.code_v, patterns.weight_r, patterns.clamp_r)
    n_blocks = -(-patterns.n_rows // BLOCK_ROWS)
    log_bs = np.zeros((n_blocks, base_ks.shape[-1]))

    def run(first: int, last: int) -> None:
        for b in range(first, last):
            span = (b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, patterns.n_rows))
            if patterns.n_labels == 2:
                kernels.binary_log_likelihoods(*rows, push_cks[:, 0], base_ks[0], *span, log_bs[b])
            else:
                kernels.general_log_likelihoods(*rows, push_cks, base_ks, *span, log_bs[b])

    over_blocks(run, n_blocks, threads)
    return np.asarray(log_bs.sum(axis=0))


def log_heights(log_posterior: LogPosterior, drawn: Parameters, over_label0_s: Floats) -> Floats:
    """Complete log likelihoods relative to label 0 with what is known without a pass over the votes: `log_s`."""
    log_sk, log_sakv = drawn.log_prevalence_k, drawn.log_confusion_akv
    votes_av = log_posterior.votes_c.reshape(-1, log_posterior.patterns.n_labels)
    label0_s = log_posterior.n_items * log_sk[:, 0] + np.einsum("av,sav->s", votes_av, log_sakv[:, :, 0])
    prior_s = log_sk @ log_posterior.pseudo_k + np.einsum("akv,sakv->s", log_posterior.pseudo_akv, log_sakv)
    return np.asarray(over_label0_s + label0_s + prior_s)
