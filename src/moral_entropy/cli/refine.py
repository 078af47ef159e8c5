"""`moral-entropy refine`: p from the votes of a run and from its texts."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer
from typer import Option

from moral_entropy.cli.flags import Force, Quiet, Run, refuse_existing
from moral_entropy.cli.predict import check_ending, write_frame
from moral_entropy.train.options import RefineOptions

Out = Annotated[Path, Option("--out", "-o", metavar="FILE", help="Parquet, CSV or JSON Lines, by its ending.")]


def refine(run: Run, out: Out, options: RefineOptions, force: Force = False, quiet: Quiet = False) -> None:
    """Let the texts vote too: p from the votes and from a classifier that has not seen the item.

    Example: moral-entropy refine run/ -o refined.parquet
    """
    check_ending(out)
    refuse_existing(out, force=force)
    from moral_entropy.files import whole_file
    from moral_entropy.progress import bar
    from moral_entropy.train.refine import refine
    from moral_entropy.train.refined import grade_refined, refined_frame, refined_lines
    from moral_entropy.train.run_targets import consensus_with_texts

    with bar("refining", shown=False if quiet else None) as advance:
        found = refine(consensus_with_texts(run, options), options, advance=advance)
    with whole_file(out) as partial:
        write_frame(refined_frame(found, seed=options.seed), partial, out.suffix)
    if not quiet:
        for line in (*found.notes, *refined_lines(found, grade_refined(found, seed=options.seed))):
            typer.echo(fill(line, 80, subsequent_indent="  "))
        typer.echo(f"{out}: p_refined of {len(found.items):,} items")
