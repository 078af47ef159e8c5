"""A comparison of two runs → the screen: pooled figures, and the items that moved most.

All figures by question and domain are in the folder that `-o` writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
from rich.table import Table

from moral_entropy.cli.screen import plain_table, print_parts
from moral_entropy.compare.page import AGREEMENT_COLUMNS, agreement_rows
from moral_entropy.compare.shifts import ENTROPIES
from moral_entropy.compare.table import Comparison
from moral_entropy.compare.words import chance, change_in_percent, item_counts, number, percent
from moral_entropy.consensus.entropy import shown_parts
from moral_entropy.markup import NOTHING
from moral_entropy.names import ALL
from moral_entropy.schemas import BETWEEN
from moral_entropy.ties import TIE

MOST_DOMAINS = 12
LONGEST = 24
METRICS = ("fpr", "fnr", "fdr")
CLEAR = "*"
"""What follows a change whose interval leaves out 0."""


def print_comparison(comparison: Comparison, *, top: int) -> None:
    """Print what differs, agreement, changes, and the items that moved most."""
    print_parts(_parts(comparison, top))


def _parts(comparison: Comparison, top: int) -> Iterator[str | Table]:
    yield from (f"{side}: {path}" for side, path in (("a", comparison.a), ("b", comparison.b)))
    yield from (f"  {name}: {_short(a)} in a, {_short(b)} in b" for name, a, b in comparison.settings)
    yield from (f"  note: {note}" for note in comparison.notes)
    yield f"  items by question: {item_counts(_sum_of(comparison.overlap))}\n"
    yield f"agreement on the shared items, with {comparison.interval:.0%} intervals"
    rows = agreement_rows(comparison.agreement, by_domain=False)
    yield plain_table(("question", *AGREEMENT_COLUMNS), [[row["question"], *_named(row)] for row in rows])
    yield "\nmean p in %, entropy and its parts in nats: change from a to b, shared items"
    yield _shift_table(comparison.shifts.filter(domain=ALL), "question")
    by_domain = comparison.shifts.filter(question=_widest(comparison.shifts)).filter(pl.col("domain") != ALL)
    if not by_domain.is_empty():
        yield ""
        yield _shift_table(by_domain, "domain")
    yield f"intervals over resampled items ({CLEAR} it leaves out 0); how sure each fit is, they"
    yield "do not hold\n"
    yield from _grades(comparison.grades)
    yield from _moved(comparison.items, top)


def _short(value: Any) -> str:
    """Cut a value that nobody reads to its end, such as a hash."""
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _sum_of(overlap: pl.DataFrame) -> dict[str, Any]:
    return overlap.select("shared", "only_a", "only_b").sum().row(0, named=True)


def _named(row: dict[str, Any]) -> list[str]:
    return [row[name] for name in AGREEMENT_COLUMNS]


def _widest(shifts: pl.DataFrame) -> str:
    """Name the question that stands for all: the pool where there is one."""
    return str(shifts["question"][-1])


def _shift_table(shifts: pl.DataFrame, by: str) -> Table:
    keys = shifts[by].unique(maintain_order=True).to_list()
    shown = keys[:MOST_DOMAINS] if by == "domain" else keys
    rows = [row for key in shown for row in _shift_rows(key, shifts.filter(pl.col(by) == key).to_dicts())]
    parts = shown_parts("mixed", between=BETWEEN in shifts["metric"]).values()
    if len(shown) < len(keys):
        rows.append([f"and {len(keys) - len(shown):,} more", *[""] * (3 + len(parts))])
    return plain_table((by, "mean p", "change", "entropy", *parts), rows)


def _shift_rows(key: str, figures: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    """Return one row, or one per label with more than two; entropies are those of all labels."""
    entropy, *parts = ([row for row in figures if row["metric"] == part] for part in ENTROPIES)
    nats = [number(row["change"], sign=True) + CLEAR * _leaves_out_0(row) for rows in (entropy, *parts) for row in rows]
    shares = [row for row in figures if row["metric"] == "prevalence"]
    if not shares:
        yield [key, "", "", *nats]
    for n, row in enumerate(shares):
        name = f"{key}: {row['label']}" if len(shares) > 1 else key
        told = f"{percent(row['a'])} → {percent(row['b'])}"
        yield [name, told, change_in_percent(row), *(nats if n == 0 else [""] * len(nats))]


def _grades(grades: pl.DataFrame) -> Iterator[str | Table]:
    for reference, what in (("consensus", "the consensus"), ("gold", "gold labels")):
        pooled = grades.filter(question=ALL, domain=ALL, label=ALL, reference=reference)
        if pooled.is_empty():
            continue
        yield f"rules against {what}, all pooled, %: in a, and the change to b"
        yield "(fpr: wrong yes; fnr: missed yes; fdr: share of yes labels that are wrong)"
        rows, unchanged = dict[tuple[str, ...], list[str]](), []
        for (rule,), figures in pooled.group_by("rule", maintain_order=True):
            by_metric = {row["metric"]: row for row in figures.to_dicts()}
            cells = [_graded(by_metric.get(metric)) for metric in METRICS]
            if all(cell.endswith((" 0", NOTHING)) for cell in cells):
                unchanged.append(str(rule))
            else:
                rows.setdefault(tuple(cells), []).append(str(rule))
        if rows:
            yield plain_table(("rule", *METRICS), [(names[0], *cells) for cells, names in rows.items()])
        yield from (f"the same: {', '.join(names)}" for names in rows.values() if len(names) > 1)
        if any(CLEAR in cell for cells in rows for cell in cells):
            yield f"{CLEAR} the interval of the change leaves out 0, as if the audits were independent"
        yield f"unchanged: {', '.join(unchanged)}\n" if unchanged else ""


def _graded(row: dict[str, Any] | None) -> str:
    if row is None or row["change"] is None:
        return NOTHING
    if row["change"] == row["low"] == row["high"] == 0:
        return f"{percent(row['value_a'])} 0"
    moved = f"{percent(row['value_a'])} {round(100 * row['change'], 1) + 0.0:+.1f}"
    return moved + CLEAR * _leaves_out_0(row)


def _leaves_out_0(row: dict[str, Any]) -> bool:
    return row["low"] is not None and row["high"] is not None and (row["low"] > TIE or row["high"] < -TIE)


def _moved(items: pl.DataFrame, top: int) -> Iterator[str | Table]:
    changed = int(items["label_changed"].sum())
    moved = items.filter(pl.col("moved") > 0)
    yield f"labels changed on {changed:,} of {items.height:,} question–item pairs; p moved on {moved.height:,}"
    if moved.is_empty() or not top:
        return
    rows = []
    for row in moved.head(top).to_dicts():
        apart = "yes" if row["apart"] else "no" if row["apart"] is False else NOTHING
        rows.append(
            [row["question"], str(row["item"]), chance(row, "a"), chance(row, "b"), number(row["moved"]), apart]
        )
    yield plain_table(("question", "item", "a: label, p", "b: label, p", "moved", "apart"), rows)
    yield "moved: by how much the probabilities changed; apart: the intervals of p do not"
    yield "meet"
