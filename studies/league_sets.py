"""The sets of the league: real votes with gold and twins, by kind; and the methods that are held against each other.

Takes the folder of the sets; returns their votes. A set is read as `real_gold.py` reads it. No gold is used in a fit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gold_sets import ALL_SETS, PANEL, gold_votes
from real_gold import TWINS

from moral_entropy.corpora.twins import twin
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import Ballot, Votes

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
if str(BENCHMARKS) not in sys.path:
    sys.path.append(str(BENCHMARKS))
from peer_process import Tool  # noqa: E402

OURS = Tool("moral_entropy:published", "**moral-entropy**, published p")
SHARE = Tool("moral_entropy:smoothed-share", "smoothed vote share")
PLURALITY = Tool("moral_entropy:share", "vote share (plurality)")
TOOLS = (
    OURS,
    Tool("moral_entropy:model", "moral-entropy, p_model"),
    Tool("moral_entropy:paper", "moral-entropy, the paper's model"),
    SHARE,
    PLURALITY,
    Tool("crowdkit:dawid-skene", "crowd-kit DawidSkene"),
    Tool("crowdkit:one-coin", "crowd-kit OneCoinDawidSkene"),
    Tool("crowdkit:glad", "crowd-kit GLAD"),
    Tool("crowdkit:mace", "crowd-kit MACE"),
    Tool("crowdkit:mmsr", "crowd-kit MMSR"),
    Tool("crowdkit:wawa", "crowd-kit Wawa"),
    Tool("crowdkit:zero-based-skill", "crowd-kit ZeroBasedSkill"),
    Tool("peerannot:dawid-skene", "peerannot DawidSkene"),
    Tool("peerannot:weighted-vote", "peerannot IWMV"),
    Tool("cleanlab:crowdlab", "cleanlab CROWDLAB, no classifier"),
    Tool("snorkel:label-model", "snorkel LabelModel"),
)

FEW_VOTES, MANY_LABELS = 8.0, 4
"""Fewer votes per item than this are few; so many labels or more are many."""

FEW, MANY, LLM, LABELS, TWIN = (
    "people, few votes", "people, many votes", "LLM panels", "many labels", "twins",
)  # fmt: skip
KINDS = {
    FEW: f"under {FEW_VOTES:g} per item",
    MANY: f"{FEW_VOTES:g} per item or more",
    LLM: "language models as annotators",
    LABELS: f"{MANY_LABELS} or more, whoever voted",
    TWIN: "simulated moral corpora, truth and domains known",
}
LLM_SETS = ("llmbar_natural", "trecrag24_9judges", PANEL)


@dataclass(frozen=True)
class Source:
    """The votes of one set: several questions are fitted in one process, each on its own."""

    name: str
    votes: Votes

    @property
    def is_twin(self) -> bool:
        """Whether the votes are simulated; scores are then means over the questions."""
        return self.name in TWINS


def sources(data: Path) -> Iterator[Source]:
    """Read the sets that are there, small ones first, then the twins; say which are not there."""
    real = [Source(name, votes) for name, votes in gold_votes(data, ALL_SETS)]
    yield from sorted(real, key=lambda source: source.votes.n_votes)
    for name in TWINS:
        yield Source(name, read_votes(twin(name, seed=0)))


def kinds_of(name: str, ballot: Ballot) -> tuple[str, ...]:
    """Say of which kinds a set is; a set of people or LLMs with many labels is of two."""
    if name in TWINS:
        return (TWIN,)
    votes_per_item = ballot.n_votes / ballot.n_items
    people = FEW if votes_per_item < FEW_VOTES else MANY
    first = LLM if name in LLM_SETS else people
    return (first, LABELS) if ballot.n_labels >= MANY_LABELS else (first,)
