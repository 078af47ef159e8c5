"""Accuracy: the share of items that a rule, or the consensus, labels right.

Takes the audit's frame, returns further rows of it: one minus the disagreement. With more than two labels it is that of
the label itself, so that only rules that name one label of several have an accuracy there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from moral_entropy.names import ALL, MEAN, MULTICLASS

if TYPE_CHECKING:
    import polars as pl

ACCURACY = "accuracy"

Row = dict[str, Any]


def accuracy_rows(frame: pl.DataFrame) -> list[Row]:
    """Return the accuracy of every rule against every reference: by question and domain, and pooled over questions.

    Pooled over questions of which some have more than two labels, it has no interval.

    Examples
    --------
    >>> import polars as pl
    >>> row = {"question": "care", "domain": "(all)", "label": "yes", "rule": "any", "reference": "gold"}
    >>> frame = pl.DataFrame([{**row, "metric": "disagreement", "value": 0.25, "low": 0.2, "high": 0.3, "n": 40}])
    >>> [one] = accuracy_rows(frame)
    >>> one["metric"], one["value"], one["low"]
    ('accuracy', 0.75, 0.7)
    """
    return [_right(row) for row in wrong_rows(frame)]


def wrong_rows(frame: pl.DataFrame) -> list[Row]:
    """Return the share of items that every rule labels otherwise than the reference: what accuracy leaves."""
    rows = frame.filter(metric="disagreement").to_dicts()
    several = questions_with_many_labels(frame)
    single = [row for row in rows if _is_one_question(row, several)]
    pooled = [row for row in rows if row["question"] == ALL and row["label"] == ALL] if not several else _pool(single)
    return [{**row, "label": ALL} for row in (*single, *pooled)]


def questions_with_many_labels(frame: pl.DataFrame) -> set[str]:
    """Return the questions of a frame that have more than two labels."""
    import polars as pl

    pooled = frame.filter((pl.col("label") == ALL) & ~pl.col("question").is_in([ALL, MEAN]))
    return set(pooled["question"].unique())


def _is_one_question(row: Row, several: set[str]) -> bool:
    """Return whether a row is about the labels of one question, and not about one label of many against the rest."""
    if row["question"] in (ALL, MEAN):
        return False
    return bool(row["label"] == MULTICLASS) == (row["question"] in several)


def _right(row: Row) -> Row:
    low, high = (None if row[bound] is None else 1.0 - row[bound] for bound in ("high", "low"))
    value = None if row["value"] is None else 1.0 - row["value"]
    return {**row, "metric": ACCURACY, "value": value, "low": low, "high": high}


def _pool(single: Iterable[Row]) -> Iterator[Row]:
    """Pool the questions' disagreement by items; of one question it is that question's, with its interval."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in single:
        if row["value"] is not None:
            groups.setdefault((row["domain"], row["rule"], row["reference"]), []).append(row)
    for rows in groups.values():
        n = sum(row["n"] for row in rows)
        value = sum(row["value"] * row["n"] for row in rows) / n
        yield {**rows[0], "question": ALL, "value": value, "n": n} | (
            {} if len(rows) == 1 else {"low": None, "high": None}
        )
