"""`moral-entropy export`: a run in layouts that others read."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from typer import Option

from moral_entropy.cli.flags import Run

To = Annotated[Literal["hf", "csv", "jsonl", "lewidi"], Option("--to", help="The layout.")]
Out = Annotated[str, Option("--out", "-o", metavar="OUT", help="File to write; for hf, and lewidi, a folder.")]
Force = Annotated[bool, Option("--force", help="Replace what is there.")]
Group = Annotated[
    str | None,
    Option("--group", metavar="COLUMN", help="Add soft labels per group of annotators; for csv and jsonl."),
]


def export(run: Run, to: To, out: Out, force: Force = False, group: Group = None) -> None:
    """Write the items of a run with votes, p, entropies and soft labels.

    Example: moral-entropy export run/ --to hf -o dataset/
    """
    # Late, so that --help answers at once.
    from moral_entropy.report.export import export_run

    for file in export_run(run, out, to=to, force=force, group=group):
        typer.echo(file)
