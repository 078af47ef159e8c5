"""Run folder → the JSON that a report's page holds: aggregates, and at most so many items.

Everything the page shows is made here or counted in the page from what is here. Touches no file but the run's tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from moral_entropy import __version__
from moral_entropy.names import ALL, MEAN, MULTICLASS
from moral_entropy.report.cautions import cautions
from moral_entropy.report.cells import vote_cells
from moral_entropy.report.chart_specs import Palette
from moral_entropy.report.foundations import colours_of, definitions_of
from moral_entropy.report.items import ShownItems, shown_items
from moral_entropy.report.pack import packed
from moral_entropy.report.run import Run
from moral_entropy.report.soft_labels import soft_labels
from moral_entropy.report.sums import MAX_VOTES, entropy_by_votes, item_sums
from moral_entropy.report.switching import switching_rows
from moral_entropy.report.validation import validation_section
from moral_entropy.report.verdict import give_verdict, headlines, main_rule
from moral_entropy.runs.notes import yardstick_notes

ITEMS = 2_000
"""Rows of the item explorer unless asked otherwise; a row is an item and question."""

METRICS = ("fpr", "fnr", "fdr", "for", "disagreement")
MAX_DOMAINS, MAX_TARGETS = 24, 40
MAX_ANNOTATORS, MAX_SWITCHERS, MAX_WORDS = 300, 30, 30


def report_data(run: Run, *, cap: int = ITEMS) -> dict[str, Any]:
    """Gather what a report shows.

    Parameters
    ----------
    run
        The run.
    cap
        Rows of the item explorer at most.
    """
    sums = item_sums(run)
    found = cautions(run, sums)
    shown = shown_items(run, cap)
    domains, cells = shown_domains(run), vote_cells(run)
    audit = audit_rates(run, domains)
    names = [question.name for question in run.questions]
    return {
        "version": __version__,
        "title": shown_title(run),
        "verdict": asdict(give_verdict(run, sums, found)),
        "notes": yardstick_notes(run.manifest),
        "headlines": [asdict(headline) for headline in headlines(run, sums)],
        "cautions": [asdict(caution) for caution in found],
        "questions": _questions(run),
        "definitions": definitions_of(names),
        "targets": _targets(run),
        "domains": domains,
        "main_rule": main_rule(run),
        "interval": run.interval,
        "audit": packed(audit),
        "rules": rule_meanings(run).to_dicts(),
        "advice": run.manifest.get("advice", ""),
        "cells": packed(cells),
        "caps": caps(run, cells),
        "sums": packed(sums),
        "entropy": packed(entropy_rows(run, domains)),
        "by_votes": packed(entropy_by_votes(run)),
        "reliability": packed(reliability_rows(run)),
        "agreement": packed(run.frame("agreement").filter(pl.col("domain").is_in([ALL, *domains]))),
        **_people(run),
        "switching": packed(switching_rows(run, most=MAX_SWITCHERS)),
        "words": packed(_words(run)),
        **_explorer(run, shown),
        "soft_labels": soft_labels(run),
        "validation": validation_section(run),
        "method": method_facts(run),
    }


def shown_domains(run: Run) -> list[str]:
    """Name the domains with most items, in order; the others are in the pooled figures only."""
    rows = run.frame("entropy").filter(pl.col("domain") != ALL)
    sizes = rows.group_by("domain").agg(pl.col("n_items").sum()).sort(["n_items", "domain"], descending=[True, False])
    return sorted(sizes.head(MAX_DOMAINS)["domain"].to_list())


def caps(run: Run, cells: pl.DataFrame) -> list[str]:
    """Say what charts leave out, a sentence each; items and annotators say so where they are shown."""
    found = []
    n_domains = run.frame("entropy").filter(pl.col("domain") != ALL)["domain"].n_unique()
    if n_domains > MAX_DOMAINS:
        found.append(f"Charts show the {MAX_DOMAINS} largest of {n_domains:,} domains.")
    n_targets = sum(len(question.targets) for question in run.questions)
    if n_targets > MAX_TARGETS:
        found.append(f"Charts of rules show the first {MAX_TARGETS} of {n_targets:,} questions and labels.")
    if n_domains and cells["domain"].unique().to_list() == [ALL]:
        found.append("“Try a rule” pools the domains: there are too many to count each in this page.")
    if (run.scan("items").select(pl.col("n_votes").max()).collect().item() or 0) > MAX_VOTES:
        found.append(f"Where entropy is shown by votes, {MAX_VOTES} stands for more as well.")
    return found


def palettes(run: Run) -> tuple[Palette, Palette]:
    """Give the colours of targets (questions, or labels of more than two) and of questions."""
    targets, questions = (
        Palette([one["name"] for one in group], [one["colour"] for one in group])
        for group in (_targets(run), _questions(run))
    )
    return targets, questions


def audit_rates(run: Run, domains: Sequence[str]) -> pl.DataFrame:
    """Give the rates of the audit: target, domain, rule, reference, metric, value, low, high, n.

    A target is a question, a label of a question with more than two, or "(all)".
    """
    several = {question.name for question in run.questions if question.positive is None}
    one_label = pl.col("question").is_in(several) & (pl.col("label") != ALL)
    rows = run.frame("audit").filter(
        pl.col("metric").is_in(METRICS), pl.col("domain").is_in([ALL, *domains]), ~pl.col("question").is_in([MEAN])
    )
    rows = rows.filter(pl.col("label") != MULTICLASS)
    target = pl.when(one_label).then(pl.format("{}: {}", "question", "label")).otherwise("question")
    return rows.select(target.alias("target"), "domain", "rule", "reference", "metric", "value", "low", "high", "n")


def rule_meanings(run: Run) -> pl.DataFrame:
    """Say what every audited rule does: rule, meaning."""
    return run.frame("audit_rules").select("rule", "meaning").unique("rule", maintain_order=True)


def entropy_rows(run: Run, domains: Sequence[str]) -> pl.DataFrame:
    """Give the entropy table of the domains shown."""
    return run.frame("entropy").filter(pl.col("domain").is_in([ALL, *domains]))


def reliability_rows(run: Run) -> pl.DataFrame:
    """Give the reliability diagram, bins of equal width; a target may be a label of more than two."""
    several = {question.name for question in run.questions if question.positive is None}
    rows = run.frame("audit_reliability").filter(bins="width")
    target = pl.when(pl.col("question").is_in(several)).then(pl.format("{}: {}", "question", "label"))
    return rows.select(target.otherwise("question").alias("target"), "part", "bin", "p", "gold", "low", "high", "n")


def method_facts(run: Run) -> dict[str, Any]:
    """Give what a reader needs to make the run again; no times, so that the same run gives the same report."""
    kept = ("version", "command", "input", "columns", "guessed", "rows", "dropped", "notes", "items", "annotators",
            "votes", "converged", "fit_by", "priors", "draws", "seed", "solver", "coordinates", "interval", "use_gold",
            "versions", "warnings")  # fmt: skip
    facts = {name: run.manifest.get(name) for name in kept}
    columns = ("question", "part", "positive", "items", "annotators", "votes", "log_posterior", "gradient_norm",
               "passes", "converged", "prevalence")  # fmt: skip
    return {**facts, "fits": [{name: fit.get(name) for name in columns} for fit in run.manifest["questions"]]}


def shown_title(run: Run) -> str:
    """Name the run by the file its votes came from."""
    source = str(run.manifest["input"]["source"])
    return source.replace("\\", "/").rsplit("/", 1)[-1] or "votes"


def _questions(run: Run) -> list[dict[str, Any]]:
    names = [question.name for question in run.questions]
    return [
        {"name": question.name, "labels": question.labels, "positive": question.positive, "colour": colour}
        for question, colour in zip(run.questions, colours_of(names), strict=True)
    ]


def _targets(run: Run) -> list[dict[str, Any]]:
    """What charts colour by: questions, or the labels of a question with more than two."""
    named = [(question.name, *target) for question in run.questions for target in question.targets][:MAX_TARGETS]
    colours = colours_of([name for _, name, _ in named])
    return [
        {"name": name, "question": question, "label": label, "colour": colour}
        for (question, name, label), colour in zip(named, colours, strict=True)
    ]


def _people(run: Run) -> dict[str, Any]:
    summary = run.frame("annotator_summary").with_columns(pl.col("annotator").cast(pl.String))
    votes = summary.group_by("annotator").agg(pl.col("n_votes").sum())
    busiest = votes.sort(["n_votes", "annotator"], descending=[True, False]).head(MAX_ANNOTATORS)
    shown = pl.col("annotator").is_in(busiest["annotator"].implode())
    confusion = run.frame("annotators").with_columns(pl.col("annotator").cast(pl.String)).filter(shown)
    return {
        "people": packed(summary.filter(shown).sort("question", "part", "n_votes", descending=[False, False, True])),
        "people_total": summary["annotator"].n_unique(),
        "confusion": packed(
            confusion.select("question", "part", "annotator", "true", "voted", "probability", "low", "high")
        ),
    }


def _words(run: Run) -> pl.DataFrame:
    rows = run.frame("outliers").filter(kind="word", domain=ALL).filter(pl.col("rank") <= MAX_WORDS)
    return rows.select("question", pl.col("name").str.slice(0, 60).alias("word"), "score", "reason", "rank")


def _explorer(run: Run, shown: ShownItems) -> dict[str, Any]:
    total = run.scan("items").select(pl.len()).collect().item()
    return {
        "items": packed(shown.items),
        "item_votes": packed(shown.votes),
        "texts": packed(shown.texts),
        "pushes": packed(shown.pushes),
        "reasons": packed(shown.reasons),
        "items_total": total,
        "text_cut": shown.cut,
    }
