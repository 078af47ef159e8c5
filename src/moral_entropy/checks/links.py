"""Who voted with whom: groups that share nothing, and how many items each pair of annotators shares.

Takes `Patterns`, knows nothing of labels. Error rates can be compared only along these links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from moral_entropy.consensus.patterns import Patterns
from moral_entropy.votes.table import Ballot, Floats, Ints

VOTES_AT_ONCE = 4_000_000

PAIRS_OF_VOTES = 5_000_000
"""Pairs of votes on one item that are counted to link annotators; of more, evenly spaced items."""

SAMPLE_PAIRS = 2_000_000
"""Pairs of votes above which switches of labels are first tried on evenly spaced items: more only make them dearer."""


def find_groups(patterns: Patterns) -> tuple[Ints, Floats]:
    """Find the groups of annotators and items that no vote links.

    Returns
    -------
    tuple
        The group of every annotator, `group_a`, those of most items first, and how many items each has, `items_g`;
        items count as often as they weigh.

    Examples
    --------
    >>> from moral_entropy.consensus.patterns import collapse
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> votes = {"item_v": [0, 0, 1, 1, 2], "annotator_v": [0, 1, 1, 2, 3], "label_v": [0, 1, 0, 1, 1]}
    >>> find_groups(collapse(ballot_from_codes("q", ("0", "1"), **votes)))
    (array([0, 0, 0, 1]), array([2., 1.]))
    """
    found_a = join_links(patterns.n_annotators, list(neighbours(patterns)))
    return by_size(found_a, items_of_groups(patterns, found_a))


Link = tuple[Ints, Ints]
"""Annotators, and for each one they are linked to."""


def join_links(n_annotators: int, links: Sequence[Link]) -> Ints:
    """Number the groups that links leave: `found_a`."""
    one_e, other_e = (np.concatenate(ends) for ends in zip(*links, strict=True)) if links else (np.empty(0, int),) * 2
    graph = csr_array((np.ones(len(one_e), np.int8), (one_e, other_e)), shape=(n_annotators, n_annotators))
    return np.asarray(connected_components(graph, directed=False)[1])


def neighbours(patterns: Patterns) -> Iterator[Link]:
    """Link every annotator to one of those they share a row with, directly or not, some votes at a time."""
    n_annotators = patterns.n_annotators
    first_v = np.zeros(len(patterns.code_v) + 1, dtype=bool)
    first_v[patterns.start_r] = True
    for start in range(0, max(len(patterns.code_v) - 1, 0), VOTES_AT_ONCE):
        annotator_v = patterns.code_v[start : start + VOTES_AT_ONCE + 1] // patterns.n_labels
        # Votes that lie side by side in a row are enough to link all of it.
        same_v = ~first_v[start + 1 : start + len(annotator_v)]
        ends = (annotator_v[:-1][same_v], annotator_v[1:][same_v])
        graph = csr_array((np.ones(len(ends[0]), np.int8), ends), shape=(n_annotators, n_annotators))
        _, found_a = connected_components(graph, directed=False)
        _, one_g = np.unique(found_a, return_index=True)
        yield np.arange(n_annotators), one_g[found_a]


def items_of_groups(patterns: Patterns, found_a: Ints) -> Floats:
    """Count the items of every group."""
    votes_r = np.diff(patterns.start_r)
    row_r = np.flatnonzero((votes_r > 0) & (patterns.weight_r > 0))
    group_r = found_a[patterns.code_v[patterns.start_r[row_r]] // patterns.n_labels]
    n_groups = int(found_a.max(initial=-1)) + 1
    return np.bincount(group_r, weights=patterns.weight_r[row_r], minlength=n_groups).astype(np.float64)


def by_size(found_a: Ints, items_g: Floats) -> tuple[Ints, Floats]:
    """Put the groups of most items first; annotators without a counted vote belong to the largest."""
    if items_g.any() and not items_g.all():
        found_a = np.where(items_g[found_a] == 0, items_g.argmax(), found_a)
        kept_g = np.flatnonzero(items_g)
        found_a, items_g = np.searchsorted(kept_g, found_a), items_g[kept_g]
    order_g = np.argsort(-items_g, kind="stable")
    rank_g = np.empty(len(items_g), dtype=np.int64)
    rank_g[order_g] = np.arange(len(items_g))
    return rank_g[found_a], items_g[order_g]


def shared_items(patterns: Patterns) -> csr_array:
    """Count the items every two annotators share; the diagonal counts each one's own.

    Where items have very many votes, only evenly spaced ones are counted.

    Examples
    --------
    >>> from moral_entropy.consensus.patterns import collapse
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> votes = {"item_v": [0, 0, 1, 1, 2], "annotator_v": [0, 1, 0, 1, 1], "label_v": [0, 1, 0, 1, 1]}
    >>> shared_items(collapse(ballot_from_codes("q", ("0", "1"), **votes))).toarray()
    array([[2., 2.],
           [2., 3.]])
    """
    return shared_in(evenly(patterns, PAIRS_OF_VOTES))


def shared_in(rows: Patterns) -> csr_array:
    """Count the same, of all rows however many votes they have."""
    votes_r = np.diff(rows.start_r)
    row_v = np.repeat(np.arange(rows.n_rows), votes_r)
    shape = (rows.n_rows, rows.n_annotators)
    voted = csr_array((np.ones(len(row_v)), (row_v, rows.code_v // rows.n_labels)), shape=shape)
    # Whoever voted twice on an item still shares it once.
    voted.data[:] = 1.0
    weighted = csr_array((np.repeat(rows.weight_r, np.diff(voted.indptr)), voted.indices, voted.indptr), shape=shape)
    return csr_array(weighted.T @ voted)


def evenly(patterns: Patterns, pairs: int) -> Patterns:
    """Keep evenly spaced rows, so that about so many pairs of votes are left; all rows where there are fewer."""
    step = spacing(pairs_of_votes(patterns), pairs)
    return patterns if step <= 1 else patterns.take(np.arange(0, patterns.n_rows, step))


def pairs_of_votes(patterns: Patterns) -> float:
    """Count the pairs of votes that share a row."""
    votes_r = np.diff(patterns.start_r).astype(np.float64)
    return float((votes_r * votes_r).sum())


def spacing(pairs: float, most: int) -> int:
    """Say how far apart rows must lie to leave about so many of their pairs of votes."""
    return int(-(-pairs // most))


def same_voters(one: Ballot, other: Ballot) -> bool:
    """Whether the same people voted on the same items, whatever they voted: then all links are the same."""
    if one.n_votes != other.n_votes or not np.array_equal(one.start_i, other.start_i):
        return False
    same_people = np.array_equal(one.code_v // one.n_labels, other.code_v // other.n_labels)
    return same_people and np.array_equal(one.count_i, other.count_i)
