"""Run the methods of the league on its sets, each in a process of its own, and keep what they answer.

Takes sets and methods; returns what `benchmarks/peers/child.py` reports and the probabilities. Answers are kept in a
folder by method, version, votes and limit, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from league_sets import BENCHMARKS, Source
from measure import ROOT, say
from peer_process import PEERS, Tool, report_path, run_on_all, write_votes

from moral_entropy.votes.table import Floats

MEMORY_GB = 8.0
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
NOT_RUN = "not run yet"
DECIDES_P = ("consensus", "votes")
"""Our folders that decide what p is: a change there makes our kept answers stale."""


@dataclass(frozen=True)
class Reported:
    """What a method said of one question: `facts` with `failed` in it, or with the label probabilities `p_ik`."""

    facts: dict[str, Any]
    p_ik: Floats | None


@dataclass(frozen=True)
class Runs:
    """How methods are run: where answers are kept, CPU seconds that a method has per set, processes at a time.

    With no processes at all only what is kept is read, and what is not is reported as not run.
    """

    kept: Path
    seconds: float
    jobs: int

    def on(self, source: Source, tools: Sequence[Tool]) -> dict[str, list[Reported]]:
        """Run methods on a set, or read what they said before: one report per question."""
        with tempfile.TemporaryDirectory() as folder:
            votes = list(_written(source, Path(folder)))
            told = _digest(path.read_bytes() for path in votes)
            with ThreadPoolExecutor(max(self.jobs, 1)) as pool:
                found = pool.map(lambda tool: self._one(tool, source, votes, told), tools)
                return {tool.key: reports for tool, reports in zip(tools, found, strict=True)}

    def _one(self, tool: Tool, source: Source, votes: Sequence[Path], told: str) -> list[Reported]:
        version = _digest([_version(tool), f"{self.seconds:g}".encode(), told.encode()])
        stem = self.kept / source.name / f"{tool.key.replace(':', '-')}-{version}"
        outs = [stem.with_name(f"{stem.name}-{b}") for b in range(len(votes))]
        if not all(report_path(out).exists() for out in outs):
            if not self.jobs:
                return [Reported({"failed": NOT_RUN}, None) for _ in outs]
            self._run(tool, source, votes, outs)
        return [_read(out) for out in outs]

    def _run(self, tool: Tool, source: Source, votes: Sequence[Path], outs: Sequence[Path]) -> None:
        if tool.is_peer and not PEERS.exists():
            msg = "there is no .venv-peers with the other tools; `make league` installs it"
            raise SystemExit(msg)
        outs[0].parent.mkdir(parents=True, exist_ok=True)
        pairs = list(zip(votes, outs, strict=True))
        facts = run_on_all(tool, pairs, self.seconds, clock="cpu", memory_gb=MEMORY_GB, variables=ONE_THREAD)
        for out, one in zip(outs, facts, strict=True):
            report_path(out).write_text(json.dumps(one), encoding="utf-8")
        say(f"{source.name}: {tool.key} {facts[-1].get('failed', 'done')}")


def _read(out: Path) -> Reported:
    facts = json.loads(report_path(out).read_text(encoding="utf-8"))
    return Reported(facts, None if "failed" in facts else np.load(f"{out}.npy"))


def _written(source: Source, folder: Path) -> Iterator[Path]:
    for b, ballot in enumerate(source.votes.ballots):
        path = folder / f"{b}.npz"
        write_votes(ballot, path, source.votes.domain_i[ballot.item_i] if source.votes.domains else None)
        yield path


def _version(tool: Tool) -> bytes:
    """Return what a method's answer depends on, votes apart: how it is called, and its version or our code."""
    family = tool.key.partition(":")[0]
    called = (BENCHMARKS / "peers" / f"with_{family}.py").read_bytes()
    if tool.is_peer:
        return called + (BENCHMARKS / "peers.txt").read_bytes()
    files = (path for room in DECIDES_P for path in sorted((ROOT / "src" / "moral_entropy" / room).rglob("*.py")))
    return called + b"".join(path.read_bytes() for path in files)


def _digest(parts: Any) -> str:
    together = hashlib.sha256()
    for part in parts:
        together.update(part)
    return together.hexdigest()[:12]
