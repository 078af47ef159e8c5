"""Other people's aggregators and ours, side by side: time, passes, memory, and how right they are.

Each tool runs on each set of votes in a process of its own, `peers/child.py`, with limits on time and memory; the
peers in `.venv-peers`. A tool that exceeds a limit is a line of the table, and so is one that is not installed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import data
import numpy as np
from measure import say
from peer_process import Tool, run_tool, write_votes
from scores import Scores, score

from moral_entropy.votes.table import Ballot

SECONDS, QUICK_SECONDS = 180.0, 30.0
"""A call that takes longer is ended."""

OURS = Tool("moral_entropy:mode", "**ours**, mode alone")
FITS = (OURS, Tool("moral_entropy:draws", "**ours**, 1,000 draws"))
PAPER_FITS = (
    Tool("moral_entropy:mode-paper", "**ours**, mode, the paper's prior"),
    Tool("moral_entropy:draws-paper", "**ours**, 1,000 draws, the paper's prior"),
)
ADAM = (Tool("moral_entropy:adam-200", "Adam, 200 steps"), Tool("moral_entropy:adam-2000", "Adam, 2,000 steps"))
PAPER_ADAM = (
    Tool("moral_entropy:adam-200-paper", "the paper's Adam, 200 steps"),
    Tool("moral_entropy:adam-2000-paper", "the same, 2,000 steps"),
)
ONE_COIN = Tool("crowdkit:one-coin", "crowd-kit OneCoinDawidSkene")
OTHERS = (
    Tool("crowdkit:majority", "crowd-kit MajorityVote"),
    Tool("crowdkit:dawid-skene", "crowd-kit DawidSkene"),
    ONE_COIN,
    Tool("peerannot:dawid-skene", "peerannot DawidSkene"),
    Tool("cleanlab:majority", "cleanlab majority vote"),
    Tool("cleanlab:crowdlab", "cleanlab CROWDLAB, no classifier"),
    Tool("snorkel:label-model", "snorkel LabelModel"),
)


@dataclass(frozen=True)
class PeerSet:
    """Votes of known truth, and who runs on them."""

    name: str
    ballot: Ballot
    tools: tuple[Tool, ...]


@dataclass(frozen=True)
class PeerRun:
    """How a tool fared on some votes: a line of the table.

    Parameters
    ----------
    on, tool
        Names of the votes and of the tool.
    facts
        What `peers/child.py` reported; `failed` in it where there is no answer.
    scores
        Against the truth, where there is an answer.
    """

    on: str
    tool: Tool
    facts: dict[str, Any]
    scores: Scores | None

    def as_dict(self) -> dict[str, Any]:
        """Give the run as JSON can hold it, figures to four digits."""
        figures = {**self.facts, **(vars(self.scores) if self.scores else {})}
        short = {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in figures.items()}
        return {"on": self.on, **short, "tool": self.tool.name.replace("*", "")}


def peer_sets(sizes: data.Sizes) -> Iterator[PeerSet]:
    """Give the votes, one set at a time: two twins, then the large votes."""
    for name, called in (("mftc", "MFTC"), ("emfd", "eMFD")):
        ballot = data.one_foundation(name, sizes.scale).ballots[0]
        yield PeerSet(f"the {called} twin", ballot, (*FITS, *PAPER_FITS, *PAPER_ADAM, *OTHERS))
    # The paper's prior is worth 100 items, and would not show among so many. OneCoin is
    # there for reference only, and would take minutes.
    ballot = data.large(sizes.items).ballots[0]
    others = tuple(tool for tool in OTHERS if tool != ONE_COIN)
    yield PeerSet(f"{ballot.n_items:,} items", ballot, (*FITS, *ADAM, *others))


def measure_peers(sizes: data.Sizes, *, seconds: float, only: str = "") -> list[PeerRun]:
    """Run every tool on every set of votes.

    Parameters
    ----------
    sizes
        Of the votes.
    seconds
        That a call may take.
    only
        Run only tools whose key contains this.
    """
    runs = []
    for peer_set in peer_sets(sizes):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "votes.npz"
            write_votes(peer_set.ballot, source)
            for tool in peer_set.tools:
                if only in tool.key:
                    say(f"{tool.name.replace('*', '')} on {peer_set.name}")
                    runs.append(_run(tool, peer_set, source, seconds))
    return runs


def _run(tool: Tool, peer_set: PeerSet, source: Path, seconds: float) -> PeerRun:
    facts = run_tool(tool, source, source.with_name("answer"), seconds)
    if "failed" in facts:
        say(f"  {facts['failed']}")
        return PeerRun(peer_set.name, tool, facts, None)
    p_ik = np.load(source.with_name("answer.npy"))
    return PeerRun(peer_set.name, tool, facts, score(p_ik[:, 1], peer_set.ballot.gold_i))


def tables(runs: list[PeerRun]) -> str:
    """Give a Markdown table for every set of votes, ratios to ours included."""
    parts = []
    for name in dict.fromkeys(run.on for run in runs):
        here = [run for run in runs if run.on == name]
        ours = next((run.facts for run in here if run.tool == OURS), {})
        parts.append("\n".join([f"**On {name}**", "", HEAD, *(_line(run, ours) for run in here)]))
    return "\n\n".join(parts)


HEAD = (
    "| tool | seconds | × ours | passes | s / pass | × ours | peak GB | accuracy | Brier | log loss | how it ended |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
)


def _line(run: PeerRun, ours: dict[str, Any]) -> str:
    facts, scores = run.facts, run.scores
    cells = [run.tool.name]
    for key in ("seconds", "seconds_a_pass"):
        cells += [_short(facts.get(key)), _ratio(facts.get(key), ours.get(key))]
    cells.insert(3, f"{facts['passes']:,}" if facts.get("passes") else "–")
    cells.append(_short(facts.get("peak_gb")))
    cells += [f"{scores.accuracy:.4f}", f"{scores.brier:.4f}", _loss(scores.log_loss)] if scores else ["–"] * 3
    return f"| {' | '.join(cells)} | {_ended(run)} |"


def _ended(run: PeerRun) -> str:
    if run.scores is None:
        return str(run.facts["failed"])
    undefined = run.scores.n_undefined
    return str(run.facts["ended"]) + (f"; no number for {undefined:,} items" if undefined else "")


def _short(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _ratio(value: float | None, ours: float | None) -> str:
    return _short(value / ours) if value and ours else "–"


def _loss(value: float | None) -> str:
    return "labels only" if value is None else f"{value:.4f}"
