"""Run the benchmarks, print their table, and record it.

Usage: run.py [--quick] [--scale | --peers] [--only startup,fit,pass,draws,rules,audit]. With --quick everything is
small, the figures mean nothing, and nothing is recorded: it shows that the benchmarks work.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from importlib import import_module

from data import FULL, QUICK, Sizes
from measure import Measurement, say
from tables import record, record_peers, table

STAGES = ("startup", "fit", "pass", "draws", "rules", "audit")


def main() -> None:
    """Measure what was asked for."""
    asked = _arguments()
    if asked.peers:
        _peers(quick=asked.quick, only=asked.tool)
        return
    stages = ("scale",) if asked.scale else tuple(asked.only.split(","))
    rows = _measure(stages, QUICK if asked.quick else FULL)
    if asked.quick:
        # Bars are set for the full sizes.
        rows = [replace(row, at_least=None, at_most=None) for row in rows]
    print(table(rows))
    if asked.quick or stages not in (STAGES, ("scale",)):
        say("not recorded: only a whole run at full size is")
        return
    record("scale" if asked.scale else "speed", rows)
    say("written: benchmarks/results.json, docs/evidence/benchmarks.md")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing recorded")
    parser.add_argument("--scale", action="store_true", help="100M votes instead: minutes, and gigabytes of disk")
    parser.add_argument("--peers", action="store_true", help="other people's aggregators beside ours instead")
    parser.add_argument("--tool", default="", help="with --peers: only tools with this in their name, not recorded")
    parser.add_argument("--only", default=",".join(STAGES), help=f"some of {', '.join(STAGES)}")
    asked = parser.parse_args()
    unknown = set(asked.only.split(",")) - set(STAGES)
    if unknown:
        parser.error(f"there is no benchmark {min(unknown)!r}; choose from {', '.join(STAGES)}")
    return asked


def _peers(*, quick: bool, only: str) -> None:
    import bench_peers

    seconds = bench_peers.QUICK_SECONDS if quick else bench_peers.SECONDS
    runs = bench_peers.measure_peers(QUICK if quick else FULL, seconds=seconds, only=only)
    text = bench_peers.tables(runs)
    print(text)
    if quick or only:
        say("not recorded: only a whole run at full size is")
        return
    record_peers([run.as_dict() for run in runs], text)
    say("written: benchmarks/results.json, docs/evidence/benchmarks.md")


def _measure(stages: tuple[str, ...], sizes: Sizes) -> list[Measurement]:
    rows: list[Measurement] = []
    for number, stage in enumerate(stages, start=1):
        print(f"[{number}/{len(stages)}] {stage}", file=sys.stderr, flush=True)
        rows += import_module(f"bench_{stage}").measure(sizes)
    return rows


if __name__ == "__main__":
    main()
