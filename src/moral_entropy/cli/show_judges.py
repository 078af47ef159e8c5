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
        yield f"{question}: {many(rows.height, 'judge')}, best first{_effective(described, question)}"
        yield from (
            _filled(f"  {printable(row['judge'], 28)}: {row['advice']}")
            for row in rows.head(MOST_ROWS).iter_rows(named=True)
        )
        yield ""
        yield _judges(rows.head(MOST_ROWS))
        if rows.height > MOST_ROWS:
            yield f"{rows.height - MOST_ROWS:,} more: --json, or run.judges"
        yield from _meaning(rows)
        yield from _panels(described.panels.filter(question=question))
        yield from _ranking(described.ranking.filter(question=question), described.positions.filter(question=question))
        for text in described.replace.filter(question=question)["text"]:
            yield _filled(str(text))
        yield ""
    notes = (*(() if scores is None else scores.notes), *described.notes)
    yield from (_filled(f"note: {note}") for note in dict.fromkeys(notes))


def _effective(described: Judges, question: object) -> str:
    """Say how many independent judges the panel is worth, where known answers tell."""
    rows = described.effective.filter(question=question).to_dicts()
    if not rows:
        return ""
    row = rows[0]
    return f"; worth {row['effective']:.1f} that err independently ({row['low']:.1f}–{row['high']:.1f})"


def _ranking(ranking: pl.DataFrame, positions: pl.DataFrame) -> Iterator[str | Table]:
    if ranking.is_empty():
        return
    yield ""
    yield "ranking by comparisons (Bradley–Terry–Davidson; strength in log-odds)"
    cells = [
        (printable(row["name"], 40), f"{row['rank']}", f"{row['rank_low']}–{row['rank_high']}", f"{row['n']:,}",
         f"{100 * row['win_rate']:.0f}", f"{row['strength']:z.2f} ({row['low']:z.2f} to {row['high']:z.2f})")
        for row in ranking.head(MOST_ROWS).iter_rows(named=True)
    ]  # fmt: skip
    yield plain_table(("name", "rank", "interval", "votes", "% won", "strength"), cells, n_words=1)
    if ranking.height > MOST_ROWS:
        yield f"{ranking.height - MOST_ROWS:,} more: --json"
    yield ""
    effects = [
        (printable("all" if row["judge"] == ALL else row["judge"], 28), f"{row['n']:,}", _points(row, "bias"),
         "-" if row["discrimination"] is None else f"{row['discrimination']:.2f}")
        for row in positions.head(MOST_ROWS).iter_rows(named=True)
    ]  # fmt: skip
    yield plain_table(("judge", "votes", "points for the first shown", "discrimination"), effects, n_words=1)


def _points(row: dict[str, Any], name: str) -> str:
    return f"{100 * row[name]:z.0f} ({100 * row[f'{name}_low']:z.0f} to {100 * row[f'{name}_high']:z.0f})"


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
    pairs = [(row["group"], row) for row in rows.iter_rows(named=True)]
    pairs += [(f"{row['group']} - {row['other']}", row) for row in apart.iter_rows(named=True)]
    for name, row in pairs:
        if row["verdict"] != "undecided" or not row["n_gold"]:
            continue
        begin = f"{printable(name, 40)}: " if rows.height > 1 else ""
        n_more = row["more_gold"]
        if n_more is None:
            yield f"{begin}undecided; known answers on these items will not settle it: it takes more items"
        else:
            yield f"{begin}undecided; about {n_more:,} more known answers would settle it, if the score stays as it is"
    if rows["more_gold"].is_not_null().any() or apart["more_gold"].is_not_null().any():
        yield f"random items to label: moral-entropy spot-check {run} -n N, then --answers with the filled-in sheet"


def _judges(rows: pl.DataFrame) -> Table:
    graded, copies = (rows["n_known"] > 0).any(), (rows["counted_with"] != "").any()
    heads = ["judge", "role", *(["counted with"] if copies else []), "votes", *(["% right"] if graded else []),
             "% as others", "nats", "saved"]  # fmt: skip
    cells = [
        [
            printable(row["judge"], 28),
            row["role"],
            *([_together(row["counted_with"])] if copies else []),
            f"{row['n_votes']:,}",
            *([_share(row, "right_all")] if graded else []),
            _share(row, "agrees"),
            "-" if row["nats"] is None else f"{row['nats']:z.3f}",
            "-" if row["saved"] is None else f"{100 * row['saved']:z.1f}",
        ]
        for row in rows.iter_rows(named=True)
    ]
    return plain_table(heads, cells, n_words=3 if copies else 2)


def _together(names: str) -> str:
    together = names.split(", ") if names else []
    return f"{len(together)} others" if len(together) > 1 else printable(names, 24)


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
    yield f"best panel of each size, by {by}"
    cells = [
        (
            printable(row["judges"], 60),
            f"{row['size']}",
            f"{100 * row['wrong']:.1f}",
            f"{100 * row['wrong_unseen']:.1f}",
        )
        for row in rows.iter_rows(named=True)
    ]
    yield plain_table(("judges", "size", "% wrong", "on unseen items"), cells, n_words=1)


def _filled(text: str) -> str:
    return fill(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
