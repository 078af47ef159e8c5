"""Progress bars, shown only where standard error is a terminal, so that piped output stays clean; seconds by stage."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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


@contextmanager
def show_progress(*, hidden: bool = False) -> Iterator[Progress]:
    """Show one bar per stage on standard error, on a terminal only; yield the callback that moves them."""
    if hidden or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Display

    columns = (TextColumn("{task.description:>12}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with Display(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as display:
        tasks: dict[str, TaskID] = {}

        def move(stage: str, share: float) -> None:
            """Move the bar of a stage; the bars of earlier stages are full."""
            if stage not in tasks:
                for task in tasks.values():
                    display.update(task, completed=1.0)
                tasks[stage] = display.add_task(stage, total=1.0)
            display.update(tasks[stage], completed=share)

        yield move


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
