"""`moral-entropy compare`: two run folders side by side, or the groups of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from moral_entropy import __version__
from moral_entropy.cli.flags import Json
from moral_entropy.cli.screen import filled, plain_table, rows_table, show
from moral_entropy.errors import UsageError
from moral_entropy.names import ALL

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from moral_entropy.comparison import Comparison
    from moral_entropy.runs.run import Run

RunA = Annotated[str, Argument(metavar="RUN_A", help="The run folder to start from.")]
RunB = Annotated[
    str | None, Argument(metavar="RUN_B", help="The other run folder; none with --by.", show_default=False)
]
By = Annotated[str | None, Option(metavar="COLUMN", help="Compare the groups of annotators of one run, by a column.")]
Top = Annotated[int, Option(min=0, metavar="N", help="Show the N items that moved most.")]

MOST_ROWS, LONGEST = 24, 24
"""Rows of a table, and characters of a setting, that are shown."""

CHANGE = "a: {value_a:.3f} | b: {value_b:.3f} | change (interval): {change:+z.3f} ({low:+z.3f} to {high:+z.3f})"
AGREEMENT = "question: {question} | labels equal, %: {agreement!p:.1f} | kappa: {kappa:.3f} | mean move: {moved:z.3f}"
SHIFTS = (
    "question: {question} | domain: {domain} | label: {label} | mean p, %: {a!p:.1f} → {b!p:.1f} | "
    "change: {change!p:+z.1f} | entropy: {entropy:+z.3f}"
)
GRADES = "rule: {rule} | " + " | ".join(
    f"{metric}: {{value_a_{metric}!p:.1f}} → {{value_b_{metric}!p:.1f}}" for metric in ("fpr", "fnr", "fdr")
)
MOVED = (
    "question: {question} | item: {item:30} | label, p in a: {label_a}, {p_a:.2f} ({p_low_a:.2f}–{p_high_a:.2f}) | "
    "label, p in b: {label_b}, {p_b:.2f} ({p_low_b:.2f}–{p_high_b:.2f}) | moved: {moved:.3f} | apart: {apart}"
)
FLIPS = "annotator: {annotator} | question: {question} | items: {n:,} | %: {value!p:.1f} ({low!p:.1f} to {high!p:.1f})"
GROUPS = ("question", "group", "annotators", "share", "difference", "p", "α within", "α across")


def compare(run_a: RunA, run_b: RunB = None, by: By = None, json: Json = False, top: Top = 10) -> None:
    """Compare two runs: two batches of items, or the same items with other votes or settings.

    Of batches without a shared item: which is worse and why, who changed, agreement, uncertain labels, shares and rates
    per question. Shared items are matched by question and id: labels, p, entropy, grades of rules.

    Example: moral-entropy compare run-a/ run-b/
    """
    if (by is None) == (run_b is None):
        missing = "compare needs RUN_B, a second run, or --by COLUMN for the groups of annotators of one."
        msg = missing if by is None else "--by compares the groups of one run: give one run folder."
        raise UsageError(msg)
    from moral_entropy.batches import flips
    from moral_entropy.comparison import compare as compare_two
    from moral_entropy.runs.run import read_run

    first = read_run(run_a)
    if by is not None:
        show("compare", *_groups(first, by), as_json=json)
        return
    second = read_run(str(run_b))
    comparison = compare_two(first, second)
    if isinstance(comparison, dict):
        show("compare", {"a": run_a, "b": run_b} | comparison, _batch_parts(comparison), as_json=json)
        return
    flipped = flips(first, second)
    settings = [{"name": name, "a": a, "b": b} for name, a, b in comparison.settings]
    items = {"settings": settings, "items": comparison.items.head(top), "flips": flipped}
    record = {"version": __version__} | vars(comparison) | items
    show("compare", record, _parts(comparison, top, flipped), as_json=json)


def _groups(run: Run, column: str) -> tuple[dict[str, Any], list[str | Table]]:
    """Return the groups of a column as a record, and as what is printed: a row per group, and what is said of it."""
    import polars as pl

    # Late: SciPy's statistics take long to load.
    from moral_entropy.groups.table import largest_first
    from moral_entropy.report.page import group_cells

    groups = run.table("groups")
    if column not in groups["column"]:
        columns = groups["column"].unique(maintain_order=True).to_list()
        has = f"It has {', '.join(columns)}" if columns else "Audit the votes with --annotator-group first"
        msg = f"{run.where} does not compare groups by {column!r}. {has}."
        raise UsageError(msg)
    groups, readings = groups.filter(column=column), run.table("group_readings", where=pl.col("column") == column)
    rows = [group_cells(row) for row in largest_first(groups).iter_rows(named=True)]
    table = plain_table(GROUPS, [[question, *figures] for question, _, *figures in rows], n_words=2)
    lines = [f"{row['question']}, {row['label']}: {row['reading']}" for row in readings.to_dicts()]
    record = {"groups": groups, "readings": readings}
    return record, [f"by {column}, the largest difference first", table, "", *lines]


def _batch_parts(batches: dict[str, Any]) -> Iterator[str | Table]:
    """Yield the answer, figures per question, and annotators."""
    yield filled(batches["sentence"])
    yield ""
    yield rows_table(batches["figures"], f"question: {{question}} | figure: {{figure}} | {CHANGE}")
    people = batches["annotators"].sort("changed", descending=True, maintain_order=True).head(MOST_ROWS)
    if people.height:
        yield "\nannotators in both: chance to be right"
        rows = [row | {"changed": "changed" if row["changed"] else ""} for row in people.to_dicts()]
        yield rows_table(rows, f"annotator: {{annotator:30}} | question: {{question}} | {CHANGE} | : {{changed}}")


def _parts(comparison: Comparison, top: int, flipped: pl.DataFrame) -> Iterator[str | Table]:
    """Yield what differs, agreement, changes, the items that moved most, and votes that flipped."""
    import polars as pl

    yield from (f"{side}: {path}" for side, path in (("a", comparison.a), ("b", comparison.b)))
    for name, *values in comparison.settings:
        # Nobody reads a hash to its end.
        a, b = (f"{value}"[:LONGEST] + "…" * (len(f"{value}") > LONGEST) for value in values)
        yield f"  {name}: {a} in a, {b} in b"
    yield from (f"  note: {note}" for note in comparison.notes)
    shared, only_a, only_b = comparison.overlap.select("shared", "only_a", "only_b").sum().row(0)
    yield f"  items by question: {shared:,} in both, {only_a:,} only in a, {only_b:,} only in b\n"
    yield "agreement on the shared items"
    yield rows_table(comparison.agreement.pivot("metric", index="question", values="value"), AGREEMENT)
    yield "\nmean p, and the change of the entropy in nats, shared items"
    shifts, place = comparison.shifts, ["question", "domain"]
    entropy = shifts.filter(metric="entropy").select(*place, entropy="change")
    yield rows_table(shifts.filter(metric="prevalence").join(entropy, on=place).head(MOST_ROWS), SHIFTS)
    yield from _grades(comparison.grades)
    items, n_changed = comparison.items, int(comparison.items["label_changed"].sum())
    moved = items.filter(pl.col("moved") > 0)
    yield f"\nlabels changed on {n_changed:,} of {items.height:,} question–item pairs; p moved on {moved.height:,}"
    if moved.height and top:
        yield rows_table(moved.head(top), MOVED)
        yield "moved: by how much the probabilities changed; apart: the intervals of p do not\nmeet"
    flipped = flipped.filter(pl.col("flips") > 0).sort("value", descending=True, maintain_order=True)
    if flipped.height:
        yield "\nthe same annotator on the same item: votes that flipped"
        yield rows_table(flipped.head(MOST_ROWS), FLIPS)


def _grades(grades: pl.DataFrame) -> Iterator[str | Table]:
    """Yield the rates of rules in both runs, rules with the same rates once, and which changes are clear."""
    import polars as pl

    from moral_entropy.ties import TIE

    for reference, title in (("consensus", "the consensus"), ("gold", "gold labels")):
        pooled = grades.filter(question=ALL, domain=ALL, label=ALL, reference=reference)
        if pooled.is_empty():
            continue
        wide = pooled.pivot("metric", index="rule", values=["value_a", "value_b"])
        alike = wide.group_by(pl.exclude("rule"), maintain_order=True).agg(pl.col("rule").str.join(", "))
        yield f"\nrules against {title}, all pooled, %"
        yield rows_table(alike, GRADES)
        yield "fpr: wrong yes; fnr: missed yes; fdr: share of yes labels that are wrong"
        clear = pooled.filter((pl.col("low") > TIE) | (pl.col("high") < -TIE)).select("rule", "metric").rows()
        if clear:
            yield filled(f"changes whose interval leaves out 0: {', '.join(map(' '.join, clear))}")
