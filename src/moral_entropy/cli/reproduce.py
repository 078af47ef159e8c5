"""`moral-entropy reproduce`: the paper's figures beside ours, on the corpora or on their simulated twins."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from typer import Context, Option

from moral_entropy.cli.flags import spread

CORPORA, TWINS, FIT = "The corpora", "Simulated twins", "Fit"

Out = Annotated[str, Option("--out", "-o", metavar="FOLDER", help="The folder to write.")]
Force = Annotated[bool, Option("--force", help="Replace the folder of an earlier run.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print only warnings and errors.")]
Debug = Annotated[bool, Option("--debug", help="Show the traceback of an error.")]


@dataclass(frozen=True)
class InputFlags:
    """What to run the study on."""

    mftc: Annotated[
        Path | None, Option(metavar="FILE", help="MFTC, as published or as corpus wrote it.", rich_help_panel=CORPORA)
    ] = None
    mfrc: Annotated[Path | None, Option(metavar="FILE", help="MFRC, likewise.", rich_help_panel=CORPORA)] = None
    emfd: Annotated[Path | None, Option(metavar="FILE", help="eMFD, likewise.", rich_help_panel=CORPORA)] = None
    gold: Annotated[
        Path | None, Option(metavar="FILE", help="eMFD's gold: item, question, gold.", rich_help_panel=CORPORA)
    ] = None
    themes: Annotated[
        Path | None, Option(metavar="FILE", help="eMFD: document_id and GDELT themes.", rich_help_panel=CORPORA)
    ] = None
    twins: Annotated[
        bool, Option("--twins", help="Simulate all three instead of reading files.", rich_help_panel=TWINS)
    ] = False
    scale: Annotated[float, Option(help="Size of the twins; 1 is that of the corpora.", rich_help_panel=TWINS)] = 1.0


@dataclass(frozen=True)
class StudyFlags:
    """How to fit."""

    draws: Annotated[int, Option(min=2, help="Posterior draws.", rich_help_panel=FIT)] = 1_000
    seed: Annotated[int, Option(min=0, help="Of the draws, and of the twins.", rich_help_panel=FIT)] = 0
    coordinates: Annotated[
        Literal["jeffreys", "paper", "jacobian", "logit-mode"],
        Option(help="Of the Laplace approximation.", rich_help_panel=FIT),
    ] = "paper"
    threads: Annotated[int | None, Option(min=1, help="At most this many.", rich_help_panel=FIT)] = None
    soft_labels: Annotated[
        str | None, Option(metavar="RUN", help="Run folder of MFTC with a study of targets in it.", rich_help_panel=FIT)
    ] = None


@spread
def reproduce(
    context: Context,
    out: Out,
    given: InputFlags,
    fit: StudyFlags,
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run the paper's study and lay every published figure beside ours.

    Example: moral-entropy reproduce --twins -o out/
    """
    from moral_entropy.reproduce.sources import Inputs

    named = {"mftc": given.mftc, "mfrc": given.mfrc, "emfd": given.emfd}
    files = {name: path for name, path in named.items() if path is not None}
    inputs = Inputs(files, given.gold, given.themes, given.twins, given.scale, fit.seed)
    # Late, so that --help and misused flags answer at once.
    from moral_entropy.cli.show import Bars, print_warnings
    from moral_entropy.cli.show_study import print_study
    from moral_entropy.reproduce.study import StudyOptions, run_study

    command = shlex.join(["moral-entropy", *(context.obj or [])])
    with Bars(hidden=quiet) as progress:
        study = run_study(inputs, out, StudyOptions(**vars(fit)), force=force, command=command, progress=progress)
    if not quiet:
        print_study(study)
    print_warnings(study.manifest["warnings"])
