"""The density a fit's draws are meant to come from, in log-ratio coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from moral_entropy.checks import draw_kernels as kernels
from moral_entropy.consensus.densities import Densities
from moral_entropy.consensus.draws import ratios_of_logs, state_draws
from moral_entropy.consensus.limits import LEAST_DRAWS
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.patterns import Patterns, pool_fully
from moral_entropy.consensus.result import QuestionFit
from moral_entropy.consensus.states import States
from moral_entropy.consensus.threads import over_blocks
from moral_entropy.votes.table import Floats

BLOCK_ROWS = 2_048

ROW_DRAWS = 4_000_000
"""Rows times draws of item probabilities that are held at a time."""


CHECKED_NUMBERS = 1 << 25
"""Most numbers in the draws that a quick check copies: a quarter of a gigabyte, and it holds a few such copies."""


def draws_to_check(fit: QuestionFit, most: int) -> int:
    """Return how many draws a quick check looks at: fewer where annotators or labels are very many.

    Examples
    --------
    >>> from moral_entropy.consensus.fit import fit
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> one = fit(simulate_votes(n_items=50, n_annotators=4, votes_per_item=3).votes, draws=30).fits[0]
    >>> draws_to_check(one, 400), draws_to_check(one, 20)
    (30, 20)
    """
    n_rates = fit.ballot.n_annotators * fit.ballot.n_labels**2
    return min(most, fit.n_draws, max(LEAST_DRAWS, CHECKED_NUMBERS // n_rates))


def names_of_parts(fit: QuestionFit) -> tuple[str, str]:
    """Name the two parts of an entropy over draws: what each draw has on average, and what draws disagree about."""
    return ("aleatoric", "epistemic") if fit.mixture is None else ("ambiguity_and_votes", "annotators")


def densities_of(fit: QuestionFit, threads: int | None = None) -> Densities:
    """Return the log posterior of a fit in both coordinates; with common rows, given those that were learnt.

    Examples
    --------
    >>> from moral_entropy.consensus.fit import fit
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> one = fit(simulate_votes(n_items=50, n_annotators=4, votes_per_item=3).votes, draws=0).fits[0]
    >>> abs(densities_of(one).simplex.expect(one.mode).log_posterior - one.climb.log_posterior) < 1e-9
    True
    """
    patterns, beta_akv = fit.patterns, fit.beta_akv
    if fit.pooling == "full":
        patterns, beta_akv = pool_fully(patterns), beta_akv[:1]
    chance = fit.options.better_than_chance
    log_ratio = LogPosterior(patterns, fit.alpha_g, np.ascontiguousarray(beta_akv), threads, chance, fit.between)
    if fit.common is not None or fit.mixture is not None:
        return Densities(log_ratio, log_ratio)
    return Densities(replace(log_ratio, pseudo_g=fit.alpha_g - 1.0, pseudo_akv=log_ratio.pseudo_akv - 1.0), log_ratio)


def pseudo_counts(fit: QuestionFit) -> tuple[Floats, Floats]:
    """Return the pseudo-counts of the density whose mode was looked for: in log ratios, or one less on the simplex."""
    less = 0.0 if fit.common is not None or fit.mixture is not None else 1.0
    return fit.alpha_g - less, fit.beta_akv - less


def log_posterior_of(fit: QuestionFit) -> LogPosterior:
    """Return the density whose mode was looked for, each annotator with rows of their own even where all share one."""
    return LogPosterior(fit.patterns, *pseudo_counts(fit), between=fit.between)


def drawn_of(fit: QuestionFit, draws: int) -> Parameters:
    """Return the first draws of a fit, one matrix where it was fitted for all."""
    confusion_sakv = fit.confusion_sakv[:draws, :1] if fit.pooling == "full" else fit.confusion_sakv[:draws]
    log_sakv = np.empty(confusion_sakv.shape)
    # Draw by draw: of many annotators or labels the logs of all take long, and an interrupt would have to wait.
    for s, confusion_akv in enumerate(confusion_sakv):
        np.log(confusion_akv, out=log_sakv[s])
    return Parameters(np.log(fit.weight_sdg[:draws] if fit.mixture else fit.prevalence_sk[:draws]), log_sakv)


def log_over_base(
    patterns: Patterns, drawn: Parameters, states: States | None = None, threads: int | None = None
) -> Floats:
    """Compute the log likelihood at many draws, relative to what `log_heights` adds: `log_s`; a sum over rows.

    Parameters
    ----------
    patterns
        The rows.
    drawn
        The draws.
    states
        The states of items, where they may lie between labels.
    threads
        At most this many threads.
    """
    rows = (patterns.start_r, patterns.code_v, patterns.weight_r, patterns.clamp_r)
    n_blocks, n_draws = -(-patterns.n_rows // BLOCK_ROWS), len(drawn.log_confusion_akv)
    log_bs = np.zeros((n_blocks, n_draws))
    add = _adds_states(patterns, drawn, states) if states else _adds_labels(patterns, drawn)

    def run(first: int, last: int) -> None:
        for b in range(first, last):
            add(*rows, b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, patterns.n_rows), log_bs[b])

    over_blocks(run, n_blocks, threads)
    return np.asarray(log_bs.sum(axis=0))


def _adds_labels(patterns: Patterns, drawn: Parameters) -> Callable[..., None]:
    """Return what adds the log likelihood of some rows, relative to label 0."""
    push_cks, base_ks = ratios_of_logs(drawn)
    if patterns.n_labels == 2:
        return lambda *votes: kernels.binary_log_likelihoods(*votes[:4], push_cks[:, 0], base_ks[0], *votes[4:])
    return lambda *votes: kernels.general_log_likelihoods(*votes[:4], push_cks, base_ks, *votes[4:])


def _adds_states(patterns: Patterns, drawn: Parameters, states: States) -> Callable[..., None]:
    """Return what adds it where items may lie between labels, relative to every vote's likeliest label."""
    given = (patterns.domain_r, *state_draws(states, drawn.weight_g, drawn.confusion_akv))
    return lambda *votes: kernels.mixed_log_likelihoods(*votes[:4], *given, *votes[4:])


