"""`moral-entropy check`: limits on the figures of an audit, for pipelines.

Exit codes: 0 all hold, 1 one failed, 2 misuse, 3 cannot be decided (`--strict`), 4 no run folder, or a broken one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from moral_entropy.cli.flags import Json, Run
from moral_entropy.errors import UsageError
from moral_entropy.option_fields import StageOptions, option

if TYPE_CHECKING:
    from moral_entropy.runs.run import Run as OpenRun

HOLDS, FAILED, UNDECIDED, BROKEN = 0, 1, 3, 4


@dataclass(frozen=True)
class CheckOptions(StageOptions):
    """The limits, and where to write what came of them."""

    maximum: Sequence[str] = option("The figure may be at most N; repeatable.", (), flag="--max", metavar="FIGURE=N")
    minimum: Sequence[str] = option("The figure must be at least N; repeatable.", (), flag="--min", metavar="FIGURE=N")
    verdict: Literal["ship", "ship-soft"] | None = option("The verdict must be this, or better.")
    against: str | None = option(
        "No worse than an earlier run: alpha at most .05 lower, uncertain and error at most .05 higher.", metavar="RUN"
    )
    strict: bool = option("The whole interval must hold the limit; exit with 3 where it lies on both sides.", False)
    summary: str | None = option("Add limits, verdict and findings, as Markdown.", metavar="FILE")

    def problems(self) -> Iterator[str]:
        """Yield that there is nothing to check."""
        if not (self.maximum or self.minimum or self.verdict or self.against):
            yield "nothing to check. Name a limit: --max any.fdr=0.2, --min FIGURE=N, --verdict ship or --against RUN."


def check(run: Run, options: CheckOptions, json: Json = False) -> None:
    """Check figures of an audit against limits; exit with 0 if all hold, with 1 if one fails.

    A figure is rule.metric, pooled: any.fdr (share of yes labels that are wrong), majority.fnr (missed yes),
    majority.accuracy. care/any.fdr is one question's, BLM:care/any.fdr one domain's of it, any.fdr@gold is against
    gold. Others are error and accuracy (of the labels, by spot check or gold), uncertain and alpha (care/uncertain,
    BLM:care/alpha), score (of what was judged, or score:SYSTEM by domain), votes_per_item,
    annotator:NAME.accuracy, annotators.below_chance. .low and .high at the end are the bounds of its interval.

    Example: moral-entropy check run/ --max error.high=0.1 --max majority.fnr=0.3
    """
    from moral_entropy.batches import limits_against
    from moral_entropy.cli.screen import show
    from moral_entropy.rules.advice import with_leading_rates
    from moral_entropy.rules.gate import check_limits
    from moral_entropy.runs.run import read_run
    from moral_entropy.verdict.figures import ANNOTATOR, ORDER, run_figures

    try:
        opened = read_run(run)
        maxima, minima = ([], []) if options.against is None else limits_against(opened, read_run(options.against))
        specs = (*options.maximum, *options.minimum)
        figures = run_figures(opened, annotators=any(ANNOTATOR in spec for spec in specs))
        if any("score" in spec for spec in specs):
            figures |= _scores(opened)
        maxima, minima = [*options.maximum, *maxima], [*options.minimum, *minima]
        rates = with_leading_rates(opened.rules, expected=opened.model == "mixed")
        limits = check_limits(rates, maxima=maxima, minima=minima, extra=figures, strict=options.strict)
        records: list[dict[str, Any]] = [{**asdict(limit), "held": limit.held} for limit in limits]
        lines = [*map(str, limits)]
        if options.verdict is not None:
            least, answer = options.verdict.replace("-", " "), opened.verdict.answer
            holds = ORDER.index(answer) >= ORDER.index(least)
            outcome = "holds" if holds else "failed"
            records.append({"figure": "verdict", "value": answer, "limit": least, "outcome": outcome, "held": holds})
            lines.append(f"{'holds' if holds else 'FAILED'}: the verdict is {answer!r}, wanted {least!r}")
    except UsageError:
        raise
    except Exception as error:
        # Whatever is wrong with the run, and not with what was asked, has an exit code of its own.
        vars(error)["exit_code"] = BROKEN
        raise
    outcomes = {str(record["outcome"]) for record in records}
    if options.summary is not None:
        # Such as the summary of a job: what was checked, the verdict and the findings.
        from moral_entropy.markup import markdown_text as text
        from moral_entropy.runs.run import cautions

        title, findings = f"**{text(opened.verdict.title)}** {text(opened.verdict.text)}", cautions(opened)
        notes = [f"- {text(finding.text)}. {text(finding.meaning)}" for finding in findings]
        with Path(options.summary).open("a", encoding="utf-8") as file:
            file.write("\n".join(["### Labels", "", *(f"- {text(line)}" for line in lines), "", title, "", *notes, ""]))
    show("check", {"held": outcomes <= {"holds"}, "limits": records}, lines, as_json=json)
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
