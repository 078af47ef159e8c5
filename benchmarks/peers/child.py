"""One tool on one set of votes, in a process of its own: its time, its passes, its memory, its probabilities.

Usage: child.py TOOL SECONDS CLOCK GIGABYTES VOTES.npz OUT [VOTES.npz OUT …]. Writes OUT.json, and OUT.npy with every
item's probability of each label if there is an answer. Several votes are the questions of one set, one after the other.
Runs in our environment and in the peers', so it needs nothing but NumPy; what knows a tool are the files
`with_<tool>.py` beside it.

Both limits are kept from within: memory the system refuses becomes a MemoryError, and a timer ends calls that together
take too long by the CLOCK, "wall" or "cpu". Neither covers bringing the votes into the tool's format, which is not
counted.
"""

from __future__ import annotations

import contextlib
import json
import re
import resource
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

REPEATS, SHORT = 5, 1.0
"""A call under a second is repeated so often, and its median counts."""


@dataclass(frozen=True)
class LongVotes:
    """Votes as integers, sorted by item. Axis: **v** vote.

    Parameters
    ----------
    item_v, annotator_v, label_v
        Who gave which label, 0, 1, 2, …, to what.
    n_items, n_annotators, n_labels
        How many of each; all items and annotators occur.
    domain_i
        Domain of each item, -1 if unknown; only ours looks at it. None without domains.
    """

    item_v: Any
    annotator_v: Any
    label_v: Any
    n_items: int
    n_annotators: int
    n_labels: int = 2
    domain_i: Any = None

    def matrix(self, empty: float, dtype: str) -> Any:
        """Give one row per item and one column per annotator, for tools that want it; the last of repeated votes."""
        matrix_ia = np.full((self.n_items, self.n_annotators), empty, dtype=dtype)
        matrix_ia[self.item_v, self.annotator_v] = self.label_v
        return matrix_ia


@dataclass(frozen=True)
class Answer:
    """What a tool said.

    Parameters
    ----------
    p_ik
        Probability of each label; of tools that give labels only, 1 for the label.
    ended
        Why it stopped.
    passes
        Over the votes, if it makes any; None to take the laps it reported.
    labels_only
        Whether the tool gives no probabilities.
    """

    p_ik: Any
    ended: str
    passes: int | None = None
    labels_only: bool = False


def from_labels(label_i: Any, n_labels: int, ended: str) -> Answer:
    """Give the answer of a tool that gives labels only."""
    return Answer(np.eye(n_labels)[np.asarray(label_i, dtype=int)], ended, labels_only=True)


Lap = Callable[..., None]
Call = Callable[[Lap], Answer]
Prepare = Callable[[LongVotes], Call]


class TimeIsUpError(BaseException):
    """The limit has passed. No `Exception`, so that no tool takes it for one of its own."""


class Laps:
    """When each pass ended, since the call began."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin anew."""
        self.began = time.perf_counter()
        self.at: list[float] = []

    def now(self) -> float:
        """Give the seconds since the beginning."""
        return time.perf_counter() - self.began

    def lap(self, *_ignored: object) -> None:
        """Note that a pass has ended."""
        self.at.append(self.now())

    def seconds_a_pass(self) -> float | None:
        """Give the median between two passes; of one alone, its time from the start, setting up included."""
        if len(self.at) > 1:
            return statistics.median(after - before for before, after in pairwise(self.at))
        return self.at[0] if self.at else None


