"""References: what answers about items are scored against, question by question. No reference is neutral."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from moral_entropy.train.scores import Standard, by_question
from moral_entropy.train.targets import Targets
from moral_entropy.votes.table import Floats, Ints


@dataclass(frozen=True, eq=False)
class Reference:
    """What models are scored against.

    Parameters
    ----------
    name
        Such as "gold"; a study's are those of `report.soft_labels.REFERENCES`.
    share, label
        Log loss, Brier score and calibration are against the first, accuracy and AUC against the second.
    """

    name: str
    share: Targets
    label: Targets

    def standards(self, items: pl.Series) -> list[Standard]:
        """Return the standard of each question for some items; weight 0 where there is none."""
        share_i, label_i = (rows_of(one.items, items) for one in (self.share, self.label))
        shares = by_question(self.share.head, rows_at(self.share.target_io, share_i))
        labels = by_question(self.share.head, rows_at(self.label.target_io, label_i))
        weight_iq = rows_at(self.share.weight_iq, share_i)
        return [Standard(*of_question) for of_question in zip(shares, labels, weight_iq.T, strict=True)]


def rows_of(known: pl.Series, items: pl.Series) -> Ints:
    """Find the row of each item among the known ones; -1 where it is not.

    Examples
    --------
    >>> rows_of(pl.Series(["a", "b"]), pl.Series(["b", "c"])).tolist()
    [1, -1]
    """
    row_of = {item: row for row, item in enumerate(known.to_list())}
    return np.array([row_of.get(item, -1) for item in items.to_list()], dtype=np.int64)


def rows_at(value_ic: Floats, at_i: Ints) -> Floats:
    """Take rows, with zeros where there is none (-1)."""
    return np.where((at_i >= 0)[:, None], value_ic[at_i], 0.0)
