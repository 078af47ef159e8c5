"""A tool, ours or another's, in a process of its own: `peers/child.py`, with limits on time and memory.

Ours runs in this environment, the peers in `.venv-peers`. Why there is no answer is said in a sentence.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from measure import ROOT

from moral_entropy.votes.table import Ballot, Ints

HERE = Path(__file__).parent
CHILD = HERE / "peers" / "child.py"
PEERS = ROOT / ".venv-peers" / "bin" / "python"
MEMORY_GB = 12.0

GRACE = 400.0
"""Seconds for importing, converting the votes and answering; a process that takes longer is ended from outside."""


@dataclass(frozen=True)
class Tool:
    """A tool and how the table calls it."""

    key: str
    name: str

    @property
    def is_peer(self) -> bool:
        """Whether it runs in the peers' environment."""
        return not self.key.startswith("moral_entropy:")


def write_votes(ballot: Ballot, path: Path, domain_i: Ints | None = None) -> None:
    """Write votes as integers that `peers/child.py` reads.

    Parameters
    ----------
    ballot
        The votes.
    path
        Where they go, `.npz`.
    domain_i
        Domain of each item, -1 if unknown; None without domains.
    """
    np.savez(
        path,
        item_v=np.repeat(np.arange(ballot.n_items), ballot.votes_i),
        annotator_v=ballot.code_v // ballot.n_labels,
        label_v=(ballot.code_v % ballot.n_labels).astype(np.int8),
        n_items=ballot.n_items,
        n_annotators=ballot.n_annotators,
        n_labels=ballot.n_labels,
        **({} if domain_i is None else {"domain_i": domain_i}),
    )


def run_tool(tool: Tool, source: Path, out: Path, seconds: float, *, python: Path = PEERS) -> dict[str, Any]:
    """Run a tool on some votes in a process of its own; give what it reports, as `run_on_all` does."""
    return run_on_all(tool, [(source, out)], seconds, python=python)[0]


def run_on_all(
    tool: Tool,
    pairs: Sequence[tuple[Path, Path]],
    seconds: float,
    *,
    clock: Literal["wall", "cpu"] = "wall",
    python: Path = PEERS,
    memory_gb: float = MEMORY_GB,
    variables: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Run a tool on the questions of one set in one process; give its reports, where `failed` says why none is there.

    Parameters
    ----------
    tool
        Which.
    pairs
        Votes that `write_votes` wrote, and where the answer to each goes, `.json` and `.npy`.
    seconds
        That the calls may take together.
    clock
        Which seconds: those on the wall, or those of the processor, which other work on the machine does not lengthen.
    python
        Of the peers' environment.
    memory_gb
        That the process may take.
    variables
        Of its environment, on top of ours.
    """
    if tool.is_peer and not python.exists():
        return [{"failed": "not measured: no .venv-peers; `make bench-peers` installs it"} for _ in pairs]
    command = [
        str(python) if tool.is_peer else sys.executable,
        str(CHILD),
        tool.key,
        str(seconds),
        clock,
        str(memory_gb),
    ]
    for source, out in pairs:
        report_path(out).unlink(missing_ok=True)
        command += [str(source), str(out)]
    # The processor's clock stands still while others work.
    patience = (seconds if clock == "wall" else 5.0 * seconds) + GRACE
    own = {} if tool.is_peer else {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{HERE}"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env={**os.environ, **(variables or {}), **own},
            timeout=patience,
        )
    except subprocess.TimeoutExpired:
        why = f"ended after {patience:g} s, converting the votes included"
    else:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        why = f"failed with {done.returncode}: {last[0][:200]}"
    return [_facts(out) if report_path(out).exists() else {"failed": why} for _, out in pairs]


def report_path(out: Path) -> Path:
    """Say where the report beside an answer is."""
    return out.with_name(f"{out.name}.json")


def _facts(out: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(report_path(out).read_text(encoding="utf-8"))
    return facts
