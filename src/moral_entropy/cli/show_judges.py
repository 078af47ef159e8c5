"""Judges → the screen: one table per question, the best panels, who may replace people, and what must be known."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import TYPE_CHECKING, Any

import polars as pl

from moral_entropy.cli.screen import plain_table, printable
from moral_entropy.findings import many

if TYPE_CHECKING:
    from rich.table import Table

    from moral_entropy.judges.table import Judges

WIDTH = 80
MOST_ROWS = 30


def judges_lines(found: Judges) -> Iterator[str | Table]:
    """Return what is known of judges as lines and tables."""
    for (question,), rows in found.frame.group_by(["question"], maintain_order=True):
        worth = found.effective_votes.filter(question=question).row(0, named=True)
        effective = "" if worth["effective"] is None else f", worth {worth['effective']:.1f} independent ones"
        yield f"{question}: {many(rows.height, 'judge')}, {worth['votes']:.1f} votes per item{effective}; worst first"
        yield _judges(rows.head(MOST_ROWS))
        if rows.height > MOST_ROWS:
            yield f"{rows.height - MOST_ROWS:,} more: --json, or run.judges"
        yield from _meaning(rows)
        yield from _panels(found.panels.filter(question=question))
        yield from _repeats(found.repeats.filter(question=question))
        for text in found.replace.filter(question=question)["text"]:
            yield _filled(str(text))
        yield ""
    for note in found.notes:
        yield fill(f"note: {note}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _judges(rows: pl.DataFrame) -> Table:
    costs = rows["cost"].is_not_null().any()
    known, copies = (rows["n_known"] > 0).any(), (rows["counted_with"] != "").any()
    heads = ["judge", "role", *(["counted with"] if copies else []), "votes", *(["% right"] if known else []),
             "% as others", "nats", "saved", *(["cost"] if costs else [])]  # fmt: skip
    cells = [
        [
            printable(row["judge"], 28),
            row["role"],
            *([_together(row["counted_with"])] if copies else []),
            f"{row['n_votes']:,}",
            *([_share(row, "right_all")] if known else []),
            _share(row, "agrees"),
            "-" if row["nats"] is None else f"{row['nats']:z.3f}",
            "-" if row["saved"] is None else f"{100 * row['saved']:z.1f}",
            *([f"{row['cost']:g}"] if costs else []),
        ]
        for row in rows.iter_rows(named=True)
    ]
    return plain_table(heads, cells, n_words=3 if copies else 2)


def _together(names: str) -> str:
    several = names.split(", ") if names else []
    return f"{len(several)} others" if len(several) > 1 else printable(names, 24)


def _share(row: dict[str, Any], name: str) -> str:
    value, low, high = (row[f"{name}{bound}"] for bound in ("", "_low", "_high"))
    return "-" if value is None else f"{100 * value:.1f} ({100 * low:.0f}–{100 * high:.0f})"


def _meaning(rows: pl.DataFrame) -> Iterator[str]:
    by = [one for one in rows["graded_by"].unique().to_list() if one]
    if by:
        yield _filled(
            "nats and saved: what the judge adds to the others per item, and labels put right per 100 items, by "
            f"{by[0] if by[0] == 'known answers' else 'the consensus'}"
        )
    if by == ["known answers"]:
        yield _filled(
            "order: by consensus and known answers together, which tell judges apart better than either alone"
        )


def _panels(rows: pl.DataFrame) -> Iterator[str | Table]:
    if rows.is_empty():
        return
    yield ""
    by = "known answers" if rows["graded_by"][0] == "known answers" else "the consensus"
    yield f"best panel for its price, by {by}"
    cells = [
        (
            printable(row["judges"], 60),
            f"{row['cost']:g}",
            f"{100 * row['wrong']:.1f}",
            f"{100 * row['wrong_unseen']:.1f}",
        )
        for row in rows.iter_rows(named=True)
    ]
    yield plain_table(("judges", "cost per item", "% wrong", "on unseen items"), cells, n_words=1)


def _repeats(rows: pl.DataFrame) -> Iterator[str | Table]:
    if rows.is_empty():
        return
    yield ""
    yield "the same judge asked again, or with the answers swapped"
    cells = [
        (
            printable(row["judge"], 26),
            printable(row["other"], 26),
            row["kind"],
            _share(row, "same"),
            "-"
            if row["bias"] is None
            else f"{100 * row['bias']:z.0f} ({100 * row['bias_low']:z.0f} to {100 * row['bias_high']:z.0f})",
        )
        for row in rows.head(MOST_ROWS).iter_rows(named=True)
    ]
    yield plain_table(("judge", "and", "kind", "% same", "% for the first shown"), cells, n_words=3)


def _filled(text: str) -> str:
    return fill(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
