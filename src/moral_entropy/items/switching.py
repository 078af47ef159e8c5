"""Who stands with the majority on which item: the paper's switching table.

Takes votes as the run folder keeps them and some items, returns one column per annotator and one for the majority.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from moral_entropy.errors import VotesError

MAJORITY = "majority"


@dataclass(frozen=True, eq=False)
class SwitchingTable:
    """Votes on some items, and how often each annotator stands with the majority.

    Parameters
    ----------
    frame
        One row per item: item, a column for every annotator with a vote on any of them (null where there is none), and
        majority.
    roles
        One row per annotator: annotator, with_majority, against_majority.
    """

    frame: pl.DataFrame
    roles: pl.DataFrame


def switching_table(
    votes: pl.DataFrame, items: Sequence[object], *, question: str, positive: str | None = None
) -> SwitchingTable:
    """Lay out the votes on some items, one column per annotator.

    Parameters
    ----------
    votes
        Columns question, item, annotator, label.
    items
        Ids of the items, in the order wanted.
    question
        Which question.
    positive
        The label that wins a tie of two, as in the paper; otherwise the one that sorts last.

    Examples
    --------
    >>> votes = pl.DataFrame({"question": "care", "item": ["x", "x", "x"], "annotator": ["A", "B", "C"],
    ...                       "label": ["1", "1", "0"]})
    >>> switching_table(votes, ["x"], question="care").roles.rows()
    [('A', 1, 0), ('B', 1, 0), ('C', 0, 1)]
    """
    wanted = pl.DataFrame({"item": pl.Series(map(str, items), dtype=pl.String)}).with_row_index("row")
    cast = votes.filter(question=question).with_columns(pl.col("item", "annotator").cast(pl.String))
    cast = cast.join(wanted, on="item").sort("row", "annotator", maintain_order=True)
    if cast.is_empty():
        msg = (
            f"none of the {len(items)} items has a vote on {question!r}. First: {items[0]!r}." if items else "no items."
        )
        raise VotesError(msg)
    most = _majority(cast, positive)
    # Annotators may have the names of other columns.
    apart = {name: f"{name} (annotator)" for name in ("item", MAJORITY)}
    renamed = cast.with_columns(pl.col("annotator").replace(apart))
    wide = renamed.pivot(on="annotator", index="item", values="label", aggregate_function="last", sort_columns=True)
    frame = wide.join(most, on="item", how="left", maintain_order="left")
    with_most = cast.join(most, on="item").with_columns(same=pl.col("label") == pl.col(MAJORITY))
    roles = with_most.group_by("annotator").agg(
        pl.col("same").sum().cast(pl.Int64).alias("with_majority"),
        (~pl.col("same")).sum().cast(pl.Int64).alias("against_majority"),
    )
    return SwitchingTable(frame, roles.sort("annotator"))


def _majority(cast: pl.DataFrame, positive: str | None) -> pl.DataFrame:
    counts = cast.group_by("item", "label").agg(n=pl.len())
    first_of_ties = pl.col("label") == (positive if positive is not None else cast["label"].max())
    ordered = counts.sort("item", "n", first_of_ties, "label", descending=[False, True, True, False])
    return ordered.group_by("item", maintain_order=True).agg(pl.col("label").first().alias(MAJORITY))
