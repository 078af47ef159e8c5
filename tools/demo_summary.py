"""Sum up run folders in one table: `python tools/demo_summary.py demo/mftc demo/mfrc …`."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from moral_entropy.names import ALL
from moral_entropy.runs.manifest import read_manifest
from moral_entropy.runs.tables import read_table

COLUMNS = ("run", "question", "items", "prevalence", "entropy", "any: fpr", "any: fdr", "majority: fnr", "converged")


def main(runs: list[str]) -> None:
    """Print a line per run and question, then where the reports are."""
    print("\n" + _line(COLUMNS))
    for run in map(Path, runs):
        means = read_table(run, "entropy").filter(pl.col("domain") == ALL)
        fits = {fit["question"]: fit for fit in read_manifest(run)["questions"]}
        figures = _figures(run)
        for question, n_items, total in means.select("question", "n_items", "total").iter_rows():
            fit = fits[question]
            shares = [figures[question, rule, metric] for rule, metric in RATES]
            prevalence = f"{fit['prevalence'][fit['positive']]:.1%}"
            converged = "yes" if fit["converged"] else "NO"
            print(_line((run.name, question, f"{n_items:,}", prevalence, f"{total:.3f}", *shares, converged)))
    print("\nMean entropy in nats; rates of the rules against the consensus. The reports:")
    for run in runs:
        seconds = sum(read_manifest(run)["seconds"].values())
        print(f"  {run}/report.html  ({seconds:.1f} s)")


RATES = (("any", "fpr"), ("any", "fdr"), ("majority", "fnr"))


def _figures(run: Path) -> dict[tuple[str, str, str], str]:
    rows = read_table(run, "audit").filter(pl.col("domain") == ALL, pl.col("reference") == "consensus")
    shares = rows.select("question", "rule", "metric", "value").iter_rows()
    return {(question, rule, metric): _percent(value) for question, rule, metric, value in shares}


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _line(cells: tuple[str, ...]) -> str:
    run, question, *rest = cells
    return f"{run:<6}{question:<11}" + "".join(
        f"{cell:>{len(name) + 2}}" for cell, name in zip(rest, COLUMNS[2:], strict=True)
    )


if __name__ == "__main__":
    main(sys.argv[1:])
