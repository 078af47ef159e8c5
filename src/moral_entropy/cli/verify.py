"""`moral-entropy verify`: whether a run folder still says what its votes say."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from moral_entropy.cli.flags import Json, Quiet, Run

Votes = Annotated[str | None, Option("--votes", metavar="FILE", help="The audited file: compare its digest, too.")]

DOES_NOT_STAND = 1


def verify(run: Run, votes: Votes = None, json: Json = False, quiet: Quiet = False) -> None:
    """Compute a run again from its votes and settings, compare every file; exit with 1 if any differs.

    Example: moral-entropy verify run/ --votes votes.csv
    """
    # Late, so that --help answers at once.
    from moral_entropy.cli.screen import filled, show
    from moral_entropy.progress import show_progress
    from moral_entropy.verification import verify as verify_run

    with show_progress(hidden=quiet or json) as progress:
        outcome = verify_run(run, votes_file=votes, progress=progress)
    differences = outcome.differences
    text = "This run stands: its files are as they were written, and say what the votes and settings give."
    if differences:
        further = f"; and {len(differences) - 1} more" * (len(differences) > 1)
        text = f"This run does not stand: {differences[0]}{further}."
    show("verify", {"stands": outcome.stands, "differences": differences}, [filled(text)], as_json=json)
    if not outcome.stands:
        raise typer.Exit(DOES_NOT_STAND)