def main(tool: str, limit_seconds: float, clock: str, limit_gb: float, *paths: str) -> None:
    """Run a tool on some votes, one after the other, and write what came of it."""
    resource.setrlimit(resource.RLIMIT_DATA, (int(limit_gb * 1e9),) * 2)
    prepare, warm_up, version = _tool(tool)
    _warm_up(warm_up)
    left = limit_seconds
    for source, out in zip(paths[::2], paths[1::2], strict=True):
        facts: dict[str, Any] = {"tool": tool, "version": version}
        laps = Laps()
        try:
            call = prepare(read(source))
            facts["gb_before"] = memory_gb("VmRSS")
            with _at_most(left, clock):
                answer = _measured(call, laps, facts)
            np.save(f"{out}.npy", np.asarray(answer.p_ik, dtype=float))
            left -= facts["cpu_seconds" if clock == "cpu" else "seconds"] * facts["repeats"]
        except TimeIsUpError:
            facts |= _as_far(laps) | {"failed": f"not done in {limit_seconds:g} s{' of CPU' if clock == 'cpu' else ''}"}
            left = 0.0
        except (MemoryError, RuntimeError) as error:
            if not _is_memory(error):
                raise
            asked = _asked_for(str(error))
            facts |= _as_far(laps) | {"failed": f"out of memory at {limit_gb:g} GB{asked}"}
        facts["peak_gb"] = memory_gb("VmHWM")
        Path(f"{out}.json").write_text(json.dumps(facts), encoding="utf-8")


def _tool(name: str) -> tuple[Prepare, Prepare, str]:
    """Give the tool, the one to warm up with (itself, unless a shorter one does), and the version."""
    family, _, which = name.partition(":")
    module = import_module(f"with_{family}")
    shorter = getattr(module, "WARM_UP", {}).get(which, module.TOOLS[which])
    return module.TOOLS[which], shorter, module.version()


def read(source: str) -> LongVotes:
    """Read votes that `peer_process.write_votes` wrote."""
    with np.load(source) as parts:
        sizes = [int(parts[name]) for name in ("n_items", "n_annotators", "n_labels")]
        domain_i = parts.get("domain_i")
        return LongVotes(parts["item_v"], parts["annotator_v"], parts["label_v"], *sizes, domain_i)


def _warm_up(prepare: Prepare) -> None:
    # Imports, compilers and thread pools are set going by a call that does not count.
    rng = np.random.default_rng(0)
    truth_i = rng.integers(0, 2, 60)
    item_v, annotator_v = (part.ravel() for part in np.indices((60, 4)))
    label_v = np.where(rng.random(240) < 0.8, truth_i[item_v], 1 - truth_i[item_v]).astype(np.int8)
    prepare(LongVotes(item_v, annotator_v, label_v, 60, 4))(lambda *_: None)


def _measured(call: Call, laps: Laps, facts: dict[str, Any]) -> Answer:
    took: list[float] = []
    on_cpu: list[float] = []
    while not took or (len(took) < REPEATS and took[0] < SHORT):
        laps.begin()
        before = time.process_time()
        answer = call(laps.lap)
        took.append(laps.now())
        on_cpu.append(time.process_time() - before)
    seconds = statistics.median(took)
    passes = len(laps.at) or answer.passes
    a_pass = laps.seconds_a_pass() or (seconds / passes if passes else None)
    facts |= {"seconds": seconds, "passes": passes, "seconds_a_pass": a_pass, "ended": answer.ended}
    facts |= {"repeats": len(took), "cpu_seconds": statistics.median(on_cpu), "labels_only": answer.labels_only}
    return answer


def _as_far(laps: Laps) -> dict[str, Any]:
    return {"passes": len(laps.at) or None, "seconds_a_pass": laps.seconds_a_pass()}


@contextlib.contextmanager
def _at_most(seconds: float, clock: str) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TimeIsUpError

    timer, rung = (signal.ITIMER_PROF, signal.SIGPROF) if clock == "cpu" else (signal.ITIMER_REAL, signal.SIGALRM)
    signal.signal(rung, ring)
    # A timer of 0 would never ring.
    signal.setitimer(timer, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(timer, 0)


def _is_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "allocate memory" in str(error)


def _asked_for(said: str) -> str:
    asked = re.search(r"Unable to allocate ([\d.]+ [KMGT]iB)", said)
    return f", one array alone {asked[1]}" if asked else ""


def memory_gb(field: str) -> float:
    """Give the memory of this process: VmRSS now, VmHWM at its peak. The system's own account where there is none."""
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(rf"{field}:\s+(\d+) kB", status.read_text(encoding="utf-8"))
        if found:
            return int(found[1]) * 1024 / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3], float(sys.argv[4]), *sys.argv[5:])
