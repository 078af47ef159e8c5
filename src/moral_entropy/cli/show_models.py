"""Models beside the consensus of a run → the screen, or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.table import Table

from moral_entropy.cli.screen import plain_table, print_parts
from moral_entropy.compare.models import ModelTable
from moral_entropy.compare.words import number, percent
from moral_entropy.markup import NOTHING, json_rows


def models_record(table: ModelTable) -> dict[str, Any]:
    """Return everything as JSON can hold it."""
    return {
        "models": json_rows(table.frame.to_dicts()),
        "notes": list(table.notes),
        "interval": table.interval,
    }


def print_models(table: ModelTable) -> None:
    """Print one table per question, and what its figures mean."""
    print_parts(_parts(table))


def _parts(table: ModelTable) -> Iterator[str | Table]:
    for (question,), rows in table.frame.group_by("question", maintain_order=True):
        n, n_known = rows["n"][0], rows["n_known"][0]
        yield f"{question}: {n:,} items, {n_known:,} with a known answer"
        columns = ("model", "changed %", "moved", "right %", "log loss", "gain")
        yield plain_table(columns, [_cells(row) for row in rows.to_dicts()])
        yield ""
    yield from (f"note: {note}." for note in table.notes)
    yield "changed: items labelled otherwise than by the consensus; moved: by how much the"
    yield "probabilities differ from its own, on average; right, log loss (nats): against"
    yield "known answers; gain: log loss of the consensus less that of the model, so that"
    yield f"above 0 the model is better, with a {table.interval:.0%} interval over items"


def _cells(row: dict[str, Any]) -> list[str]:
    shares = [percent(row["changed"]), number(row["moved"]), percent(row["accuracy"]), number(row["log_loss"])]
    return [row["model"], *shares, _gain(row)]


def _gain(row: dict[str, Any]) -> str:
    if row["gain"] is None:
        return NOTHING
    spread = "" if row["gain_low"] is None else f" ({number(row['gain_low'])}, {number(row['gain_high'])})"
    return f"{number(row['gain'], sign=True)}{spread}"
