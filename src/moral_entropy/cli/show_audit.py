"""A finished audit → the screen: the summary, and with `--verbose` entropies, rules, checked labels, findings in full.

The rules are shown pooled over everything; all figures, by question and domain, are in `audit.parquet`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import polars as pl

from moral_entropy.cli.screen import plain_table, print_json, print_parts, rows_table, window_width
from moral_entropy.findings import Finding
from moral_entropy.markup import NOTHING
from moral_entropy.model.entropy import parts_note
from moral_entropy.rules.advice import OFF_BY
from moral_entropy.runs.run import Run
from moral_entropy.schemas import BETWEEN
from moral_entropy.verdict.rates import METRICS, interval_in_percent, pooled_rules
from moral_entropy.verdict.summary import NARROW as WIDTH
from moral_entropy.verdict.summary import Summary
from moral_entropy.votes.labels import POSITIVE_NAMES

if TYPE_CHECKING:
    from rich.table import Table

MOST_ANNOTATORS, FEW = 5, 5
"""Annotators shown, those who are surely wrong most often first; and checked votes below which a share says nothing."""

SHORT = {
    "aleatoric": "ambiguous, or too few votes",
    "ambiguity": "stays, whoever votes",
    "doubt_votes": "goes with more votes on the item",
    "doubt_annotators": "goes with more votes anywhere",
    BETWEEN: "stays: groups have a label each",
}
"""What removes each part of the entropy."""

RATES = (
    "fpr: wrong yes, of the true no; fnr: missed yes, of the true yes",
    "fdr: share of yes labels that are wrong; for: share of no labels that are wrong",
)
"""What the four rates mean."""


def print_run(run: Run, *, verbose: bool = False) -> None:
    """Print the first screen; if wanted, then a row per fit with its entropy, the rules, the findings in full."""
    summary = Summary(run)
    print_parts([*summary.lines(window_width()), *(["", *_details(run, summary)] if verbose else [])])


def print_run_as_json(run: Run) -> None:
    """Print the same as one JSON object."""
    print_json("audit", run.to_dict())


def _details(run: Run, summary: Summary) -> Iterator[str | Table]:
    yield from (line for note in summary.notes for line in wrap(note, WIDTH))
    yield ""
    yield from question_parts(run)
    rules = list(rule_parts(run))
    yield from ["", *rules] if rules else []
    yield from wrap(str(run.manifest["advice"]), WIDTH)
    yield from checked_parts(run)
    yield ""
    yield from finding_lines(summary.findings)


def finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield every finding that should make a reader doubt: what it means, and what to do."""
    if not findings:
        yield "No warnings."
        return
    for finding in findings:
        texts = (f"{finding.code} {finding.text}.", finding.meaning, f"What to do: {finding.remedy}")
        for n, text in enumerate(texts):
            yield from wrap(text, WIDTH, initial_indent="  " * bool(n), subsequent_indent="  ")


def checked_parts(run: Run) -> Iterator[str | Table]:
    """Yield what checked labels found of the consensus, of rules and of the annotators, worst first."""
    checked = run.checked
    if checked.is_empty():
        return
    people = checked.filter(pl.col("kind") == "annotator", pl.col("checked") >= FEW).head(MOST_ANNOTATORS)
    rows = [
        row | {"whose": f"{row['kind']} {row['name']}".removeprefix("consensus "), "share": _percent(row)}
        for row in [*checked.filter(pl.col("kind") != "annotator").to_dicts(), *people.to_dicts()]
    ]
    yield ""
    yield f"checked labels: % wrong (and {run.interval:.0%} interval)"
    yield rows_table(rows, "whose: {whose} | checked: {checked:,} | wrong: {wrong:,.0f} | % wrong: {share}", n_words=1)


# --- A row per question -------------------------------------------------------------------------------------------


