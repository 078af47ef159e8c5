"""Targets per group of annotators, from the table `group_items` of a run that was audited with groups.

`group:NAME` is the p of one group: what its members are expected to say. `annotators:COLUMN` are the votes of every
group of a column, for a classifier with an output per group. Touches no files.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from moral_entropy.errors import TrainError
from moral_entropy.train.head import Block
from moral_entropy.votes.table import Floats

ANNOTATORS, GROUP = "annotators", "group:"
BY_GROUP = f"{ANNOTATORS}:"


def is_group_kind(kind: str) -> bool:
    """Tell whether targets of a kind are made from the groups of a run."""
    return kind.startswith((GROUP, BY_GROUP))


def asks_voters(kind: str) -> bool:
    """Tell whether a classifier has one output per annotator, or per group of them."""
    return kind == ANNOTATORS or kind.startswith(BY_GROUP)


def rows_of_kind(groups: pl.DataFrame | None, kind: str) -> pl.DataFrame:
    """Return the rows of `group_items` that a kind of target is about.

    Parameters
    ----------
    groups
        The table; None or empty where the run has no groups.
    kind
        `group:NAME`, `group:COLUMN=NAME` where groups of several columns have the same name, or `annotators:COLUMN`.

    Examples
    --------
    >>> groups = pl.DataFrame({"column": ["age", "age"], "group": ["old", "young"]})
    >>> rows_of_kind(groups, "group:young").height, rows_of_kind(groups, "annotators:age").height
    (1, 2)
    >>> rows_of_kind(groups, "group:men")
    Traceback (most recent call last):
    ...
    moral_entropy.errors.TrainError: the run has no group 'men'. It has age=old, age=young.
    """
    if groups is None or groups.is_empty():
        msg = f"the run knows no groups of annotators, so it has no targets {kind!r}. Audit with --annotator-group."
        raise TrainError(msg)
    wanted = kind.removeprefix(BY_GROUP).removeprefix(GROUP)
    if kind.startswith(BY_GROUP):
        found = groups.filter(pl.col("column") == wanted)
        named, what = groups["column"].unique().sort().to_list(), "column of groups"
    else:
        found = groups.filter((pl.col("group") == wanted) | (pl.format("{}={}", "column", "group") == wanted))
        pairs = groups.select(pl.format("{}={}", "column", "group")).to_series()
        named, what = pairs.unique().sort().to_list(), "group"
    if found.is_empty():
        msg = f"the run has no {what} {wanted!r}. It has {', '.join(named)}."
        raise TrainError(msg)
    columns = found["column"].unique().sort().to_list()
    if len(columns) > 1:
        msg = f"{len(columns)} columns have a group {wanted!r}. Say which: {GROUP}{columns[0]}={wanted}."
        raise TrainError(msg)
    return found


def group_p(rows: pl.DataFrame, block: Block, items: pl.Series) -> Floats:
    """Return the p of one group for each item asked: `p_ik`; NaN where it has none.

    Of more than two labels each has a p of its own in the table; here they are divided by their sum.
    """
    own = _about(rows, block)
    wide = own.pivot("label", index="item", values="p", aggregate_function="first")
    asked = pl.DataFrame({"item": items}).join(wide, on="item", how="left", maintain_order="left")
    if block.positive is not None:
        yes_i = asked[block.positive].fill_null(np.nan).to_numpy()
        p_ik = np.column_stack([1.0 - yes_i, yes_i])
        return p_ik if block.labels[1] == block.positive else p_ik[:, ::-1]
    # A label that nobody compared, of very many, counts for nothing.
    p_ik = np.column_stack([_column(asked, label) for label in block.labels])
    known_i = np.isfinite(p_ik).any(axis=1)
    p_ik = np.where(np.isfinite(p_ik), p_ik, 0.0)
    total_i = p_ik.sum(axis=1)
    return np.where(known_i[:, None], p_ik / np.where(total_i > 0, total_i, np.nan)[:, None], np.nan)


def _column(asked: pl.DataFrame, label: str) -> Floats:
    if label not in asked.columns:
        return np.full(asked.height, np.nan)
    return np.asarray(asked[label].fill_null(np.nan).to_numpy(), dtype=float)


def group_cast(rows: pl.DataFrame, block: Block, items: pl.Series) -> pl.DataFrame:
    """Return the votes of every group as `voters_of` takes them: item, voter, label, n."""
    own = _about(rows, block).select(
        item=pl.col("item"), voter=pl.col("group"), label=pl.col("label"), yes=pl.col("n_yes"), n=pl.col("n_votes")
    )
    position = {label: k for k, label in enumerate(block.labels)}
    parts = [own.with_columns(label=pl.col("label").replace_strict(position), n=pl.col("yes"))]
    if block.positive is not None:
        no = 1 - position[block.positive]
        parts.append(own.with_columns(label=pl.lit(no, dtype=pl.Int64), n=pl.col("n") - pl.col("yes")))
    cast = pl.concat(parts).filter(pl.col("n") > 0)
    return with_rows(cast, items).select("item", "voter", "label", pl.col("n").cast(pl.Float64))


def with_rows(cast: pl.DataFrame, items: pl.Series) -> pl.DataFrame:
    """Replace the id of each vote's item by its position among `items`, which are sorted; others are left out."""
    rows = pl.DataFrame({"item": items, "row": np.arange(len(items))})
    found = cast.join(rows, on="item", how="inner", maintain_order="left")
    return found.with_columns(item=pl.col("row")).drop("row")


def _about(rows: pl.DataFrame, block: Block) -> pl.DataFrame:
    own = rows.filter(pl.col("question") == block.question, pl.col("label").is_in(list(block.labels)))
    if own.is_empty():
        msg = (
            f"the run has no p per group for the labels of question {block.question!r}; groups are compared on ratings "
            "by their mean and one cut. Audit the votes without this question, or choose other targets."
        )
        raise TrainError(msg)
    return own
