"""`moral-entropy train`: a text classifier of the labels of a run."""

from __future__ import annotations

from textwrap import fill
from typing import Annotated, Any

import typer
from typer import Option

from moral_entropy.cli.flags import Quiet, Run
from moral_entropy.errors import harmless
from moral_entropy.options import TrainOptions
from moral_entropy.progress import bar

Out = Annotated[str, Option("--out", "-o", metavar="FOLDER", help="The model's folder.")]


def train(run: Run, out: Out, options: TrainOptions, quiet: Quiet = False) -> None:
    """Train a text classifier on the labels of a run.

    Example: moral-entropy train run/ --labels soft --model minilm -o model/
    """
    from moral_entropy.train.run import run_training

    with bar("training", hidden=quiet) as advance:
        facts = run_training(run, out, options, advance=advance)
    if not quiet:
        _print_training(facts, out)


def _print_training(facts: dict[str, Any], out: str) -> None:
    from moral_entropy.cli.screen import plain_table, print_parts
    from moral_entropy.train.run import TABLE, comparison_cells, comparison_lines, worth_lines

    typer.echo(
        f"{facts['items']:,} texts to learn from, {facts['test_items']:,} to test on; targets: {facts['labels']}"
    )
    for line in (*facts["notes"], *(worth_lines(facts["worth"]) if facts["worth"] else ())):
        typer.echo(fill(harmless(line), 80))
    if "comparison" in facts:
        typer.echo(f"\n{facts['model']} trained on each kind of target, the same texts tested (90% intervals):")
        header = ("against", "trained on", "accuracy", "AUC")
        print_parts([plain_table(header, comparison_cells(facts["comparison"]), 2)])
        for line in comparison_lines(facts["comparison"]):
            typer.echo(fill(line, 80, subsequent_indent="  "))
        typer.echo(f"{out}/{TABLE}: all figures, question by question\n")
    typer.echo(f"{out}: the model\nnext: moral-entropy predict {out} texts.csv -o out.parquet")
