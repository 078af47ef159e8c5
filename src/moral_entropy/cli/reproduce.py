"""`moral-entropy reproduce`: the paper's figures beside ours, on the corpora or on their simulated twins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from typer import Context, Option

from moral_entropy.cli.flags import Force, Quiet
from moral_entropy.options import Inputs, ReproduceOptions

if TYPE_CHECKING:
    from rich.table import Table

    from moral_entropy.corpora.reproduce import Study

Out = Annotated[str, Option("--out", "-o", metavar="FOLDER", help="The folder to write.")]


def reproduce(
    context: Context, out: Out, inputs: Inputs, options: ReproduceOptions, force: Force = False, quiet: Quiet = False
) -> None:
    """Run the paper's study: its tables and figures with ours beside them, on a page to open.

    Example: moral-entropy reproduce --twins -o out/
    """
    # Late, so that --help and misused flags answer at once.
    from moral_entropy.cli.screen import print_parts
    from moral_entropy.corpora.reproduce import run_study
    from moral_entropy.progress import show_progress

    with show_progress(hidden=quiet) as progress:
        study = run_study(inputs, out, options, force=force, command=context.obj, progress=progress)
    if not quiet:
        print_parts(_parts(study))


def _parts(study: Study) -> Iterator[str | Table]:
    """Return what was done, the headline figures of the paper beside ours, and where the page is."""
    from textwrap import wrap

    from moral_entropy.cli.screen import plain_table
    from moral_entropy.corpora.page import headline_cells, headline_rows

    for note in study.manifest["notes"]:
        yield from wrap(note, 80)
    yield ""
    rows = [headline_cells(row) for row in headline_rows(study.comparison).iter_rows(named=True)]
    columns = ("figure", "paper", "ours", "distance", "expected", "truth")[: 6 if study.manifest["twins"] else 5]
    yield plain_table(columns, [row[: len(columns)] for row in rows], n_words=1)
    yield "ours: against the Bayesian consensus, yes from p = 1/2; expected: items weighted"
    yield "by p; distance: ours less the paper's"
    warnings = len(study.manifest["warnings"])
    yield f"\n{warnings} warnings about the fits are on the page." if warnings else ""
    yield f"The page: {study.path / 'index.html'}  ({sum(study.manifest['seconds'].values()):.0f} s)"
