"""The screen: progress bars, warnings, tables, and texts that came with the data.

Plain text where nobody watches: no colour, no bars, and nothing wider than the window but file names and warnings.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from moral_entropy.cli.main import silence_stdout
from moral_entropy.errors import harmless

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bars:
    """One bar per stage on standard error, on a terminal only; the value is called with stage and share."""

    def __init__(self, *, hidden: bool) -> None:
        self._shown = sys.stderr.isatty() and not hidden
        self._tasks: dict[str, TaskID] = {}
        self._progress: Progress | None = None

    def __enter__(self) -> Bars:
        """Begin to show bars."""
        if self._shown:
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description:>12}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
            self._progress = Progress(
                *columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True
            ).__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        """Clear the bars away."""
        if self._progress is not None:
            self._progress.stop()

    def __call__(self, stage: str, share: float) -> None:
        """Move the bar of a stage; the bars of earlier stages are full."""
        if self._progress is None:
            return
        if stage not in self._tasks:
            for task in self._tasks.values():
                self._progress.update(task, completed=1.0)
            self._tasks[stage] = self._progress.add_task(stage, total=1.0)
        self._progress.update(self._tasks[stage], completed=share)


def print_warnings(sentences: Sequence[str]) -> None:
    """Print what is in doubt about a run on standard error."""
    for sentence in sentences:
        print(f"warning: {harmless(sentence)}", file=sys.stderr)


class Screen(Console):
    """Standard output. When its reader has stopped reading, the rest goes nowhere, and the command goes on."""

    def on_broken_pipe(self) -> None:
        """Ignore broken pipes."""
        silence_stdout()


def window_width() -> int:
    """Return how many columns the window has; 80 where nobody watches."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else 80


def print_parts(parts: Iterable[str | Table]) -> None:
    """Print lines and tables; a line is never broken, and nothing in it is taken for markup."""
    console = Screen(highlight=False)
    for part in parts:
        console.print(escape(harmless(part)) if isinstance(part, str) else part, soft_wrap=isinstance(part, str))


def print_lines(*lines: str) -> None:
    """Print lines as they are."""
    try:
        print("\n".join(map(harmless, lines)), flush=True)
    except BrokenPipeError:
        silence_stdout()


def print_json(command: str, content: Mapping[str, Any]) -> None:
    """Print one JSON object: the name of the command, then its content; numbers that JSON lacks become null."""
    from json import dumps

    from moral_entropy.runs.folder import plain_facts

    record = {"command": command, **plain_facts(content)}
    print_lines(dumps(record, indent=2, ensure_ascii=False, allow_nan=False, default=str))


def plain_table(names: Sequence[str], rows: Iterable[Sequence[str]], n_words: int | None = None) -> Table:
    """Return a table without lines: the first columns, of words, to the left, the others, of figures, to the right.

    Parameters
    ----------
    names, rows
        The header, and the cells below it.
    n_words
        How many columns are words; all when not given.
    """
    # One space between columns: with a short question the tables of an audit fit in 80.
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for n, name in enumerate(names):
        table.add_column(name, justify="left" if n_words is None or n < n_words else "right", overflow="fold")
    for row in rows:
        table.add_row(*(escape(harmless(cell)) for cell in row))
    return table


def printable(text: str, longest: int, cut: str = "...") -> str:
    r"""Return a text on one line, with everything that is not printable spelt out.

    Examples
    --------
    >>> printable("red \x1b[31m\nalert", 40)
    'red \\x1b[31m\\nalert'
    """
    short = text if len(text) <= longest else text[:longest] + cut
    line = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in short)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return line.encode(encoding, "backslashreplace").decode(encoding)
