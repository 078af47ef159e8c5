"""Does a cluster that keeps losing workers ever give a wrong answer? Audits, one after the other, while workers die.

A scheduler and a few workers run on this machine. Tables of votes are audited on them again and again; at random times
a worker is killed, without goodbye, and a new one started. Every run folder is compared with that of one machine. The
study ends by itself: after the time asked for no audit is begun, and an alarm ends one that hangs. It ends only
processes that it started.

Usage: cluster_soak.py [--minutes 10] [--workers 3] [--every 6] [--seed 0] [--dry]. Writes the table of
docs/evidence/scale.md; with --dry only prints.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from page import put

import moral_entropy
from moral_entropy.cluster.workers import DaskWorkers, connected
from moral_entropy.consensus.options import FitOptions
from moral_entropy.errors import ClusterError
from moral_entropy.pipeline.audit import audit
from moral_entropy.pipeline.options import AuditOptions

PAGE = Path(__file__).resolve().parents[1] / "docs" / "evidence" / "scale.md"
OPTIONS = AuditOptions(fit=FitOptions(draws=100), report=False)
STARTED_WITHIN = 60.0
SAME = 1e-8
"""Largest difference of any figure of any table that counts as the same answer; text and counts must be equal."""


class Processes:
    """A scheduler and workers as processes of their own, each ended by its id.

    Parameters
    ----------
    folder
        Where their logs and temporary files go.
    lifetime
        Seconds after which workers end by themselves, should this process be killed before it can end them.
    """

    def __init__(self, folder: Path, lifetime: float = 300.0) -> None:
        self.folder, self.lifetime = folder, lifetime
        self.file = folder / "scheduler.json"
        where = ("--host", "127.0.0.1", "--no-dashboard")
        self.scheduler = self._start("dask_scheduler", *where, "--port", "0", "--scheduler-file", str(self.file))
        self.workers: list[subprocess.Popen[bytes]] = []
        self.address = self._address()

    def add_worker(self) -> None:
        """Start a worker with one thread, and without anybody to start it anew."""
        where = ("--host", "127.0.0.1", "--no-dashboard", "--local-directory", str(self.folder))
        alone = ("--no-nanny", "--nthreads", "1", "--lifetime", f"{self.lifetime:.0f} seconds")
        self.workers.append(self._start("dask_worker", self.address, *where, *alone))

    def kill_worker(self, at: int = 0) -> None:
        """Kill a worker: no goodbye, no clearing up."""
        _end(self.workers.pop(at))

    def kill_scheduler(self) -> None:
        """Kill the scheduler."""
        _end(self.scheduler)

    def end(self) -> None:
        """End all that is left."""
        for process in [*self.workers, self.scheduler]:
            _end(process)

    def _start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments]
        # One thread each for linear algebra: workers share the cores there are.
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
        with (self.folder / f"{module}-{time.monotonic_ns()}.log").open("wb") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **single}, cwd=self.folder
            )

    def _address(self) -> str:
        deadline = time.monotonic() + STARTED_WITHIN
        while time.monotonic() < deadline:
            try:
                return str(json.loads(self.file.read_text())["address"])
            except (FileNotFoundError, json.JSONDecodeError):
                time.sleep(0.05)
        self.end()
        msg = f"no scheduler within {STARTED_WITHIN:.0f} s; see the logs in {self.folder}"
        raise TimeoutError(msg)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait(timeout=20)


@contextmanager
def running(folder: Path, n_workers: int = 2, lifetime: float = 300.0) -> Iterator[Processes]:
    """Run a scheduler and some workers for as long as the block lasts."""
    processes = Processes(folder, lifetime)
    try:
        for _ in range(n_workers):
            processes.add_worker()
        yield processes
    finally:
        processes.end()


@dataclass
class Fate(threading.Thread):
    """Kills a random worker at random times, and starts another in its place, until it is told to stop."""

    processes: Processes
    every: float
    rng: np.random.Generator
    kills: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Make it a thread that does not keep the process alive."""
        super().__init__(daemon=True)

    def __hash__(self) -> int:
        """Tell threads apart, as `threading` needs to."""
        return id(self)

    def run(self) -> None:
        """Kill, replace, wait."""
        while not self.over.wait(self.rng.exponential(self.every)):
            self.processes.add_worker()
            self.processes.kill_worker(int(self.rng.integers(len(self.processes.workers) - 1)))
            self.kills += 1


