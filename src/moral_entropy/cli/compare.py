"""`moral-entropy compare`: two run folders side by side, or the groups of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from moral_entropy import __version__
from moral_entropy.cli.flags import Json
from moral_entropy.cli.screen import plain_table, print_json, print_parts
from moral_entropy.errors import UsageError
from moral_entropy.markup import NOTHING
from moral_entropy.names import ALL

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from moral_entropy.comparison import Comparison

RunA = Annotated[str, Argument(metavar="RUN_A", help="The run folder to start from.")]
RunB = Annotated[
    str | None, Argument(metavar="RUN_B", help="The run folder to compare with it; none with --by.", show_default=False)
]
By = Annotated[
    str | None,
    Option(metavar="COLUMN", help="Compare the groups of annotators of one run, by a column that it was audited with."),
]
Top = Annotated[int, Option(min=0, metavar="N", help="Show the N items that moved most.")]

MOST_DOMAINS, WIDTH = 12, 80
LONGEST = 24
METRICS = ("fpr", "fnr", "fdr")
CLEAR = "*"
"""What follows a change whose interval leaves out 0."""


def compare(run_a: RunA, run_b: RunB = None, by: By = None, json: Json = False, top: Top = 10) -> None:
    """Compare two runs: two batches of items, or the same items with other votes or settings.

    Of batches without a shared item: which is worse and why, who changed, agreement, uncertain labels, shares and rates
    per question. Shared items are matched by question and id: labels, p, entropy, grades of rules.

    Example: moral-entropy compare run-a/ run-b/
    """
    if by is not None:
        if run_b is not None:
            msg = "--by compares the groups of one run: give one run folder."
            raise UsageError(msg)
        from moral_entropy.cli.show_groups import groups_record, print_groups
        from moral_entropy.runs.run import read_run

        return print_json("compare", groups_record(read_run(run_a), by)) if json else print_groups(read_run(run_a), by)
    if run_b is None:
        msg = "compare needs RUN_B, a second run, or --by COLUMN for the groups of annotators of one."
        raise UsageError(msg)
    from moral_entropy.batches import flips
    from moral_entropy.comparison import compare as compare_two
    from moral_entropy.runs.run import read_run

    runs = read_run(run_a), read_run(run_b)
    comparison = compare_two(*runs)
    if isinstance(comparison, dict):
        return (
            print_json("compare", {"a": run_a, "b": run_b} | comparison)
            if json
            else print_parts(_batch_parts(comparison))
        )
    flipped = flips(*runs)
    if not json:
        return print_parts([*_parts(comparison, top), *_flips(flipped)])
    settings = [{"name": name, "a": a, "b": b} for name, a, b in comparison.settings]
    items = comparison.items.head(top)
    record = {"version": __version__} | vars(comparison) | {"settings": settings, "items": items, "flips": flipped}
    return print_json("compare", record)


def _batch_parts(batches: dict[str, Any]) -> Iterator[str | Table]:
    """Yield the answer, figures per question, and annotators."""
    yield fill(batches["sentence"], WIDTH)
    yield ""
    rows = [[row["question"], row["figure"], *_before_after(row)] for row in batches["figures"].iter_rows(named=True)]
    yield plain_table(("question", "figure", "a", "b", "change (interval)"), rows)
    people = batches["annotators"]
    if people.height:
        yield "\nannotators in both: chance to be right"
        rows = [
            [str(row["annotator"]), row["question"], *_before_after(row), "changed" if row["changed"] else ""]
            for row in people.sort("changed", descending=True, maintain_order=True).head(MOST_DOMAINS).to_dicts()
        ]
        yield plain_table(("annotator", "question", "a", "b", "change (interval)", ""), rows)


def _before_after(row: dict[str, Any]) -> tuple[str, str, str]:
    between = "" if row["low"] is None else f" ({number(row['low'], sign=True)} to {number(row['high'], sign=True)})"
    return number(row["value_a"]), number(row["value_b"]), f"{number(row['change'], sign=True)}{between}"


def _flips(flipped: pl.DataFrame) -> Iterator[str | Table]:
    """Yield how often the same annotators voted otherwise on the same items, where they did."""
    rows = [
        [row["annotator"], row["question"], f"{row['n']:,}",
         "{} ({} to {})".format(*(percent(row[name]) for name in ("value", "low", "high")))]
        for row in flipped.sort("value", descending=True, maintain_order=True).to_dicts() if row["flips"]
    ]  # fmt: skip
    if rows:
        yield "\nthe same annotator on the same item: votes that flipped, %"
        yield plain_table(("annotator", "question", "items", "flipped"), rows[:MOST_DOMAINS])


def _parts(comparison: Comparison, top: int) -> Iterator[str | Table]:
    """Yield what differs, agreement, changes, and the items that moved most."""
    import polars as pl

    yield from (f"{side}: {path}" for side, path in (("a", comparison.a), ("b", comparison.b)))
    yield from (f"  {name}: {_short(a)} in a, {_short(b)} in b" for name, a, b in comparison.settings)
    yield from (f"  note: {note}" for note in comparison.notes)
    shared, only_a, only_b = comparison.overlap.select("shared", "only_a", "only_b").sum().row(0)
    yield f"  items by question: {shared:,} in both, {only_a:,} only in a, {only_b:,} only in b\n"
    yield "agreement on the shared items"
    agreement = comparison.agreement.filter(domain=ALL).partition_by("question", maintain_order=True)
    values = [(figures["question"][0], *figures["value"]) for figures in agreement]
    rows = [(name, percent(equal), number(kappa), number(move)) for name, equal, kappa, move in values]
    yield plain_table(("question", "labels equal, %", "kappa", "mean move"), rows)
    yield "\nmean p in %, entropy and its parts in nats: change from a to b, shared items"
    yield _shift_table(comparison.shifts.filter(domain=ALL), "question")
    # The last question stands for all: the pool where there is one.
    widest = comparison.shifts.filter(pl.col("domain") != ALL, question=comparison.shifts["question"][-1])
    if not widest.is_empty():
        yield ""
        yield _shift_table(widest, "domain")
    yield ""
    yield from _grades(comparison.grades)
    yield from _moved(comparison.items, top)


def _short(value: Any) -> str:
    """Cut a value that nobody reads to its end, such as a hash."""
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _shift_table(shifts: pl.DataFrame, by: str) -> Table:
    from moral_entropy.model.entropy import shown_parts
    from moral_entropy.schemas import BETWEEN

    groups = shifts.partition_by(by, maintain_order=True)
    blocks = groups[:MOST_DOMAINS] if by == "domain" else groups
    rows = [row for group in blocks for row in _shift_rows(group[by][0], group.to_dicts())]
    parts = shown_parts("mixed", between=BETWEEN in shifts["metric"]).values()
    if len(blocks) < len(groups):
        rows.append([f"and {len(groups) - len(blocks):,} more", *[""] * (3 + len(parts))])
    return plain_table((by, "mean p", "change", "entropy", *parts), rows)


def _shift_rows(key: str, figures: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    """Yield one row, or one per label with more than two; entropies are those of all labels."""
    nats = [number(row["change"], sign=True) for row in figures if row["metric"] != "prevalence"]
    shares = [row for row in figures if row["metric"] == "prevalence"]
    if not shares:
        yield [key, "", "", *nats]
    for n, row in enumerate(shares):
        name = f"{key}: {row['label']}" if len(shares) > 1 else key
        change = "0" if row["change"] == 0 else f"{round(100 * row['change'], 1) + 0.0:+.1f}"
        yield [name, f"{percent(row['a'])} → {percent(row['b'])}", change, *(nats if n == 0 else [""] * len(nats))]


def _grades(grades: pl.DataFrame) -> Iterator[str | Table]:
    for reference, title in (("consensus", "the consensus"), ("gold", "gold labels")):
        pooled = grades.filter(question=ALL, domain=ALL, label=ALL, reference=reference)
        if pooled.is_empty():
            continue
        yield f"rules against {title}, all pooled, %: in a, and the change to b"
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
    from moral_entropy.ties import TIE

    if row is None or row["change"] is None:
        return NOTHING
    if row["change"] == row["low"] == row["high"] == 0:
        return f"{percent(row['value_a'])} 0"
    clear = row["low"] is not None and row["high"] is not None and (row["low"] > TIE or row["high"] < -TIE)
    return f"{percent(row['value_a'])} {round(100 * row['change'], 1) + 0.0:+.1f}" + CLEAR * clear


def _moved(items: pl.DataFrame, top: int) -> Iterator[str | Table]:
    import polars as pl

    changed = int(items["label_changed"].sum())
    moved = items.filter(pl.col("moved") > 0)
    yield f"labels changed on {changed:,} of {items.height:,} question–item pairs; p moved on {moved.height:,}"
    if moved.is_empty() or not top:
        return
    words = {True: "yes", False: "no", None: NOTHING}
    rows = [
        (row["question"], str(row["item"]), *(_chance(row, side) for side in "ab"), number(row["moved"]),
         words[row["apart"]])
        for row in moved.head(top).to_dicts()
    ]  # fmt: skip
    yield plain_table(("question", "item", "a: label, p", "b: label, p", "moved", "apart"), rows)
    yield "moved: by how much the probabilities changed; apart: the intervals of p do not\nmeet"


def _chance(row: dict[str, Any], side: str) -> str:
    """Write an item's label and p in one run, with its interval."""
    p, low, high = (row[f"{name}_{side}"] for name in ("p", "p_low", "p_high"))
    between = "" if low is None or high is None else f" ({low:.2f}–{high:.2f})"
    return f"{row[f'label_{side}']}, {p:.2f}{between}"


def percent(value: float | None) -> str:
    """Write a share in percent.

    Examples
    --------
    >>> percent(0.1234), percent(None)
    ('12.3', '–')
    """
    return NOTHING if value is None else f"{round(100 * value, 1) + 0.0:.1f}"


def number(value: float | None, *, sign: bool = False) -> str:
    """Write a number to three places, without the 0 before the point.

    Examples
    --------
    >>> number(0.0584, sign=True), number(-0.02), number(1.0), number(None)
    ('+.058', '-.020', '1.000', '–')
    """
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    # Not "-.000": what rounds to nothing has no sign.
    rounded = round(value, 3) + 0.0
    return f"{rounded:{'+' if sign else ''}.3f}".replace("0.", ".", 1) if abs(rounded) < 1 else f"{rounded:.3f}"
