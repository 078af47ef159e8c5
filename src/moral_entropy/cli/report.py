"""`moral-entropy report` and `export`: a run as a page, figures and a card to read, or in layouts that others read."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from typer import Option

from moral_entropy.cli.flags import Force, Run, names
from moral_entropy.errors import UsageError

Page = Annotated[
    str | None, Option("--out", "-o", metavar="FILE", help="The HTML file; report.html in the run folder if not given.")
]
Items = Annotated[int, Option(min=1, metavar="N", help="Rows of the item explorer, at most.")]
Figures = Annotated[
    str | None, Option(metavar="FOLDER", help="Write figures, tables and a methods paragraph for a paper there.")
]
Formats = Annotated[str, Option("--format", metavar="A,B,…", help="Formats of the figures: png,svg,pdf.")]
Card = Annotated[bool, Option("--card", help="Write a dataset card and Croissant into the run folder.")]

Layout = Literal[
    "wide", "csv", "xlsx", "jsonl", "parquet", "hf", "release", "lewidi", "label-studio", "argilla", "prodigy"
]
To = Annotated[Layout, Option("--to", help="The layout; wide is a sheet with one row per item.")]
Target = Annotated[str, Option("--out", "-o", metavar="OUT", help="File to write; for hf, release, lewidi a folder.")]
Names = Annotated[bool, Option("--names", help="Write annotators' names as they are, and not pseudonyms.")]
About = Annotated[
    list[str],
    Option("--about", metavar="NAME=TEXT", help="For the card: name, licence, language or url; repeatable."),
]
Group = Annotated[
    str | None,
    Option("--group", metavar="COLUMN", help="Add soft labels per group of annotators, where the layout has a place."),
]


def report(
    run: Run,
    out: Page = None,
    items: Items = 2_000,
    figures: Figures = None,
    formats: Formats = "png",
    card: Card = False,
    force: Force = False,
) -> None:
    """Write the report of a run: one offline HTML file; on request what a paper needs, and a card.

    Example: moral-entropy report run/ --figures figures/ --format pdf
    """
    kinds = names("--format", formats)
    unknown = [name for name in kinds if name not in ("png", "svg", "pdf")]
    if unknown:
        msg = f"--format {unknown[0]!r} is no format for figures. Write png, svg or pdf, or several: png,pdf."
        raise UsageError(msg)
    # Late, so that --help answers at once.
    from moral_entropy.report.card import write_card
    from moral_entropy.report.figures import write_figures
    from moral_entropy.report.html import write_report
    from moral_entropy.report.paper import write_paper
    from moral_entropy.runs.run import read_run

    opened = read_run(run)
    files = [write_report(opened, out, items=items, force=force)]
    if figures is not None:
        files += [*write_figures(opened, figures, formats=kinds), *write_paper(opened, figures)]
    if card:
        files += write_card(opened)
    for file in files:
        typer.echo(file)


def export(
    run: Run,
    to: To,
    out: Target,
    force: Force = False,
    group: Group = None,
    names: Names = False,
    about: About = [],  # noqa: B006
) -> None:
    """Write the items of a run with votes, probabilities and soft labels, for other programs.

    An audit of what is written has the same votes, by annotators with pseudonyms. release is a folder to publish: raw
    votes, labels, card, Croissant and checksums; the key to the pseudonyms is written beside it.

    Example: moral-entropy export run/ --to release -o dataset/ --about licence=cc-by-4.0 --about language=en
    """
    facts = dict(pair.split("=", 1) for pair in about if "=" in pair)
    if unknown := [pair for pair in about if pair.partition("=")[0] not in ("name", "licence", "language", "url")]:
        msg = f"--about {unknown[0]!r} is not about the data. Write name=…, licence=…, language=… or url=…."
        raise UsageError(msg)
    # Late, so that --help answers at once.
    from shlex import join

    from moral_entropy.report.export import export_run, reading_flags
    from moral_entropy.runs.run import read_run

    opened = read_run(run)
    for file in export_run(opened, out, to=to, force=force, group=group, names=names, about=facts):
        typer.echo(file)
    if to == "release" and not names:
        typer.echo("keep the key to yourself: it says who is who")
    if to != "wide" and (flags := reading_flags(opened)):
        typer.echo(f"to audit it again: {join(['moral-entropy', 'audit', out, *flags, '-o', 'again/'])}")
