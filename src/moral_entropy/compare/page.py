"""Comparison → one plain HTML page that needs no network and runs no script.

Everything that comes from a run folder is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import polars as pl

from moral_entropy import __version__
from moral_entropy.compare.table import Comparison
from moral_entropy.compare.words import (
    chance,
    change,
    change_in_percent,
    figure,
    item_counts,
    number,
    percent,
    share,
)
from moral_entropy.markup import NOTHING, html_page, html_table
from moral_entropy.names import ALL

MOST_ROWS = 500
"""Rows of a table on the page; all of them are in the Parquet file."""

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #1a1a1a; }
h1, h2 { line-height: 1.2; }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: #555; padding-bottom: 0.3rem; }
th, td { padding: 0.15rem 0.8rem 0.15rem 0; text-align: left; border-bottom: 1px solid #ddd; }
tr.clear td { background: #fff6d6; }
@media (prefers-color-scheme: dark) {
  body { background: #16181b; color: #e6e6e6; } caption { color: #aaa; } th, td { border-color: #3a3d42; }
  tr.clear td { background: #3d3620; }
}
"""

Cell = Callable[[dict[str, Any]], str]


def comparison_page(comparison: Comparison, *, top: int = 100) -> str:
    """Return the page.

    Parameters
    ----------
    comparison
        What to show.
    top
        How many of the items that moved most.
    """
    parts = [
        "<h1>Two runs side by side</h1>",
        f"<p>a: <b>{escape(comparison.a)}</b><br>b: <b>{escape(comparison.b)}</b><br>Every change is b minus a.</p>",
        _settings(comparison),
        _notes(comparison),
        *_tables(comparison, top),
        f"<p>moral-entropy {escape(__version__)}; {comparison.replicates:,} replicates, seed {comparison.seed}.</p>",
    ]
    title = f"{comparison.a} and {comparison.b}"
    return html_page(title, "\n".join(part for part in parts if part), STYLE)


def _settings(comparison: Comparison) -> str:
    rows = [{"name": name, "a": str(a), "b": str(b)} for name, a, b in comparison.settings]
    columns: dict[str, Cell] = {"": _plain("name"), "a": _plain("a"), "b": _plain("b")}
    return f"<h2>What differs between the runs</h2>{_table(rows, columns)}" if rows else ""


def _notes(comparison: Comparison) -> str:
    listed = "".join(f"<li>{escape(note)}</li>" for note in comparison.notes)
    return f"<ul>{listed}</ul>" if listed else ""


def _tables(comparison: Comparison, top: int) -> Iterable[str]:
    mass = f"{comparison.interval:.0%}"
    group: dict[str, Cell] = {"question": _plain("question"), "domain": _plain("domain")}
    yield "<h2>Items</h2>"
    yield _table(comparison.overlap.to_dicts(), {"question": _plain("question"), "items": item_counts})
    yield "<h2>Agreement</h2>"
    yield _table(
        agreement_rows(comparison.agreement),
        {**group, "items": lambda row: f"{row['n']:,}", **{name: _plain(name) for name in AGREEMENT_COLUMNS}},
        f"labels and probabilities; {mass} intervals over resampled items",
    )
    yield "<h2>Mean p and entropy</h2>"
    yield _table(
        comparison.shifts.to_dicts(),
        {**group, "label": _plain("label"), "figure": _plain("metric"), **_sides("a", "b", number), "change": change},
        f"means over shared items; entropies in nats; {mass} intervals over resampled items, both runs together. They "
        "do not hold how sure each fit is. Shaded: the interval leaves out 0",
        clear=_clear,
    )
    yield "<h2>Grades of the rules</h2>"
    rule: dict[str, Cell] = {name: _plain(name) for name in ("rule", "reference", "metric")}
    yield _table(
        comparison.grades.filter(pl.col("value_a").is_not_null() | pl.col("value_b").is_not_null()).to_dicts(),
        {
            **group,
            **rule,
            **_sides("value_a", "value_b", percent),
            "change": change_in_percent,
        },
        "%, of all items of either run; intervals as if the audits were independent, so rather too wide where they "
        "share votes. Shaded: the interval leaves out 0",
        clear=_clear,
    )
    yield f"<h2>Items that moved most</h2>{_moved_table(comparison, top)}"


def _moved_table(comparison: Comparison, top: int) -> str:
    columns: dict[str, Cell] = {
        **{name: _plain(name) for name in ("question", "item", "domain")},
        "a: label, p": lambda row: chance(row, "a"),
        "b: label, p": lambda row: chance(row, "b"),
        "moved": lambda row: number(row["moved"]),
        "label": lambda row: "changed" if row["label_changed"] else "",
    }
    first = comparison.items.head(top).filter(pl.col("moved") > 0)
    return _table(
        first.to_dicts(), columns, "p with each run's own interval. Shaded: the intervals do not meet", _apart
    )


def _clear(row: dict[str, Any]) -> bool:
    return row["low"] is not None and row["high"] is not None and not row["low"] <= 0 <= row["high"]


def _apart(row: dict[str, Any]) -> bool:
    return bool(row["apart"])


def _plain(name: str) -> Cell:
    return lambda row: NOTHING if row[name] is None else str(row[name])


def _sides(a: str, b: str, as_text: Callable[[float | None], str]) -> dict[str, Cell]:
    return {"a": lambda row: as_text(row[a]), "b": lambda row: as_text(row[b])}


def _table(
    rows: Sequence[dict[str, Any]],
    columns: dict[str, Cell],
    caption: str = "",
    clear: Callable[[dict[str, Any]], bool] | None = None,
) -> str:
    """Return a table of the first rows; `clear` says which of them to shade."""
    if not rows:
        return "<p>none</p>"
    if len(rows) > MOST_ROWS:
        caption += f"; the first {MOST_ROWS} of {len(rows):,} rows"
    shown = rows[:MOST_ROWS]
    cells = [[cell(row) for cell in columns.values()] for row in shown]
    classes = ["clear" if clear is not None and clear(row) else "" for row in shown]
    return html_table(list(columns), cells, caption=caption, row_classes=classes)


AGREEMENT_COLUMNS = ("labels equal, %", "kappa", "correlation of p", "mean move")


def agreement_rows(agreement: pl.DataFrame, *, by_domain: bool = True) -> list[dict[str, Any]]:
    """Return one row per question and domain, the four figures of agreement as text.

    Parameters
    ----------
    agreement
        As in `Comparison`.
    by_domain
        Whether to show single domains too.
    """
    rows = []
    chosen = agreement if by_domain else agreement.filter(domain=ALL)
    for (question, domain), figures in chosen.group_by("question", "domain", maintain_order=True):
        by_metric = {row["metric"]: row for row in figures.to_dicts()}
        named = {"question": question, "domain": domain, "n": figures["n"][0]}
        cells = (
            share(by_metric["agreement"]),
            *(figure(by_metric[name]) for name in ("kappa", "correlation", "moved")),
        )
        rows.append({**named, **dict(zip(AGREEMENT_COLUMNS, cells, strict=True))})
    return rows
