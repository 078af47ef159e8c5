"""`moral-entropy verify`: whether a run folder still says what its votes say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from moral_entropy.cli.flags import Json, Quiet, Run

if TYPE_CHECKING:
    from moral_entropy.pipeline.verify import Verification

Votes = Annotated[
    str | None, Option("--votes", metavar="FILE", help="The file that was audited: compare it with its digest, too.")
]

DOES_NOT_STAND = 1
WIDTH = 80


def verify(run: Run, votes: Votes = None, json: Json = False, quiet: Quiet = False) -> None:
    """Compute a run again from its votes and settings, compare every file; exit with 1 if it does not stand.

    Example: moral-entropy verify run/ --votes votes.csv
    """
    # Late, so that --help answers at once.
    from moral_entropy.cli.screen import Bars, print_json, print_parts
    from moral_entropy.pipeline.verify import verify as verify_run

    with Bars(hidden=quiet or json) as progress:
        found = verify_run(run, votes_file=votes, progress=progress)
    if json:
        print_json("verify", _record(found))
    else:
        print_parts([found.verdict] if quiet else _lines(found))
    if not found.stands:
        raise typer.Exit(DOES_NOT_STAND)


def _lines(found: Verification) -> Iterator[str]:
    """Say of every file what was seen, then whether the run stands."""
    from textwrap import fill

    yield f"{found.path.name}: made by moral-entropy {found.made_by}"
    width = max(len(check.file) for check in found.checks)
    for check in found.checks:
        mark = "NO" if check.state == "differs" else "ok" if check.state == "stands" else "--"
        begin = f"  {mark}  {check.file:<{width}}  "
        yield fill(check.text, WIDTH, initial_indent=begin, subsequent_indent=" " * len(begin), break_on_hyphens=False)
    yield ""
    yield fill(found.verdict, WIDTH)


def _record(found: Verification) -> dict[str, Any]:
    from dataclasses import asdict

    return {"stands": found.stands, "made_by": found.made_by, "checks": [asdict(check) for check in found.checks]}
