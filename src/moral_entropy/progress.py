"""Progress bars, shown only where standard error is a terminal, so that piped output stays clean; seconds by stage."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Advance = Callable[[float], None]
"""Called with the share done so far, between 0 and 1."""

Progress = Callable[[str, float], None]
"""Called with the name of a stage and the share of it done."""


def ignore(_share: float) -> None:
    """Ignore a share of progress."""


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


def silent(_stage: str, _share: float) -> None:
    """Ignore the progress of a stage."""


def share_of_progress(progress: Progress | None, n: int, of: int) -> Progress:
    """Return the callback for the n-th of several runs of a stage; it reports the share of all of them."""

    def advance(stage: str, share: float) -> None:
        if progress is not None:
            progress(stage, (n + share) / of)

    return advance


@contextmanager
def bar(title: str, *, visible: bool | None = None) -> Iterator[Advance]:
    """Show a bar while the block runs; yields the function that moves it. Parameters are those of `named_bar`.

    Examples
    --------
    >>> with bar("reading", visible=False) as advance:
    ...     advance(0.5)
    """
    with named_bar(title, visible=visible) as (advance, _):
        yield advance


@contextmanager
def named_bar(title: str, *, visible: bool | None = None) -> Iterator[tuple[Advance, Callable[[str], None]]]:
    """Show a bar while the block runs; yields a function that moves it and one that renames it.

    Parameters
    ----------
    title
        What is being done, in a word or two.
    visible
        Force the bar on or off; by default it follows whether standard error is a terminal.
    """
    if not (sys.stderr.isatty() if visible is None else visible):
        yield ignore, lambda _name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:>12}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=1.0)

        def advance(share: float) -> None:
            progress.update(task, completed=share)

        yield advance, lambda name: progress.update(task, description=name)


@dataclass
class Stopwatch:
    """Seconds by stage, in the order the stages began."""

    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def rounded(self) -> dict[str, float]:
        """Seconds to the millisecond, as the manifest has them."""
        return {stage: round(spent, 3) for stage, spent in self.seconds.items()}

    @contextmanager
    def timing(self, stage: str) -> Iterator[None]:
        """Add the seconds the block takes to a stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start
