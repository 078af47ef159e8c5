"""`moral-entropy train`: a text classifier of the labels of a run."""

from __future__ import annotations

import math
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from moral_entropy.cli.flags import Quiet, Run
from moral_entropy.errors import UsageError, harmless
from moral_entropy.progress import named_bar
from moral_entropy.train.options import TrainOptions

if TYPE_CHECKING:
    from moral_entropy.train.classifier import Point
    from moral_entropy.train.run import TrainRun

Out = Annotated[str, Option("--out", "-o", metavar="FOLDER", help="The model's folder.")]
Compare = Annotated[
    str | None, Option(metavar="A,B,…", help="Now a command of its own: moral-entropy study.", hidden=True)
]


def train(run: Run, out: Out, options: TrainOptions, compare: Compare = None, quiet: Quiet = False) -> None:
    """Train a text classifier on the labels of a run.

    Example: moral-entropy train run/ --labels soft --model minilm -o model/
    """
    if compare is not None:
        msg = f"comparing targets is a command of its own: moral-entropy study {run} --targets {compare} -o {out}"
        raise UsageError(msg)
    from moral_entropy.train.run import run_training

    with named_bar("training", shown=False if quiet else None) as (advance, rename):
        finished = run_training(
            run, out, options, advance=advance, watch=lambda point: rename(f"training, {_losses(point)}")
        )
    if not quiet:
        _print_training(finished)


def _losses(point: Point) -> str:
    said = f"loss {point.train_loss:.3f}"
    return said if math.isnan(point.validation_loss) else f"{said}, validation {point.validation_loss:.3f}"


def _print_training(finished: TrainRun) -> None:
    held = finished.validation.n_items if finished.validation is not None else 0
    questions = len(finished.train.head.blocks)
    typer.echo(
        f"{finished.train.n_items:,} texts to learn from, {held:,} to validate; "
        f"{questions} question{'s' * (questions > 1)}, targets: {finished.train.kind}"
    )
    for note in finished.train.notes:
        typer.echo(harmless(note))
    first, last = finished.classifier.curve[0], finished.classifier.curve[-1]
    if first != last:
        typer.echo(f"after {first.step:,} steps: {_losses(first)}")
    typer.echo(f"after {last.step:,} steps: {_losses(last)} (nats per text)")
    if finished.worth is not None:
        from moral_entropy.train.worth import worth_lines

        for line in worth_lines(finished.worth):
            typer.echo(fill(line, 80))
    typer.echo(f"{finished.path}: the model\nnext: moral-entropy predict {finished.path} texts.csv -o out.parquet")
