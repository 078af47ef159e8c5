"""Cases run one after the other in a process of their own, which is ended when a case hangs or takes too much memory.

What a case found is appended to a file as soon as it is known, so that a study that was stopped goes on from there.
Only processes that were started here are ended.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

STARTED_WITHIN = 900.0

Case = Callable[[int, int, Path], "Outcome"]
"""Runs the case of a number and a seed in a folder that is empty."""


@dataclass(frozen=True)
class Outcome:
    """How a case ended.

    Parameters
    ----------
    what
        The case in a few words, enough to make it again.
    end
        One word: how it ended.
    wrong
        What was wrong; empty if nothing was.
    case, seconds, processor
        Its number, how long it took, and how much processor time of it, its processes included; filled in by whoever
        runs the case.
    """

    what: str
    end: str
    wrong: str = ""
    case: int = -1
    seconds: float = 0.0
    processor: float = 0.0


@dataclass(frozen=True)
class Limits:
    """What a case may take: seconds, and bytes of memory beyond which it is ended."""

    seconds: float = 60.0
    bytes: int = 2_500_000_000


@dataclass
class Runner:
    """Runs cases in child processes, and starts a new one when a case had to be ended.

    Parameters
    ----------
    case
        A function of a module, as child processes must find it.
    seed
        Of all cases.
    limits
        What each may take.
    """

    case: Case
    seed: int
    limits: Limits = field(default_factory=Limits)
    process: BaseProcess | None = None
    pipe: Connection | None = None

    def run(self, number: int) -> Outcome:
        """Run one case and wait for it, but not for longer than it may take."""
        if self.process is None or self.pipe is None or not self.process.is_alive():
            self._start()
        assert self.pipe is not None
        begun = time.monotonic()
        self.pipe.send(number)
        found = self._wait(begun)
        return replace(found, case=number, seconds=round(time.monotonic() - begun, 3))

    def _start(self) -> None:
        # Not fork: threads of libraries would be lost in the child.
        context = multiprocessing.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=_work, args=(self.case, self.seed, there), daemon=True)
        self.process.start()
        there.close()
        # Imports, compiling and what all cases share take their time, and are no part of a case.
        if self.pipe.poll(STARTED_WITHIN):
            self.pipe.recv()

    def _wait(self, begun: float) -> Outcome:
        assert self.pipe is not None and self.process is not None
        what = ""
        while True:
            with suppress(EOFError, OSError):
                while self.pipe.poll(0.2):
                    message = self.pipe.recv()
                    if isinstance(message, Outcome):
                        return message
                    what = message
            if not self.process.is_alive():
                return Outcome(what, "died", f"the process died with code {self.process.exitcode}")
            if time.monotonic() - begun > self.limits.seconds:
                return self._ended(what, "hung", f"no end after {self.limits.seconds:g} s")
            if _memory(self.process.pid) > self.limits.bytes:
                return self._ended(what, "too large", f"more than {self.limits.bytes:,} bytes of memory")

    def _ended(self, what: str, end: str, wrong: str) -> Outcome:
        self.close()
        return Outcome(what, end, wrong)

    def close(self) -> None:
        """End the child process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
        self.process = None


def _memory(process: int | None) -> int:
    with suppress(OSError, IndexError, ValueError):
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def _work(case: Case, seed: int, pipe: Connection) -> None:
    sys.modules[case.__module__].__dict__.get("warm_up", int)()
    pipe.send("ready")
    while True:
        try:
            number = pipe.recv()
        except EOFError:
            return
        with TemporaryDirectory(prefix="fuzz-") as folder:
            pipe.send(f"case {number}")
            begun = _processor_time()
            try:
                found = case(number, seed, Path(folder))
            except Exception as error:
                found = Outcome(f"case {number}", "broke", "".join(traceback.format_exception(error))[-1500:])
            pipe.send(replace(found, processor=round(_processor_time() - begun, 3)))


def _processor_time() -> float:
    """Return the seconds of processor time of this process and of those it has started and waited for."""
    return sum(os.times()[:4])


@dataclass(frozen=True)
class Plan:
    """How many cases to run, in how much time, and where what they found is kept.

    Parameters
    ----------
    count
        How many cases there shall be, with those of earlier runs.
    minutes
        After this time no case is begun.
    jobs
        How many run at a time.
    seed
        Of all cases.
    kept
        File to which every outcome is appended.
    """

    count: int
    minutes: float
    jobs: int
    seed: int
    kept: Path

    def known(self) -> list[Outcome]:
        """Read what earlier runs with the same seed found."""
        if not self.kept.exists():
            return []
        rows = [json.loads(line) for line in self.kept.read_text(encoding="utf-8").splitlines()]
        return [Outcome(**{k: v for k, v in row.items() if k != "seed"}) for row in rows if row["seed"] == self.seed]


def run_cases(
    case: Case, plan: Plan, limits: Limits, *, say: Callable[[str], Any] = print, every: int = 500
) -> list[Outcome]:
    """Run the cases of a plan that are not known yet, and return the outcomes of all."""
    found = {outcome.case: outcome for outcome in plan.known()}
    left = [number for number in range(plan.count) if number not in found]
    end, lock, begun = time.monotonic() + 60 * plan.minutes, Lock(), time.monotonic()
    plan.kept.parent.mkdir(parents=True, exist_ok=True)

    def work(numbers: Sequence[int]) -> None:
        runner = Runner(case, plan.seed, limits)
        try:
            for outcome in _run_until(runner, numbers, end):
                with lock:
                    found[outcome.case] = outcome
                    _append(plan, outcome)
                    if outcome.wrong:
                        say(f"WRONG {outcome}")
                    if len(found) % every == 0:
                        say(f"{len(found):,} of {plan.count:,} cases, {time.monotonic() - begun:.0f} s")
        finally:
            runner.close()

    with ThreadPoolExecutor(plan.jobs) as pool:
        list(pool.map(work, [left[n :: plan.jobs] for n in range(plan.jobs)]))
    return [found[number] for number in sorted(found) if number < plan.count]


def _run_until(runner: Runner, numbers: Sequence[int], end: float) -> Iterator[Outcome]:
    for number in numbers:
        if time.monotonic() > end:
            return
        yield runner.run(number)


def _append(plan: Plan, outcome: Outcome) -> None:
    with plan.kept.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"seed": plan.seed, **asdict(outcome)}, ensure_ascii=False) + "\n")
