"""Run → the JSON that a report's page holds: sums and tables, and a limited number of items.

Everything the page shows is made here, or counted in the page from what is here. A table is its columns; a column of
texts that repeat is a list of distinct texts and a list of positions in it.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import polars as pl
import polars.selectors as cs

from moral_entropy import __version__
from moral_entropy.model.entropy import REMEDIES, parts_note
from moral_entropy.names import ALL
from moral_entropy.report.chart_specs import definitions_of
from moral_entropy.report.item_sums import MAX_VOTES, entropy_by_votes, vote_cells
from moral_entropy.report.items import shown_items, text_cut
from moral_entropy.report.sections import findings_section, groups_section, judges_section
from moral_entropy.report.tables import (
    MAX_DOMAINS,
    MAX_TARGETS,
    agreement_rows,
    annotator_rows,
    audit_rates,
    checked_rows,
    drawn_charts,
    entropy_rows,
    reliability_rows,
    rule_meanings,
    shown_domains,
    shown_questions,
    shown_targets,
    switching_rows,
    word_rows,
)
from moral_entropy.report.words import RATES, label_notes, order_notes, votes_in_words, votes_per_item
from moral_entropy.runs.run import Run, caution_record, cautions, model_notes
from moral_entropy.verdict.headlines import headlines
from moral_entropy.verdict.rates import main_rule

ITEMS = 2_000
"""Rows of the item explorer unless asked otherwise; a row is an item and question."""

DIGITS = 6
"""Significant digits kept: more than any chart can show, fewer than a float prints."""

FACTS = ("version", "command", "input", "columns", "guessed", "rows", "dropped", "notes", "items", "annotators",
         "votes", "converged", "fit_by", "priors", "draws", "seed", "solver", "coordinates", "interval", "use_gold",
         "versions", "warnings")  # fmt: skip
FIT_FACTS = ("question", "part", "positive", "items", "annotators", "votes", "log_posterior", "gradient_norm",
             "passes", "converged", "prevalence")  # fmt: skip

_UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def report_data(run: Run, *, cap: int = ITEMS) -> dict[str, Any]:
    """Gather what a report shows.

    Parameters
    ----------
    run
        The run.
    cap
        Rows of the item explorer at most.
    """
    found = cautions(run)
    domains, cells = shown_domains(run), vote_cells(run)
    return {
        "version": __version__,
        "title": shown_title(run),
        "size": shown_size(run),
        "verdict": asdict(run.verdict),
        "checked": checked_rows(run),
        "notes": model_notes(run.manifest),
        "label_notes": label_notes(run),
        "order_notes": order_notes(run),
        "headlines": [asdict(headline) for headline in headlines(run, run.verdict)],
        "cautions": [caution_record(one) for one in found],
        "questions": shown_questions(run),
        "definitions": definitions_of([question.name for question in run.questions]),
        "targets": shown_targets(run),
        "domains": domains,
        "drawn": drawn_charts(run),
        "main_rule": main_rule(run),
        "interval": run.interval,
        "audit": packed(audit_rates(run, domains)),
        "rates": {metric: asdict(rate) | {"title": rate.title} for metric, rate in RATES.items()},
        "rules": rule_meanings(run).to_dicts(),
        "advice": _best_rule(run),
        "cells": packed(cells),
        "caps": caps(run, cells),
        "model": run.model,
        "parts": [{"column": part, "name": name, "remedy": REMEDIES[part]} for part, name in run.parts.items()],
        "parts_note": parts_note(run.model),
        "entropy": packed(entropy_rows(run, domains)),
        "by_votes": packed(entropy_by_votes(run)),
        "max_votes": MAX_VOTES,
        "reliability": packed(reliability_rows(run)),
        "agreement": packed(agreement_rows(run, domains)),
        **_annotators(run),
        "judges": judges_section(run),
        "switching": packed(switching_rows(run)),
        "words": packed(word_rows(run)),
        **_explorer(run, cap),
        **({"groups": groups_section(run)} if "groups" in run.manifest else {}),
        "validation": findings_section(run),
        "method": method_facts(run),
    }


def _annotators(run: Run) -> dict[str, Any]:
    people, confusion = annotator_rows(run)
    return {
        "anonymous": bool(run.manifest["anonymous"]),
        "votes_per_item": votes_per_item(run),
        "people": packed(people),
        "people_total": run.scan("annotator_summary").select(pl.len()).collect().item(),
        "confusion": packed(confusion),
    }


def _explorer(run: Run, cap: int) -> dict[str, Any]:
    shown = shown_items(run, cap)
    return {
        **{name: packed(frame) for name, frame in shown.items()},
        "items_total": run.scan("items").select(pl.len()).collect().item(),
        "text_cut": text_cut(shown["texts"].height),
    }


def caps(run: Run, cells: pl.DataFrame) -> list[str]:
    """Say what charts leave out, one sentence each; items and annotators say so where they are shown."""
    found = []
    n_domains = run.table("entropy").filter(pl.col("domain") != ALL)["domain"].n_unique()
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


def _best_rule(run: Run) -> str:
    """Return what the audit advises, as it stands below the heading "Best simple rule"."""
    text = str(run.manifest.get("advice") or "").removeprefix("Best simple rule: ")
    return text[:1].upper() + text[1:]


def method_facts(run: Run) -> dict[str, Any]:
    """Return what a reader needs to repeat the run; no times, so that the same run has the same report."""
    fits = [{name: fit.get(name) for name in FIT_FACTS} for fit in run.manifest["questions"]]
    return {name: run.manifest.get(name) for name in FACTS} | {"fits": fits}


def shown_title(run: Run) -> str:
    """Name the run by the file its votes came from."""
    source = str(run.manifest["input"]["source"])
    return source.replace("\\", "/").rsplit("/", 1)[-1] or "votes"


def shown_size(run: Run) -> str:
    """Say how many votes, items, domains and questions there are."""
    domains, questions = len(run.manifest["domains"]), len(run.questions)
    several = f", {domains} domains" * (domains > 1) + f", {questions} questions" * (questions > 1)
    return f"{votes_in_words(run)} on {run.manifest['items']:,} items{several}"


def packed(frame: pl.DataFrame) -> dict[str, Any]:
    """Return a table as columns that JSON can hold; figures that are not finite become null.

    Examples
    --------
    >>> packed(pl.DataFrame({"rule": ["any", "any"], "value": [0.12345678, float("inf")]}))
    {'rule': {'of': ['any'], 'at': [0, 0]}, 'value': [0.123457, None]}
    """
    floats = cs.float()
    shown = frame.with_columns(pl.when(floats.is_finite()).then(floats.round_sig_figs(DIGITS)))
    return {column.name: _column(column) for column in shown}


def _column(column: pl.Series) -> Any:
    values = column.to_list()
    if column.dtype != pl.String:
        return values
    at: dict[str | None, int] = {}
    codes = [at.setdefault(text, len(at)) for text in values]
    return {"of": list(at), "at": codes}


def script_json(value: Any) -> str:
    r"""Write JSON that is safe inside a script element: no character of it can end the element or begin another.

    Examples
    --------
    >>> print(script_json({"text": "</script>"}))
    {"text":"\u003c/script\u003e"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_UNSAFE)
