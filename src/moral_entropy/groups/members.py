"""Who belongs to which group: columns of the votes, or of a file with one row per annotator → `Grouping`.

An annotator has one group per column; several are an error. Those without one are left out of comparisons, and a
group of one annotator is shown but not compared: nobody could say what is the group's and what is the person's.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from moral_entropy.votes.table import UNKNOWN, Ints, Votes, shown

MOST_GROUPS = 20
FEWEST = 2
"""Annotators that a group needs to be compared."""

NO_VALUE = frozenset({"", "na", "n/a", "nan", "null", "-", "?"})
BETWEEN = " + "

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

    @cached_property
    def n_unknown(self) -> int:
        """Annotators whose group is not known."""
        return int((self.group_a < 0).sum())

    def notes(self) -> list[str]:
        """Say whose votes are left out of comparisons, and why."""
        said = []
        if self.n_unknown:
            said.append(
                f"by {self.column}, {many(self.n_unknown, 'annotator')} of {len(self.group_a):,} without a value "
                f"{'is' if self.n_unknown == 1 else 'are'} in the group {UNKNOWN_GROUP}, which is not compared."
            )
        if alone := [name for name, size in zip(self.names, self.sizes, strict=True) if size < FEWEST]:
            said.append(
                f"by {self.column}, {many(len(alone), 'group')} of one annotator ({listed(alone)}) "
                f"{'is' if len(alone) == 1 else 'are'} shown and not compared."
            )
        return said


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
    called = options.named("annotator_group")
    if votes.anonymous:
        msg = f"{called} needs annotators, and these votes are anonymous."
        raise UsageError(msg)
    from_file = options.annotators is not None
    frame, where = _annotator_file(votes, options) if from_file else (_kept(votes, options), "the votes")
    columns = [name for name in frame.columns if name != "annotator"]
    wanted = [tuple(split_names(name, set(columns))) for name in options.annotator_group]
    unknown = [part for parts in wanted for part in parts if part not in columns]
    if unknown:
        msg = (
            f"{called}: {where} {'have' if where == 'the votes' else 'has'} no column {unknown[0]!r}."
            f"{did_you_mean(unknown[0], columns)} Columns: {shown(columns)}."
        )
        raise VotesError(msg)
    cells = {column: _one_each(frame, column, called, where) for parts in wanted for column in parts}
    return tuple(_grouping(votes, parts, cells, called) for parts in dict.fromkeys(wanted))


def _kept(votes: Votes, options: GroupOptions) -> pl.DataFrame:
    """Return who cast each vote with the kept columns, from all ballots."""
    columns = [name for name in columns_to_keep(options) if name in votes.kept]
    frames = []
    for ballot in votes.ballots:
        who_v = ballot.annotator_a[ballot.code_v // ballot.n_labels]
        if ballot.row_v is None:
            continue
        rows = {name: votes.kept[name].gather(ballot.row_v) for name in columns}
        frames.append(pl.DataFrame({"annotator": votes.annotators.gather(who_v), **rows}).unique())
    return pl.concat(frames).unique() if frames else pl.DataFrame({"annotator": votes.annotators})


def _annotator_file(votes: Votes, options: GroupOptions) -> tuple[pl.DataFrame, str]:
    """Read the file with one row per annotator."""
    source = open_source(options.annotators)
    called = options.named("annotators")
    own = votes.reading.columns.get("annotator", "annotator")
    names = list(source.columns)
    who = next((name for name in ("annotator", own) if name in names), None)
    if who is None:
        msg = (
            f"{called}: {source.name} has no column 'annotator'. Columns: {shown(names)}. Rename the one with their "
            "ids."
        )
        raise VotesError(msg)
    frame = pl.DataFrame({"annotator": source.column(who).cast(pl.String).str.strip_chars()}).with_columns(
        *(source.column(name).alias(name) for name in names if name not in (who, "annotator"))
    )
    ids = votes.annotators.cast(pl.String)
    if not frame["annotator"].is_in(ids.implode()).any():
        msg = (
            f"{called}: none of the {frame.height:,} annotators of {source.name} voted. First: "
            f"{frame['annotator'][0] if frame.height else ''!r}. Annotators of the votes: "
            f"{shown(ids.head(9).to_list())}."
        )
        raise VotesError(msg)
    where = Path(source.name).name
    return frame.filter(pl.col("annotator").is_in(ids.implode())), where


def _one_each(frame: pl.DataFrame, column: str, called: str, where: str) -> Cells:
    """Return the group of every annotator that has one; several groups of one annotator are an error."""
    value = pl.col(column).cast(pl.String).str.strip_chars()
    rows = frame.select(annotator="annotator", group=value).drop_nulls().unique()
    rows = rows.filter(~pl.col("group").str.to_lowercase().is_in(list(NO_VALUE))).sort("annotator", "group")
    several = rows.filter(pl.col("annotator").is_duplicated())
    if several.height:
        who = several["annotator"][0]
        groups = several.filter(pl.col("annotator") == who)["group"].to_list()
        n = several["annotator"].n_unique()
        msg = (
            f"{called}: {many(n, 'annotator')} of {frame['annotator'].n_unique():,} in {where} "
            f"{'has' if n == 1 else 'have'} several values of {column!r}. First: annotator {who!r} has "
            f"{listed([repr(group) for group in groups], ' and ', 2)}. A group describes the annotator, not the vote "
            "or the item; correct the column, or describe annotators in a file of their own (annotators, CLI: "
            "--annotators FILE)."
        )
        raise VotesError(msg)
    return dict(rows.iter_rows())


def _grouping(votes: Votes, parts: tuple[str, ...], cells: Mapping[str, Cells], called: str) -> Grouping:
    column = PLUS.join(parts)
    keyed = [{str(who): group for who, group in cells[part].items()} for part in parts]
    values_a = ([group_of.get(str(who)) for group_of in keyed] for who in votes.annotators)
    value_a = [None if None in values else BETWEEN.join(map(str, values)) for values in values_a]
    names = tuple(sorted({value for value in value_a if value is not None}))
    if len(names) > MOST_GROUPS:
        msg = (
            f"{called}: {column!r} has {len(names):,} groups; at most {MOST_GROUPS} are compared. First: "
            f"{listed(list(names), most=3)}. Put values together, such as ages into bands."
        )
        raise VotesError(msg)
    if len(names) < 2:
        what = f"only {names[0]!r}" if names else "no value"
        msg = f"{called}: {column!r} has {what} for the annotators of these votes. Groups are compared with each other."
        raise VotesError(msg)
    code_of = {name: code for code, name in enumerate(names)}
    group_a = np.array([UNKNOWN if value is None else code_of[value] for value in value_a], dtype=np.int64)
    return Grouping(column, names, group_a)
