"""`moral-entropy train`: a text classifier of the labels of a run."""

from __future__ import annotations

import math
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from moral_entropy.cli.flags import Quiet, Run
from moral_entropy.errors import UsageError
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


def _quality(finished: TrainRun) -> list[str]:
    """Say how well the model labels the validation texts, and how well one and the same label for all would do."""
    import numpy as np

    from moral_entropy.study.scores import Standard, by_question, score

    if finished.validation is None:
        return []
    held, head = finished.validation, finished.train.head
    said, wanted = (by_question(head, p_io) for p_io in (finished.classifier.probabilities(held.texts), held.target_io))
    lines = []
    for q, (block, p_ik, target_ik) in enumerate(zip(head.blocks, said, wanted, strict=True)):
        label_ik = np.eye(target_ik.shape[1])[target_ik.argmax(axis=1)]
        found = score(p_ik, Standard(target_ik, label_ik, held.weight_iq[:, q]))
        weight_i = held.weight_iq[:, q]
        always = (weight_i @ label_ik).max() / max(weight_i.sum(), 1e-12)
        auc = float(found["auc"][0])
        told = "" if math.isnan(auc) else f", AUC {auc:.2f} (0.5 is guessing)"
        right = f"{block.question}: right on {float(found['accuracy'][0]):.0%} of the validation texts"
        lines.append(f"{right} (always the same label: {always:.0%}){told}")
    return [line for text in lines for line in wrap(text, 80)]


def _print_training(finished: TrainRun) -> None:
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
        typer.echo(f"after {first.step:,} steps: {_losses(first)}")
    typer.echo(f"after {last.step:,} steps: {_losses(last)} (nats per text)")
    for line in _quality(finished):
        typer.echo(line)
    typer.echo(f"{finished.path}: the model\nnext: moral-entropy predict {finished.path} texts.csv -o out.parquet")
