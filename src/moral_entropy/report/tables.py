"""Tables of a run, cut to what a page or a figure can show.

A target is what charts colour by and rules are graded on: a question, or one label of a question with more than two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from moral_entropy.items.disagreement import switching_table
from moral_entropy.names import ALL, MEAN, MULTICLASS
from moral_entropy.report.chart_specs import Look, looks_of
from moral_entropy.report.item_sums import entropy_by_votes
from moral_entropy.report.words import NO_ROLE, RATES
from moral_entropy.runs.run import Question, Run

MAX_DOMAINS, MAX_TARGETS = 24, 40
MAX_SWITCHERS, MAX_WORDS, MAX_CHECKED = 30, 30, 1_000

MAX_ANNOTATOR_ROWS = 20_000
"""Rows of annotators in the page: one per annotator, question and part."""

MAX_MATRIX_CELLS = 50_000
"""Cells of confusion matrices in the page; with two labels a matrix follows from the annotator's row."""

ANNOTATORS = (
    "question", "part", "annotator", "n_votes", "role", "disagreement", "disagreement_others", "sensitivity",
    "sensitivity_low", "sensitivity_high", "specificity", "specificity_low", "specificity_high", "youden", "youden_low",
    "youden_high", "below_chance",
)  # fmt: skip
SWITCHING = pl.Schema(
    {"question": pl.String, "annotator": pl.String, "with_majority": pl.Int64, "against_majority": pl.Int64}
)


def shown_questions(run: Run) -> list[dict[str, Any]]:
    """Return the questions: name, labels, positive, colour, shape."""
    looks = looks_of([question.name for question in run.questions])
    return [
        {"name": question.name, "labels": question.labels, "positive": question.positive, **asdict(look)}
        for question, look in zip(run.questions, looks, strict=True)
    ]


def shown_targets(run: Run) -> list[dict[str, Any]]:
    """Return the first targets: name, question, label, colour, shape."""
    named = [(question.name, *target) for question in run.questions for target in question.targets][:MAX_TARGETS]
    looks = looks_of([name for _, name, _ in named])
    return [
        {"name": name, "question": question, "label": label, **asdict(look)}
        for (question, name, label), look in zip(named, looks, strict=True)
    ]


def palettes(run: Run) -> tuple[dict[str, Look], dict[str, Look]]:
    """Return the looks of targets and of questions, by name."""
    targets, questions = (
        {one["name"]: Look(one["colour"], one["shape"]) for one in group}
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
        pl.col("metric").is_in(list(RATES)),
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
    """Return the annotators, busiest first, and confusion matrices of questions with more than two labels.

    Those with fewest votes are left out where there are more than `MAX_ANNOTATOR_ROWS` rows, or `MAX_MATRIX_CELLS`.
    """
    name, role = pl.col("annotator").cast(pl.String), pl.col("role").replace("", NO_ROLE)
    summary = run.table("annotator_summary").select(ANNOTATORS).with_columns(name, role)
    busiest = summary.sort("n_votes", "annotator", "question", "part", descending=[True, False, False, False])
    shown = busiest.head(MAX_ANNOTATOR_ROWS).sort(
        "question", "part", "n_votes", "annotator", descending=[False, False, True, False]
    )
    several = [question.name for question in run.questions if question.positive is None]
    keys = ["question", "part", "annotator"]
    cells = run.table("annotators").filter(pl.col("question").is_in(several)).with_columns(name)
    order = busiest.select(*keys, at=pl.int_range(pl.len()))
    known = cells.join(order, on=keys).sort("at", maintain_order=True).head(MAX_MATRIX_CELLS)
    # No matrix is cut in the middle.
    last = known["at"].max() if cells.height > MAX_MATRIX_CELLS else None
    known = known if last is None else known.filter(pl.col("at") < last)
    return shown, known.select(*keys, "true", "voted", "probability", "low", "high")


def checked_rows(run: Run) -> dict[str, list[dict[str, Any]]]:
    """Return what checked labels found: `labels` of consensus and rules, rules `by_label`, and `annotators`.

    With more than two labels a rule may be graded on every label of an item, and be right on most of them. Such a rule
    is not to be compared with those that give an item one label.
    """
    rows = run.checked
    most = rows.filter(kind="consensus")["checked"].sum()
    by_label = (pl.col("kind") == "rule") & (pl.col("checked") > most)
    person = pl.col("kind") == "annotator"
    return {
        "labels": _alike_as_one(rows.filter(~by_label, ~person).to_dicts()),
        "by_label": _alike_as_one(rows.filter(by_label).to_dicts()),
        "annotators": rows.filter(person).head(MAX_CHECKED).to_dicts(),
    }


def _alike_as_one(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Let rules with the same figures share a row."""
    shared: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        figures = tuple(round(row[name], 4) for name in ("checked", "wrong", "value", "low", "high"))
        key = (row["kind"], "" if row["kind"] == "rule" else row["name"], *figures)
        known = shared.get(key)
        shared[key] = {**row, "name": f"{known['name']}, {row['name']}"} if known else row
    return list(shared.values())


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
    roles = switching_table(votes, names.to_list(), question=question.name, positive=question.positive)[1]
    total = pl.col("with_majority") + pl.col("against_majority")
    kept = roles.sort(total, "annotator", descending=[True, False]).head(most)
    return kept.select(pl.lit(question.name).alias("question"), "annotator", "with_majority", "against_majority")


def drawn_charts(run: Run) -> dict[str, bool]:
    """Tell by name of a chart whether there is enough to draw it.

    Returns
    -------
    dict
        For "rules", "by_domain", "heat", "by_votes", "reliability" and "annotators".
    """
    n_domains, n_targets = len(shown_domains(run)), len(shown_targets(run))
    n_rules = rule_meanings(run).height
    return {
        "rules": n_rules * n_targets > 1,
        "by_domain": n_domains > 1,
        # One column of a heat map is what the chart of rules shows already.
        "heat": n_domains > 0 or n_targets > 1,
        "by_votes": _several(entropy_by_votes(run).filter(pl.col("votes") > 0), "question"),
        "reliability": _several(reliability_rows(run), "target"),
        "annotators": not run.manifest["anonymous"] and _several(run.table("annotator_summary"), "question"),
    }


def _several(rows: pl.DataFrame, by: str) -> bool:
    """Tell whether any group has more than one row."""
    return bool((rows.group_by(by).len()["len"] > 1).any())
