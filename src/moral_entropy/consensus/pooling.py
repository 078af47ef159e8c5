"""Pooling: learn from the votes what annotators have in common.

Full pooling gives all annotators one confusion matrix. Partial pooling lets their rows vary around common ones:
row k of every annotator ~ Dir(c_k m_k), where m_k, the common row, and c_k, how closely annotators keep to it, are
learnt. Under the paper's model with two labels by nested Laplace approximation (`nested`), with their uncertainty in
the draws; otherwise by variational Bayes, which returns values without their uncertainty. It ends when common rows
hardly move: what votes would still gain lies along the ridge between prevalence and errors, farther from the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import digamma

from moral_entropy.consensus import laplace
from moral_entropy.consensus.common_rows import TYPICAL_VOTES, CommonRows, best_row
from moral_entropy.consensus.densities import Densities
from moral_entropy.consensus.em import Optimum
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.modes import SAMPLE_VOTES, find_mode
from moral_entropy.consensus.nested import NestedMode, nested_mode
from moral_entropy.consensus.options import FitOptions, Pooling
from moral_entropy.consensus.starts import share_start
from moral_entropy.votes.table import Floats, Votes

MANY_ANNOTATORS, FEW_VOTES = 100, 300
"""Annotators are pooled, unless told otherwise, where there are at least so many, and where they gave on average fewer
votes than this on items with another vote: rows of their own would then fit chance, each a little."""

ROUNDS = 200
"""Largest number of rounds of variational learning."""

SETTLED = 1e-3
"""It ends when no common probability and no log concentration changes by more than this."""


def choose_pooling(votes: Votes, options: FitOptions) -> Pooling:
    """Return how to pool annotators: as the options say, or by the number of annotators and of their votes.

    Parameters
    ----------
    votes
        What was voted, or one item per class of it.
    options
        Of the fit.

    Examples
    --------
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> few, many = (simulate_votes(n_items=400, n_annotators=n, votes_per_item=3).votes for n in (10, 200))
    >>> [choose_pooling(votes, FitOptions()) for votes in (few, many)]
    ['none', 'partial']
    """
    if options.pooling != "auto":
        return options.pooling
    if not options.mixed or options.better_than_chance or votes.anonymous:
        return "none"
    n_annotators = sum(np.count_nonzero(ballot.votes_a) for ballot in votes.ballots)
    shared = sum(float((ballot.count_i * ballot.votes_i)[ballot.votes_i > 1].sum()) for ballot in votes.ballots)
    many = n_annotators >= MANY_ANNOTATORS * len(votes.ballots)
    return "partial" if many and shared < FEW_VOTES * n_annotators else "none"


def pooled_prior(row_kv: Floats, beta_akv: Floats) -> Floats:
    """Return the prior of the one matrix of all annotators: pseudo-votes of single annotators are added up."""
    return np.asarray(row_kv[None] + (beta_akv - row_kv).sum(axis=0))


def learn_rows(
    plain: LogPosterior,
    shared: LogPosterior,
    row_kv: Floats,
    *,
    tolerance: float,
    max_passes: int,
    watch: Callable[[float], None] | None = None,
) -> tuple[Densities, Optimum]:
    """Learn the rows that annotators have in common; return the density given them, and its mode.

    Parameters
    ----------
    plain
        The log posterior with the prior of the prevalence; votes known from elsewhere are its only pseudo-votes.
    shared
        The same votes as if cast by one annotator, with the prior of a typical annotator.
    row_kv
        Dirichlet prior of the common rows: what is believed of a typical annotator.
    tolerance, max_passes
        As in `find_mode`.
    watch
        Called with the share done.
    """
    start = find_mode(shared, tolerance=1e-3, max_passes=max_passes).at
    if plain.patterns.n_labels == 2 and plain.n_parameters <= laplace.DENSE:
        nested = nested_mode(plain, row_kv, start, watch=watch)
        density = nested.settled.density
        return Densities(density, density, nested.rows, nested), _optimum_of(nested)
    rows = _variational_rows(plain, row_kv, start, watch)
    density = replace(plain, pseudo_akv=rows.beta_kv + plain.pseudo_akv)
    return Densities(density, density, rows), find_mode(density, tolerance=tolerance, max_passes=max_passes)


def learn_mixed_rows(density: LogPosterior, known_akv: Floats, row_kv: Floats) -> tuple[LogPosterior, CommonRows]:
    """Learn common rows under the mixed model, by variational Bayes; return the density given them, and the rows.

    Parameters
    ----------
    density
        The log posterior.
    known_akv
        Pseudo-votes of single annotators, known from elsewhere.
    row_kv
        Dirichlet prior of the common rows.
    """
    start = share_start(density.sample_rows(SAMPLE_VOTES))
    typical_kv = start.confusion_akv.mean(axis=0, keepdims=True)
    rows = _variational_rows(
        replace(density, pseudo_akv=known_akv), row_kv, Parameters(start.log_weight_g, np.log(typical_kv)), None
    )
    return replace(density, pseudo_akv=rows.beta_kv + known_akv), rows


def _optimum_of(nested: NestedMode) -> Optimum:
    """Describe how the nested search ended."""
    at, density = nested.settled.at, nested.settled.density
    expected = density.expect(at)
    largest = float(np.abs(expected.gradient(at)[1:]).max(initial=0.0))
    starts = {"nested": expected.log_posterior}
    return Optimum(at, expected, nested.passes, nested.converged, largest, starts=starts)


def _variational_rows(
    plain: LogPosterior, row_kv: Floats, start: Parameters, watch: Callable[[float], None] | None
) -> CommonRows:
    """Learn common rows by variational Bayes: expected log probabilities in place of the logs of a mode."""
    rows = CommonRows(start.confusion_akv[0], np.full(len(row_kv), TYPICAL_VOTES))
    n_annotators = len(plain.pseudo_akv)
    has_votes_a = plain.votes_c.reshape(n_annotators, -1).sum(axis=1) > 0
    at = Parameters(start.log_weight_g, np.tile(start.log_confusion_akv[0], (n_annotators, 1, 1)))
    for n in range(ROUNDS):
        for _ in range(3):
            at = _variational_step(replace(plain, pseudo_akv=plain.pseudo_akv + rows.beta_kv), at)
        sum_kv = at.log_confusion_akv[has_votes_a].sum(axis=0)
        best = [best_row(sum_v, int(has_votes_a.sum()), prior_v) for sum_v, prior_v in zip(sum_kv, row_kv, strict=True)]
        before, rows = rows, CommonRows(np.array([mean_v for mean_v, _ in best]), np.array([c for _, c in best]))
        if watch is not None:
            watch((n + 1) / ROUNDS)
        if rows.far_from(before) < SETTLED:
            break
    return rows


def _variational_step(density: LogPosterior, at: Parameters) -> Parameters:
    expected = density.expect(at)
    log_g = digamma(expected.items_g) - digamma(expected.items_g.sum(axis=-1, keepdims=True))
    votes_akv = expected.votes_akv
    return Parameters(log_g, digamma(votes_akv) - digamma(votes_akv.sum(axis=-1, keepdims=True)))
