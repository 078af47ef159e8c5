"""Ties: figures that differ only by how a sum was rounded are equal.

Processors add the same numbers in different orders, so the last bits of a figure differ from machine to machine.
Whatever is chosen, ordered or worded by comparing figures goes through here, and comes out the same everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

TIE = 1e-9
"""Figures closer than this count as equal; they are probabilities, nats and scores of about 1."""

DECIMALS = 9
ROWS_AT_ONCE = 65_536

Floats = NDArray[np.float64]


def tie_key(score: Any) -> Any:
    """Round scores to 9 decimals, to be sorted by: equal scores then keep the order in which they came.

    Parameters
    ----------
    score
        An array, or one number.

    Examples
    --------
    >>> third = np.array([0.1 + 0.2, 0.3, -1e-17])
    >>> third.argsort(kind="stable").tolist(), tie_key(third).argsort(kind="stable").tolist()
    ([2, 1, 0], [2, 0, 1])
    >>> tie_key(-1e-17)
    0.0
    """
    if isinstance(score, np.ndarray):
        return np.round(score, DECIMALS) + 0.0
    return round(float(score), DECIMALS) + 0.0


def highest(score_ik: Floats) -> NDArray[np.int64]:
    """Return the column of the highest score in each row, such as its likeliest label; of columns that tie the first.

    Examples
    --------
    >>> highest(np.array([[0.3, 0.1 + 0.2, 0.4], [0.3, 0.1 + 0.2, 0.2]])).tolist()
    [2, 0]
    """
    column_i: NDArray[np.int64] = (score_ik >= score_ik.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
    return column_i


def settle_halves(p_rk: Floats) -> Floats:
    """Set probabilities of two labels that are ½ but for rounding to ½, in place, so that `p >= 0.5` always holds.

    Examples
    --------
    >>> settle_halves(np.array([[0.5 + 1e-16, 0.5 - 1e-16], [0.4, 0.6]])).tolist()
    [[0.5, 0.5], [0.4, 0.6]]
    """
    # Some rows at a time: there may be a hundred million, and each step would hold a copy of them.
    for start in range(0, len(p_rk) if p_rk.shape[1] == 2 else 0, ROWS_AT_ONCE):
        some_rk = p_rk[start : start + ROWS_AT_ONCE]
        some_rk[np.abs(some_rk[:, 1] - 0.5) < TIE] = 0.5
    return p_rk


def labels_of(p_ik: Floats, positive: int | None, *, ordered: bool = False) -> NDArray[np.int64]:
    """Return the index of each item's label: the positive one of two where its p is ½ or more, of more the likeliest.

    Parameters
    ----------
    p_ik
        Label probabilities.
    positive
        Index of the positive label of two.
    ordered
        Whether labels are levels of a scale: then it is the median; of two the likelier, of equals the lower.

    Examples
    --------
    >>> labels_of(np.array([[0.5, 0.5], [0.6, 0.4]]), positive=1)
    array([1, 0])
    >>> labels_of(np.array([[0.4, 0.35, 0.25]]), None, ordered=True)
    array([1])
    """
    if ordered and p_ik.shape[1] > 2:
        at_most_ik = np.cumsum(p_ik, axis=1)
        median_ik = (at_most_ik >= 0.5 - TIE) & (at_most_ik - p_ik <= 0.5 + TIE)
        return highest(np.where(median_ik, p_ik, -1.0))
    if positive is None or p_ik.shape[1] != 2:
        return highest(p_ik)
    return np.where(p_ik[:, positive] >= 0.5, positive, 1 - positive)
