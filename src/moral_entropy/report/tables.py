"""Tables of a run, cut to what a page or a figure can show.

A target is what charts colour by and rules are graded on: a question, or one label of a question with more than two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from moral_entropy.names import ALL, MEAN, MULTICLASS
from moral_entropy.outliers.switching import switching_table
from moral_entropy.report.chart_specs import Palette
from moral_entropy.report.foundations import colours_of
from moral_entropy.runs.run import Question, Run

METRICS = ("fpr", "fnr", "fdr", "for", "disagreement")
MAX_DOMAINS, MAX_TARGETS = 24, 40
MAX_ANNOTATORS, MAX_SWITCHERS, MAX_WORDS = 300, 30, 30
SWITCHING = pl.Schema(
    {"question": pl.String, "annotator": pl.String, "with_majority": pl.Int64, "against_majority": pl.Int64}
)


def shown_questions(run: Run) -> list[dict[str, Any]]:
    """Return the questions: name, labels, positive, colour."""
    names = [question.name for question in run.questions]
    return [
        {"name": question.name, "labels": question.labels, "positive": question.positive, "colour": colour}
        for question, colour in zip(run.questions, colours_of(names), strict=True)
    ]


def shown_targets(run: Run) -> list[dict[str, Any]]:
    """Return the first targets: name, question, label, colour."""
    named = [(question.name, *target) for question in run.questions for target in question.targets][:MAX_TARGETS]
    colours = colours_of([name for _, name, _ in named])
    return [
        {"name": name, "question": question, "label": label, "colour": colour}
        for (question, name, label), colour in zip(named, colours, strict=True)
    ]


def palettes(run: Run) -> tuple[Palette, Palette]:
    """Return the colours of targets and of questions."""
    targets, questions = (
        Palette([one["name"] for one in group], [one["colour"] for one in group])
        for group in (shown_targets(run), shown_questions(run))
    )
    return targets, questions


def shown_domains(run: Run) -> list[str]:
    """Name the domains with most items, in order; the others are in the pooled figures only."""
    rows = run.table("entropy").filter(pl.col("domain") != ALL)
    sizes = rows.group_by("domain").agg(pl.col("n_items").sum()).sort(["n_items", "domain"], descending=[True, False])
    return sorted(sizes.head(MAX_DOMAINS)["domain"].to_list())


def audit_rates(run: Run, domains: Sequence[str]) -> pl.DataFrame:
    """Return the rates of the audit: target (or "(all)"), domain, rule, reference, metric, value, low, high, n."""
    rows = run.table("audit").filter(
        pl.col("metric").is_in(METRICS),
        pl.col("domain").is_in([ALL, *domains]),
        pl.col("question") != MEAN,
        pl.col("label") != MULTICLASS,
    )
    target = _target(run, pl.col("label") != ALL)
    return rows.select(target, "domain", "rule", "reference", "metric", "value", "low", "high", "n")


def reliability_rows(run: Run) -> pl.DataFrame:
    """Return the reliability diagram, bins of equal width: target, part, bin, p, gold, low, high, n."""
    rows = run.table("audit_reliability").filter(bins="width")
    return rows.select(_target(run), "part", "bin", "p", "gold", "low", "high", "n")


def _target(run: Run, of_one_label: pl.Expr | None = None) -> pl.Expr:
    several = pl.col("question").is_in([question.name for question in run.questions if question.positive is None])
    named = several if of_one_label is None else several & of_one_label
    return pl.when(named).then(pl.format("{}: {}", "question", "label")).otherwise("question").alias("target")


def rule_meanings(run: Run) -> pl.DataFrame:
    """Return what every audited rule does: rule, meaning."""
    return run.table("audit_rules").select("rule", "meaning").unique("rule", maintain_order=True)


def entropy_rows(run: Run, domains: Sequence[str]) -> pl.DataFrame:
    """Return the entropies of the domains shown."""
    return run.table("entropy").filter(pl.col("domain").is_in([ALL, *domains]))


def agreement_rows(run: Run, domains: Sequence[str]) -> pl.DataFrame:
    """Return the agreement between annotators in the domains shown."""
    return run.table("agreement").filter(pl.col("domain").is_in([ALL, *domains]))


def annotator_rows(run: Run) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the annotators with most votes: a row per question, part and annotator, and their confusion matrices."""
    summary = run.table("annotator_summary").with_columns(pl.col("annotator").cast(pl.String))
    votes = summary.group_by("annotator").agg(pl.col("n_votes").sum())
    busiest = votes.sort(["n_votes", "annotator"], descending=[True, False]).head(MAX_ANNOTATORS)
    shown = pl.col("annotator").is_in(busiest["annotator"].implode())
    confusion = run.table("annotators").with_columns(pl.col("annotator").cast(pl.String)).filter(shown)
    return (
        summary.filter(shown).sort("question", "part", "n_votes", descending=[False, False, True], maintain_order=True),
        confusion.select("question", "part", "annotator", "true", "voted", "probability", "low", "high"),
    )


def word_rows(run: Run) -> pl.DataFrame:
    """Return the words that mark doubtful items: question, word (cut), score, reason, rank."""
    rows = run.table("outliers").filter(kind="word", domain=ALL).filter(pl.col("rank") <= MAX_WORDS)
    return rows.select("question", pl.col("name").str.slice(0, 60).alias("word"), "score", "reason", "rank")


def switching_rows(run: Run, *, most: int = MAX_SWITCHERS) -> pl.DataFrame:
    """Count, on the items of highest entropy, how often each annotator stands with and against the majority.

    Parameters
    ----------
    run
        The run.
    most
        Annotators per question at most, those with most votes on these items.

    Returns
    -------
    pl.DataFrame
        question, annotator, with_majority, against_majority; no rows where votes have no annotators.
    """
    if run.manifest.get("anonymous") or not run.has("votes"):
        return pl.DataFrame(schema=SWITCHING)
    pieces = [_switching_of(run, question, most) for question in run.questions]
    return pl.concat([pl.DataFrame(schema=SWITCHING), *pieces])


def _switching_of(run: Run, question: Question, most: int) -> pl.DataFrame:
    top = run.table("outliers").filter(kind="item", ranking="entropy", domain=ALL, question=question.name)
    names = top["name"].unique(maintain_order=True)
    wanted = pl.col("item").cast(pl.String).is_in(names.implode())
    votes = run.scan("votes").filter(pl.col("question") == question.name, wanted).collect(engine="streaming")
    if votes.is_empty():
        return pl.DataFrame(schema=SWITCHING)
    roles = switching_table(votes, names.to_list(), question=question.name, positive=question.positive).roles
    total = pl.col("with_majority") + pl.col("against_majority")
    kept = roles.sort(total, "annotator", descending=[True, False]).head(most)
    return kept.select(pl.lit(question.name).alias("question"), "annotator", "with_majority", "against_majority")