def log_heights(log_posterior: LogPosterior, drawn: Parameters, over_base_s: Floats) -> Floats:
    """Complete relative log likelihoods with what is known without a pass over the votes: `log_s`."""
    log_sg, log_sakv = drawn.log_weight_g, drawn.log_confusion_akv
    votes_av = log_posterior.votes_c.reshape(-1, log_posterior.patterns.n_labels)
    if log_posterior.between is None:
        base_s, log_base_sav = log_posterior.n_items * log_sg[:, 0], log_sakv[:, :, 0]
    else:
        base_s, log_base_sav = np.zeros(len(log_sg)), log_sakv.max(axis=2)
    base_s = base_s + np.einsum("av,sav->s", votes_av, log_base_sav)
    prior_s = np.tensordot(log_sg, log_posterior.pseudo_g, axes=log_posterior.pseudo_g.ndim)
    prior_s = prior_s + np.einsum("akv,sakv->s", log_posterior.pseudo_akv, log_sakv)
    return np.asarray(over_base_s + base_s + prior_s)


def mixed_label_draws(patterns: Patterns, states: States, drawn: Parameters) -> Iterator[tuple[slice, Floats]]:
    """Yield every row's label probabilities in every draw, some rows at a time: `p_rks`; known labels are not heeded.

    Parameters
    ----------
    patterns
        The rows.
    states, drawn
        The states of items, and the draws.
    """
    given, n_draws = state_draws(states, drawn.weight_g, drawn.confusion_akv), len(drawn.log_confusion_akv)
    rows_of_votes = (patterns.start_r, patterns.code_v, patterns.domain_r)
    size = max(1, ROW_DRAWS // (n_draws * patterns.n_labels))
    for start in range(0, patterns.n_rows, size):
        rows = slice(start, min(start + size, patterns.n_rows))
        p_rks = np.empty((rows.stop - start, patterns.n_labels, n_draws))
        kernels.mixed_labels(*rows_of_votes, *given, rows.start, rows.stop, p_rks)
        yield rows, p_rks
