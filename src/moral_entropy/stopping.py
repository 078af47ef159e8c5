"""Ctrl-C and SIGTERM end a command from wherever it is, and leave nothing half-written.

`Listener` turns both signals into the exception `Stopped`. Libraries may catch it: it is raised again until it gets
through, and at last the process is ended directly. Files that are `unfinished` are removed in any case.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

AGAIN = 3.0
"""Seconds after which `Stopped` is raised again, if something caught it."""

SOON = 0.01
"""Seconds by which `Stopped` is put off where the signal comes while Polars runs Python code of its own."""

AT_LAST = 10
"""How often it is raised before the process is ended directly."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """A signal asks the program to end. No `Exception` and no `KeyboardInterrupt`, so that few libraries catch it."""


class Listener:
    """Receives signals, and raises `Stopped` for them.

    Parameters
    ----------
    received
        The first signal that asked the program to end; None so far.
    raising
        Whether signals raise `Stopped`; otherwise they are only noted.
    over
        Whether all is done, so that a signal may end the process at once.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self.raising = False
        self.over = False
        self.held = 0
        self.raised = 0
        self._before: dict[int, Any] = {}
        self._hook = sys.unraisablehook

    def begin(self) -> None:
        """Receive signals from now on; only possible in the main thread."""
        self.received, self.raised, self.held, self.over, self.raising = None, 0, 0, False, True
        if threading.current_thread() is threading.main_thread():
            self._hook, sys.unraisablehook = sys.unraisablehook, self._say_nothing
            self._before = {number: signal.getsignal(number) for number in SIGNALS}
            for number in SIGNALS:
                signal.signal(number, self._receive)

    def end(self, *, for_good: bool) -> None:
        """Restore the earlier signal handlers; at the end of a program signals end it at once instead."""
        self.raising = False
        if hasattr(signal, "setitimer") and self.received is not None:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        if self._before:
            sys.unraisablehook = self._hook
        self.over = for_good
        if not for_good:
            for number, handler in self._before.items():
                # None: a handler that was not installed from Python.
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        self._before = {}

    def check(self) -> None:
        """Raise `Stopped` if a signal was received while raising was not possible."""
        if self.received is not None and self.raising and not self.held:
            self._raise()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.over:
            os._exit(128 + number)
        first, self.received = self.received is None, self.received or number
        if first and frame is not None and _called_by_polars(frame) and hasattr(signal, "setitimer"):
            self._look_again(SOON)
        else:
            self.check()

    def _raise(self) -> None:
        self.raised += 1
        if self.raised > AT_LAST:
            clear_unfinished()
            os._exit(self.code)
        if hasattr(signal, "setitimer"):
            # Code that catches the exception, in a callback or while an object is deleted, gets it once more.
            self._look_again(AGAIN)
        raise Stopped

    def _look_again(self, seconds: float) -> None:
        signal.signal(signal.SIGALRM, lambda *_: self.check())
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def _say_nothing(self, unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, Stopped):
            self._hook(unraisable)

    @property
    def code(self) -> int:
        """The exit code that tells which signal ended the program."""
        return 128 + (self.received or signal.SIGINT)


def _called_by_polars(frame: FrameType) -> bool:
    """Return whether Python code of Polars runs: its Rust may have called it, and would print an exception."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "polars"


LISTENER = Listener()
"""The one listener: signals belong to the whole process."""

_UNFINISHED: set[Path] = set()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay signals until the block ends: for steps of which either all are taken or none."""
    LISTENER.held += 1
    try:
        yield
    finally:
        LISTENER.held -= 1
    LISTENER.check()


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """Remove a file or folder when the block ends, unless it was renamed by then; whatever ends the block.

    Examples
    --------
    >>> import tempfile
    >>> with unfinished(Path(tempfile.mkdtemp()) / "half.csv") as path:
    ...     _ = path.write_text("item,annot")
    >>> path.exists()
    False
    """
    _UNFINISHED.add(path)
    try:
        yield path
    finally:
        _remove(path)
        _UNFINISHED.discard(path)


def clear_unfinished() -> None:
    """Remove what is still unfinished, because its own removal was interrupted."""
    for path in list(_UNFINISHED):
        # A thread that has not been stopped yet may be writing there.
        for _ in range(20):
            _remove(path)
            if not path.exists():
                break
            time.sleep(0.05)
        _UNFINISHED.discard(path)


def _remove(path: Path) -> None:
    import shutil

    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
