"""A score → the screen: one table per question, the differences, and what must be known of them."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import TYPE_CHECKING, Any

import polars as pl

from moral_entropy.cli.screen import plain_table, printable
from moral_entropy.judges.values import is_share
from moral_entropy.names import ALL

if TYPE_CHECKING:
    from rich.table import Table

    from moral_entropy.judges.score import Score

WIDTH = 80


def score_lines(found: Score, run: str) -> Iterator[str | Table]:
    """Return the scores as lines and tables."""
    for (question, quantity), rows in found.frame.group_by(["question", "quantity"], maintain_order=True):
        unit = ", %" if is_share(str(quantity)) else ""
        yield f"{question}: {quantity}{unit} (and {found.interval:.0%} interval)"
        yield _scores(rows)
        yield ""
        apart = found.differences.filter(question=question, quantity=quantity)
        if apart.height:
            yield "differences"
            yield _differences(apart)
            yield ""
        yield from _undecided(rows, apart, run)
    for note in found.notes:
        yield fill(f"note: {note}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _scores(rows: pl.DataFrame) -> Table:
    heads = ("system", "verdict", "items", "known", "score", "PPI++", "known alone", "plain votes")
    cells = [
        (
            "all" if row["group"] == ALL else printable(row["group"], 24),
            row["verdict"] or "-",
            f"{row['n_items']:,}",
            f"{row['n_gold']:,}",
            *(_figure(row, name) for name in ("", "ppi_", "gold_", "votes_")),
        )
        for row in rows.iter_rows(named=True)
    ]
    return plain_table(heads, cells, n_words=2)


def _differences(apart: pl.DataFrame) -> Table:
    cells = [
        (
            f"{printable(row['group'], 18)} - {printable(row['other'], 18)}",
            row["verdict"],
            *(_figure(row, name) for name in ("", "ppi_", "gold_", "votes_")),
        )
        for row in apart.iter_rows(named=True)
    ]
    return plain_table(("systems", "verdict", "score", "PPI++", "known alone", "plain votes"), cells, n_words=2)


def _figure(row: dict[str, Any], name: str) -> str:
    value, low, high = (row[f"{name}{bound}"] for bound in ("value", "low", "high"))
    if value is None:
        return "-"
    if is_share(row["quantity"]):
        return f"{100 * value:z.1f} ({100 * low:z.0f}{_to(low)}{100 * high:z.0f})"
    return f"{value:z.2f} ({low:z.2f}{_to(low)}{high:z.2f})"


def _to(low: float) -> str:
    return "–" if low >= 0 else " to "


def _undecided(rows: pl.DataFrame, apart: pl.DataFrame, run: str) -> Iterator[str]:
    """Say what would settle what is undecided."""
    several = rows.height > 1
    told = [(row["group"], row) for row in rows.iter_rows(named=True)]
    told += [(f"{row['group']} - {row['other']}", row) for row in apart.iter_rows(named=True)]
    for name, row in told:
        if row["verdict"] != "undecided" or not row["n_gold"]:
            continue
        who = f"{printable(name, 40)}: " if several else ""
        more = row["more_gold"]
        if more is None:
            yield f"{who}undecided; known answers on these items will not settle it: it takes more items"
        else:
            yield f"{who}undecided; about {more:,} more known answers would settle it, if the score stays as it is"
    if rows["more_gold"].is_not_null().any() or apart["more_gold"].is_not_null().any():
        yield f"random items to label: moral-entropy spot-check {run} -n N, then --answers with the filled-in sheet"
        yield ""
