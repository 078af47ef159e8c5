"""`moral-entropy reproduce`: the paper's figures beside ours, on the corpora or on their simulated twins."""

from __future__ import annotations

from typing import Annotated

from typer import Context, Option

from moral_entropy.cli.flags import Quiet, command_line
from moral_entropy.reproduce.options import Inputs, ReproduceOptions

Out = Annotated[str, Option("--out", "-o", metavar="FOLDER", help="The folder to write.")]
Force = Annotated[bool, Option("--force", help="Replace the folder of an earlier run.")]


def reproduce(
    context: Context,
    out: Out,
    inputs: Inputs,
    options: ReproduceOptions,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Run the paper's study and lay every published figure beside ours.

    Example: moral-entropy reproduce --twins -o out/
    """
    # Late, so that --help and misused flags answer at once.
    from moral_entropy.cli.show import Bars, print_warnings
    from moral_entropy.cli.show_reproduce import print_study
    from moral_entropy.reproduce.study import run_study

    with Bars(hidden=quiet) as progress:
        study = run_study(inputs, out, options, force=force, command=command_line(context), progress=progress)
    if not quiet:
        print_study(study)
    print_warnings(study.manifest["warnings"])
