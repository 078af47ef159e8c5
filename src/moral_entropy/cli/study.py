"""`moral-entropy study`: which targets train the better classifier, on the texts of a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Context, Option

from moral_entropy.cli.flags import spread
from moral_entropy.cli.parse import names
from moral_entropy.cli.train_flags import HyperparameterFlags, StudyFlags, TextFlags
from moral_entropy.study.options import StudyOptions

Run = Annotated[str, Argument(metavar="RUN", help="A run folder, as audit wrote it.")]
Out = Annotated[str, Option("--out", "-o", metavar="FOLDER", help="The study's folder.")]
Force = Annotated[bool, Option("--force", help="Replace the folder of an earlier study.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print only errors.")]
Debug = Annotated[bool, Option("--debug", help="Show the traceback of an error.")]


@spread
def study(
    context: Context,
    run: Run,
    out: Out,
    asked: StudyFlags,
    texts: TextFlags,
    training: HyperparameterFlags,
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train the same models on several kinds of target and score them on the same unseen texts.

    Example: moral-entropy study run/ --targets soft,share,majority --models tfidf -o study/
    """
    options = StudyOptions(
        targets=names("--targets", asked.targets),
        models=names("--models", asked.models),
        seeds=asked.seeds,
        split=asked.split,
        **vars(texts),
        **vars(training),
    )
    from moral_entropy.cli.show import Bars
    from moral_entropy.study.run import run_study

    command = shlex.join(["moral-entropy", *(context.obj or [])])
    with Bars(hidden=quiet) as progress:
        run_study(run, out, options, force=force, command=command, progress=progress)
    if not quiet:
        typer.echo(Path(out, "study.md").read_text(encoding="utf-8"))
        typer.echo(f"{Path(out)}: tables and study.md; the report of {run} has a section on it")
