"""Who belongs to which group (`Grouping`), and weights that make a pool of annotators stand for a population.

Groups are columns of the votes, or of a file with one row per annotator. An annotator has one group per column; several
are an error. Those without one are left out of comparisons, and a group of one annotator is shown but not compared:
nobody could say what is the group's and what is the person's.

Raking (iterative proportional fitting, Deming and Stephan 1940) multiplies the weights of each group of a column
until its share is the population's, column after column, over and over. Kish's effective sample size, (Σw)² / Σw²,
says how many annotators of equal weight the weighted ones are worth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.findings import listed, many
from moral_entropy.names import UNKNOWN_GROUP
from moral_entropy.option_fields import did_you_mean
from moral_entropy.options import GroupOptions
from moral_entropy.votes.layouts import PLUS, split_names
from moral_entropy.votes.source import open_source
from moral_entropy.votes.table import UNKNOWN, Floats, Ints, Votes, shown

MOST_GROUPS = 20
FEWEST = 2
"""Annotators that a group needs to be compared."""

NO_VALUE = frozenset({"", "na", "n/a", "nan", "null", "-", "?"})
BETWEEN = " + "

NEEDED = ("column", "group", "share")
ROUNDS = 1_000
CLOSE = 1e-10

Cells = Mapping[Any, str]
"""The group of an annotator, by the annotator's id; those without one are absent."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of one column.

    Parameters
    ----------
    column
        Name of the column.
    names
        Names of the groups, sorted.
    group_a
        Each annotator's group; `UNKNOWN` where it is not known.
    """

    column: str
    names: tuple[str, ...]
    group_a: Ints

    @cached_property
    def sizes(self) -> Ints:
        """Annotators per group."""
        return np.bincount(self.group_a[self.group_a >= 0], minlength=len(self.names))

    def notes(self) -> list[str]:
        """Say whose votes are left out of comparisons, and why."""
        n_unknown, notes = int((self.group_a < 0).sum()), []
        if n_unknown:
            people = f"{many(n_unknown, 'annotator')} of {len(self.group_a):,} without a value"
            notes.append(f"by {self.column}, {people}: the group {UNKNOWN_GROUP} is not compared.")
        if alone := [name for name, size in zip(self.names, self.sizes, strict=True) if size < FEWEST]:
            notes.append(f"by {self.column}, groups of one annotator are shown and not compared: {listed(alone)}.")
        return notes


def columns_to_keep(options: GroupOptions) -> tuple[str, ...]:
    """Return the columns of the votes that the reader has to keep; empty where a file describes the annotators."""
    if options.annotators is not None:
        return ()
    return tuple(dict.fromkeys(part.strip() for name in options.annotator_group for part in name.split(PLUS)))


def read_groupings(votes: Votes, options: GroupOptions) -> tuple[Grouping, ...]:
    """Return the groups of every column that was asked for.

    Parameters
    ----------
    votes
        The votes, with the columns kept (`columns_to_keep`).
    options
        Which columns, and the file they are in.

    Examples
    --------
    >>> from moral_entropy.votes.read import read_votes
    >>> table = pl.DataFrame({"item": [1, 1, 1, 2], "annotator": ["a", "b", "c", "a"], "label": [0, 1, 1, 1],
    ...                       "gender": ["f", None, "m", "f"]})
    >>> [grouping] = read_groupings(read_votes(table, keep=("gender",)), GroupOptions(annotator_group=("gender",)))
    >>> grouping.names, grouping.group_a.tolist()
    (('f', 'm'), [0, -1, 1])
    """
    if not options.annotator_group:
        return ()
    option = options.named("annotator_group")
    if votes.anonymous:
        msg = f"{option} needs annotators, and these votes are anonymous."
        raise UsageError(msg)
    frame, where = _columns_of_votes(votes, options) if options.annotators is None else _annotator_file(votes, options)
    columns = [name for name in frame.columns if name != "annotator"]
    requested = [tuple(split_names(name, set(columns))) for name in options.annotator_group]
    unknown = [part for parts in requested for part in parts if part not in columns]
    if unknown:
        hint = f"{did_you_mean(unknown[0], columns)} Columns: {shown(columns)}."
        has = "have" if options.annotators is None else "has"
        raise _error(option, f"{where} {has} no column {unknown[0]!r}.{hint}")
    cells = {column: _group_by_annotator(frame, column, option, where) for parts in requested for column in parts}
    return tuple(_grouping(votes, parts, cells, option) for parts in dict.fromkeys(requested))


def _columns_of_votes(votes: Votes, options: GroupOptions) -> tuple[pl.DataFrame, str]:
    """Return who cast each vote with the kept columns, from all ballots, and what errors call that."""
    columns = [name for name in columns_to_keep(options) if name in votes.kept]
    frames = [pl.DataFrame({"annotator": votes.annotators.head(0)})]
    for ballot in votes.ballots:
        if ballot.row_v is not None:
            rows = {name: votes.kept[name].gather(ballot.row_v) for name in columns}
            voters = votes.annotators.gather(ballot.annotator_a[ballot.code_v // ballot.n_labels])
            frames.append(pl.DataFrame({"annotator": voters, **rows}).unique())
    return pl.concat(frames, how="diagonal").unique(), "the votes"


def _annotator_file(votes: Votes, options: GroupOptions) -> tuple[pl.DataFrame, str]:
    """Read the file with one row per annotator; return it with its name."""
    source, option = open_source(options.annotators), options.named("annotators")
    names = list(source.columns)
    ids = [name for name in ("annotator", votes.reading.columns.get("annotator")) if name in names]
    if not ids:
        columns = f"Columns: {shown(names)}. Rename the one with their ids."
        raise _error(option, f"{source.name} has no column 'annotator'. {columns}")
    frame = pl.DataFrame({"annotator": source.column(ids[0]).cast(pl.String).str.strip_chars()}).with_columns(
        *(source.column(name).alias(name) for name in names if name not in (ids[0], "annotator"))
    )
    voters = votes.annotators.cast(pl.String)
    voted = frame.filter(pl.col("annotator").is_in(voters.implode()))
    if voted.is_empty():
        first = f"First: {next(iter(frame['annotator']), '')!r}. Of the votes: {shown(voters.head(9).to_list())}."
        raise _error(option, f"none of the {frame.height:,} annotators of {source.name} voted. {first}")
    return voted, Path(source.name).name


def _group_by_annotator(frame: pl.DataFrame, column: str, option: str, where: str) -> Cells:
    """Return the group of every annotator that has one; several groups of one annotator are an error."""
    value = pl.col(column).cast(pl.String).str.strip_chars()
    rows = frame.select(annotator="annotator", group=value).drop_nulls().unique()
    rows = rows.filter(~pl.col("group").str.to_lowercase().is_in(list(NO_VALUE))).sort("annotator", "group")
    repeated = rows.filter(pl.col("annotator").is_duplicated())
    if repeated.height:
        annotator, n = repeated["annotator"][0], repeated["annotator"].n_unique()
        groups = repeated.filter(pl.col("annotator") == annotator)["group"].to_list()
        people = f"{many(n, 'annotator')} of {frame['annotator'].n_unique():,} in {where} {'has' if n == 1 else 'have'}"
        first = f"First: annotator {annotator!r} has {listed([repr(group) for group in groups], ' and ', 2)}."
        remedy = "Correct the column, or describe annotators in a file of their own (annotators, --annotators FILE)."
        raise _error(option, f"{people} several values of {column!r}. {first} {remedy}")
    return {str(annotator): group for annotator, group in rows.iter_rows()}


def _grouping(votes: Votes, parts: tuple[str, ...], cells: Mapping[str, Cells], option: str) -> Grouping:
    column = PLUS.join(parts)
    values_a = ([cells[part].get(str(annotator)) for part in parts] for annotator in votes.annotators)
    value_a = [None if None in values else BETWEEN.join(map(str, values)) for values in values_a]
    names = tuple(sorted({value for value in value_a if value is not None}))
    if not 2 <= len(names) <= MOST_GROUPS:
        has = f"only {names[0]!r}" if names else "no value"
        problem = f"has {has} for the annotators of these votes. Groups are compared with each other."
        if len(names) > MOST_GROUPS:
            first = f"First: {listed(list(names), most=3)}. Put values together, such as ages into bands."
            problem = f"has {len(names):,} groups; at most {MOST_GROUPS} are compared. {first}"
        raise _error(option, f"{column!r} {problem}")
    code_of = {name: code for code, name in enumerate(names)}
    group_a = np.array([UNKNOWN if value is None else code_of[value] for value in value_a], dtype=np.int64)
    return Grouping(column, names, group_a)


def read_target(source: Any, groupings: Sequence[Grouping], option: str) -> dict[str, Floats]:
    """Read the shares of a population's groups, in the order of the groups, by column; they add up to 1.

    Parameters
    ----------
    source
        A file or dataframe with the columns column, group and share.
    groupings
        The groups of the annotators.
    option
        What an error calls the option.
    """
    table, by_column = open_source(source), {grouping.column: grouping.names for grouping in groupings}
    if missing := [name for name in NEEDED if name not in table.columns]:
        has = f"It has {shown(table.columns)}; needed: {', '.join(NEEDED)}."
        raise _error(option, f"{table.name} has no column {missing[0]!r}. {has}")
    cells = {name: table.column(name).cast(pl.String).str.strip_chars() for name in NEEDED}
    share = cells["share"].str.strip_chars_end("%").cast(pl.Float64, strict=False)
    rows = pl.DataFrame(cells).with_columns(share=share)
    for row in rows.filter(~share.is_between(0.0, math.inf, closed="left").fill_null(False)).rows():
        raise _error(option, f"not every share is a number from 0 on. First: {row[0]} {row[1]!r}.")
    shares: dict[str, Floats] = {}
    for (column,), part in rows.sort("group").group_by("column", maintain_order=True):
        names, groups = list(by_column.get(str(column), ())), part["group"].to_list()
        if groups != names:
            columns = listed(list(by_column))
            has = f"groups {listed(names)}" if names else f"no groups (annotators are grouped by {columns})"
            remedy = "Give each group one share: 0 leaves it out; join one without annotators with another."
            raise _error(option, f"{column} has {has}, and the shares are of {listed(groups)}. {remedy}")
        if not part["share"].sum():
            raise _error(option, f"the shares of {column} are all 0.")
        shares[str(column)] = np.asarray(part["share"] / part["share"].sum())
    if not shares:
        raise _error(option, f"{table.name} has no rows.")
    return shares


def _error(option: str, problem: str) -> VotesError:
    return VotesError(f"{option}: {problem}")


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
        share_g = target.get(grouping.column, [None] * len(grouping.names))
        for name, size, share in zip(grouping.names, grouping.sizes.tolist(), share_g, strict=True):
            row = {"column": grouping.column, "group": name, "annotators": size, "share": size / len(grouping.group_a)}
            rows.append(row | {"target": None if share is None else float(share)})
    return rows
