"""What every benchmark shares: a measurement and its bar, a clock, the machine.

Nothing here knows what is being measured.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("numpy", "scipy", "numba", "polars", "torch")


@dataclass(frozen=True)
class Measurement:
    """One line of the table.

    Parameters
    ----------
    what
        What was measured, on which data.
    value
        The figure; None where it could not be taken, and `how` says why.
    unit
        "×", "s", "ns/vote", "nats", "%", "GB".
    at_least, at_most
        The bar, if there is one.
    how
        What went into the figure, in a sentence.
    """

    what: str
    value: float | None
    unit: str
    how: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the bar was met; None without a bar or without a figure."""
        if self.value is None or (self.at_least is None and self.at_most is None):
            return None
        low = -float("inf") if self.at_least is None else self.at_least
        high = float("inf") if self.at_most is None else self.at_most
        return low <= self.value <= high

    def as_dict(self) -> dict[str, Any]:
        """Give the measurement as JSON can hold it, to four digits: more would be noise."""
        value = None if self.value is None else float(f"{self.value:.4g}")
        return {**vars(self), "value": value, "met": self.met}


def say(text: str) -> None:
    """Tell whoever waits what is going on."""
    print(f"  {text}", file=sys.stderr, flush=True)


def seconds(work: Callable[[], object]) -> float:
    """Give the seconds some work takes, once."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def median_seconds(work: Callable[[], object], *, repeats: int) -> float:
    """Give the median over several times, after one that does not count."""
    work()
    return statistics.median(seconds(work) for _ in range(repeats))


@dataclass(frozen=True)
class ChildRun:
    """How a program of its own fared; `processor` is the time that cores worked for it and for what it started."""

    seconds: float
    peak_gb: float
    processor: float


def run_child(command: Sequence[str]) -> ChildRun:
    """Run a program to its end, and give its time and peak memory; complain where it fails."""
    with tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        # The system's own account of this one child. It never shows less than we hold ourselves, which is little.
        _, status, usage = os.wait4(child.pid, 0)
        took = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            errors.seek(0)
            raise RuntimeError(f"a command ended with {child.returncode}: {errors.read().strip()[-2_000:]}")
    return ChildRun(took, usage.ru_maxrss / 1e6, usage.ru_utime + usage.ru_stime)


def cli(*arguments: str) -> list[str]:
    """Give the command line of moral-entropy in this Python."""
    return [sys.executable, "-m", "moral_entropy", *arguments]


def machine() -> dict[str, Any]:
    """Describe the machine by what matters for speed; its name and folders do not."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory_gb, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def commit() -> str:
    """Give the commit that was measured, with a plus when the tree had changes on top of it."""
    head = _git("rev-parse", "--short=12", "HEAD")
    changed = _git("status", "--porcelain", "--", "src")
    return f"{head or 'unknown'}{'+' if changed else ''}"


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
