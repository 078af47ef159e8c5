"""Items → a few sums by question: what the verdict and the warnings look at.

One pass over `items.parquet`, whatever its size.
"""

from __future__ import annotations

import math

import polars as pl

from moral_entropy.report.run import Run

MAX_VOTES = 40
"""Largest number of votes with a row of its own in the table by votes; more are pooled there."""


def item_sums(run: Run) -> pl.DataFrame:
    """Sum up the items of every question.

    Returns
    -------
    pl.DataFrame
        question, items, votes, wrong (mean chance that the consensus label is wrong, by the model's own account),
        wrong_sd, doubtful (share of items whose entropy is above half of its most), against (items on which all
        votes speak against the consensus label: no yes and a consensus of yes, or two and more of the other kind),
        unvoted.
    """
    two = pl.col("question").is_in([question.name for question in run.questions if question.positive is not None])
    yes = pl.col("p") >= 0.5
    wrong = pl.when(two).then(pl.min_horizontal("p", 1 - pl.col("p"))).otherwise(1 - pl.col("p"))
    none, every = pl.col("n_positive") == 0, pl.col("n_positive") == pl.col("n_votes")
    # With more than two labels n_positive counts votes for the consensus label: none for it is all against it.
    # A single yes that the prior outweighs is thin data; a single no that counts as yes is something switched.
    voted, several = pl.col("n_votes") > 0, pl.col("n_votes") > 1
    against = pl.when(two).then((none & yes & voted) | (every & ~yes & several)).otherwise(none & several)
    most = pl.col("question").replace_strict(
        {question.name: math.log(len(question.labels)) for question in run.questions}, return_dtype=pl.Float64
    )
    weight = pl.col("count")
    rows = run.scan("items").with_columns(
        wrong=wrong, against=against, doubtful=pl.col("entropy") > most / 2, unvoted=pl.col("n_votes") == 0
    )
    mean = (pl.col("wrong") * weight).sum() / weight.sum()
    variance = (pl.col("wrong").pow(2) * weight).sum() / weight.sum() - mean.pow(2)
    return (
        rows.group_by("question", maintain_order=True)
        .agg(
            items=weight.sum(),
            votes=(pl.col("n_votes") * weight).sum(),
            wrong=mean,
            wrong_sd=variance.clip(lower_bound=0).sqrt(),
            doubtful=(pl.col("doubtful") * weight).sum() / weight.sum(),
            against=(pl.col("against") * weight).sum(),
            unvoted=(pl.col("unvoted") * weight).sum(),
        )
        .collect(engine="streaming")
    )


def entropy_by_votes(run: Run) -> pl.DataFrame:
    """Average the entropy and its parts by question and number of votes.

    Returns
    -------
    pl.DataFrame
        question, votes (`MAX_VOTES` stands for more), n, total, aleatoric, epistemic.
    """
    weight = pl.col("count")

    def mean(column: str) -> pl.Expr:
        has = pl.col(column).is_not_null()
        return (pl.col(column) * weight).sum() / weight.filter(has).sum()

    votes = pl.col("n_votes").clip(upper_bound=MAX_VOTES)
    return (
        run.scan("items")
        .group_by("question", votes.alias("votes"))
        .agg(n=weight.sum(), **{name: mean(of) for name, of in _PARTS.items()})
        .sort("question", "votes")
        .with_columns(pl.col(pl.Float64).fill_nan(None))
        .collect(engine="streaming")
    )


_PARTS = {"total": "entropy", "aleatoric": "aleatoric", "epistemic": "epistemic"}
