"""Comparison → one plain HTML page that needs no network and runs no script.

Everything that comes from a run folder is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import polars as pl

from moral_entropy import __version__
from moral_entropy.compare.stand import Stand
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
from moral_entropy.report.words import RATES
from moral_entropy.verdict.headlines import with_interval

MOST_ROWS = 500
"""Rows of a table on the page; all of them are in the Parquet file."""

STYLE = """
:root { --ink: #1b1f24; --muted: #5b6470; --paper: #ffffff; --panel: #f5f6f8; --line: #d9dde3; --clear: #fff6d6;
  --ready: #0a7d4f; --care: #8a5a00; --stop: #b3261e; --unknown: #5b6470; color-scheme: light dark; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; margin: 0 auto; max-width: 70rem;
  padding: 1.25rem; color: var(--ink); background: var(--paper); overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .6rem; }
h2 { font-size: 1.3rem; line-height: 1.25; margin: 2.2rem 0 .4rem; }
h3 { font-size: 1.05rem; margin: 0 0 .3rem; }
p { max-width: 75ch; margin: .4rem 0; }
.muted, caption { color: var(--muted); font-size: .9rem; }
.stands { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem; }
.stand { min-width: 0; border: 1px solid var(--line); border-left: 6px solid var(--unknown); background: var(--panel);
  border-radius: 6px; padding: .7rem 1rem; }
.stand.ready { border-left-color: var(--ready); } .stand.care { border-left-color: var(--care); }
.stand.stop { border-left-color: var(--stop); }
.stand li { margin: .4rem 0; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0 1rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums;
  overflow-wrap: normal; }
caption { text-align: left; padding: .4rem .6rem; }
th { background: var(--panel); }
th, td { padding: .25rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
tr.clear td { background: var(--clear); }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --muted: #a3acb8; --paper: #14171b; --panel: #1e2329; --line: #353c45; --clear: #3d3620;
    --ready: #6fd6a8; --care: #f2c265; --stop: #ff9a90; --unknown: #a3acb8; }
}
@media (max-width: 700px) { body { padding: .9rem; } .stands { grid-template-columns: minmax(0, 1fr); } }
@media print {
  :root { --ink: #1b1f24; --muted: #4a525d; --paper: #ffffff; --panel: #f5f6f8; --line: #c9ced6; --clear: #fff6d6;
    --ready: #0a7d4f; --care: #8a5a00; --stop: #b3261e; --unknown: #5b6470; color-scheme: light; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  .scroll { overflow: visible; border: 0; }
  table { font-size: 7.5pt; overflow-wrap: break-word; }
  th, td { padding: .1rem .3rem; }
  h2 { break-after: avoid-page; }
  tr, .stand { break-inside: avoid-page; }
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
        _stands(comparison),
        _settings(comparison),
        _notes(comparison),
        *_tables(comparison, top),
        f"<p>moral-entropy {escape(__version__)}; {comparison.replicates:,} replicates, seed {comparison.seed}.</p>",
    ]
    title = f"{comparison.a} and {comparison.b}"
    return html_page(title, "\n".join(part for part in parts if part), STYLE)


def _stands(comparison: Comparison) -> str:
    """Show the verdict, the figures and the warnings of either run, as its own report does."""
    boxes = "".join(_stand(name, stand) for name, stand in zip("ab", comparison.stands, strict=True))
    return f'<h2>Can the labels be shipped?</h2><div class="stands">{boxes}</div>'


def _stand(name: str, stand: Stand) -> str:
    figures = [[one.name, with_interval(one)] for one in stand.headlines]
    listed = "".join(
        f"<li><b>{escape(one.severity)}</b>: {escape(one.text)}. <i>What to do:</i> {escape(one.cure)}</li>"
        for one in stand.cautions
    )
    return (
        f'<section class="stand {stand.verdict.status}"><h3>{name}: {escape(stand.verdict.title)}</h3>'
        f"<p>{escape(stand.verdict.text)}</p>"
        f'<div class="scroll">{html_table(["figure", "value"], figures)}</div>'
        f"{f'<ul>{listed}</ul>' if listed else '<p>No warnings.</p>'}</section>"
    )


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
    yield (
        '<h2>Share of yes and uncertainty</h2><p class="muted">Share of yes: the mean of p over the items; with more '
        "than two labels, of each label. Entropy: how uncertain the labels are, and its parts.</p>"
    )
    yield _table(
        comparison.shifts.to_dicts(),
        {**group, "label": _plain("label"), "figure": _figure, **_sides("a", "b", number), "change": change},
        f"means over shared items; entropies in nats; {mass} intervals over resampled items, both runs together. They "
        "do not hold how sure each fit is. Shaded: the interval leaves out 0",
        clear=_clear,
    )
    yield f'<h2>What the rules do</h2><p class="muted">{_meanings()}</p>'
    rule: dict[str, Cell] = {"rule": _plain("rule"), "against": _plain("reference"), "figure": _figure}
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


def _figure(row: dict[str, Any]) -> str:
    """Name a figure in plain words."""
    metric = str(row["metric"])
    plain = {"prevalence": "share of yes"} | {name: rate.name for name, rate in RATES.items()}
    return plain.get(metric, metric.replace("_", " "))


def _meanings() -> str:
    said = (f"{rate.name} ({rate.formal}, {name}): {rate.meaning}" for name, rate in RATES.items() if rate.formal)
    return f"{'; '.join(said).capitalize()}. Yes and no are the consensus', or gold's."


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
    table = html_table(list(columns), cells, caption=caption, row_classes=classes)
    return f'<div class="scroll" tabindex="0">{table}</div>'


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
