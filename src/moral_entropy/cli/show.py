"""A finished run → the screen.

Plain text where nobody watches: no colour, no bars, and nothing wider than the window but file names and warnings.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from moral_entropy.cli.show_audit import audit_lines
from moral_entropy.compiled import telling
from moral_entropy.runs.notes import model_notes
from moral_entropy.runs.run import Run

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

NOTHING = "–"
REPORT = "report.html"


class Bars:
    """One bar per stage on standard error, on a terminal only; the value is called with stage and share."""

    def __init__(self, *, hidden: bool) -> None:
        self._shown = sys.stderr.isatty() and not hidden
        self._tasks: dict[str, TaskID] = {}
        self._progress: Progress | None = None
        self._open = ExitStack()

    def __enter__(self) -> Bars:
        """Begin to show bars."""
        if self._shown:
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description:>12}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
            console = Console(stderr=True)
            progress = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
            self._progress = self._open.enter_context(progress)
            self._open.enter_context(telling(console.print))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Clear the bars away."""
        self._open.close()

    def __call__(self, stage: str, share: float) -> None:
        """Move the bar of a stage; the bars of earlier stages are full."""
        if self._progress is None:
            return
        if stage not in self._tasks:
            for task in self._tasks.values():
                self._progress.update(task, completed=1.0)
            self._tasks[stage] = self._progress.add_task(stage, total=1.0)
        self._progress.update(self._tasks[stage], completed=share)


def print_run(run: Run) -> None:
    """Print what was read, a line per fit, and where the files are."""
    console, manifest = Console(highlight=False), run.manifest
    for line in reading_lines(manifest):
        console.print(escape(line), soft_wrap=True)
    console.print()
    console.print(_table(manifest["questions"]))
    console.print("entropy in nats (0.693 is a coin toss); uncertain: above half of its most", soft_wrap=True)
    for note in model_notes(manifest):
        console.print(escape(note), soft_wrap=True)
    console.print()
    for part in audit_lines(run):
        console.print(escape(part) if isinstance(part, str) else part, soft_wrap=isinstance(part, str))
    console.print()
    if run.path is not None:
        files = sorted(path.name for path in run.path.iterdir())
        seconds = sum(manifest["seconds"].values())
        open_first = f"open {run.path / REPORT}; " if REPORT in files else ""
        console.print(escape(f"{open_first}{len(files)} files in {run.path}  ({seconds:.1f} s)"), soft_wrap=True)


def print_warnings(sentences: Sequence[str]) -> None:
    """Print what is in doubt about a run on standard error."""
    for sentence in sentences:
        print(f"warning: {sentence}", file=sys.stderr)


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


def _table(fits: Sequence[dict[str, Any]]) -> Table:
    # One space between columns: with a short question the table fits in 80.
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    table.add_column("question", overflow="fold")
    for name in ("items", "label", "share", "entropy", "aleatoric", "epistemic", "uncertain", "converged"):
        table.add_column(name, justify="right", overflow="fold")
    for fit in fits:
        table.add_row(*map(escape, _cells(fit)))
    return table


def _cells(fit: dict[str, Any]) -> tuple[str, ...]:
    # The positive label of two, the commonest of more.
    shares: dict[str, float] = fit["prevalence"]
    label = fit["positive"] or max(shares, key=shares.__getitem__)
    return (
        f"{fit['question']} / {fit['part']}" if fit["part"] else fit["question"],
        f"{fit['items_counted']:,.0f}",
        label,
        f"{shares[label]:.1%}",
        *(_nats(fit[name]) for name in ("entropy", "aleatoric", "epistemic")),
        f"{fit['uncertain']:.1%}",
        "yes" if fit["converged"] else "NO",
    )


def _nats(value: float | None) -> str:
    return NOTHING if value is None or value != value else f"{value:z.3f}"
