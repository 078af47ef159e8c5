"""Run → where the model and the paper's would lead to different labels or rates, in a sentence and a table."""

from __future__ import annotations

from typing import Any

import polars as pl

from moral_entropy.names import ALL, EXPLANATIONS
from moral_entropy.report.words import RATES
from moral_entropy.runs.run import Run

MOST_DOMAINS = 3
"""Domains that are named at most."""


def one_label_section(run: Run) -> dict[str, Any] | None:
    """Return sentences on labels, and rates by rule; None where only one model was fitted."""
    changed = run.table("audit_one_label")
    if changed.is_empty():
        return None
    whole = changed.filter(domain=ALL)
    return {
        "labels": [changed_in_words(row, changed, several=whole.height > 1) for row in whole.iter_rows(named=True)],
        "rates": rates_by_explanation(run).to_dicts(),
    }


def changed_in_words(row: dict[str, Any], changed: pl.DataFrame, *, several: bool) -> str:
    """Say of one question how many labels would be different, and in which domains most of them.

    Examples
    --------
    >>> whole = {"question": "care", "domain": "(all)", "n_items": 200, "changed": 3}
    >>> parts = [{**whole, "domain": "news", "n_items": 50, "changed": 2}, {**whole, "domain": "blogs", "changed": 1}]
    >>> changed_in_words(whole, pl.DataFrame([whole, *parts]), several=False)
    '3 of 200 labels (1.5%) would be different: most often in news (2 of 50), blogs (1 of 200).'
    """
    named = f"{row['question']}: " if several else ""
    share = row["changed"] / max(row["n_items"], 1)
    text = f"{named}{row['changed']:,} of {row['n_items']:,} labels ({share:.1%}) would be different"
    domains = changed.filter(pl.col("domain") != ALL, pl.col("changed") > 0, question=row["question"])
    most = domains.sort(pl.col("changed") / pl.col("n_items"), descending=True, maintain_order=True).head(MOST_DOMAINS)
    where = [f"{one['domain']} ({one['changed']:,} of {one['n_items']:,})" for one in most.iter_rows(named=True)]
    return f"{text}: most often in {', '.join(where)}." if where else f"{text}."


def rates_by_explanation(run: Run) -> pl.DataFrame:
    """Return the two error rates of every rule, pooled over questions and domains: as published, and explained.

    Rules that err alike are told once, by the first of them.
    """
    rows = run.table("audit").filter(
        pl.col("metric").is_in(["fpr", "fnr"]), question=ALL, domain=ALL, label=ALL, reference="consensus"
    )
    figures = ["value", *EXPLANATIONS[:2]]
    names = pl.col("metric").replace_strict({metric: rate.name for metric, rate in RATES.items()})
    first = rows.group_by("rule", maintain_order=True).agg(pl.col(figures).round(9)).unique(figures, keep="first")
    return rows.join(first, on="rule", how="semi").select("rule", names.alias("rate"), *figures)
