"""A run's study of targets → what the section "Do soft labels win?" says: sentences by reference, and a table.

Takes the table `soft_labels` that `train --compare` left in the run folder. Touches no other file.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from moral_entropy.runs.run import Run
from moral_entropy.train.references import FAVOURED, REFERENCES
from moral_entropy.train.scores import METRICS
from moral_entropy.train.study_tables import CONSTANT
from moral_entropy.train.verdicts import SHOWN, answers, overall, show, show_gap, verdicts

MAX_ROWS = 400
"""Rows of the table in the page; all are in soft_labels.parquet."""


@dataclass(frozen=True)
class Against:
    """How targets fare against one reference.

    Parameters
    ----------
    reference, meaning, favours
        What answers were held against, and whom that favours.
    sentences
        How the base fares, a sentence a group of models.
    rows
        Model, target, and a cell a metric: (score, difference).
    """

    reference: str
    meaning: str
    favours: str
    sentences: list[str]
    rows: list[tuple[str, str, list[tuple[str, str]]]]


def soft_labels(run: Run) -> dict[str, Any] | None:
    """Give what the section shows; nothing where the run has no study."""
    table = run.table("soft_labels")
    if table.is_empty():
        return None
    rows, said = overall(table), answers(verdicts(table))
    found = [
        Against(name, REFERENCES[name], FAVOURED[name].replace("`", ""), sentences, _rows(rows.filter(reference=name)))
        for name, sentences in said.items()
    ]
    return {
        "metrics": list(SHOWN.values()),
        "seeds": max(table["seeds"].to_list()),
        "against": [asdict(one) for one in found],
    }


def _rows(own: pl.DataFrame) -> list[tuple[str, str, list[tuple[str, str]]]]:
    found = []
    for model, target in own.select("model", "target").unique(maintain_order=True).head(MAX_ROWS).iter_rows():
        by_metric = {row["metric"]: row for row in own.filter(model=model, target=target).iter_rows(named=True)}
        cells = [_cell(by_metric[metric]) for metric in METRICS]
        found.append((str(model), "–" if model == CONSTANT else str(target), cells))
    return found


def _cell(row: dict[str, Any]) -> tuple[str, str]:
    if row["difference"] is None:
        return show(row["metric"], row["value"]), ""
    gap = show_gap(row["metric"], row["difference"], row["difference_low"], row["difference_high"])
    return show(row["metric"], row["value"]), gap
