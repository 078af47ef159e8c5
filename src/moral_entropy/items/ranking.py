"""Rankings with their reasons: the rows of the outlier table.

`first` finds the highest scores; `ranking_frame` lays out what was ranked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.schemas import OUTLIERS
from moral_entropy.ties import TIE, tie_key
from moral_entropy.votes.table import Floats

ITEM, ANNOTATOR, WORD = "item", "annotator", "word"


def ranking_frame(
    where: tuple[str, str, str], ranking: str, names: Sequence[str], scores: Sequence[float], reasons: Sequence[str]
) -> pl.DataFrame:
    """Return one ranking, highest rank first, as rows of the table outliers.

    Parameters
    ----------
    where
        Kind, question and domain.
    ranking
        What it is ranked by.
    names, scores, reasons
        One value per ranked item, annotator or word.
    """
    same = dict(zip(("kind", "question", "domain"), where, strict=True)) | {"ranking": ranking}
    ranked = {"name": names, "score": scores, "reason": reasons, "rank": range(1, len(names) + 1)}
    columns = {name: ranked.get(name, [same.get(name)] * len(names)) for name in OUTLIERS}
    return pl.DataFrame(columns, schema=OUTLIERS)


def first(score_i: Floats, n: int) -> NDArray[np.int64]:
    """Return the positions of the `n` highest scores, highest first; of equal ones the earlier first, NaN never.

    Examples
    --------
    >>> first(np.array([0.2, 0.3, np.nan, 0.1 + 0.2]), 2).tolist()
    [1, 3]
    """
    if n <= 0:
        return np.empty(0, dtype=np.int64)
    score_n = score_i[~np.isnan(score_i)]
    least = -np.inf
    if len(score_n) > n:
        # Sorting a million scores to find the first hundred would be a waste.
        score_n.partition(len(score_n) - n)
        least = score_n[len(score_n) - n] - TIE
    at_i = np.flatnonzero(score_i >= least)
    return at_i[np.argsort(-tie_key(score_i[at_i]), kind="stable")[:n]]
