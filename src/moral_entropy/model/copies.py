"""Annotators who count as one: identical ones, and those named by the user.

Two annotators are identical if at most one in a hundred of fifty or more shared items differ, and three in a hundred of
those on which not both gave the commonest label: where nearly every answer is no, everybody agrees. Looser likeness is
no proof of copying: the best annotators agree because they are right, and to merge them costs accuracy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from moral_entropy.model.patterns import Patterns
from moral_entropy.votes.table import Floats, Ints

LEAST_SHARED, MOST_DIFFERENT = 50, 0.01
"""Items that identical annotators share at least, and the largest part of them on which they may differ."""

LEAST_TELLING, MOST_DIFFERENT_TELLING = 20, 0.03
"""The same for shared items on which not both gave the commonest label."""

MOST_PRODUCTS = 4e9
"""Most pairs of votes on the same row that are compared; of more, a sample of the rows."""

ANNOTATORS_AT_ONCE = 512


Groups = list[Ints]
"""Groups of several annotators who count as one, ascending; the first of each stands for it."""


def find_copies(patterns: Patterns) -> Groups:
    """Find identical annotators from their votes; where all pairs on a row would be too many, from some rows."""
    step = int(np.ceil((np.diff(patterns.start_r).astype(np.float64) ** 2).sum() / MOST_PRODUCTS))
    rows = patterns.every(step)
    busy = np.flatnonzero(rows.votes_ak.sum(axis=1) >= LEAST_SHARED)
    pairs = pairs_of(rows, busy, int(rows.votes_ak.sum(axis=0).argmax())) if len(busy) > 1 else ()
    return joined([linked(busy, first, *pair_xap) for first, pair_xap in pairs], patterns.n_annotators)


def pairs_of(rows: Patterns, busy: Ints, commonest: int) -> Iterator[tuple[int, Floats]]:
    """Count where pairs of annotators meet, agree, and agree on the commonest label: `pair_xap`, a block at a time."""
    n_labels = rows.n_labels
    shape, votes_r = (rows.n_rows, rows.n_annotators * n_labels), np.diff(rows.start_r)
    # Rows are in order already: there may be very many votes, and no index is copied.
    votes_rc, weighted_rc = (
        csr_array((value_v, rows.code_v, rows.start_r), shape=shape)
        for value_v in (np.ones(len(rows.code_v)), np.repeat(rows.weight_r, votes_r))
    )
    if len(busy) < rows.n_annotators:
        codes = (busy[:, None] * n_labels + np.arange(n_labels)).ravel()
        votes_rc, weighted_rc = votes_rc[:, codes], weighted_rc[:, codes]
    weighted_cr = weighted_rc.T.tocsr()
    del weighted_rc
    for first in range(0, len(busy), ANNOTATORS_AT_ONCE):
        last = min(first + ANNOTATORS_AT_ONCE, len(busy))
        pair_cc = (weighted_cr[first * n_labels : last * n_labels] @ votes_rc).tocoo()
        pair_p = (pair_cc.row // n_labels) * len(busy) + pair_cc.col // n_labels
        equal = pair_cc.row % n_labels == pair_cc.col % n_labels
        common = equal & (pair_cc.row % n_labels == commonest)
        pair_xp = [
            np.bincount(pair_p, weights=pair_cc.data * agree, minlength=(last - first) * len(busy))
            for agree in (np.ones(len(equal)), equal, common)
        ]
        yield first, np.stack(pair_xp).astype(np.float64).reshape(3, -1, len(busy))


def linked(busy: Ints, first: int, shared_ap: Floats, agreed_ap: Floats, common_ap: Floats) -> tuple[Ints, Ints]:
    """Return the pairs of annotators who are identical: both ends."""
    different_ap, telling_ap = shared_ap - agreed_ap, shared_ap - common_ap
    alike_ap = (shared_ap >= LEAST_SHARED) & (different_ap <= MOST_DIFFERENT * shared_ap)
    alike_ap &= (telling_ap >= LEAST_TELLING) & (different_ap <= MOST_DIFFERENT_TELLING * telling_ap)
    one_p, other_p = np.nonzero(alike_ap)
    return busy[one_p + first], busy[other_p]


def joined(links: Sequence[tuple[Ints, Ints]], n_annotators: int) -> Groups:
    """Put annotators who are linked in one group."""
    one_p, other_p = (np.concatenate(ends) for ends in zip(*links, strict=True)) if links else (np.empty(0),) * 2
    if (one_p == other_p).all():
        return []
    # Late: it takes a while to load, and few votes have copies.
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(len(one_p)), (one_p, other_p)), shape=(n_annotators, n_annotators))
    group_a = connected_components(graph, directed=False)[1]
    return [np.flatnonzero(group_a == g) for g in np.flatnonzero(np.bincount(group_a) > 1)]


def first_of(groups: Groups, n_annotators: int) -> Ints:
    """Return who stands for each annotator: the first of the group."""
    first_a = np.arange(n_annotators)
    for group in groups:
        first_a[group] = group[0]
    return first_a


def count_once(patterns: Patterns, groups: Groups) -> Patterns:
    """Let every group vote as one: its most frequent vote, of equally frequent ones the first member's.

    The vote goes to the first member, on all rows on which any member voted; the others then have no vote.

    Examples
    --------
    Annotators 0 and 2 are one:

    >>> from moral_entropy.model.patterns import collapse
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> votes = {"item_v": [0, 0, 0], "annotator_v": [0, 1, 2], "label_v": [0, 0, 1]}
    >>> once = count_once(collapse(ballot_from_codes("q", ("0", "1"), **votes)), [np.array([0, 2])])
    >>> [divmod(code, 2) for code in once.code_v.tolist()]
    [(0, 0), (1, 0)]
    """
    first_a = first_of(groups, patterns.n_annotators)
    annotator_v, label_v = np.divmod(patterns.code_v.astype(np.int64), patterns.n_labels)
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
    frame = pl.DataFrame({"row": row_v, "annotator": first_a[annotator_v], "label": label_v, "voter": annotator_v})
    votes = frame.group_by("row", "annotator", "label").agg(pl.len().alias("n"), pl.col("voter").min())
    votes = votes.sort("row", "annotator", pl.col("n"), "voter", descending=[False, False, True, False])
    votes = votes.unique(["row", "annotator"], keep="first", maintain_order=True)
    votes = votes.select("row", code=pl.col("annotator") * patterns.n_labels + pl.col("label")).sort("row", "code")
    start_r = np.concatenate([[0], np.cumsum(np.bincount(votes["row"], minlength=patterns.n_rows))]).astype(np.int64)
    return replace(patterns, start_r=start_r, code_v=votes["code"].to_numpy().astype(np.int32))
