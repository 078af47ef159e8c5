"""Rankings with their reasons: the rows of the outlier table.

`first` finds the highest scores; `Rows` collects what was ranked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.schemas import OUTLIERS
from moral_entropy.ties import TIE, tie_key
from moral_entropy.votes.table import Floats

ITEM, ANNOTATOR, WORD = "item", "annotator", "word"


@dataclass(eq=False)
class Rows:
    """Rows of the outlier table, column by column."""

    kind: list[str] = field(default_factory=list)
    question: list[str] = field(default_factory=list)
    domain: list[str] = field(default_factory=list)
    name: list[str] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    reason: list[str] = field(default_factory=list)
    ranking: list[str] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)

    def add(
        self,
        where: tuple[str, str, str],
        ranking: str,
        names: Sequence[str],
        scores: Sequence[float],
        reasons: Sequence[str],
    ) -> None:
        """Add one ranking, highest rank first.

        Parameters
        ----------
        where
            Kind, question and domain.
        ranking
            What it is ranked by.
        names, scores, reasons
            One value per ranked item, annotator or word.
        """
        n_rows = len(names)
        for column, value in zip((self.kind, self.question, self.domain), where, strict=True):
            column += [value] * n_rows
        self.name += names
        self.score += scores
        self.reason += reasons
        self.ranking += [ranking] * n_rows
        self.rank += range(1, n_rows + 1)

    def frame(self) -> pl.DataFrame:
        """Return them as the table outliers."""
        return pl.DataFrame({one.name: getattr(self, one.name) for one in fields(self)}, schema=OUTLIERS)


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
