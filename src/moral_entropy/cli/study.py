"""`moral-entropy study`: which targets train the better classifier, on the texts of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Context, Option

from moral_entropy.cli.flags import Quiet, Run, command_line
from moral_entropy.study.options import StudyOptions

Out = Annotated[str, Option("--out", "-o", metavar="FOLDER", help="The study's folder.")]
Force = Annotated[bool, Option("--force", help="Replace the folder of an earlier study.")]


def study(
    context: Context, run: Run, out: Out, options: StudyOptions, force: Force = False, quiet: Quiet = False
) -> None:
    """Train the same models on several kinds of target and score them on the same unseen texts.

    Example: moral-entropy study run/ --targets soft,share,majority --models tfidf -o study/
    """
    from moral_entropy.cli.screen import Bars
    from moral_entropy.errors import harmless
    from moral_entropy.study.run import run_study

    with Bars(hidden=quiet) as progress:
        run_study(run, out, options, force=force, command=command_line(context), progress=progress)
    if not quiet:
        typer.echo(harmless(Path(out, "study.md").read_text(encoding="utf-8")))
        typer.echo(f"{Path(out)}: tables and study.md; the report of {run} has a section on it")