def question_parts(run: Run) -> Iterator[str | Table]:
    """Return a row per fit, and what its columns mean."""
    fits = run.manifest["questions"]
    # What is the same in every row is not worth a column: 80 characters are few.
    doubts = [fit["doubt_votes"] for fit in fits]
    parts = run.parts if any(value is not None and not isnan(value) for value in doubts) else {}
    yes = all((fit["positive"] or "").casefold() in POSITIVE_NAMES for fit in fits)
    rows = []
    for fit in fits:
        # The positive label of two, the commonest of more.
        label = fit["positive"] or max(fit["prevalence"], key=fit["prevalence"].__getitem__)
        name = f"{fit['question']} / {fit['part']}" if fit["part"] else fit["question"]
        cells_shown = {"name": name, "label": label, "share": fit["prevalence"][label]}
        rows.append(fit | cells_shown | {"converged": "yes" if fit["converged"] else "NO"})
    cells = "question: {name} | items: {items_counted:,.0f} | " + ("share of yes" if yes else "label: {label} | share")
    cells += ": {share:.1%} | uncertain: {uncertain:.1%} | entropy: {entropy:z.3f}"
    cells += "".join(f" | {name}: {{{part}:z.3f}}" for part, name in parts.items())
    cells += "" if all(fit["converged"] for fit in fits) else " | converged: {converged}"
    yield rows_table(rows, cells, n_words=1)
    label_note = ", the commonest," if any(fit["positive"] is None for fit in fits) else ""
    share = "share of yes" if yes else f"share of that label{label_note}"
    paper = "Bayesian " if run.model == "paper" else ""
    yield from wrap(f"{share} by the {paper}consensus; uncertain: chance of error above 25%", WIDTH)
    if not parts:
        return
    names = " + ".join(f"{name} ({SHORT[part]})" for part, name in parts.items())
    yield from wrap(f"entropy (nats; a coin toss is 0.693) = {names}", WIDTH)
    yield from wrap(parts_note(run.model), WIDTH)


# --- The rules ----------------------------------------------------------------------------------------------------


def rule_parts(run: Run) -> Iterator[str | Table]:
    """Return the rules against gold, where there is any, else against the consensus; those that label alike once."""
    rules = pooled_rules(run)
    if not rules:
        return
    against = {"gold": "gold labels", "consensus": "the consensus"}[rules[0]["reference"]]
    many_labels = any(question.positive is None for question in run.questions)
    noun = "wrong labels" if many_labels else "wrong answers"
    pooled = ", all questions together" if len(run.questions) > 1 else ""
    has_interval = any(figure and figure["low"] is not None for rule in rules for figure in rule["figures"].values())
    interval = f" (and {run.interval:.0%} interval)" if has_interval else ""
    yield from wrap(f"rules against {against}{pooled}: {noun} in %{interval}", WIDTH)
    columns = ("disagreement",) if many_labels else METRICS
    rows = [
        [
            rule["names"][0],
            *(_percent(figure) for metric, figure in rule["figures"].items() if metric.endswith(columns)),
        ]
        for rule in rules
    ]
    led_by_p = run.model == "mixed" and rules[0]["reference"] == "consensus"
    thresholded = [f"{metric}½" for metric in METRICS] if led_by_p else []
    yield plain_table(("rule", *(("wrong",) if many_labels else (*METRICS, *thresholded))), rows, n_words=1)
    for rule in rules:
        if len(rule["names"]) > 1:
            yield from wrap(f"the same labels: {', '.join(rule['names'])}", WIDTH)
    abstained = run.table("audit_rules").group_by("rule", maintain_order=True).agg(pl.col("abstained").sum())
    if silent := [f"{rule} {count:,}" for rule, count in abstained.iter_rows() if count]:
        yield from wrap(f"no answer on items without votes or labels: {', '.join(silent)}", WIDTH)
    yield from () if many_labels else RATES
    if led_by_p:
        yield from wrap(f"Expected by p; ½: against the labels, p being ½ or more. {OFF_BY}", WIDTH)


def _percent(figure: dict[str, Any] | None) -> str:
    if figure is None or figure["value"] is None:
        return NOTHING
    return interval_in_percent(figure["value"], figure["low"], figure["high"])
