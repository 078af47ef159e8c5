"""`moral-entropy simulate`: votes drawn from a known truth, to a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from moral_entropy.cli.flags import Force, refuse_existing
from moral_entropy.corpora.options import SimulateOptions

Out = Annotated[Path, Option("--out", "-o", metavar="FILE", help="The Parquet file to write.")]


def simulate(out: Out, options: SimulateOptions, force: Force = False) -> None:
    """Draw votes from a known truth, which is in the column gold.

    Example: moral-entropy simulate --like mftc -o votes.parquet
    """
    refuse_existing(out, force=force)
    from moral_entropy.progress import bar

    with bar("simulating") as advance:
        if options.like is not None:
            from moral_entropy.corpora.twins import write_twin

            write_twin(options.like, out, seed=options.seed, scale=1.0 if options.scale is None else options.scale)
        else:
            from moral_entropy.corpora.simulate import write_simulated

            write_simulated(out, **options.sizes, advance=advance)
    typer.echo(f"{out}: votes with their truth; next: moral-entropy audit {out} -o run/")
