"""`moral-entropy check`: limits on the figures of an audit, for pipelines."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from moral_entropy.cli.flags import Json, Run

Limits = list[str]
Maxima = Annotated[Limits, Option("--max", metavar="FIGURE=N", help="The figure may be at most N; repeatable.")]
Minima = Annotated[Limits, Option("--min", metavar="FIGURE=N", help="The figure must be at least N; repeatable.")]

FELL_SHORT = 1


def check(run: Run, maximum: Maxima = [], minimum: Minima = [], json: Json = False) -> None:  # noqa: B006
    """Check figures of an audit against limits; exit with 1 if any falls short.

    A figure is rule.metric, pooled; care/any.fdr is one question's, BLM:care/any.fdr one domain's of it.

    Example: moral-entropy check run/ --max any.fdr=0.2 --max majority.fnr=0.3
    """
    from moral_entropy.errors import UsageError
    from moral_entropy.grading.gate import check_limits
    from moral_entropy.runs.tables import read_table

    if not maximum and not minimum:
        msg = "nothing to check. Name a limit: --max any.fdr=0.2, or --min FIGURE=N."
        raise UsageError(msg)
    limits = check_limits(read_table(run, "audit"), maxima=maximum, minima=minimum)
    if json:
        from dataclasses import asdict
        from json import dumps

        typer.echo(dumps([asdict(limit) for limit in limits], indent=2))
    else:
        typer.echo("\n".join(map(str, limits)))
    if not all(limit.held for limit in limits):
        raise typer.Exit(FELL_SHORT)
