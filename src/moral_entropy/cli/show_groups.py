"""The groups of one column of a run → the screen, or JSON."""

from __future__ import annotations

from typing import Any

import polars as pl

from moral_entropy.cli.screen import plain_table, print_parts
from moral_entropy.errors import UsageError
from moral_entropy.report.page import group_cells
from moral_entropy.runs.run import Run

HEADS = ("question", "group", "annotators", "share", "difference", "p", "α within", "α across")


def print_groups(run: Run, column: str) -> None:
    """Print a row per group, and what the run says of the column."""
    # Late: SciPy's statistics take long to load.
    from moral_entropy.groups.table import largest_first

    rows = [group_cells(row) for row in largest_first(_groups_of(run, column)).iter_rows(named=True)]
    cells = [[question, *figures] for question, _, *figures in rows]
    readings = run.table("group_readings", where=pl.col("column") == column)
    lines = [f"{row['question']}, {row['label']}: {row['reading']}" for row in readings.iter_rows(named=True)]
    print_parts([f"by {column}, the largest difference first", plain_table(HEADS, cells, n_words=2), "", *lines])


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
