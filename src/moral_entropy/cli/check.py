"""`moral-entropy check`: limits on the figures of an audit, for pipelines.

Exit codes: 0 all hold, 1 one failed, 2 misuse, 3 cannot be decided (`--strict`), 4 no run folder, or a broken one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Option

from moral_entropy.cli.flags import Json, Run
from moral_entropy.errors import UsageError

if TYPE_CHECKING:
    from moral_entropy.rules.gate import Limit
    from moral_entropy.runs.run import Run as OpenRun

Limits = list[str]
Maxima = Annotated[Limits, Option("--max", metavar="FIGURE=N", help="The figure may be at most N; repeatable.")]
Minima = Annotated[Limits, Option("--min", metavar="FIGURE=N", help="The figure must be at least N; repeatable.")]

Wanted = Annotated[
    Literal["ship", "ship-soft"] | None, Option("--verdict", help="The verdict must be this, or better.")
]
Strict = Annotated[
    bool,
    Option("--strict", help="The whole interval must hold the limit; exit with 3 where it lies on both sides of it."),
]

HOLDS, FAILED, UNDECIDED, BROKEN = 0, 1, 3, 4


def check(
    run: Run,
    maximum: Maxima = [],  # noqa: B006
    minimum: Minima = [],  # noqa: B006
    verdict: Wanted = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Check figures of an audit against limits; exit with 0 if all hold, with 1 if one fails.

    A figure is rule.metric, pooled: any.fdr (share of yes labels that are wrong), majority.fnr (missed yes),
    majority.accuracy. care/any.fdr is one question's, BLM:care/any.fdr one domain's of it, any.fdr@gold is against
    gold. Others are error and accuracy (of the labels, by spot check or gold), uncertain, alpha, votes_per_item,
    annotator:NAME.accuracy, annotators.below_chance. .low and .high at the end are the bounds of its interval.

    Example: moral-entropy check run/ --max error.high=0.1 --max majority.fnr=0.3
    """
    if not maximum and not minimum and verdict is None:
        msg = "nothing to check. Name a limit: --max any.fdr=0.2, or --min FIGURE=N, or --verdict ship."
        raise UsageError(msg)
    from moral_entropy.cli.screen import print_json, print_lines
    from moral_entropy.rules.gate import check_limits
    from moral_entropy.runs.run import read_run
    from moral_entropy.verdict.figures import ANNOTATOR, run_figures
    from moral_entropy.verdict.rates import leading_rates

    with _broken_data_is_told_apart():
        opened = read_run(run)
        some = any(ANNOTATOR in spec for spec in (*maximum, *minimum))
        figures = run_figures(opened, annotators=some)
        limits = check_limits(leading_rates(opened), maxima=maximum, minima=minimum, more=figures, strict=strict)
        asked = [_of_verdict(opened, verdict)] if verdict is not None else []
    records = [*map(_record, limits), *(record for record, _ in asked)]
    outcomes = {str(record["outcome"]) for record in records}
    if json:
        print_json("check", {"held": outcomes <= {"holds"}, "limits": records})
    else:
        print_lines(*map(str, limits), *(line for _, line in asked))
    raise typer.Exit(FAILED if "failed" in outcomes else UNDECIDED if "undecided" in outcomes else HOLDS)


@contextmanager
def _broken_data_is_told_apart() -> Iterator[None]:
    """Let whatever is wrong with the run, and not with what was asked, end with its own exit code."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        vars(error)["exit_code"] = BROKEN
        raise


def _record(limit: Limit) -> dict[str, Any]:
    return {**asdict(limit), "held": limit.held}


def _of_verdict(run: OpenRun, asked: str) -> tuple[dict[str, Any], str]:
    """Compare the verdict with what is wanted: as a record, and as a line."""
    from moral_entropy.verdict.figures import is_at_least

    wanted, answer = asked.replace("-", " "), run.verdict.answer
    held = is_at_least(answer, wanted)
    outcome = "holds" if held else "failed"
    record = {"figure": "verdict", "value": answer, "limit": wanted, "outcome": outcome, "held": held}
    return record, f"{'holds' if held else 'FAILED'}: the verdict is {answer!r}, wanted {wanted!r}"
