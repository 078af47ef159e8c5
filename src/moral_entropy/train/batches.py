"""Batches: which texts are learnt together, and in what order.

Texts of like length go together, so that little is padded; the order depends on the seed and the epoch alone, so
that a training which was stopped goes on as if it had not been.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moral_entropy.votes.table import Ints

BUCKET = 50
"""Batches from which texts of like length are put together; more would make batches less random."""


def shuffled_batches(length_i: Sequence[int], batch_size: int, *, seed: int, epoch: int) -> list[Ints]:
    """Cut the texts of one epoch in batches of like length, in a random order.

    Parameters
    ----------
    length_i
        Tokens of each text.
    batch_size
        Texts a batch; the last of a bucket may have fewer.
    seed, epoch
        What the order depends on.

    Examples
    --------
    >>> batches = shuffled_batches([5, 9, 5, 9], 2, seed=0, epoch=0)
    >>> sorted(batch.tolist() for batch in batches)
    [[0, 2], [1, 3]]
    """
    lengths = np.asarray(length_i)
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(lengths))
    batches: list[Ints] = []
    for start in range(0, len(order), batch_size * BUCKET):
        bucket = order[start : start + batch_size * BUCKET]
        bucket = np.sort(bucket)[np.argsort(lengths[np.sort(bucket)], kind="stable")]
        batches += [bucket[at : at + batch_size] for at in range(0, len(bucket), batch_size)]
    return [batches[at] for at in rng.permutation(len(batches))]


def sorted_batches(length_i: Sequence[int], batch_size: int) -> list[Ints]:
    """Cut texts in batches of like length, longest first, so that memory runs out at once or never."""
    order = np.argsort(-np.asarray(length_i), kind="stable")
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
