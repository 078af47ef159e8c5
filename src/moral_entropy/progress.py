"""Progress bars, shown only where standard error is a terminal, so that piped output stays clean; seconds by stage."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

Advance = Callable[[float], None]
"""Called with the share done so far, between 0 and 1."""

Progress = Callable[[str, float], None]
"""Called with the name of a stage and the share of it done."""


def silent(*_progress: object) -> None:
    """Ignore progress."""


ignore = silent


def share_of(advance: Advance, n: int, of: int) -> Advance:
    """Return the callback for the n-th of several equal steps, counted from 0; it reports the share of all of them.

    Examples
    --------
    >>> shares = []
    >>> share_of(shares.append, 1, 4)(0.5)
    >>> shares
    [0.375]
    """
    return lambda share: advance((n + share) / of)


def share_of_progress(progress: Progress | None, n: int, of: int) -> Progress:
    """Return the callback for the n-th of several runs of a stage; it reports the share of all of them."""
    return lambda stage, share: (progress or silent)(stage, (n + share) / of)


class Bars:
    """One bar per stage on standard error, on a terminal only; the value is called with stage and share."""

    def __init__(self, *, hidden: bool = False) -> None:
        self._shown = sys.stderr.isatty() and not hidden
        self._tasks: dict[str, TaskID] = {}
        self._progress: RichProgress | None = None

    def __enter__(self) -> Bars:
        """Begin to show bars."""
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description:>12}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
            bars = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
            self._progress = bars.__enter__()
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


class Stopwatch:
    """Seconds by stage, to the millisecond, in the order the stages began."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def timing(self, stage: str) -> Iterator[None]:
        """Add the seconds the block takes to a stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = round(self.seconds.get(stage, 0.0) + time.perf_counter() - start, 3)
