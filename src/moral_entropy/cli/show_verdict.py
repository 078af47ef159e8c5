"""A verdict → the screen: the answer, four figures, the warnings with their cure; and what checked labels found."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import TYPE_CHECKING

import polars as pl

from moral_entropy.cli.screen import plain_table, print_parts
from moral_entropy.runs.run import Run
from moral_entropy.verdict.headlines import headlines, with_interval
from moral_entropy.verdict.sheet_files import sheet_name

if TYPE_CHECKING:
    from rich.table import Table

WIDTH = 80
MOST_ANNOTATORS = 10
"""Annotators shown, those who are surely wrong most often first."""

FEW = 5
"""Checked labels of an annotator below which a share says nothing."""


def verdict_lines(run: Run) -> Iterator[str | Table]:
    """Return the answer to "can I ship these labels?", and the four figures it rests on."""
    verdict = run.verdict
    yield f"Can I ship these labels? {verdict.title}"
    yield fill(verdict.text, WIDTH, initial_indent="  ", subsequent_indent="  ", break_long_words=False,
               break_on_hyphens=False)  # fmt: skip
    if run.path is not None and verdict.error is None:
        sheet = run.path / sheet_name(1)
        yield f"  Then: moral-entropy spot-check {run.path} --answers {sheet}"
    yield ""
    figures = headlines(run, verdict)
    wide = max(len(one.name) for one in figures)
    for one in figures:
        lead = f"  {one.name:<{wide}}  {with_interval(one)}"
        yield lead
        yield fill(one.note, WIDTH, initial_indent=" " * (wide + 4), subsequent_indent=" " * (wide + 4))


def checked_lines(run: Run) -> Iterator[str | Table]:
    """Return what checked labels found of the consensus, of every rule and of the annotators."""
    found = run.checked
    if found.is_empty():
        return
    yield f"labels found wrong, % (and {run.interval:.0%} interval)"
    everyone = found.filter(kind="annotator")
    people = everyone.filter(pl.col("checked") >= FEW)
    shown = [*found.filter(kind="consensus").rows(named=True), *found.filter(kind="rule").rows(named=True),
             *people.head(MOST_ANNOTATORS).rows(named=True)]  # fmt: skip
    rows = [
        (f"{one['kind']} {one['name']}" if one["kind"] != "consensus" else "consensus", f"{one['checked']:,}",
         f"{one['wrong']:,.0f}", f"{100 * one['value']:.1f} ({100 * one['low']:.0f}–{100 * one['high']:.0f})")
        for one in shown
    ]  # fmt: skip
    yield plain_table(("whose labels", "checked", "wrong", "% wrong"), rows, n_words=1)
    if (more := everyone.height - min(people.height, MOST_ANNOTATORS)) > 0:
        yield f"{more:,} more annotators, or with fewer than {FEW} labels checked: see the report, or run.checked"


def print_checked(run: Run, *, json: bool) -> None:
    """Print the verdict and what the checks found, or both as JSON."""
    if json:
        from dataclasses import asdict
        from json import dumps

        import typer

        typer.echo(dumps({"verdict": asdict(run.verdict), "checked": run.checked.to_dicts()}, indent=2))
        return
    print_parts([*verdict_lines(run), "", *checked_lines(run)])
