"""`moral-entropy export`: a run in layouts that others read."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from typer import Option

from moral_entropy.cli.flags import Run

Layout = Literal["hf", "csv", "jsonl", "lewidi", "label-studio", "argilla", "prodigy"]
To = Annotated[Layout, Option("--to", help="The layout.")]
Out = Annotated[str, Option("--out", "-o", metavar="OUT", help="File to write; for hf, and lewidi, a folder.")]
Force = Annotated[bool, Option("--force", help="Replace what is there.")]
Group = Annotated[
    str | None,
    Option("--group", metavar="COLUMN", help="Add soft labels per group of annotators; for hf, csv, jsonl and lewidi."),
]


def export(run: Run, to: To, out: Out, force: Force = False, group: Group = None) -> None:
    """Write the items of a run with votes, probabilities and soft labels, for other programs.

    An audit of what is written has the same votes. For annotation tools p goes along as predictions.

    Example: moral-entropy export run/ --to hf -o dataset/
    """
    # Late, so that --help answers at once.
    from shlex import join

    from moral_entropy.report.export import export_run, reading_flags
    from moral_entropy.runs.run import read_run

    opened = read_run(run)
    for file in export_run(opened, out, to=to, force=force, group=group):
        typer.echo(file)
    if flags := reading_flags(opened):
        typer.echo(f"to audit it again: {join(['moral-entropy', 'audit', out, *flags, '-o', 'again/'])}")
