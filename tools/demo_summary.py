"""Sum up run folders in one table: `python tools/demo_summary.py demo/mftc demo/mfrc …`."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from moral_entropy.runs.manifest import read_manifest
from moral_entropy.runs.tables import read_table

HEAD = f"{'run':<12}{'question':<12}{'items':>9}{'prevalence':>12}{'entropy':>9}{'epistemic':>11}{'converged':>11}"


def main(runs: list[str]) -> None:
    """Print a line per run and question, then where the folders are."""
    print(f"\n{HEAD}")
    for run in map(Path, runs):
        means = read_table(run, "entropy").filter(pl.col("domain") == "(all)")
        fits = {fit["question"]: fit for fit in read_manifest(run)["questions"]}
        for question, _, n_items, total, _, epistemic in means.iter_rows():
            fit = fits[question]
            print(
                f"{run.name:<12}{question:<12}{n_items:>9,}{fit['prevalence'][fit['positive']]:>12.1%}"
                f"{total:>9.3f}{epistemic:>11.4f}{'yes' if fit['converged'] else 'NO':>11}"
            )
    print("\nMean entropy in nats; epistemic is the part that the fit is unsure about. The run folders:")
    for run in runs:
        seconds = sum(read_manifest(run)["seconds"].values())
        print(f"  {run}/  ({seconds:.1f} s)")


if __name__ == "__main__":
    main(sys.argv[1:])
