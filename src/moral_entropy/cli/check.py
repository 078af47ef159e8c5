"""`moral-entropy check`: limits on the figures of an audit, for pipelines.

Exit codes: 0 all hold, 1 one failed, 2 misuse, 3 cannot be decided (`--strict`), 4 no run folder, or a broken one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

Against = Annotated[
    str | None,
    Option(
        "--against",
        metavar="RUN",
        help="No worse than an earlier run: alpha at most .05 lower, uncertain and error at most .05 higher.",
    ),
]
Summary = Annotated[
    str | None, Option("--summary", metavar="FILE", help="Add limits, verdict and findings, as Markdown.")
]

HOLDS, FAILED, UNDECIDED, BROKEN = 0, 1, 3, 4


def check(
    run: Run,
    maximum: Maxima = [],  # noqa: B006
    minimum: Minima = [],  # noqa: B006
    verdict: Wanted = None,
    against: Against = None,
    strict: Strict = False,
    summary: Summary = None,
    json: Json = False,
) -> None:
    """Check figures of an audit against limits; exit with 0 if all hold, with 1 if one fails.

    A figure is rule.metric, pooled: any.fdr (share of yes labels that are wrong), majority.fnr (missed yes),
    majority.accuracy. care/any.fdr is one question's, BLM:care/any.fdr one domain's of it, any.fdr@gold is against
    gold. Others are error and accuracy (of the labels, by spot check or gold), uncertain and alpha (care/uncertain,
    BLM:care/alpha), score (of what was judged, or score:SYSTEM by domain), votes_per_item,
    annotator:NAME.accuracy, annotators.below_chance. .low and .high at the end are the bounds of its interval.

    Example: moral-entropy check run/ --max error.high=0.1 --max majority.fnr=0.3
    """
    if not maximum and not minimum and verdict is None and against is None:
        msg = "nothing to check. Name a limit: --max any.fdr=0.2, --min FIGURE=N, --verdict ship or --against RUN."
        raise UsageError(msg)
    from moral_entropy.batches import domain_figures, limits_against
    from moral_entropy.cli.screen import print_json, print_lines
    from moral_entropy.rules.gate import check_limits
    from moral_entropy.runs.run import read_run
    from moral_entropy.verdict.figures import ANNOTATOR, run_figures
    from moral_entropy.verdict.rates import leading_rates

    with _broken_data_is_told_apart():
        opened = read_run(run)
        maxima, minima = ([], []) if against is None else limits_against(opened, read_run(against))
        specs = (*maximum, *minimum)
        figures = run_figures(opened, annotators=any(ANNOTATOR in spec for spec in specs)) | domain_figures(opened)
        if any("score" in spec for spec in specs):
            figures |= _scores(opened)
        limits = check_limits(
            leading_rates(opened), maxima=[*maximum, *maxima], minima=[*minimum, *minima], extra=figures, strict=strict
        )
        of_verdict = [_of_verdict(opened, verdict)] if verdict is not None else []
    records = [*map(_record, limits), *(record for record, _ in of_verdict)]
    lines = [*map(str, limits), *(line for _, line in of_verdict)]
    outcomes = {str(record["outcome"]) for record in records}
    if summary is not None:
        _write_summary(opened, lines, summary)
    if json:
        print_json("check", {"held": outcomes <= {"holds"}, "limits": records})
    else:
        print_lines(*lines)
    raise typer.Exit(FAILED if "failed" in outcomes else UNDECIDED if "undecided" in outcomes else HOLDS)


def _scores(run: OpenRun) -> dict[str, dict[str, Any]]:
    """Return the score of everything that was judged, and of each system where systems are domains."""
    from moral_entropy.judges.score import score

    parts = [("", score(run).frame)] + ([(":", score(run, by="domain").frame)] if run.manifest["domains"] else [])
    figures = {}
    for colon, frame in parts:
        for row in frame.iter_rows(named=True):
            bounds = {name: row[name] for name in ("value", "low", "high")}
            name = f"score{colon}{row['group'] if colon else ''}"
            figures[f"{row['question']}/{name}"] = figures[name] = bounds | {"n": row["n_items"]}
    return figures


def _write_summary(run: OpenRun, lines: Sequence[str], file: str) -> None:
    """Add what was checked, the verdict and the findings to a file of Markdown, such as the summary of a job."""
    from pathlib import Path

    from moral_entropy.markup import markdown_text
    from moral_entropy.runs.run import cautions

    text = ["### Labels", "", *(f"- {markdown_text(line)}" for line in lines), ""]
    text += [f"**{markdown_text(run.verdict.title)}** {markdown_text(run.verdict.text)}", ""]
    text += [f"- {markdown_text(finding.text)}. {markdown_text(finding.meaning)}" for finding in cautions(run)]
    with Path(file).open("a", encoding="utf-8") as opened:
        opened.write("\n".join(text) + "\n")


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


def _of_verdict(run: OpenRun, required: str) -> tuple[dict[str, Any], str]:
    """Compare the verdict with what is wanted: as a record, and as a line."""
    from moral_entropy.verdict.figures import is_at_least

    limit, answer = required.replace("-", " "), run.verdict.answer
    holds = is_at_least(answer, limit)
    outcome = "holds" if holds else "failed"
    record = {"figure": "verdict", "value": answer, "limit": limit, "outcome": outcome, "held": holds}
    return record, f"{'holds' if holds else 'FAILED'}: the verdict is {answer!r}, wanted {limit!r}"
