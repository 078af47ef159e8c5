"""Cells → further frames of an `AuditTable`: the rules, and labels that one true label would change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from moral_entropy.rules.cells import Cells
from moral_entropy.rules.groups import Grading
from moral_entropy.votes.table import Floats, Ints

if TYPE_CHECKING:
    import polars as pl


def one_label_frame(graded: Grading, changed_c: Floats) -> pl.DataFrame:
    """Count by question and domain the items whose label would be another if every item had one true label."""
    import polars as pl

    cells, weight_c, rows = graded.cells, graded.sums.weight_cs[:, 0], []
    for q, question in enumerate(graded.questions if graded.explained else ()):
        # Of more than two labels every item is in one cell per label; the first has them all.
        first_c = (cells.question_c == q) & (cells.label_c == cells.label_c[cells.question_c == q].min())
        for domain, cell_c in graded.cells_by_domain():
            if len(some_c := cell_c[first_c[cell_c]]):
                counts = {"n_items": round(weight_c[some_c].sum()), "changed": round(changed_c[some_c].sum())}
                rows.append({"question": question, "domain": domain, **counts})
    schema = {"question": pl.String, "domain": pl.String, "n_items": pl.Int64, "changed": pl.Int64}
    return pl.DataFrame(rows, schema=schema)


def rule_frame(graded: Grading) -> pl.DataFrame:
    """Return per rule and question its meaning, on how many items it abstains or is tied, which rule labels alike."""
    import polars as pl

    rules, cells, weight_c = graded.rules, graded.cells, graded.sums.weight_cs[:, 0]
    rows = []
    for q, question in enumerate(graded.questions):
        for k in np.unique(cells.label_c[cells.question_c == q]):
            cell_c = np.flatnonzero((cells.question_c == q) & (cells.label_c == k))
            for r, rule in enumerate(rules):
                abstains_c = np.isnan(cells.score_rc[r, cell_c])
                counts = {
                    "items": weight_c[cell_c].sum(),
                    "abstained": weight_c[cell_c[abstains_c]].sum(),
                    "tied": weight_c[cell_c[cells.tied_rc[r, cell_c]]].sum(),
                }
                row = {"question": question, "label": graded.labels[q][k], "rule": rule.name, "meaning": rule.meaning}
                same = next(one for one in range(r + 1) if _decides_alike(cells, one, r, cell_c))
                rows.append({**row, **{name: round(count) for name, count in counts.items()},
                             "same_as": rules[same].name if same != r else None})  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"same_as": pl.String()})


def _decides_alike(cells: Cells, one: int, other: int, cell_c: Ints) -> bool:
    """Return whether two rules give every item of some cells the same label."""
    return np.array_equal(cells.decision_rc[one, cell_c], cells.decision_rc[other, cell_c], equal_nan=True)
