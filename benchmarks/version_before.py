"""Measure this version beside an earlier one on the same machine, in one run: commands as users type them.

Usage: python benchmarks/version_before.py --before PATH/TO/EARLIER/src [--items 20000000] [--repeats 3]

Prints a table in Markdown. Both versions run with the same Python and the same libraries, take turns, and have their
kernels compiled before anything is measured.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TWINS = ("mftc", "mfrc", "emfd")


def run(source: Path, *arguments: str, folder: Path) -> float:
    """Run a command of one version; return the seconds it took."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "moral_entropy", *arguments],
        env=environment,
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - start


def audit(source: Path, votes: str, *flags: str, folder: Path) -> float:
    """Audit votes with one version; return the seconds."""
    out = f"run-{source.parent.name}"
    return run(source, "audit", votes, "-o", out, "--force", "-q", *flags, folder=folder)


def measure(before: Path, now: Path, items: int, repeats: int, folder: Path) -> list[tuple[str, float, float]]:
    """Return what was measured, and the seconds of the earlier and of this version."""
    run(
        now,
        "simulate",
        "--items",
        "2000",
        "--annotators",
        "10",
        "--votes-per-item",
        "5",
        "-o",
        "small.parquet",
        folder=folder,
    )
    for twin in TWINS:
        run(now, "simulate", "--like", twin, "-o", f"{twin}.parquet", folder=folder)
    works = {
        "`--help`": lambda source: run(source, "--help", folder=folder),
        "audit of 10,000 votes": lambda source: audit(source, "small.parquet", folder=folder),
        "audit of the three twins": lambda source: sum(
            audit(source, f"{twin}.parquet", "--preset", "mft", folder=folder) for twin in TWINS
        ),
    }
    if items:
        shape = ("--items", str(items), "--annotators", str(max(10, items // 2_000)), "--votes-per-item", "5")
        run(now, "simulate", *shape, "-o", "large.parquet", folder=folder)
        works[f"audit of {items * 5:,} votes, 100 draws"] = lambda source: audit(
            source, "large.parquet", "--draws", "100", folder=folder
        )
    rows = []
    for what, work in works.items():
        times: dict[Path, list[float]] = {before: [], now: []}
        for n in range(repeats + 1):
            for source in (before, now):
                taken = work(source)
                if n or "votes, 100" in what:
                    times[source].append(taken)
            if "votes, 100" in what:
                break
        rows.append((what, statistics.median(times[before]), statistics.median(times[now])))
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="src folder of the earlier version")
    parser.add_argument("--items", type=int, default=0, help="items of a large audit; none by default")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(given.before.resolve(), ROOT / "src", given.items, given.repeats, Path(folder))
    print("| | before (s) | now (s) | now / before |\n| --- | --- | --- | --- |")
    for what, before, now in rows:
        print(f"| {what} | {before:.2f} | {now:.2f} | {now / before:.2f} |")


if __name__ == "__main__":
    main()
