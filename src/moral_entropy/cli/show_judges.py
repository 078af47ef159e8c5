"""Scores and judges → the screen: systems with their differences, then judges, best panels, and what must be known."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import TYPE_CHECKING, Any

import polars as pl

from moral_entropy.cli.screen import plain_table, printable
from moral_entropy.findings import many
from moral_entropy.judges.values import is_share
from moral_entropy.names import ALL

if TYPE_CHECKING:
    from rich.table import Table

    from moral_entropy.judges.score import Score
    from moral_entropy.judges.table import Judges

WIDTH = 80
MOST_ROWS = 30


def judges_lines(scores: Score | None, described: Judges, run: str) -> Iterator[str | Table]:
    """Return scores, where there are any, and what is known of judges as lines and tables."""
    if scores is not None:
        yield from _score_lines(scores, run)
    for (question,), rows in described.frame.group_by(["question"], maintain_order=True):
        yield f"{question}: {many(rows.height, 'judge')}; worst first"
        yield _judges(rows.head(MOST_ROWS))
        if rows.height > MOST_ROWS:
            yield f"{rows.height - MOST_ROWS:,} more: --json, or run.judges"
        yield from _meaning(rows)
        yield from _panels(described.panels.filter(question=question))
        yield from _repeats(described.repeats.filter(question=question))
        for text in described.replace.filter(question=question)["text"]:
            yield _filled(str(text))
        yield ""
    notes = (*(() if scores is None else scores.notes), *described.notes)
    yield from (_filled(f"note: {note}") for note in dict.fromkeys(notes))


def _score_lines(scores: Score, run: str) -> Iterator[str | Table]:
    for (question, quantity), rows in scores.frame.group_by(["question", "quantity"], maintain_order=True):
        unit = ", %" if is_share(str(quantity)) else ""
        yield f"{question}: {quantity}{unit} (and {scores.interval:.0%} interval)"
        yield _scores(rows)
        yield ""
        apart = scores.differences.filter(question=question, quantity=quantity)
        if apart.height:
            yield "differences"
            yield _differences(apart)
            yield ""
        if lines := list(_undecided(rows, apart, run)):
            yield from (*lines, "")


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
    named = [(row["group"], row) for row in rows.iter_rows(named=True)]
    named += [(f"{row['group']} - {row['other']}", row) for row in apart.iter_rows(named=True)]
    for name, row in named:
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
    by = [name for name in rows["graded_by"].unique().to_list() if name]
    if by:
        yield _filled(
            "nats and saved: what the judge adds to the others per item, and labels put right per 100 items, by "
            f"{by[0] if by[0] == 'known answers' else 'the consensus'}"
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
