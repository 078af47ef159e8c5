"""`moral-entropy report`: the report of a run again, its figures, its dataset card."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from moral_entropy.cli.flags import Force, Run, names
from moral_entropy.errors import UsageError

Out = Annotated[
    str | None, Option("--out", "-o", metavar="FILE", help="The HTML file; report.html in the run folder if not given.")
]
Items = Annotated[int, Option(min=1, metavar="N", help="Rows of the item explorer, at most.")]
Figures = Annotated[str | None, Option(metavar="FOLDER", help="Write the charts as files for papers there.")]
Formats = Annotated[str, Option("--format", metavar="A,B,…", help="Formats of the figures: png,svg,pdf.")]
Card = Annotated[bool, Option("--card", help="Write a dataset card and Croissant into the run folder.")]
Methods = Annotated[
    bool, Option("--methods", help="Write a methods paragraph for a paper, LaTeX and BibTeX, into the run folder.")
]


def report(
    run: Run,
    out: Out = None,
    items: Items = 2_000,
    figures: Figures = None,
    formats: Formats = "png",
    card: Card = False,
    methods: Methods = False,
    force: Force = False,
) -> None:
    """Write the report of a run: one HTML file that works offline; on request figures and a dataset card.

    Example: moral-entropy report run/ --figures figures/ --format pdf
    """
    asked = names("--format", formats)
    unknown = [name for name in asked if name not in ("png", "svg", "pdf")]
    if unknown:
        msg = f"--format {unknown[0]!r} is no format for figures. Write png, svg or pdf, or several: png,pdf."
        raise UsageError(msg)
    # Late, so that --help answers at once.
    from moral_entropy.report.card import write_card
    from moral_entropy.report.figures import write_figures
    from moral_entropy.report.html import write_report
    from moral_entropy.report.methods import write_methods

    written = [write_report(run, out, items=items, force=force)]
    if figures is not None:
        written += write_figures(run, figures, formats=asked)
    if card:
        written += write_card(run)
    if methods:
        written += write_methods(run)
    for file in written:
        typer.echo(file)
