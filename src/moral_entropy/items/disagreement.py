"""How often annotators vote against the majority, with and without their own vote in it, and how often against gold.

Takes a `Ballot`, or votes as the run folder keeps them. Uses votes and gold labels only, not the consensus.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.errors import VotesError
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints

ITEMS_AT_ONCE = 262_144

MAJORITY = "majority"
"""Column of the switching table."""


def majority_label(counts_ik: Ints, positive: int) -> NDArray[np.int64]:
    """Return the paper's majority label of each item.

    Of two labels the positive one when it has half the votes or more; of more the plurality, and the label that
    sorts first where several have as many.

    Examples
    --------
    >>> majority_label(np.array([[1, 1], [2, 1]]), positive=1).tolist()
    [1, 0]
    """
    if counts_ik.shape[1] > 2:
        return np.asarray(counts_ik.argmax(axis=1))
    is_positive_i = counts_ik[:, positive] >= counts_ik[:, 1 - positive]
    return np.where(is_positive_i, positive, 1 - positive)


def tally_votes(ballot: Ballot, *, anonymous: bool = False) -> Floats:
    """Count every annotator's votes in five ways, `tally_xa`; tallies of parts of the votes add up.

    - Votes against the majority label of their item, the own vote counted in it, as in the paper: see `majority_label`.
    - Votes against the majority of the others, and votes on items on which others voted. All own votes on the item are
      left out; where the others tie, a vote for one of the tied labels differs from the rest: of two it counts half.
    - Votes that are what gold says, and votes on items with a gold label.

    Parameters
    ----------
    ballot
        The votes.
    anonymous
        Whether votes came without annotators: then only the vote itself is left out, not all of the item.

    Examples
    --------
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> ballot = ballot_from_codes("care", ("no", "yes"), item_v=[0, 0, 0, 1], annotator_v=[0, 1, 2, 2],
    ...                            label_v=[1, 1, 0, 1])
    >>> tally_votes(ballot)[:3].tolist()
    [[0.0, 0.0, 1.0], [0.5, 0.5, 1.0], [1.0, 1.0, 1.0]]
    """
    n_labels, tally_xa = ballot.n_labels, np.zeros((5, ballot.n_annotators))
    for start in range(0, ballot.n_items, ITEMS_AT_ONCE):
        chunk = slice(start, min(start + ITEMS_AT_ONCE, ballot.n_items))
        item_v = np.repeat(np.arange(chunk.stop - start), ballot.votes_i[chunk])
        code_v = ballot.code_v[ballot.start_i[start] : ballot.start_i[chunk.stop]]
        annotator_v, label_v = np.divmod(code_v, n_labels)
        flat = np.bincount(item_v * n_labels + label_v, minlength=(chunk.stop - start) * n_labels)
        counts_ik, gold_v = flat.reshape(-1, n_labels), ballot.gold_i[chunk][item_v]
        against_v = label_v != majority_label(counts_ik, ballot.positive)[item_v]
        # Votes are sorted by item and annotator: those of one pair are neighbours, one vote unless repeats were kept.
        fresh_v = (np.diff(item_v, prepend=-1) != 0) | (np.diff(annotator_v, prepend=-1) != 0)
        others_vk, pair_v = counts_ik[item_v], np.arange(len(code_v)) if anonymous else np.cumsum(fresh_v) - 1
        if anonymous or fresh_v.all():
            others_vk[pair_v, label_v] -= 1
        else:
            n_pairs = int(pair_v[-1]) + 1
            own_x = np.bincount(pair_v * n_labels + label_v, minlength=n_pairs * n_labels)
            others_vk -= own_x.reshape(n_pairs, n_labels)[pair_v]
        top_vk = others_vk == others_vk.max(axis=1, keepdims=True)
        with_top_v = top_vk[np.arange(len(code_v)), label_v] / top_vk.sum(axis=1)
        compared_v, known_v = others_vk.sum(axis=1) > 0, gold_v != UNKNOWN
        values = (against_v, compared_v * (1.0 - with_top_v), compared_v, known_v & (label_v == gold_v), known_v)
        weight_v = ballot.count_i[chunk][item_v]
        for tally_a, value_v in zip(tally_xa, values, strict=True):
            tally_a += np.bincount(annotator_v, weights=weight_v * value_v, minlength=ballot.n_annotators)
    return tally_xa


def switching_table(
    votes: pl.DataFrame, items: Sequence[object], *, question: str, positive: str | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Lay out the votes on some items, one column per annotator: the paper's switching table.

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

    Returns
    -------
    tuple
        One row per item: item, a column for every annotator with a vote on any of them (null where there is none), and
        majority. And one row per annotator: annotator, with_majority, against_majority.

    Examples
    --------
    >>> votes = pl.DataFrame({"question": "care", "item": ["x", "x", "x"], "annotator": ["A", "B", "C"],
    ...                       "label": ["1", "1", "0"]})
    >>> switching_table(votes, ["x"], question="care")[1].rows()
    [('A', 1, 0), ('B', 1, 0), ('C', 0, 1)]
    """
    item_order = pl.DataFrame({"item": pl.Series(map(str, items), dtype=pl.String)}).with_row_index("row")
    cast = votes.filter(question=question).with_columns(pl.col("item", "annotator").cast(pl.String))
    cast = cast.join(item_order, on="item").sort("row", "annotator", maintain_order=True)
    if cast.is_empty():
        msg = (
            f"none of the {len(items)} items has a vote on {question!r}. First: {items[0]!r}." if items else "no items."
        )
        raise VotesError(msg)
    majority = _majority(cast, positive)
    # Annotators may have the names of other columns.
    apart = {name: f"{name} (annotator)" for name in ("item", MAJORITY)}
    renamed = cast.with_columns(pl.col("annotator").replace(apart))
    wide = renamed.pivot(on="annotator", index="item", values="label", aggregate_function="last", sort_columns=True)
    frame = wide.join(majority, on="item", how="left", maintain_order="left")
    with_most = cast.join(majority, on="item").with_columns(same=pl.col("label") == pl.col(MAJORITY))
    roles = with_most.group_by("annotator").agg(
        pl.col("same").sum().cast(pl.Int64).alias("with_majority"),
        (~pl.col("same")).sum().cast(pl.Int64).alias("against_majority"),
    )
    return frame, roles.sort("annotator")


def _majority(cast: pl.DataFrame, positive: str | None) -> pl.DataFrame:
    counts = cast.group_by("item", "label").agg(n=pl.len())
    first_of_ties = pl.col("label") == (positive if positive is not None else cast["label"].max())
    ordered = counts.sort("item", "n", first_of_ties, "label", descending=[False, True, True, False])
    return ordered.group_by("item", maintain_order=True).agg(pl.col("label").first().alias(MAJORITY))
