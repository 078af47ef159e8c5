"""What a user waits for before anything is worked out: the help, and a small audit as a process of its own."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import data
from measure import Measurement, cli, run_child, say

ITEMS, ANNOTATORS, VOTES_PER_ITEM = 2_000, 50, 5


def measure(sizes: data.Sizes) -> Iterator[Measurement]:
    """Ask for help and audit 10,000 votes, several times each; audit them once more with nothing compiled."""
    how = f"median of {sizes.repeats} runs of the command, after one that does not count"
    say("the help of the command and of its audit")
    yield Measurement("--help", _median(cli("--help"), sizes.repeats), "s", how, at_most=0.5)
    yield Measurement("audit --help", _median(cli("audit", "--help"), sizes.repeats), "s", how)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        audit = _small_audit(here)
        say("an audit of 10,000 votes")
        whole = f"{how}; read, fit, 1,000 draws, run folder and report, everything compiled before"
        yield Measurement("audit of 10,000 votes", _median(audit, sizes.repeats), "s", whole, at_most=3.0)
        say("the same with an empty cache folder")
        first = run_child(["env", f"MORAL_ENTROPY_CACHE={here / 'cache'}", *audit]).seconds
        yield Measurement("the same, the first time", first, "s", "compiles, and bundles the chart library, once")


def _small_audit(here: Path) -> list[str]:
    votes = here / "votes.parquet"
    sizes = ("--items", str(ITEMS), "--annotators", str(ANNOTATORS), "--votes-per-item", str(VOTES_PER_ITEM))
    run_child(cli("simulate", *sizes, "-o", str(votes)))
    return cli("audit", str(votes), "-o", str(here / "run"), "--quiet", "--force")


def _median(command: Sequence[str], repeats: int) -> float:
    run_child(command)
    return statistics.median(run_child(command).seconds for _ in range(repeats))
