"""Items → sums by question: what the entropy chart and "Try a rule" are made of.

Few passes over `items.parquet`, whatever its size. Items that stand for several count as often.
"""

from __future__ import annotations

import polars as pl

from moral_entropy.names import ALL, NO_DOMAIN
from moral_entropy.runs.run import Question, Run, target_name
from moral_entropy.schemas import BETWEEN, PARTS

MAX_VOTES = 40
"""Largest number of votes with a row of its own in the table by votes; more are pooled there."""

MAX_CELLS = 40_000
"""Vote cells in the page at most; with more, domains are pooled."""

ENTROPIES = {"total": "entropy"} | {name: name for name in PARTS}
CELL = ("target", "domain", "votes", "positive")
CELL_ITEMS = pl.Schema(
    {
        "target": pl.String(),
        "domain": pl.String(),
        "votes": pl.Int32(),
        "positive": pl.Int32(),
        "count": pl.Float64(),
        "p": pl.Float64(),
        "is_yes": pl.Boolean(),
    }
)


def entropy_by_votes(run: Run) -> pl.DataFrame:
    """Average the entropy and its parts by question and number of votes.

    Returns
    -------
    pl.DataFrame
        question, votes (`MAX_VOTES` stands for more), n, total, and its parts.
    """
    weight = pl.col("count")

    def mean(column: str) -> pl.Expr:
        has = pl.col(column).is_not_null()
        return (pl.col(column) * weight).sum() / weight.filter(has).sum()

    votes = pl.col("n_votes").clip(upper_bound=MAX_VOTES)
    entropies = ENTROPIES | ({BETWEEN: BETWEEN} if run.between_groups else {})
    return (
        run.scan("items")
        .group_by("question", votes.alias("votes"))
        .agg(n=weight.sum(), **{name: mean(of) for name, of in entropies.items()})
        .sort("question", "votes")
        .with_columns(pl.col(pl.Float64).fill_nan(None))
        .collect(engine="streaming")
    )


def vote_cells(run: Run) -> pl.DataFrame:
    """Count items by target, domain, votes and positive votes: enough to grade any threshold on votes.

    Items without votes are left out, as rules on votes say nothing about them.

    Returns
    -------
    pl.DataFrame
        target (a question, or one label of a question with more than two), domain ("(none)" for items without one),
        votes, positive, no, yes (items whose consensus is no and yes), p (sum of their p).
    """
    pieces = [_two_labels(run, question) for question in run.questions if question.positive is not None]
    several = [question for question in run.questions if question.positive is None]
    if run.has("votes"):
        pieces += [_one_label(run, question, label) for question in several for label in question.labels]
    if not pieces:
        return _summed(pl.LazyFrame(schema=CELL_ITEMS)).collect()
    cells = pl.concat(pl.collect_all([_summed(piece) for piece in pieces], engine="streaming"))
    if cells.height > MAX_CELLS:
        cells = cells.with_columns(domain=pl.lit(ALL)).group_by(*CELL, maintain_order=True).sum()
    return cells


def _summed(rows: pl.LazyFrame) -> pl.LazyFrame:
    weight = pl.col("count")
    sums = rows.group_by(*CELL).agg(
        no=weight.filter(~pl.col("is_yes")).sum(),
        yes=weight.filter(pl.col("is_yes")).sum(),
        p=(pl.col("p") * weight).sum(),
    )
    return sums.sort(*CELL)


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
    """Take one label of more than two against the rest: its votes from `votes`, its p from `posterior`."""
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
