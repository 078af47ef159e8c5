"""Annotators who count as one: identical ones, and those named by the user.

Two annotators are identical if at most one in a hundred of fifty or more shared items differ. Looser likeness is no
proof of copying: the best annotators agree because they are right, and to merge them costs accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from moral_entropy.model.patterns import Patterns
from moral_entropy.model.posterior import Parameters, shares_of, state_posterior, votes_by_label
from moral_entropy.model.states import States
from moral_entropy.votes.table import Floats, Ints

LEAST_SHARED, MOST_DIFFERENT = 50, 0.01
"""Items that identical annotators share at least, and the largest part of them on which they may differ."""

MOST_PRODUCTS = 4e9
"""Most pairs of votes on the same row that are compared; of more, a sample of the rows."""

ANNOTATORS_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class Copies:
    """Who counts as one. Axis: **a** annotator.

    Parameters
    ----------
    group_a
        Number of each annotator's group, from 0 on; most are alone in theirs.
    named
        Whether groups were named by the user, and not found.
    """

    group_a: Ints
    named: bool = False

    @property
    def any(self) -> bool:
        """Whether anybody is to be counted with another."""
        return int(self.group_a.max(initial=-1)) + 1 < len(self.group_a)

    @property
    def groups(self) -> list[Ints]:
        """Groups of several annotators; the first of each stands for it."""
        return [np.flatnonzero(self.group_a == g) for g in np.flatnonzero(np.bincount(self.group_a) > 1)]


def find_copies(patterns: Patterns, named_a: Ints | None = None) -> Copies:
    """Find identical annotators from their votes; where groups are named, those alone."""
    if named_a is not None:
        return Copies(np.unique(named_a, return_inverse=True)[1], named=True)
    n_annotators, n_labels = patterns.n_annotators, patterns.n_labels
    rows = _affordable(patterns)
    row_v = np.repeat(np.arange(rows.n_rows), np.diff(rows.start_r))
    annotator_v = rows.code_v // n_labels
    busy = np.flatnonzero(
        np.bincount(annotator_v, weights=rows.weight_r[row_v], minlength=n_annotators) >= LEAST_SHARED
    )
    if len(busy) < 2:
        return Copies(np.arange(n_annotators))
    shape = (rows.n_rows, n_annotators * n_labels)
    votes_rc = csr_array((np.ones(len(row_v)), (row_v, rows.code_v.astype(np.int64))), shape=shape)
    codes = (busy[:, None] * n_labels + np.arange(n_labels)).ravel()
    votes_rc = votes_rc[:, codes]
    weighted_cr = (votes_rc * rows.weight_r[:, None]).T.tocsr()
    links: list[tuple[Ints, Ints]] = []
    for first in range(0, len(busy), ANNOTATORS_AT_ONCE):
        last = min(first + ANNOTATORS_AT_ONCE, len(busy))
        pair_cc = (weighted_cr[first * n_labels : last * n_labels] @ votes_rc).tocoo()
        one_p, other_p = pair_cc.row // n_labels + first, pair_cc.col // n_labels
        pair_p = (one_p - first) * len(busy) + other_p
        shared_p = np.bincount(pair_p, weights=pair_cc.data, minlength=(last - first) * len(busy))
        same = pair_cc.row % n_labels == pair_cc.col % n_labels
        agreed_p = np.bincount(pair_p[same], weights=pair_cc.data[same], minlength=len(shared_p))
        alike = np.flatnonzero((shared_p >= LEAST_SHARED) & (shared_p - agreed_p <= MOST_DIFFERENT * shared_p))
        links.append((busy[alike // len(busy) + first], busy[alike % len(busy)]))
    one_p, other_p = (np.concatenate(ends) for ends in zip(*links, strict=True))
    graph = csr_array((np.ones(len(one_p)), (one_p, other_p)), shape=(n_annotators, n_annotators))
    return Copies(np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64))


def _affordable(patterns: Patterns) -> Patterns:
    """Return the rows, or a sample of them where all pairs of votes on a row would be too many."""
    votes_r = np.diff(patterns.start_r).astype(np.float64)
    step = int(np.ceil((votes_r**2).sum() / MOST_PRODUCTS))
    return patterns if step <= 1 else patterns.take(np.arange(0, patterns.n_rows, step))


def count_once(patterns: Patterns, copies: Copies) -> Patterns:
    """Let every group vote as one: its most frequent vote, of equally frequent ones the first member's.

    The vote goes to the first member, on all rows on which any member voted; the others then have no vote.

    Examples
    --------
    Annotators 0 and 2 are one:

    >>> from moral_entropy.model.patterns import collapse
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> votes = {"item_v": [0, 0, 0], "annotator_v": [0, 1, 2], "label_v": [0, 0, 1]}
    >>> once = count_once(collapse(ballot_from_codes("q", ("0", "1"), **votes)), Copies(np.array([0, 1, 0])))
    >>> [divmod(code, 2) for code in once.code_v.tolist()]
    [(0, 0), (1, 0)]
    """
    first_a = np.arange(patterns.n_annotators)
    for group in copies.groups:
        first_a[group] = group[0]
    annotator_v, label_v = np.divmod(patterns.code_v.astype(np.int64), patterns.n_labels)
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
    frame = pl.DataFrame({"row": row_v, "annotator": first_a[annotator_v], "label": label_v, "voter": annotator_v})
    votes = frame.group_by("row", "annotator", "label").agg(pl.len().alias("n"), pl.col("voter").min())
    votes = votes.sort("row", "annotator", pl.col("n"), "voter", descending=[False, False, True, False])
    votes = votes.unique(["row", "annotator"], keep="first", maintain_order=True)
    code_v = (votes["annotator"] * patterns.n_labels + votes["label"]).to_numpy()
    return patterns.with_votes(votes["row"].to_numpy(), code_v)


def rows_of_merged(
    cast: Patterns, counted: Patterns, states: States, at: Parameters, merged: Ints, pseudo_akv: Floats
) -> Floats:
    """Estimate the confusion rows of annotators who were counted with others: `confusion_akv`, given the fit without.

    Parameters
    ----------
    cast, counted
        Votes as cast, and as counted: the same rows.
    states, at
        The states, and the mode.
    merged, pseudo_akv
        Who they are, and the pseudo-votes of their rows.
    """
    n_labels = cast.n_labels
    place_a = np.full(cast.n_annotators, -1)
    place_a[merged] = np.arange(len(merged))
    seen_cz = np.zeros((len(merged) * n_labels, states.n_states))
    for rows in cast.chunks(32_768):
        start_r = cast.start_r[rows.start : rows.stop + 1]
        annotator_v, label_v = np.divmod(cast.code_v[start_r[0] : start_r[-1]].astype(np.int64), n_labels)
        mine = np.flatnonzero(place_a[annotator_v] >= 0)
        row_v = np.repeat(np.arange(len(start_r) - 1), np.diff(start_r))[mine]
        posterior_rz = state_posterior(counted, states, at, rows) * cast.weight_r[rows, None]
        np.add.at(seen_cz, place_a[annotator_v[mine]] * n_labels + label_v[mine], posterior_rz[row_v])
    confusion_akv = shares_of(pseudo_akv + 1e-3)
    for _ in range(50):
        confusion_akv = shares_of(pseudo_akv + votes_by_label(states, confusion_akv, seen_cz))
    return confusion_akv
