"""`moral-entropy report` and `export`: a run as a page, figures and a card to read, or in layouts that others read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import typer
from typer import Option

from moral_entropy.cli.flags import Force, Run
from moral_entropy.option_fields import StageOptions, option
from moral_entropy.options import Layout

To = Annotated[Layout, Option("--to", help="The layout; wide is a sheet with one row per item.")]
Target = Annotated[str, Option("--out", "-o", metavar="OUT", help="File to write; for hf, release, lewidi a folder.")]
FactName = Literal["name", "licence", "language", "url"]


@dataclass(frozen=True)
class ReportOptions(StageOptions):
    """What is written beside the page, and where."""

    out: str | None = option("The HTML file; report.html in the run folder if not given.", metavar="FILE", short="-o")
    items: int = option("Rows of the item explorer, at most.", 2_000, least=1)
    figures: str | None = option("Write figures, tables and a methods paragraph for a paper there.", metavar="FOLDER")
    formats: tuple[Literal["png", "svg", "pdf"], ...] = option("Formats: png, svg, pdf.", ("png",), flag="--format")
    card: bool = option("Write a dataset card and Croissant into the run folder.", False)


@dataclass(frozen=True)
class ExportOptions(StageOptions):
    """What is written, and what is said of the data."""

    group: str | None = option("Add soft labels per group of annotators, where possible.", metavar="COLUMN")
    names: bool = option("Write annotators' names as they are, and not pseudonyms.", False)
    about: Sequence[str] = option("For the card: name, licence, language or url; repeatable.", (), metavar="NAME=TEXT")

    def problems(self) -> Iterator[str]:
        """Yield facts that are not about the data."""
        for pair in self.about:
            if "=" not in pair or pair.partition("=")[0] not in get_args(FactName):
                yield f"--about {pair!r} is not about the data. Write name=…, licence=…, language=… or url=…."


def report(run: Run, options: ReportOptions, force: Force = False) -> None:
    """Write the report of a run: one offline HTML file; on request what a paper needs, and a card.

    Example: moral-entropy report run/ --figures figures/ --format pdf
    """
    # Late, so that --help answers at once.
    from moral_entropy.report.card import write_card
    from moral_entropy.report.figures import write_figures
    from moral_entropy.report.html import write_report
    from moral_entropy.report.paper import write_paper
    from moral_entropy.runs.run import read_run

    opened = read_run(run)
    files = [write_report(opened, options.out, items=options.items, force=force)]
    if options.figures is not None:
        files += write_figures(opened, options.figures, formats=options.formats)
        files += write_paper(opened, options.figures)
    if options.card:
        files += write_card(opened)
    for file in files:
        typer.echo(file)


def export(run: Run, to: To, out: Target, options: ExportOptions, force: Force = False) -> None:
    """Write the items of a run with votes, probabilities and soft labels, for other programs.

    An audit of what is written has the same votes, by annotators with pseudonyms. release is a folder to publish: raw
    votes, labels, card, Croissant and checksums; the key to the pseudonyms is written beside it.

    Example: moral-entropy export run/ --to release -o dataset/ --about licence=cc-by-4.0 --about language=en
    """
    facts = dict(pair.split("=", 1) for pair in options.about)
    # Late, so that --help answers at once.
    from shlex import join

    from moral_entropy.report.export import export_run, reading_flags
    from moral_entropy.runs.run import read_run

    opened = read_run(run)
    names, group = options.names, options.group
    for file in export_run(opened, out, to=to, force=force, group=group, names=names, about=facts):
        typer.echo(file)
    if to == "release" and not names:
        typer.echo("keep the key to yourself: it says who is who")
    if to != "wide" and (flags := reading_flags(opened)):
        typer.echo(f"to audit it again: {join(['moral-entropy', 'audit', out, *flags, '-o', 'again/'])}")
