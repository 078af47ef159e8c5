"""What a user waits for before anything is worked out: import, help, and a small audit as a process of its own."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import data
from measure import ChildRun, Measurement, cli, run_child, say

ITEMS, ANNOTATORS, VOTES_PER_ITEM = 2_000, 50, 5


def measure(sizes: data.Sizes) -> Iterator[Measurement]:
    """Import, ask for help and audit 10,000 votes, several times each; audit them once more with nothing compiled."""
    how = f"median of {sizes.repeats} runs of the command, after one that does not count"
    say("the import, the help of the command and of its audit")
    importing = [sys.executable, "-c", "import moral_entropy"]
    yield Measurement("import moral_entropy", _median(importing, sizes.repeats).seconds, "s", how, at_most=0.1)
    yield Measurement("--help", _median(cli("--help"), sizes.repeats).seconds, "s", how, at_most=0.25)
    yield Measurement("audit --help", _median(cli("audit", "--help"), sizes.repeats).seconds, "s", how)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        audit = _small_audit(here)
        say("an audit of 10,000 votes")
        warm = _median(audit, sizes.repeats)
        whole = f"{how}; read, fit, 1,000 draws, run folder and report, everything compiled before"
        yield Measurement("audit of 10,000 votes", warm.seconds, "s", whole, at_most=1.8)
        yield Measurement("the same, by its cores", warm.processor, "s", "time that cores worked for it")
        say("the same with an empty cache folder")
        first = run_child(["env", f"MORAL_ENTROPY_CACHE={here / 'cache'}", *audit])
        made = "compiles, in two processes, and bundles the chart library, once"
        yield Measurement("the same, the first time", first.seconds, "s", made, at_most=10.0)
        yield Measurement("the first time, by its cores", first.processor, "s", "time that cores worked for it")


def _small_audit(here: Path) -> list[str]:
    votes = here / "votes.parquet"
    sizes = ("--items", str(ITEMS), "--annotators", str(ANNOTATORS), "--votes-per-item", str(VOTES_PER_ITEM))
    run_child(cli("simulate", *sizes, "-o", str(votes)))
    return cli("audit", str(votes), "-o", str(here / "run"), "--quiet", "--force")


def _median(command: Sequence[str], repeats: int) -> ChildRun:
    """Return the run whose time is the median of several, after one that does not count."""
    run_child(command)
    runs = sorted((run_child(command) for _ in range(repeats)), key=lambda run: run.seconds)
    return runs[len(runs) // 2]
