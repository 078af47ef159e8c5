"""Starting points of the search for the mode: the paper's start, and a few others that may lead to another mode.

Every start treats all annotators and all labels the same way, so that renaming them changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from moral_entropy.consensus.model import Expectation, LogPosterior, Parameters
from moral_entropy.votes.table import UNKNOWN, Floats, count_labels

MOST_LABELS = 5
"""Starts that favour a single label are tried for at most this many labels."""

FEW_BETWEEN = 0.01
"""Weight of a point between labels at the start of the mixed model, where a label weighs 1 on average."""

ROWS_AT_ONCE = 65_536

FLAT = 1e-3
"""Added to all counts: an annotator without pseudo-votes and without a vote on a label would divide 0 by 0."""


def starts(log_posterior: LogPosterior) -> Iterator[tuple[str, Parameters]]:
    """Yield starting parameters with their names, the paper's first."""
    patterns = log_posterior.patterns
    if log_posterior.between is not None:
        by_label = replace(log_posterior, pseudo_g=np.zeros(patterns.n_labels), between=None)
        for name, at in starts(by_label):
            yield name, share_start(log_posterior) if name == "share" else spread_over_states(at, log_posterior)
        return
    yield "paper", paper_start(patterns.n_annotators, patterns.n_labels)
    share_rk = _shares(log_posterior)
    yield "share", _from_posterior(log_posterior, share_rk)
    for k in range(min(patterns.n_labels, MOST_LABELS)):
        yield f"any {k}", _from_posterior(log_posterior, _any_of(share_rk, k))


def share_start(log_posterior: LogPosterior) -> Parameters:
    """Return the start of the mixed model: rows from vote shares, and few items between labels.

    Mass between labels that the votes do not ask for goes away slowly, so the search begins with little of it.
    """
    share_rk = _shares(log_posterior, pseudo_votes=0.5)
    by_label = replace(log_posterior, pseudo_g=np.zeros(log_posterior.patterns.n_labels))
    return spread_over_states(_from_posterior(by_label, share_rk), log_posterior)


def spread_over_states(by_label: Parameters, log_posterior: LogPosterior) -> Parameters:
    """Return parameters of the paper's model as a start of the mixed model, the same in every domain."""
    states, n_labels = log_posterior.states, log_posterior.patterns.n_labels
    weight_g = FEW_BETWEEN * states.size_g
    weight_g[:n_labels] = n_labels * by_label.weight_g
    log_g = np.log(weight_g / weight_g.sum())
    return Parameters(np.tile(log_g, (log_posterior.patterns.n_domains, 1)), by_label.log_confusion_akv)


def paper_start(n_annotators: int, n_labels: int) -> Parameters:
    """Return the start of the paper's listing, with its random prevalence at its mean: equal labels.

    Examples
    --------
    >>> paper_start(1, 2).confusion_akv.tolist()
    [[[0.8, 0.2], [0.2, 0.8]]]
    """
    confusion_kv = 0.6 * np.eye(n_labels) + 0.4 / n_labels
    return Parameters(
        log_weight_g=np.full(n_labels, -np.log(n_labels)),
        log_confusion_akv=np.tile(np.log(confusion_kv), (n_annotators, 1, 1)),
    )


def _shares(log_posterior: LogPosterior, pseudo_votes: float = 0.01) -> Floats:
    """Compute each row's share of votes by label, after adding a hundredth of a vote to every label."""
    patterns = log_posterior.patterns
    n_labels = patterns.n_labels
    counts_rk: Floats = count_labels(patterns.start_r, patterns.code_v, n_labels) + np.float64(pseudo_votes)
    clamped = patterns.clamp_r != UNKNOWN
    counts_rk[clamped] = np.eye(n_labels)[patterns.clamp_r[clamped]]
    # In place: there may be very many rows.
    counts_rk /= counts_rk.sum(axis=1, keepdims=True)
    return counts_rk


def _any_of(share_rk: Floats, k: int) -> Floats:
    """Assign label `k` to every row with a vote for it, and vote shares to all other rows."""
    has = share_rk[:, k] > 0.02
    away_rk = share_rk.copy()
    away_rk[has, :] = 0.02 / share_rk.shape[1]
    away_rk[has, k] += 0.98
    return away_rk


def _from_posterior(log_posterior: LogPosterior, posterior_rk: Floats) -> Parameters:
    """Take one M-step from given label probabilities."""
    patterns = log_posterior.patterns
    n_labels = patterns.n_labels
    items_k = log_posterior.pseudo_g + patterns.weight_r @ posterior_rk
    votes_ck = np.zeros((patterns.n_annotators * n_labels, n_labels))
    # Some rows at a time: a weight for every vote would be more than the votes themselves.
    for first in range(0, patterns.n_rows, ROWS_AT_ONCE):
        start_r = patterns.start_r[first : first + ROWS_AT_ONCE + 1]
        some = slice(first, first + len(start_r) - 1)
        weighted_rk = patterns.weight_r[some, None] * posterior_rk[some]
        code_v, votes_r = patterns.code_v[start_r[0] : start_r[-1]], np.diff(start_r)
        for k in range(n_labels):
            np.add.at(votes_ck[:, k], code_v, np.repeat(weighted_rk[:, k], votes_r))
    votes_akv = votes_ck.reshape(-1, n_labels, n_labels).transpose(0, 2, 1) + log_posterior.pseudo_akv
    return Expectation(items_k + FLAT, votes_akv + FLAT, float("nan")).maximum()
