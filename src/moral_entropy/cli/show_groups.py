"""The groups of one column of a run → the screen, or JSON."""

from __future__ import annotations

from typing import Any

import polars as pl

from moral_entropy.cli.screen import plain_table, print_parts
from moral_entropy.errors import UsageError
from moral_entropy.report.sections import group_cells
from moral_entropy.runs.run import Run

HEADS = ("question", "label", "group", "annotators", "share", "difference", "interval", "p", "alpha", "ratio")


def print_groups(run: Run, column: str) -> None:
    """Print a row per group, and what the run says of the column."""
    groups = _groups_of(run, column)
    rows = [group_cells(row) for row in groups.iter_rows(named=True)]
    # Votes and agreement across are left to the table: 80 characters are few.
    cells = [[question, label, group, n, *rest, ratio] for question, _, label, group, n, _, *rest, _, ratio in rows]
    readings = run.table("group_readings", where=pl.col("column") == column)
    said = [f"{row['question']}, {row['label']}: {row['reading']}" for row in readings.iter_rows(named=True)]
    print_parts([f"by {column}", plain_table(HEADS, cells, n_words=3), "", *said])


def groups_record(run: Run, column: str) -> dict[str, Any]:
    """Return the rows of `groups` and `group_readings` of a column, for JSON."""
    return {
        "groups": _groups_of(run, column).to_dicts(),
        "readings": run.table("group_readings", where=pl.col("column") == column).to_dicts(),
    }


def _groups_of(run: Run, column: str) -> pl.DataFrame:
    groups = run.table("groups")
    if column not in groups["column"]:
        columns = groups["column"].unique(maintain_order=True).to_list()
        has = f"It has {', '.join(columns)}" if columns else "Audit the votes with --annotator-group first"
        msg = f"{run.where} does not compare groups by {column!r}. {has}."
        raise UsageError(msg)
    return groups.filter(column=column)
