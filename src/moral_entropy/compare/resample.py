"""Sums over shared items, as they are and with items resampled, both runs together.

Takes columns by question; returns their sums by domain, as they are and in every replicate. An item that a replicate
draws twice counts twice in both runs and under every question: that is what makes the differences paired. Knows
nothing of what the columns mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moral_entropy.votes.table import Floats, Ints

BLOCK_ITEMS = 8_192
"""Items resampled with one seed, so that no replicate is in memory as a whole. Another number, other replicates."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of one question. Axes: **i** shared item of the question, **m** column.

    Parameters
    ----------
    names
        Of the columns.
    value_im
        The columns, each row already weighted by how many items it stands for.
    item_i
        Index of the item among all items of all questions.
    domain_i
        Index of its domain.
    """

    names: tuple[str, ...]
    value_im: Floats
    item_i: Ints
    domain_i: Ints


Sums = Mapping[str, Floats]
"""Sums by name of the column: one row per domain, the last for all; first items as they are, then the replicates."""


def resampled_sums(
    questions: Sequence[Columns], count_j: Floats, *, n_domains: int, replicates: int, seed: int
) -> list[Sums]:
    """Add up the columns of every question over items as they are, and over resampled items.

    Every item is drawn a Poisson number of times, 1 on average, independently of the others: a bootstrap that can
    be made block by block, and whose domains are bootstraps of their own.

    Parameters
    ----------
    questions
        The columns.
    count_j
        For every item of all questions, how many it stands for.
    n_domains
        How many domains there are.
    replicates
        How often to resample.
    seed
        Of the resampling.

    Examples
    --------
    >>> one = Columns(("x",), np.array([[1.0], [2.0], [4.0]]), np.arange(3), np.array([0, 1, 1]))
    >>> [sums] = resampled_sums([one], np.ones(3), n_domains=2, replicates=5, seed=0)
    >>> sums["x"].shape, sums["x"][:, 0].tolist()
    ((3, 6), [1.0, 6.0, 7.0])
    """
    total_q = [np.zeros((n_domains + 1, replicates + 1, len(one.names))) for one in questions]
    for block, first in enumerate(range(0, len(count_j), BLOCK_ITEMS)):
        last = min(first + BLOCK_ITEMS, len(count_j))
        times_sj = _times(count_j[first:last], replicates, seed, block)
        for one, total_dsm in zip(questions, total_q, strict=True):
            _add_block(one, total_dsm, times_sj, first, last)
    for total_dsm in total_q:
        total_dsm[-1] = total_dsm[:-1].sum(axis=0)
    return [
        {name: total_dsm[:, :, m] for m, name in enumerate(one.names)}
        for one, total_dsm in zip(questions, total_q, strict=True)
    ]


def _times(count_j: Floats, replicates: int, seed: int, block: int) -> Floats:
    """Draw how often each item counts, relative to how many it stands for; in the first row each counts once."""
    rng = np.random.default_rng([seed, block])
    drawn_sj = rng.poisson(count_j, size=(replicates, len(count_j))) / count_j
    return np.concatenate([np.ones((1, len(count_j))), drawn_sj])


def _add_block(one: Columns, total_dsm: Floats, times_sj: Floats, first: int, last: int) -> None:
    in_block_i = np.flatnonzero((one.item_i >= first) & (one.item_i < last))
    in_block_i = in_block_i[np.argsort(one.domain_i[in_block_i], kind="stable")]
    domain_i = one.domain_i[in_block_i]
    starts_d = np.flatnonzero(np.diff(domain_i, prepend=-1))
    for row_i in np.split(in_block_i, starts_d[1:]):
        if len(row_i):
            total_dsm[one.domain_i[row_i[0]]] += times_sj[:, one.item_i[row_i] - first] @ one.value_im[row_i]
