"""Measure this version beside an earlier one on the same machine, in one run: commands as users type them.

Usage: python benchmarks/version_before.py --before PATH/TO/EARLIER/src [--items 20000000] [--repeats 3]

Prints a table in Markdown: seconds, and in parentheses those that cores worked, which say more on a machine that others
use too. Both versions run with the same Python and the same libraries and take turns; but for "the first time" their
kernels are compiled before anything is measured.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from measure import ROOT, ChildRun, cli, run_child

TWINS = ("mftc", "mfrc", "emfd")

Work = Callable[[Path], ChildRun]


def run(source: Path, command: list[str], **environment: str) -> ChildRun:
    """Run a command of one version."""
    with mock.patch.dict(os.environ, {"PYTHONPATH": str(source), **environment}):
        return run_child(command)


def audit(source: Path, votes: Path, *flags: str, **environment: str) -> ChildRun:
    """Audit votes with one version."""
    out = votes.parent / f"run-{source.parent.name}"
    return run(source, cli("audit", str(votes), "-o", str(out), "--force", "-q", *flags), **environment)


def first_audit(source: Path, votes: Path) -> ChildRun:
    """Audit votes with nothing compiled."""
    with tempfile.TemporaryDirectory() as folder:
        return audit(source, votes, MORAL_ENTROPY_CACHE=folder)


def papers_model(source: Path) -> tuple[str, ...]:
    """Return the flags for the paper's model, the only one that versions without states between labels have."""
    return ("--model", "paper") if (source / "moral_entropy" / "consensus" / "states.py").is_file() else ()


def audit_twins(source: Path, here: Path, *flags: str) -> ChildRun:
    """Audit the three twins, one after the other."""
    runs = [audit(source, here / f"{twin}.parquet", "--preset", "mft", *flags) for twin in TWINS]
    whole = (sum(one.seconds for one in runs), max(one.peak_gb for one in runs), sum(one.processor for one in runs))
    return ChildRun(*whole)


def works(now: Path, here: Path, items: int) -> dict[str, tuple[Work, bool]]:
    """Make the votes, and return what is to be measured, and whether to do it once for nothing and then repeat it."""
    shape = ("--items", "2000", "--annotators", "10", "--votes-per-item", "5")
    run(now, cli("simulate", *shape, "-o", str(here / "small.parquet")))
    for twin in TWINS:
        run(now, cli("simulate", "--like", twin, "-o", str(here / f"{twin}.parquet")))
    importing = [sys.executable, "-c", "import moral_entropy"]
    found: dict[str, tuple[Work, bool]] = {
        "`import moral_entropy`": (lambda source: run(source, importing), True),
        "`--help`": (lambda source: run(source, cli("--help")), True),
        "audit of 10,000 votes": (lambda source: audit(source, here / "small.parquet"), True),
        "the same, the first time": (lambda source: first_audit(source, here / "small.parquet"), False),
        "audit of the three twins": (lambda source: audit_twins(source, here), True),
        "the same under the paper's model": (lambda source: audit_twins(source, here, *papers_model(source)), True),
    }
    if items:
        shape = ("--items", str(items), "--annotators", str(max(10, items // 2_000)), "--votes-per-item", "5")
        run(now, cli("simulate", *shape, "-o", str(here / "large.parquet")))
        large: Work = lambda source: audit(source, here / "large.parquet", "--draws", "100")  # noqa: E731
        found[f"audit of {items * 5:,} votes, 100 draws"] = (large, False)
    return found


def measure(work: Work, sources: tuple[Path, Path], repeats: int) -> list[list[ChildRun]]:
    """Have both versions take turns; return the runs of each. With no repeats there is one, and none before it."""
    runs: list[list[ChildRun]] = [[], []]
    for n in range(repeats + 1):
        for which, source in enumerate(sources):
            one = work(source)
            if n or not repeats:
                runs[which].append(one)
    return runs


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="src folder of the earlier version")
    parser.add_argument("--items", type=int, default=0, help="items of a large audit; none by default")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    sources = given.before.resolve(), ROOT / "src"
    print("| | before (s) | now (s) | now / before |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for what, (work, again) in works(sources[1], Path(folder), given.items).items():
            taken = [
                [statistics.median(getattr(one, kind) for one in runs) for kind in ("seconds", "processor")]
                for runs in measure(work, sources, given.repeats if again else 0)
            ]
            (before, before_cores), (now, now_cores) = taken
            ratios = f"{now / before:.2f} ({now_cores / before_cores:.2f})"
            print(
                f"| {what} | {before:.2f} ({before_cores:.2f}) | {now:.2f} ({now_cores:.2f}) | {ratios} |", flush=True
            )


if __name__ == "__main__":
    main()
