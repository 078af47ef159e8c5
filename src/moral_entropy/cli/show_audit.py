"""A finished audit → the screen: what was read, a row per question, the rules; last the verdict.

The rules are shown pooled over everything; all figures, by question and domain, are in `audit.parquet`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Any

from moral_entropy.cli.screen import plain_table, print_parts
from moral_entropy.cli.show_verdict import WIDTH, checked_lines, verdict_lines
from moral_entropy.consensus.entropy import CURES, parts_note, shown_parts
from moral_entropy.markup import NOTHING
from moral_entropy.names import ALL
from moral_entropy.runs.notes import model_notes
from moral_entropy.runs.run import Run

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

COLUMNS = ("question", "items", "label", "share", "entropy")
METRICS = ("fpr", "fnr", "fdr", "for")
OUTSIDE = "*"
REPORT = "report.html"


def print_run(run: Run) -> None:
    """Print what was read, a row per fit, and the audit of rules."""
    print_parts(_run_parts(run))


def print_answer(run: Run) -> None:
    """Print the last screen: the verdict, its figures, what checks found, the best simple rule, where the files are."""
    advice = fill(run.manifest["advice"], WIDTH)
    print_parts(["", *verdict_lines(run), *_checks(run), "", advice, "", *_files(run)])


def _checks(run: Run) -> Iterator[str | Table]:
    if run.verdict.checked_by == "spot check":
        yield ""
        yield from checked_lines(run)


def _files(run: Run) -> Iterator[str]:
    if run.path is not None:
        files = sorted(path.name for path in run.path.iterdir())
        seconds = sum(run.manifest["seconds"].values())
        open_first = f"open {run.path / REPORT}; " if REPORT in files else ""
        yield f"{open_first}{len(files)} files in {run.path}  ({seconds:.1f} s)"


def _run_parts(run: Run) -> Iterator[str | Table]:
    manifest = run.manifest
    yield from reading_lines(manifest)
    yield ""
    yield from entropy_parts(run)
    yield from model_notes(manifest)
    yield ""
    yield from rule_lines(run)
    if "groups" in manifest:
        yield ""
        yield from group_lines(manifest["groups"])


def group_lines(facts: dict[str, Any]) -> Iterator[str]:
    """Say what was found about groups of annotators."""
    yield "Groups of annotators"
    for text in (*facts["notes"], *facts["sentences"]):
        yield from wrap(f"{text[:1].upper()}{text[1:]}", WIDTH, initial_indent="  ", subsequent_indent="    ")


def entropy_parts(run: Run) -> Iterator[str | Table]:
    """Return a row per fit, and what its columns mean."""
    fits = run.manifest["questions"]
    # What is the same in every row is not worth a column: 80 characters are few.
    parts = shown_parts(run.model) if any(_nats(fit["doubt_votes"]) != NOTHING for fit in fits) else {}
    fitted = () if all(fit["converged"] for fit in fits) else ("converged",)
    heads = (*COLUMNS, *parts.values(), "uncertain", *fitted)
    yield plain_table(heads, [_cells(fit, parts)[: len(heads)] for fit in fits], n_words=1)
    yield "entropy in nats (0.693 is a coin toss); uncertain: above half its maximum"
    if not parts:
        return
    yield f"entropy = {' + '.join(parts.values())}"
    yield from (f"  {name}: {CURES[part]}" for part, name in parts.items())
    yield from wrap(parts_note(run.model), 80)


def reading_lines(manifest: dict[str, Any]) -> list[str]:
    """Say what was read, what was guessed and what was left out."""
    who = "without annotators" if manifest["anonymous"] else f"by {_many(manifest['annotators'], 'annotator')}"
    lines = [
        f"{manifest['input']['source']}: {_many(manifest['rows'], 'row')}, {_many(manifest['votes'], 'vote')} {who} "
        f"on {_many(manifest['items'], 'item')}"
    ]
    lines += _column_lines(manifest["columns"], set(manifest["guessed"]))
    lines += [f"  note: {note}" for note in manifest["notes"]]
    if manifest["dropped"]:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in manifest["dropped"].items())
        lines.append(f"  left out: {reasons}")
    if manifest["items_without_votes"]:
        lines.append(f"  without a vote: {_many(manifest['items_without_votes'], 'item')}, kept with the prevalence")
    return lines


def _column_lines(columns: dict[str, str], guessed: set[str]) -> list[str]:
    def listed(roles: list[str]) -> str:
        return ", ".join(role if columns[role] == role else f"{role} = {columns[role]}" for role in roles)

    kinds = {
        "columns guessed": [role for role in columns if role in guessed],
        "columns": [role for role in columns if role not in guessed],
    }
    return [f"  {kind}: {listed(roles)}" for kind, roles in kinds.items() if roles]


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _cells(fit: dict[str, Any], parts: Iterable[str]) -> tuple[str, ...]:
    # The positive label of two, the commonest of more.
    shares: dict[str, float] = fit["prevalence"]
    label = fit["positive"] or max(shares, key=shares.__getitem__)
    return (
        f"{fit['question']} / {fit['part']}" if fit["part"] else fit["question"],
        f"{fit['items_counted']:,.0f}",
        label,
        f"{shares[label]:.1%}",
        *(_nats(fit[name]) for name in ("entropy", *parts)),
        f"{fit['uncertain']:.1%}",
        "yes" if fit["converged"] else "NO",
    )


def _nats(value: float | None) -> str:
    return NOTHING if value is None or value != value else f"{value:z.3f}"


def rule_lines(run: Run) -> list[str | Table]:
    """Return a table per reference, a note where one is due, and the advice."""
    lines: list[str | Table] = []
    rules, outside = run.rules, False
    for reference, what in (("consensus", "the consensus"), ("gold", "gold labels")):
        pooled = rules.filter(question=ALL, domain=ALL, label=ALL, reference=reference)
        if not pooled.is_empty():
            lines.append(f"rules against {what}, all questions and domains pooled, % (and {run.interval:.0%} interval)")
            table, marked = _rule_table(pooled)
            outside |= marked
            lines += [table, ""]
    if outside:
        lines.append(
            f"{OUTSIDE} outside its interval: on thin votes the label of the mean p is not the one most draws give"
        )
    lines += _silent_rules(run)
    lines.append("fpr: of the true no, called yes; fnr: of the true yes, called no; fdr: of the rule's yes, truly no;")
    lines.append("for: of the rule's no, truly yes")
    return lines


def _silent_rules(run: Run) -> list[str]:
    """Say which rules give no answer, and on how many items (questions added up)."""
    counts = run.table("audit_rules").select("rule", "abstained").group_by("rule", maintain_order=True).sum()
    said = [f"{rule} {count:,}" for rule, count in counts.iter_rows() if count]
    return [f"no answer on items without votes or labels: {', '.join(said)}"] if said else []


def _rule_table(pooled: pl.DataFrame) -> tuple[Table, bool]:
    """Return a row per rule, and whether any figure lies outside its interval."""
    rows = []
    for rule in pooled["rule"].unique(maintain_order=True):
        figures = {row["metric"]: row for row in pooled.filter(rule=rule).iter_rows(named=True)}
        rows.append([rule, *(_percent(figures.get(metric)) for metric in METRICS)])
    return plain_table(("rule", *METRICS), rows, n_words=1), any(OUTSIDE in cell for row in rows for cell in row[1:])


def _percent(row: dict[str, Any] | None) -> str:
    if row is None or row["value"] is None:
        return NOTHING
    value, low, high = row["value"], row["low"], row["high"]
    if low is None or high is None:
        return f"{value:z.1%}".rstrip("%")
    mark = OUTSIDE if not low - 5e-4 <= value <= high + 5e-4 else ""
    return f"{100 * value:z.1f}{mark} ({100 * low:z.0f}–{100 * high:z.0f})"
