"""`moral-entropy check`: limits on the figures of an audit, for pipelines."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer
from typer import Option

from moral_entropy.cli.flags import Json, Run

Limits = list[str]
Maxima = Annotated[Limits, Option("--max", metavar="FIGURE=N", help="The figure may be at most N; repeatable.")]
Minima = Annotated[Limits, Option("--min", metavar="FIGURE=N", help="The figure must be at least N; repeatable.")]

Wanted = Annotated[
    Literal["ship", "ship-soft"] | None, Option("--verdict", help="The verdict must be this, or better.")
]

FELL_SHORT = 1


def check(
    run: Run,
    maximum: Maxima = [],  # noqa: B006
    minimum: Minima = [],  # noqa: B006
    verdict: Wanted = None,
    json: Json = False,
) -> None:
    """Check figures of an audit against limits; exit with 1 if any falls short.

    A figure is rule.metric, pooled; care/any.fdr is one question's, BLM:care/any.fdr one domain's of it; or error (the
    share of wrong labels, by spot check or gold), uncertain, alpha, effective_votes. .low and .high are its bounds.

    Example: moral-entropy check run/ --max error.high=0.1 --max majority.fnr=0.3
    """
    from dataclasses import asdict

    from moral_entropy.errors import UsageError
    from moral_entropy.grading.gate import check_limits
    from moral_entropy.runs.run import read_run
    from moral_entropy.verdict.figures import is_at_least, run_figures

    if not maximum and not minimum and verdict is None:
        msg = "nothing to check. Name a limit: --max any.fdr=0.2, or --min FIGURE=N, or --verdict ship."
        raise UsageError(msg)
    opened = read_run(run)
    limits = check_limits(opened.rules, maxima=maximum, minima=minimum, more=run_figures(opened))
    lines, records = list(map(str, limits)), [asdict(limit) for limit in limits]
    held = all(limit.held for limit in limits)
    if verdict is not None:
        wanted, answer = verdict.replace("-", " "), opened.verdict.answer
        good = is_at_least(answer, wanted)
        lines.append(f"{'holds' if good else 'FALLS SHORT'}: the verdict is {answer!r}; wanted: {wanted!r}")
        records.append({"figure": "verdict", "value": answer, "limit": wanted, "held": good})
        held = held and good
    _print(lines, records, json=json)
    if not held:
        raise typer.Exit(FELL_SHORT)


def _print(lines: list[str], records: list[dict[str, Any]], *, json: bool) -> None:
    from moral_entropy.errors import harmless

    if json:
        from json import dumps

        typer.echo(dumps(records, indent=2))
    else:
        typer.echo(harmless("\n".join(lines)))