@dataclass(frozen=True)
class Round:
    """One audit: on which table, how long it took, how many workers died meanwhile, and how it ended.

    Parameters
    ----------
    table
        Name of the table.
    seconds
        How long it took.
    kills
        Workers killed meanwhile.
    gap
        Largest difference of a figure; infinite where text or counts differ; NaN where the audit gave up.
    error
        The error of an audit that gave up.
    """

    table: str
    seconds: float
    kills: int
    gap: float
    error: str = ""


def vote_table(n_items: int, n_annotators: int, labels: Sequence[str], seed: int) -> pl.DataFrame:
    """Draw votes of a team that is right seven times in ten, rows in no order."""
    rng = np.random.default_rng(seed)
    truth_i = rng.integers(len(labels), size=n_items)
    voter_iv = rng.random((n_items, n_annotators)).argsort(axis=1)[:, :4]
    right_iv = rng.random(voter_iv.shape) < 0.7
    label_iv = np.where(right_iv, truth_i[:, None], rng.integers(len(labels), size=voter_iv.shape))
    item_v = np.repeat(np.arange(n_items), 4)
    columns = {
        "item": [f"item {item}" for item in item_v],
        "annotator": [f"annotator {a}" for a in voter_iv.ravel()],
        "label": [labels[k] for k in label_iv.ravel()],
        "domain": [("north", "south")[item % 2] for item in item_v],
        "gold": [labels[truth_i[item]] if item % 10 == 0 else None for item in item_v],
    }
    return pl.DataFrame(columns).sample(fraction=1.0, shuffle=True, seed=seed)


TABLES = {
    "two labels": lambda: vote_table(12_000, 40, ("no", "yes"), seed=1),
    "three labels": lambda: vote_table(6_000, 15, ("anger", "joy", "none"), seed=2),
    "many annotators": lambda: vote_table(10_000, 300, ("no", "yes"), seed=3),
}


def largest_gap(one: Path, many: Path) -> float:
    """Give the largest difference between two run folders; infinite where anything but a figure differs."""
    names = {path.name for path in one.glob("*.parquet")}
    if names != {path.name for path in many.glob("*.parquet")}:
        return np.inf
    gaps = [table_gap(pl.read_parquet(one / name), pl.read_parquet(many / name)) for name in names]
    return max(gaps, default=np.inf)


def table_gap(expected: pl.DataFrame, found: pl.DataFrame) -> float:
    """Give the largest difference between the figures of two tables; infinite where anything else differs."""
    if expected.schema != found.schema or expected.height != found.height:
        return np.inf
    worst = 0.0
    for name in expected.columns:
        one, other = expected[name], found[name]
        if not one.dtype.is_float():
            worst = worst if one.equals(other, null_equal=True) else np.inf
        elif not one.is_null().equals(other.is_null()):
            worst = np.inf
        else:
            gap = (one - other).fill_nan(0.0).abs().max()
            worst = max(worst, float(gap or 0.0))  # type: ignore[arg-type]
    return worst


def soak(home: Path, *, minutes: float, n_workers: int, every: float, seed: int) -> list[Round]:
    """Audit tables on a cluster for a while, workers dying all the time; give what happened."""
    sources = {name: _prepared(home, name) for name in TABLES}
    (home / "processes").mkdir()
    rounds: list[Round] = []
    with (
        running(home / "processes", n_workers, lifetime=60 * minutes + 600) as processes,
        connected(processes.address) as workers,
    ):
        deadline = time.monotonic() + 60 * minutes
        fate = Fate(processes, every, np.random.default_rng(seed))
        fate.start()
        try:
            while time.monotonic() < deadline:
                name = list(TABLES)[len(rounds) % len(TABLES)]
                rounds.append(_one_round(workers, fate, name, *sources[name], home / f"round-{len(rounds)}"))
                print(f"  {rounds[-1]}", file=sys.stderr, flush=True)
        finally:
            # Before the processes end, lest it starts one that nobody would end.
            fate.over.set()
            fate.join(timeout=30)
    return rounds


