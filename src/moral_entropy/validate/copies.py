"""Who copies? Annotators whose leaving settles the dependence of all others.

Two who copy look perfect to a fit, since they always agree, and it is then everyone else who seems to err together. So
each annotator is left out in turn, the rest fitted anew, and the one kept out whose absence settles most; their votes
are then held against a fit that they had no part in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from moral_entropy.consensus.components import votes_by_component
from moral_entropy.consensus.em import maximise
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.modes import LEVEL
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.states import States
from moral_entropy.validate.pairs import NOTICEABLE, Pairs, dependent_pairs, weigh_pairs
from moral_entropy.validate.residuals import Residuals, residuals_of
from moral_entropy.votes.table import Floats, Ints

MOST_ANNOTATORS = 40
"""Annotators up to which each is left out in turn; of more, only those in pairs that stand out."""

MOST_WORK = 5_000_000
"""Annotators left out times pairs of votes; where there are more, fewer annotators are left out."""

SETTLES = 0.5
"""Share of the pairs' scatter beyond chance that must go when an annotator is left out."""

MOST_LEFT_OUT = 4
"""Annotators left out at most, one after the other."""

STEPS = 50
"""EM steps for the error rates of the one left out."""


def find_copiers(log_posterior: LogPosterior, at: Parameters, pairs: Pairs, *, least_items: float) -> list[Pairs]:
    """Find the annotators whose votes make pairs dependent.

    Parameters
    ----------
    log_posterior, at
        Of the fit, and its mode.
    pairs
        The pairs as that fit has them.
    least_items
        Items a pair must share.

    Returns
    -------
    list
        The pairs of each annotator whose leaving settles the rest, tested with a fit without them, surest first; last
        the pairs of everyone else, tested with the last fit.
    """
    copiers: list[Pairs] = []
    while len(copiers) < MOST_LEFT_OUT and _stands_out(pairs):
        found = _leave_out(log_posterior, at, pairs, least_items)
        if found is None:
            break
        mine, log_posterior, at, pairs = found
        copiers.append(mine)
    return [*copiers, pairs]


def _stands_out(pairs: Pairs) -> bool:
    # Copiers whom the fit believes leave the others only half as dependent as they would be.
    return (pairs.scattered and pairs.typical >= NOTICEABLE / 2) or len(dependent_pairs(pairs)) > 0


def _leave_out(
    log_posterior: LogPosterior, at: Parameters, pairs: Pairs, least_items: float
) -> tuple[Pairs, LogPosterior, Parameters, Pairs] | None:
    """Leave out the one whose absence settles most, if it settles enough and they do depend on somebody."""
    tried = []
    for a in _suspects(pairs, log_posterior.patterns.n_annotators):
        rest = replace(log_posterior, patterns=without(log_posterior.patterns, a))
        there = maximise(rest, at, tolerance=LEVEL).at
        left = weigh_pairs(residuals_of(rest, there), least_items=least_items)
        tried.append((left.scatter, a, rest, there, left))
    if not tried:
        return None
    scatter, a, rest, there, left = min(tried, key=lambda one: round(one[0], 6))
    if scatter > SETTLES * pairs.scatter:
        return None
    mine = _pairs_of(log_posterior, rest, there, a, least_items)
    return (mine, rest, there, left) if len(dependent_pairs(mine)) else None


def _suspects(pairs: Pairs, n_annotators: int) -> Sequence[int]:
    most = max(4, min(MOST_ANNOTATORS, int(MOST_WORK / max(float(pairs.items_p.sum()), 1.0))))
    if n_annotators <= most:
        return sorted({*pairs.one_p.tolist(), *pairs.other_p.tolist()})
    found_p = dependent_pairs(pairs)[: most // 2]
    return sorted({*pairs.one_p[found_p].tolist(), *pairs.other_p[found_p].tolist()})


def without(patterns: Patterns, a: int) -> Patterns:
    """Take one annotator's votes away; rows stay, those without any other vote with a weight of 0.

    Examples
    --------
    >>> from moral_entropy.consensus.patterns import collapse
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> votes = {"item_v": [0, 0, 1], "annotator_v": [0, 1, 1], "label_v": [0, 1, 1]}
    >>> left = without(collapse(ballot_from_codes("q", ("0", "1"), **votes)), 1)
    >>> left.code_v.tolist(), left.weight_r.tolist()
    ([0], [1.0, 0.0])
    """
    kept_v = patterns.code_v // patterns.n_labels != a
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
    votes_r = np.bincount(row_v[kept_v], minlength=patterns.n_rows)
    return replace(
        patterns,
        start_r=np.concatenate([[0], np.cumsum(votes_r)]).astype(np.int64),
        code_v=patterns.code_v[kept_v],
        weight_r=np.where(votes_r > 0, patterns.weight_r, 0.0),
    )


def _pairs_of(log_posterior: LogPosterior, rest: LogPosterior, there: Parameters, a: int, least_items: float) -> Pairs:
    """Judge one annotator's pairs by a fit without them, with error rates estimated against that fit."""
    patterns = log_posterior.patterns
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
    own_v = patterns.code_v // patterns.n_labels == a
    log_akv = there.log_confusion_akv.copy()
    log_akv[a] = _own_rates(
        rest.states,
        rest.posterior_rz(there)[row_v[own_v]],
        patterns.code_v[own_v] % patterns.n_labels,
        patterns.weight_r[row_v[own_v]],
        log_posterior.pseudo_akv[a],
    )
    residuals = residuals_of(log_posterior, Parameters(there.log_weight_g, log_akv))
    votes, n_labels = residuals.votes, patterns.n_labels
    mine_e = (votes.one_e // n_labels == a) | (votes.other_e // n_labels == a)
    own = replace(votes, row_e=votes.row_e[mine_e], one_e=votes.one_e[mine_e], other_e=votes.other_e[mine_e])
    pairs = weigh_pairs(Residuals(residuals.log_posterior, residuals.at, own), least_items=least_items, fitted=False)
    # Whoever follows one person is further from the others than their error rates say: that needs no name of its own.
    return pairs.take(pairs.excess_p > 0)


def _own_rates(states: States, others_vz: Floats, said_v: Ints, weight_v: Floats, pseudo_kv: Floats) -> Floats:
    """Estimate one annotator's confusion, given what everyone else says of each item: `log_confusion_kv`."""
    n_labels = len(pseudo_kv)
    confusion_kv = np.full((n_labels, n_labels), 0.3 / max(n_labels - 1, 1)) + np.eye(n_labels) * 0.4
    for _ in range(STEPS):
        confusion_kv = confusion_kv / confusion_kv.sum(axis=1, keepdims=True)
        vote_zv = states.votes_azv(confusion_kv)
        joint_vz = others_vz * vote_zv[:, said_v].T
        joint_vz *= (weight_v / np.maximum(joint_vz.sum(axis=1), 1e-300))[:, None]
        counts = [np.bincount(said_v, weights=joint_v, minlength=n_labels) for joint_v in joint_vz.T]
        votes_akv = votes_by_component(states, confusion_kv[None], vote_zv[None], np.transpose(counts))
        confusion_kv = np.maximum(votes_akv[0] + pseudo_kv, 1e-9)
    return np.asarray(np.log(confusion_kv / confusion_kv.sum(axis=1, keepdims=True)))
