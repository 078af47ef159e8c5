"""Figures of a run's audit of rules, pooled over questions and domains."""

from __future__ import annotations

from typing import Any

import polars as pl

from moral_entropy.names import ALL
from moral_entropy.runs.run import Run

ONE_LABEL = ("consensus", "plurality", "published")
"""Rules that give every item just one label of several."""


def wrong_by(run: Run, column: str) -> pl.Expr:
    """Return how probably an item's label is wrong by one of its probabilities, in the table of items."""
    two = pl.col("question").is_in([question.name for question in run.questions if question.positive is not None])
    p = pl.col(column)
    return pl.when(two).then(pl.min_horizontal(p, 1.0 - p)).otherwise(1.0 - p)


def main_rule(run: Run) -> str:
    """Name the rule most readers would have used: published labels, plurality, majority, or the first audited."""
    audited: list[str] = run.table("audit_rules")["rule"].unique(maintain_order=True).to_list()
    several = any(question.positive is None for question in run.questions)
    wanted = ["published", "plurality" if several else "majority", "majority", "any", *audited]
    return next(rule for rule in wanted if rule in audited or not audited)


def pooled_rate(run: Run, rule: str, metric: str, reference: str = "consensus") -> dict[str, Any] | None:
    """Return a figure pooled over questions and domains, None where there is none.

    Of a single question with more than two labels, `disagreement` is about the label itself: an item labelled wrong
    differs on two of its labels when each is graded against the rest.
    """
    rows = run.table("audit").filter(question=ALL, domain=ALL, label=ALL, rule=rule, metric=metric, reference=reference)
    found = rows.drop_nulls("value")
    if found.is_empty():
        return None
    row = found.row(0, named=True)
    question = run.questions[0]
    if metric != "disagreement" or len(run.questions) > 1 or question.positive is not None or rule not in ONE_LABEL:
        return row
    n_labels = len(question.labels)
    bounds = {name: row[name] and row[name] * n_labels / 2 for name in ("value", "low", "high")}
    return {**row, **bounds, "n": row["n"] // n_labels}