def _prepared(home: Path, name: str) -> tuple[str, Path]:
    """Write a table in parts, and audit it on this machine alone."""
    folder = home / name.replace(" ", "-")
    folder.mkdir()
    frame = TABLES[name]()
    for n in range(4):
        rows = -(-frame.height // 4)
        frame.slice(n * rows, rows).write_parquet(folder / f"part-{n}.parquet")
    source = str(folder / "part-*.parquet")
    audit(source, folder / "one", OPTIONS)
    return source, folder / "one"


def _one_round(workers: DaskWorkers, fate: Fate, name: str, source: str, one: Path, out: Path) -> Round:
    began, kills = time.monotonic(), fate.kills
    gap, error = np.nan, ""
    try:
        audit(source, out, OPTIONS, workers=workers, part_rows=5_000)
        gap = largest_gap(one, out)
    except ClusterError as gave_up:
        error = str(gave_up)
    return Round(name, time.monotonic() - began, fate.kills - kills, gap, error)


def as_text(rounds: Sequence[Round], *, n_workers: int, every: float, seed: int) -> str:
    """Give what happened as a table in Markdown, and in a sentence."""
    lines = [
        "| table | audits | workers killed | same answer | gave up | wrong | largest difference | seconds per audit |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in [*TABLES, "all"]:
        some = [one for one in rounds if name in (one.table, "all")]
        ended = [one.gap for one in some if not one.error]
        wrong = sum(gap > SAME for gap in ended)
        largest = f"{max(ended):.1e}" if ended else "–"
        middle = f"{np.median([one.seconds for one in some]):.1f}" if some else "–"
        lines.append(
            f"| {name} | {len(some)} | {sum(one.kills for one in some)} | {len(ended) - wrong} | "
            f"{len(some) - len(ended)} | {wrong} | {largest} | {middle} |"
        )
    minutes = sum(one.seconds for one in rounds) / 60
    facts = (
        f"moral-entropy {moral_entropy.__version__}; {minutes:.1f} minutes of audits on {n_workers} workers of one "
        f"thread, {os.cpu_count()} cores; a worker killed every {every:g} s on average and replaced, seed {seed}. "
        f"The same answer: text and counts of all tables equal, figures within {SAME:g}."
    )
    return "\n".join([facts, "", *lines])


def with_table(page: str, text: str) -> str:
    """Put text between the markers of the page."""
    return put(page, "soak", "studies/cluster_soak.py", text)


def main() -> None:
    """Run the study and write its page; exit with 1 if an answer was wrong or an audit gave up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long audits are begun")
    parser.add_argument("--workers", type=int, default=3, help="workers at any time")
    parser.add_argument("--every", type=float, default=6.0, help="mean seconds between two deaths")
    parser.add_argument("--seed", type=int, default=0, help="of who dies when")
    parser.add_argument("--dry", action="store_true", help="print the table and leave the page alone")
    asked = parser.parse_args()
    # Whatever hangs, this ends: the default of the alarm is to end the process, and workers have a lifetime.
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(int(60 * asked.minutes) + 300)
    settings = {"n_workers": asked.workers, "every": asked.every, "seed": asked.seed}
    with tempfile.TemporaryDirectory() as home:
        rounds = soak(Path(home), minutes=asked.minutes, **settings)
    text = as_text(rounds, **settings)
    print(text)
    if not asked.dry:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
    sys.exit(int(any(one.error or one.gap > SAME for one in rounds)))


def _too_long(_signal: int, _frame: object) -> None:
    msg = "the soak took five minutes longer than it should"
    raise TimeoutError(msg)


if __name__ == "__main__":
    main()
