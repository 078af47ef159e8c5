"""What `moral-entropy train` shows: a bar with the loss while it runs, a few lines when it is done."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from moral_entropy.progress import Advance, ignore
from moral_entropy.train.settings import Point, Watch, look_away

if TYPE_CHECKING:
    from moral_entropy.pipeline.train import TrainRun


@contextmanager
def training_bar(*, hidden: bool) -> Iterator[tuple[Advance, Watch]]:
    """Show a bar with loss and time left on standard error, on a terminal only; yields what moves it."""
    if hidden or not sys.stderr.isatty():
        yield ignore, look_away
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:>12}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("training", total=1.0)

        def advance(share: float) -> None:
            progress.update(task, completed=share)

        def watch(point: Point) -> None:
            progress.update(task, description=f"training, {described(point)}")

        yield advance, watch


def described(point: Point) -> str:
    """Give a point of the curve in words.

    Examples
    --------
    >>> described(Point(10, 0.5, float("nan"))), described(Point(10, 0.5, 0.61))
    ('loss 0.500', 'loss 0.500, validation 0.610')
    """
    said = f"loss {point.train_loss:.3f}"
    return said if math.isnan(point.validation_loss) else f"{said}, validation {point.validation_loss:.3f}"


def print_training(finished: TrainRun) -> None:
    """Print what was learnt from how many texts, how far the loss fell, and where the model is."""
    held = finished.validation.n_items if finished.validation is not None else 0
    questions = len(finished.train.head.blocks)
    typer.echo(
        f"{finished.train.n_items:,} texts to learn from, {held:,} to validate; "
        f"{questions} question{'s' * (questions > 1)}, targets: {finished.train.kind}"
    )
    for note in finished.train.notes:
        typer.echo(note)
    first, last = finished.classifier.curve[0], finished.classifier.curve[-1]
    if first != last:
        typer.echo(f"after {first.step:,} steps: {described(first)}")
    typer.echo(f"after {last.step:,} steps: {described(last)} (nats a text)")
    typer.echo(f"{finished.path}: the model; next: moral-entropy predict {finished.path} texts.csv -o out.parquet")
