"""An audit of consensus rules → the screen: the figures people ask for first, pooled over everything.

All figures, by question and domain, are in `audit.parquet`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from moral_entropy.names import ALL

if TYPE_CHECKING:
    import polars as pl

    from moral_entropy.runs.run import Run

METRICS = ("fpr", "fnr", "fdr", "for")
NOTHING = "–"
OUTSIDE = "*"


def audit_lines(run: Run) -> list[str | Table]:
    """Return a table per reference, a note where one is due, and the advice."""
    lines: list[str | Table] = []
    rules, outside = run.rules, False
    for reference, what in (("consensus", "the consensus"), ("gold", "gold labels")):
        pooled = rules.filter(question=ALL, domain=ALL, label=ALL, reference=reference)
        if not pooled.is_empty():
            lines.append(f"rules against {what}, all questions and domains pooled, % (and {run.interval:.0%} interval)")
            table, marked = _table(pooled)
            outside |= marked
            lines += [table, ""]
    if outside:
        lines.append(
            f"{OUTSIDE} outside its interval: on thin votes the label of the mean p is not the one most draws give"
        )
    lines += _silent_rules(run)
    lines.append("fpr: of the true no, called yes; fnr: of the true yes, called no; fdr: of the rule's yes, truly no;")
    lines.append("for: of the rule's no, truly yes\n")
    lines.append(run.manifest["advice"])
    return lines


def _silent_rules(run: Run) -> list[str]:
    """Say which rules give no answer, and on how many items (questions added up)."""
    counts = run.table("audit_rules").select("rule", "abstained").group_by("rule", maintain_order=True).sum()
    said = [f"{rule} {count:,}" for rule, count in counts.iter_rows() if count]
    return [f"no answer on items without votes or labels: {', '.join(said)}"] if said else []


def _table(pooled: pl.DataFrame) -> tuple[Table, bool]:
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    table.add_column("rule", overflow="fold")
    for metric in METRICS:
        table.add_column(metric, justify="right")
    marked = False
    for rule in pooled["rule"].unique(maintain_order=True):
        rows = {row["metric"]: row for row in pooled.filter(rule=rule).iter_rows(named=True)}
        cells = [_percent(rows.get(metric)) for metric in METRICS]
        marked |= any(OUTSIDE in cell for cell in cells)
        table.add_row(rule, *cells)
    return table, marked


def _percent(row: dict[str, Any] | None) -> str:
    if row is None or row["value"] is None:
        return NOTHING
    value, low, high = row["value"], row["low"], row["high"]
    if low is None or high is None:
        return f"{value:z.1%}".rstrip("%")
    mark = OUTSIDE if not low - 5e-4 <= value <= high + 5e-4 else ""
    return f"{100 * value:z.1f}{mark} ({100 * low:z.0f}–{100 * high:z.0f})"
