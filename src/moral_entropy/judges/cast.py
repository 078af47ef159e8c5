"""Run → who the judges of a question are, and what each voted on some items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.runs.between_labels import positions
from moral_entropy.runs.run import Question, Run
from moral_entropy.votes.table import UNKNOWN, Ints

MOST_JUDGES = 200
"""Judges up to whom a panel is taken apart; more are a crowd."""


class CastVotes(NamedTuple):
    """Votes of judges on some items. Axes: **j** judge, **i** item.

    Parameters
    ----------
    judges
        Their names, in alphabetical order.
    vote_ji
        Their votes, or `UNKNOWN`; of an item asked about twice the first.
    unsure_ji
        Which votes are unsure ones, where these were taken apart.
    """

    judges: list[str]
    vote_ji: Ints
    unsure_ji: NDArray[np.bool_]


def judge_of_annotator(run: Run) -> dict[str, str]:
    """Return the judge by name of the annotator who has its unsure votes; empty where these were not taken apart."""
    return dict(run.manifest.get("unsure", {}))


def cast_votes(run: Run, question: Question, items: pl.Series) -> CastVotes:
    """Read what the judges of a question voted on some items, in their order."""
    votes = run.table("votes", where=pl.col("question") == question.name)
    judge_of, name = judge_of_annotator(run), pl.col("annotator").cast(pl.String)
    votes = votes.with_columns(annotator=name.replace(judge_of), unsure=name.is_in(list(judge_of)))
    judges = votes["annotator"].drop_nulls().unique().sort().to_list()
    places = pl.DataFrame({"item": items}).with_row_index("at")
    coded = votes.join(places, on="item", how="inner", maintain_order="left").drop_nulls("annotator")
    vote_ji = np.full((len(judges), len(items)), UNKNOWN, dtype=np.int64)
    where = positions(coded["annotator"], judges, default=0), coded["at"].to_numpy()
    # Backwards: of two votes of one judge on one item the first stays.
    vote_ji[where[0][::-1], where[1][::-1]] = positions(coded["label"], list(question.labels), default=UNKNOWN)[::-1]
    unsure_ji = np.zeros(vote_ji.shape, dtype=np.bool_)
    unsure_ji[where[0][::-1], where[1][::-1]] = coded["unsure"].to_numpy()[::-1]
    return CastVotes(judges, vote_ji, unsure_ji)
