"""`moral-entropy train`: a classifier of the labels of a run, or a study of which labels train the better one."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer
from typer import Argument, Context, Option

from moral_entropy.cli.flags import spread
from moral_entropy.cli.parse import names
from moral_entropy.cli.train_flags import LabelFlags, StudyFlags, TrainFlags

Run = Annotated[str, Argument(metavar="RUN", help="A run folder, as audit wrote it.")]
Out = Annotated[str, Option("--out", "-o", metavar="FOLDER", help="The model's folder, or the study's.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print only errors.")]
Debug = Annotated[bool, Option("--debug", help="Show the traceback of an error.")]


@spread
def train(
    context: Context,
    run: Run,
    out: Out,
    labels: LabelFlags,
    training: TrainFlags,
    study: StudyFlags,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a classifier on the consensus of a run; with --compare, study which targets train the better one.

    Example: moral-entropy train run/ --labels soft --model minilm -o model/
    """
    if study.compare is not None:
        _study(context, run, out, labels, training, study, quiet=quiet)
        return
    options = training.options(labels)
    from moral_entropy.cli.show_train import print_training, training_bar
    from moral_entropy.pipeline.train import run_training

    with training_bar(hidden=quiet) as (advance, watch):
        finished = run_training(run, out, options, advance=advance, watch=watch)
    if not quiet:
        print_training(finished)


def _study(
    context: Context, run: str, out: str, labels: LabelFlags, training: TrainFlags, study: StudyFlags, *, quiet: bool
) -> None:
    from moral_entropy.cli.show import Bars
    from moral_entropy.pipeline.train_study import run_study

    with Bars(hidden=quiet) as progress:
        finished = run_study(
            run,
            out,
            kinds=names("--compare", study.compare),
            models=names("--models", study.models),
            seeds=study.seeds,
            split=study.split,
            settings=training.settings(),
            votes=labels.votes,
            text=labels.text,
            command=shlex.join(["moral-entropy", *(context.obj or [])]),
            progress=progress,
        )
    if not quiet:
        typer.echo((finished.path / "study.md").read_text(encoding="utf-8"))
        typer.echo(f"{finished.path}: tables and study.md; the report of {run} has a section on it")
