"""Groups of annotators that vote as one, and the confusion rows of the members who then have no vote.

Takes `Patterns` and groups, returns `Patterns`; afterwards, from a fit of those, the rows of the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moral_entropy.consensus.patterns import Patterns
from moral_entropy.ties import tie_key
from moral_entropy.votes.table import Floats, Ints

ROW_STEPS = 100
"""EM steps that share out votes among the labels that states mix."""


class GroupVotes(NamedTuple):
    """Votes of groups. Axis: **g** group and row on which a member voted."""

    row_g: Ints
    group_g: Ints
    label_g: Ints


def count_once(patterns: Patterns, group_a: Ints, rank_a: Floats) -> Patterns:
    """Let every group of annotators vote as one: its most frequent vote, of equally frequent ones the best-ranked's.

    The vote goes to the best-ranked member of the group, on all rows on which any member voted; the others then have no
    vote. Annotators, rows, weights and items stay, so that two rows may become alike.

    Parameters
    ----------
    patterns
        The votes.
    group_a
        Annotators with the same number are one.
    rank_a
        The higher, the better: strength, or Youden index.

    Examples
    --------
    Annotators 0 and 2 are one, and 2 is the better:

    >>> from moral_entropy.consensus.patterns import collapse
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> votes = {"item_v": [0, 0, 0], "annotator_v": [0, 1, 2], "label_v": [0, 0, 1]}
    >>> once = count_once(collapse(ballot_from_codes("q", ("0", "1"), **votes)), np.array([0, 1, 0]), np.arange(3.0))
    >>> [divmod(code, 2) for code in once.code_v.tolist()]
    [(1, 0), (2, 1)]
    """
    size_g = np.bincount(group_a)
    if not (size_g > 1).any():
        return patterns
    annotator_v = patterns.code_v // patterns.n_labels
    alone_v = size_g[group_a[annotator_v]] == 1
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
    votes = group_votes(patterns, group_a, rank_a)
    best_g = np.zeros(len(size_g), dtype=np.int64)
    by_rank_a = np.argsort(-tie_key(rank_a), kind="stable")[::-1]
    best_g[group_a[by_rank_a]] = by_rank_a
    code_g = (best_g[votes.group_g] * patterns.n_labels + votes.label_g).astype(np.int32)
    rows, codes = (row_v[alone_v], votes.row_g), (patterns.code_v[alone_v], code_g)
    return with_votes(patterns, np.concatenate(rows), np.concatenate(codes))


def group_votes(patterns: Patterns, group_a: Ints, rank_a: Floats) -> GroupVotes:
    """Find the vote of every group of several on each row on which a member voted."""
    size_g = np.bincount(group_a)
    annotator_v, label_v = np.divmod(patterns.code_v.astype(np.int64), patterns.n_labels)
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
    kept_v = size_g[group_a[annotator_v]] > 1
    place_a = np.empty(len(group_a), dtype=np.int64)
    place_a[np.argsort(-tie_key(rank_a), kind="stable")] = np.arange(len(group_a))
    place_v, group_v = place_a[annotator_v], group_a[annotator_v]
    order_w = np.flatnonzero(kept_v)
    order_w = order_w[np.lexsort((place_v[order_w], label_v[order_w], group_v[order_w], row_v[order_w]))]
    row_w, group_w, label_w, place_w = row_v[order_w], group_v[order_w], label_v[order_w], place_v[order_w]
    # Votes of one group on one row for one label stand together, the best-ranked voter's first.
    first = np.flatnonzero(_changes(row_w, group_w, label_w))
    times = np.diff(np.append(first, len(row_w)))
    best = np.lexsort((place_w[first], -times, group_w[first], row_w[first]))
    chosen = first[best][_changes(row_w[first[best]], group_w[first[best]])]
    return GroupVotes(row_w[chosen], group_w[chosen], label_w[chosen])


def _changes(*columns: Ints) -> NDArray[np.bool_]:
    """Tell where any of several sorted columns has another value than the row before."""
    changes = np.ones(len(columns[0]), dtype=np.bool_)
    changes[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return changes


def with_votes(patterns: Patterns, row_v: Ints, code_v: Ints) -> Patterns:
    """Replace the votes of all rows."""
    order_v = np.lexsort((code_v, row_v))
    votes_r = np.bincount(row_v, minlength=patterns.n_rows)
    start_r = np.concatenate([[0], np.cumsum(votes_r)]).astype(np.int64)
    return replace(patterns, start_r=start_r, code_v=code_v[order_v].astype(np.int32))


def votes_by_state(patterns: Patterns, posterior_rz: Floats, annotators: Ints) -> Floats:
    """Add up the votes of some annotators by label voted and state of the item: `seen_avz`.

    Parameters
    ----------
    patterns
        All votes.
    posterior_rz
        Posterior of the states by row.
    annotators
        Whose votes, as numbers in `patterns`.
    """
    n_labels, n_states = patterns.n_labels, posterior_rz.shape[1]
    annotator_v, label_v = np.divmod(patterns.code_v.astype(np.int64), n_labels)
    place_a = np.full(patterns.n_annotators, -1)
    place_a[annotators] = np.arange(len(annotators))
    mine_v = np.flatnonzero(place_a[annotator_v] >= 0)
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))[mine_v]
    seen_cz = np.zeros((len(annotators) * n_labels, n_states))
    code_v = place_a[annotator_v[mine_v]] * n_labels + label_v[mine_v]
    np.add.at(seen_cz, code_v, patterns.weight_r[row_v, None] * posterior_rz[row_v])
    return seen_cz.reshape(-1, n_labels, n_states)


def rows_from_votes(
    seen_avz: Floats, mix_zk: Floats, beta_akv: Floats, *, draws: int = 0, rng: np.random.Generator | int = 0
) -> tuple[Floats, Floats]:
    """Estimate the confusion rows of annotators who were counted with others, given the posterior of a fit without.

    They are Dirichlet distributed. Returns their mean, `mean_akv`, and draws, `draw_sakv`.

    Parameters
    ----------
    seen_avz
        Their votes by label voted and state of the item: see `votes_by_state`.
    mix_zk
        Mix of labels of every state; the unit matrix where states are labels.
    beta_akv
        Dirichlet prior of these annotators' rows.
    draws, rng
        How many draws, and of what; they do not hold the doubt about the posterior.

    Examples
    --------
    >>> from moral_entropy.consensus.patterns import collapse
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> votes = {"item_v": [0, 1, 2], "annotator_v": [0, 0, 0], "label_v": [0, 0, 1]}
    >>> seen_avz = votes_by_state(collapse(ballot_from_codes("q", ("0", "1"), **votes)), np.eye(2), np.array([0]))
    >>> mean_akv, _ = rows_from_votes(seen_avz, np.eye(2), np.ones((1, 2, 2)))
    >>> mean_akv.round(2).tolist()
    [[[0.75, 0.25], [0.33, 0.67]]]
    """
    counts_akv = _expected_counts(seen_avz, mix_zk, beta_akv)
    gamma_sakv = np.random.default_rng(rng).standard_gamma(counts_akv, size=(draws, *counts_akv.shape))
    mean_akv = counts_akv / counts_akv.sum(axis=-1, keepdims=True)
    return mean_akv, gamma_sakv / gamma_sakv.sum(axis=-1, keepdims=True)


def _expected_counts(seen_avz: Floats, mix_zk: Floats, beta_akv: Floats) -> Floats:
    """Share out the votes seen in each state among the labels that it mixes, by EM."""
    confusion_akv = beta_akv / beta_akv.sum(axis=-1, keepdims=True)
    counts_akv = beta_akv
    for _ in range(ROW_STEPS):
        vote_azv = np.einsum("zk,akv->azv", mix_zk, confusion_akv)
        counts_akv = beta_akv + confusion_akv * np.einsum("avz,zk,azv->akv", seen_avz, mix_zk, 1.0 / vote_azv)
        confusion_akv = counts_akv / counts_akv.sum(axis=-1, keepdims=True)
    return np.asarray(counts_akv)
