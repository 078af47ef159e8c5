"""Ctrl-C and SIGTERM end a command from wherever it is, and leave nothing half-written.

`main` calls `begin_listening`; signals then raise `Stopped`. Libraries may catch it: a timer raises it again until it
gets through. A thread ends the process directly if nothing helps, as in C code that does not come back. Files that are
`unfinished` are removed in any case.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

AGAIN, AT_LAST = 3.0, 10
"""Seconds after which `Stopped` is raised again, if something caught it; after how many such the process is ended."""

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
STATE: dict[str, Any] = {"received": None, "held": 0, "listening": False}
"""The first signal received, and whether `Stopped` may be raised: signals belong to the process."""

_UNFINISHED: set[Path] = set()


class Stopped(BaseException):
    """A signal asks the program to end. No `Exception` and no `KeyboardInterrupt`, so that few libraries catch it."""


def begin_listening() -> None:
    """Turn signals into `Stopped` from now on; only the main thread can."""
    STATE.update(received=None, held=0, listening=True)
    if threading.current_thread() is threading.main_thread():
        if sys.platform != "win32":
            reader, writer = os.pipe()
            os.set_blocking(writer, False)
            STATE["waked"] = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
            threading.Thread(target=_watch, args=(reader,), daemon=True).start()
        for number in (*SIGNALS, *([signal.SIGALRM] if hasattr(signal, "SIGALRM") else [])):
            # nohup has the closing of a terminal ignored.
            if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGINT:
                signal.signal(number, _receive)
        hook = sys.unraisablehook
        sys.unraisablehook = lambda error: None if issubclass(error.exc_type, Stopped) else hook(error)


def end_listening() -> int | None:
    """Ignore further signals and return the exit code of the one that came; None where none did."""
    STATE["listening"] = False
    return None if STATE["received"] is None else 128 + STATE["received"]


def restore_signals(*, program_ends: bool) -> None:
    """Let signals do again what they do in any Python program; at the end of one, end it at once."""
    if threading.current_thread() is threading.main_thread():
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        if "waked" in STATE:
            os.close(signal.set_wakeup_fd(STATE.pop("waked")))
        sys.unraisablehook = sys.__unraisablehook__
        signal.signal(signal.SIGINT, signal.SIG_DFL if program_ends else signal.default_int_handler)
        for number in SIGNALS[1:]:
            if signal.getsignal(number) is _receive:
                signal.signal(number, signal.SIG_DFL)


def _receive(number: int, _frame: FrameType | None) -> None:
    if number in SIGNALS:
        STATE["received"] = STATE["received"] or number
    if STATE["received"] is None or not STATE["listening"] or STATE["held"]:
        return
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
    raise Stopped


def _watch(reader: int) -> None:
    """End the process some time after the first signal, if it is still there: Python may never get to `_receive`."""
    number, deadline = 0, float("inf")
    # The timer's own signals come in between: what counts is the time since the first.
    while time.monotonic() < deadline:
        if not select.select([reader], [], [], AGAIN if number else None)[0]:
            continue
        numbers = os.read(reader, 1)
        if not numbers:
            # The command has ended.
            os.close(reader)
            return
        if numbers[0] in SIGNALS and not number:
            number, deadline = numbers[0], time.monotonic() + AGAIN * AT_LAST
    while STATE["held"]:
        time.sleep(AGAIN)
    clear_unfinished()
    os._exit(128 + number)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay signals until the block ends: for steps of which either all are taken or none."""
    STATE["held"] += 1
    try:
        yield
    finally:
        STATE["held"] -= 1
    if STATE["received"] is not None:
        _receive(STATE["received"], None)


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
    """Remove what is still unfinished, because its own removal was interrupted or a thread still writes there."""
    for path in list(_UNFINISHED):
        for _ in range(20):
            _remove(path)
            if not path.exists():
                break
            time.sleep(0.05)
        _UNFINISHED.discard(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
