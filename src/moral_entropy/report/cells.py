"""Items → counts by what the votes look like: all that the page needs to grade any threshold on votes.

A cell is one question (or label of more than two), domain, number of votes and number of positive votes. Items
without votes are left out, as rules on votes say nothing about them.
"""

from __future__ import annotations

import polars as pl

from moral_entropy.names import ALL, NO_DOMAIN
from moral_entropy.report.run import Question, Run, target_name

MAX_CELLS = 40_000
"""Cells in the page at most; with more, domains are pooled."""

KEYS = ("target", "domain", "votes", "positive")


def vote_cells(run: Run) -> pl.DataFrame:
    """Count items by target, domain, votes and positive votes.

    Returns
    -------
    pl.DataFrame
        target, domain ("(none)" for items without one), votes, positive, no, yes (items whose consensus is no and
        yes), p (sum of their p). Pre-counted items count as often as they stand for.
    """
    pieces = [_two_labels(run, question) for question in run.questions if question.positive is not None]
    several = [question for question in run.questions if question.positive is None]
    if run.has("votes"):
        pieces += [_one_label(run, question, label) for question in several for label in question.labels]
    if not pieces:
        return _summed(pl.LazyFrame(schema=_SCHEMA)).collect()
    cells = pl.concat(pl.collect_all([_summed(piece) for piece in pieces], engine="streaming"))
    if cells.height > MAX_CELLS:
        cells = cells.with_columns(domain=pl.lit(ALL)).group_by(*KEYS, maintain_order=True).sum()
    return cells


_SCHEMA = {
    "target": pl.String(),
    "domain": pl.String(),
    "votes": pl.Int32(),
    "positive": pl.Int32(),
    "count": pl.Float64(),
    "p": pl.Float64(),
    "is_yes": pl.Boolean(),
}


def _summed(rows: pl.LazyFrame) -> pl.LazyFrame:
    weight = pl.col("count")
    sums = rows.group_by(*KEYS).agg(
        no=weight.filter(~pl.col("is_yes")).sum(),
        yes=weight.filter(pl.col("is_yes")).sum(),
        p=(pl.col("p") * weight).sum(),
    )
    return sums.sort(*KEYS)


def _two_labels(run: Run, question: Question) -> pl.LazyFrame:
    return (
        run.scan("items")
        .filter(pl.col("question") == question.name, pl.col("n_votes") > 0)
        .select(
            target=pl.lit(question.name),
            domain=pl.col("domain").fill_null(NO_DOMAIN),
            votes="n_votes",
            positive="n_positive",
            count="count",
            p="p",
            is_yes=pl.col("p") >= 0.5,
        )
    )


def _one_label(run: Run, question: Question, label: str) -> pl.LazyFrame:
    """One label of more than two against the rest: its votes from `votes`, its p from `posterior`."""
    of_question = pl.col("question") == question.name
    chosen = run.scan("votes").filter(of_question, label=label).group_by("item").agg(positive=pl.len().cast(pl.Int32))
    p = run.scan("posterior").filter(of_question, pl.col("class") == label).select("item", p_label="p")
    items = run.scan("items").filter(of_question, pl.col("n_votes") > 0)
    return (
        items.join(p, on="item")
        .join(chosen, on="item", how="left")
        .select(
            target=pl.lit(target_name(question.name, label)),
            domain=pl.col("domain").fill_null(NO_DOMAIN),
            votes="n_votes",
            positive=pl.col("positive").fill_null(0),
            count="count",
            p="p_label",
            is_yes=pl.col("label") == label,
        )
    )
