"""Weights that make a pool of annotators stand for a population: raking, and what the weighted votes are still worth.

Raking (iterative proportional fitting, Deming and Stephan 1940) multiplies the weights of each group of a column
until its share is the population's, column after column, over and over. Kish's effective sample size, (Σw)² / Σw²,
says how many annotators of equal weight the weighted ones are worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.findings import listed
from moral_entropy.groups.members import Grouping
from moral_entropy.votes.source import open_source
from moral_entropy.votes.table import Floats, Ints, shown

NEEDED = ("column", "group", "share")
ROUNDS = 1_000
CLOSE = 1e-10


def read_target(source: Any, groupings: Sequence[Grouping], called: str) -> dict[str, Floats]:
    """Read the shares of a population's groups, in the order of the groups, by column; they add up to 1.

    Parameters
    ----------
    source
        A file or dataframe with the columns column, group and share.
    groupings
        The groups of the annotators.
    called
        What an error calls the option.
    """
    table = open_source(source)
    missing = [name for name in NEEDED if name not in table.columns]
    if missing:
        msg = (
            f"{called}: {table.name} has no column {missing[0]!r}. It has {shown(table.columns)}; needed: "
            f"{', '.join(NEEDED)}."
        )
        raise VotesError(msg)
    cells = {name: table.column(name).cast(pl.String).str.strip_chars() for name in NEEDED}
    share = cells["share"].str.strip_chars_end("%").cast(pl.Float64, strict=False)
    rows = pl.DataFrame(cells).with_columns(share=share)
    wrong = rows.filter(pl.col("share").is_null() | ~pl.col("share").is_finite() | (pl.col("share") < 0.0))
    if wrong.height:
        first = f"{wrong['column'][0]} {wrong['group'][0]!r}"
        msg = f"{called}: {wrong.height:,} of {rows.height:,} shares are no numbers from 0 on. First: {first}."
        raise VotesError(msg)
    by_column = {grouping.column: grouping for grouping in groupings}
    columns = rows["column"].unique(maintain_order=True).to_list()
    stray = [name for name in columns if name not in by_column]
    if stray or not columns:
        what = f"the column {stray[0]!r}" if stray else "no rows"
        msg = (
            f"{called}: {table.name} has {what}, and annotators are grouped by {listed(list(by_column))}. Name the "
            "same columns in both."
        )
        raise VotesError(msg)
    return {name: _shares(rows.filter(column=name), by_column[name], called) for name in columns}


def _shares(rows: pl.DataFrame, grouping: Grouping, called: str) -> Floats:
    of_group = dict(rows.select("group", "share").iter_rows())
    unknown = [name for name in of_group if name not in grouping.names]
    missing = [name for name in grouping.names if name not in of_group]
    if len(of_group) != rows.height:
        msg = f"{called}: {grouping.column} has a group in several rows. Give each group one share."
        raise VotesError(msg)
    if unknown and any(of_group[name] > 0.0 for name in unknown):
        msg = (
            f"{called}: {len(unknown)} of {rows.height} groups of {grouping.column} have no annotator, so no weight "
            f"can stand for them. First: {unknown[0]!r}. Groups: {listed(list(grouping.names))}. Leave it out or join "
            "it with another."
        )
        raise VotesError(msg)
    if missing:
        msg = (
            f"{called}: {len(missing)} of {len(grouping.names)} groups of {grouping.column} have no share. First: "
            f"{missing[0]!r}. Give it one; 0 leaves the group out."
        )
        raise VotesError(msg)
    share_g = np.array([of_group[name] for name in grouping.names])
    if share_g.sum() <= 0.0:
        msg = f"{called}: the shares of {grouping.column} are all 0."
        raise VotesError(msg)
    return np.asarray(share_g / share_g.sum())


def rake(group_ca: Sequence[Ints], share_cg: Sequence[Floats]) -> tuple[Floats, float]:
    """Weigh annotators so that the groups of every column have their shares.

    Parameters
    ----------
    group_ca
        Group of each annotator, by column; who has none in some column weighs 0.
    share_cg
        Share of each group, by column.

    Returns
    -------
    tuple
        A weight per annotator, 1 on average over those with a weight, and how far the worst share is off.

    Examples
    --------
    >>> weight_a, off = rake([np.array([0, 0, 0, 1])], [np.array([0.5, 0.5])])
    >>> weight_a.round(3).tolist(), round(off, 6)
    ([0.667, 0.667, 0.667, 2.0], 0.0)
    """
    known_a = np.all([group_a >= 0 for group_a in group_ca], axis=0)
    weight_a = known_a.astype(np.float64)
    off = 0.0
    for _ in range(ROUNDS):
        off = 0.0
        for group_a, share_g in zip(group_ca, share_cg, strict=True):
            has_g = np.bincount(group_a[known_a], weights=weight_a[known_a], minlength=len(share_g))
            off = max(off, float(np.abs(has_g / has_g.sum() - share_g).max()))
            factor_g = np.where(has_g > 0.0, share_g * has_g.sum() / np.where(has_g > 0.0, has_g, 1.0), 0.0)
            weight_a[known_a] *= factor_g[group_a[known_a]]
        if off < CLOSE:
            break
    return weight_a * known_a.sum() / max(weight_a.sum(), 1e-300), off


def effective_size(weight_a: Floats) -> float:
    """Return Kish's effective number of annotators.

    Examples
    --------
    >>> effective_size(np.array([1.0, 1.0])), effective_size(np.array([1.0, 0.0]))
    (2.0, 1.0)
    """
    squares = float((weight_a**2).sum())
    return float(weight_a.sum()) ** 2 / squares if squares > 0.0 else 0.0


def weighted_shares(
    item_v: Ints, annotator_v: Ints, label_v: Ints, weight_a: Floats, n_items: int, n_labels: int
) -> tuple[Floats, Floats]:
    """Return the smoothed weighted share of each label, and the effective votes, per item.

    The share is (n·s + ½) / (n + K/2) for K labels, with n the effective votes and s the weighted share: the smoothed
    vote share of equal weights.

    Parameters
    ----------
    item_v, annotator_v, label_v, n_items, n_labels
        The votes, as codes.
    weight_a
        Weight of each annotator.
    """
    weight_v = weight_a[annotator_v]
    sum_ik = np.bincount(item_v * n_labels + label_v, weights=weight_v, minlength=n_items * n_labels)
    sum_ik = sum_ik.reshape(n_items, n_labels)
    total_i, square_i = sum_ik.sum(axis=1), np.bincount(item_v, weights=weight_v**2, minlength=n_items)
    voted_i = square_i > 0.0
    n_i = np.where(voted_i, total_i**2 / np.where(voted_i, square_i, 1.0), 0.0)
    share_ik = sum_ik / np.where(voted_i, total_i, 1.0)[:, None]
    return (n_i[:, None] * share_ik + 0.5) / (n_i + n_labels / 2.0)[:, None], n_i


def composition(groupings: Sequence[Grouping], target: Mapping[str, Floats]) -> list[dict[str, Any]]:
    """Return who the annotators are: column, group, how many, their share, and the target's share."""
    rows = []
    for grouping in groupings:
        shares = target.get(grouping.column)
        for g, (name, size) in enumerate(zip(grouping.names, grouping.sizes.tolist(), strict=True)):
            wanted = None if shares is None else float(shares[g])
            rows.append({"column": grouping.column, "group": name, "annotators": size,
                         "share": size / len(grouping.group_a), "target": wanted})  # fmt: skip
    return rows
