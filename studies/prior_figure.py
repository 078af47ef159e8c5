"""A grid of priors in one figure and one sentence.

Takes the frame of `prior_grid`; returns a Vega-Lite specification with its data in it, and a sentence. Needs Altair.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from moral_entropy.consensus.options import POOLING
from moral_entropy.ties import DECIMALS

COLOURS = ("#0072B2", "#D55E00", "#009E73")
"""Of the poolings."""

WIDTH = 640


def prior_sentence(grid: pl.DataFrame) -> str:
    """Sum a grid up in one sentence: the question whose prevalence ranges furthest, and what a rule's errors do there.

    Parameters
    ----------
    grid
        See `prior_grid`.
    """
    ranges = grid.filter(pl.col("value").is_finite()).group_by("question", "figure", "subject", maintain_order=True)
    ends = ranges.agg(low=pl.col("value").min(), high=pl.col("value").max())
    reach = (pl.col("high") - pl.col("low")).round(DECIMALS)
    widest = ends.filter(figure="prevalence").sort(reach, descending=True, maintain_order=True).row(0, named=True)
    question, n = widest["question"], grid["prior"].n_unique()
    said = (
        f"Under {n} priors the prevalence of {widest['subject']!r} in {question} is anywhere from {widest['low']:.1%} "
        f"to {widest['high']:.1%}"
    )
    rates = ends.filter(pl.col("question") == question, pl.col("figure").is_in(["fpr", "fnr"]))
    moves = [f"{rate['subject']}'s {rate['figure'].upper()} from {rate['low']:.1%} to {rate['high']:.1%}"
             for rate in rates.iter_rows(named=True)]  # fmt: skip
    return said + (f", and {', '.join(moves)}." if moves else ".")


def prior_chart(grid: pl.DataFrame, truth: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Draw the prevalence under every prior, with its interval: one panel per question, as a Vega-Lite specification.

    Parameters
    ----------
    grid
        See `prior_grid`.
    truth
        True prevalence by question, where it is known: a vertical line.
    """
    table = grid.filter(figure="prevalence").select("prior", "pooling", "question", "subject", "value", "low", "high")
    known_of = pl.col("question").replace_strict(truth or {}, default=None, return_dtype=pl.Float64)
    table = table.with_columns(known_of.alias("truth"))
    numbers = [alt.Tooltip(f"{name}:Q", format=".1%") for name in ("value", "low", "high")]
    base = alt.Chart().encode(
        y=alt.Y("prior:N", title=None, sort=None),
        color=alt.Color("pooling:N", title="pooling", scale=alt.Scale(domain=list(POOLING), range=list(COLOURS))),
        tooltip=["prior:N", "question:N", "subject:N", *numbers],
    )
    lines = base.mark_rule(strokeWidth=2, opacity=0.5).encode(x=alt.X("low:Q"), x2="high:Q")
    share = alt.X("value:Q", title="prevalence", axis=alt.Axis(format="%"), scale=alt.Scale(zero=True))
    dots = base.mark_point(filled=True, size=40, opacity=1).encode(x=share)
    known = alt.Chart().mark_rule(color="#999999", strokeDash=[4, 4]).encode(x="mean(truth):Q")
    chart = (
        alt.layer(known, lines, dots, data=alt.InlineData(values=table.to_dicts()))
        .properties(width=WIDTH // 3, height=alt.Step(14))
        .facet(facet=alt.Facet("question:N", title=None, sort=None), columns=3)
        .properties(usermeta={"columns": 3}, description="Prevalence under every prior, by question")
    )
    with alt.data_transformers.enable(consolidate_datasets=False):
        spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)
    return spec
