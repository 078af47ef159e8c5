"""The votes of one question, coded but not yet sorted into a ballot.

Every layout of a table is read into these: `Rows` say which item and question each row is about, `QuestionVotes` who
voted what.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from moral_entropy.votes.columns import ColumnRoles
from moral_entropy.votes.labels import LabelMap, map_labels, rename_label
from moral_entropy.votes.source import ReadingLog, Source
from moral_entropy.votes.table import UNKNOWN, Floats, Ints
from moral_entropy.votes.values import Coded, code_ids, code_labels

if TYPE_CHECKING:
    import polars as pl

ANONYMOUS = "(anonymous)"
"""The one annotator of votes that came without annotators."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Which item and question each row of the source is about. Axes: **r** row, **i** item.

    Parameters
    ----------
    items
        Sorted ids of the items.
    item_r
        Each row's item; `UNKNOWN` where the cell is empty.
    questions, question_r
        Names of the questions and each row's, if there is a column for them.
    count_i
        How many items each item stands for, in pre-counted data.
    """

    items: pl.Series
    item_r: Ints
    questions: tuple[str, ...] = ()
    question_r: Ints | None = None
    count_i: Floats | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.item_r)


@dataclass(frozen=True, eq=False)
class QuestionVotes:
    """The votes on one question, in the order of the source. Axis: **v** vote.

    Parameters
    ----------
    question, labels
        Its name, and the labels that `label_v` points to, sorted; some may not occur.
    item_v, annotator_v, label_v
        Positions in the ids of all items, of all annotators, and in `labels`.
    row_v
        Row of the source that each vote came from; `None` where vote and row are the same.
    item_i
        The items the question was put to; `None` where it was put to all.
    """

    question: str
    labels: tuple[str, ...]
    item_v: Ints
    annotator_v: Ints
    label_v: Ints
    row_v: Ints | None = None
    item_i: Ints | None = None

    def rows(self, at_v: Ints) -> Ints:
        """Return the rows of the source that some votes came from."""
        return at_v if self.row_v is None else self.row_v[at_v]


def read_rows(source: Source, roles: ColumnRoles, ids: Coded | None = None) -> Rows:
    """Read the item of each row, unless it is given, and the question if there is a column for it."""
    if ids is None:
        ids = code_ids(source.column(roles.column["item"]), textual=source.textual)
    if (name := roles.get("question")) is None:
        return Rows(ids.values, ids.code_r)
    questions = code_labels(source.column(name))
    return Rows(ids.values, ids.code_r, tuple(questions.values.to_list()), questions.code_r)


def complete_rows(rows: Rows, log: ReadingLog, **codes: Ints) -> Ints | None:
    """Find the rows in which nothing is missing, and log the others by the first thing that is.

    Parameters
    ----------
    rows
        What each row is about.
    log
        Where the counts go.
    codes
        Further codes that a row needs, by name, such as `label=code_r`.

    Returns
    -------
    Ints or None
        Positions of the complete rows; `None` if all are.
    """
    needed = {"item": rows.item_r, "question": rows.question_r, **codes}
    complete_r = None
    for name, code_r in needed.items():
        if code_r is None or not len(code_r) or int(code_r.min()) != UNKNOWN:
            continue
        before = rows.n_rows if complete_r is None else int(complete_r.sum())
        complete_r = code_r >= 0 if complete_r is None else complete_r & (code_r >= 0)
        log.drop(f"no {name}", before - int(complete_r.sum()))
    return None if complete_r is None else np.flatnonzero(complete_r).astype(_row_type(rows.n_rows))


def take_rows(values: Ints, row_v: Ints | None) -> Ints:
    """Take some rows; all of them, without a copy, for `None`."""
    return values if row_v is None else values[row_v]


def split_by_question(
    rows: Rows,
    name: str,
    labels: Coded,
    *,
    row_v: Ints | None,
    annotator_v: Ints,
    label_map: LabelMap,
    log: ReadingLog,
) -> tuple[QuestionVotes, ...]:
    """Split votes for one label each by the question of their row.

    Parameters
    ----------
    rows
        What each row is about.
    name
        Name of the question if there is no column for it.
    labels, row_v, annotator_v
        The label, row and annotator of each vote.
    label_map
        Merges and leaves out labels; one that leaves out a label named like a question leaves out the question.
    log
        Where the counts of votes left out go.
    """
    labels = map_labels(labels, label_map, log)
    label_v = labels.code_r
    if not labels.complete:
        kept_v = np.flatnonzero(label_v >= 0)
        row_v = kept_v if row_v is None else row_v[kept_v]
        annotator_v, label_v = annotator_v[kept_v], label_v[kept_v]
    names, item_v = tuple(labels.values.to_list()), take_rows(rows.item_r, row_v)
    if rows.question_r is None:
        return (QuestionVotes(name, names, item_v, annotator_v, label_v, row_v),)
    question_v = take_rows(rows.question_r, row_v)
    row_v = np.arange(rows.n_rows, dtype=_row_type(rows.n_rows)) if row_v is None else row_v
    votes = []
    for q, question in enumerate(rows.questions):
        at_v = np.flatnonzero(question_v == q)
        if label_map and rename_label(question, label_map) is None:
            log.drop("question left out by the label map", len(at_v))
            continue
        columns = (item_v[at_v], annotator_v[at_v], label_v[at_v], row_v[at_v])
        votes.append(QuestionVotes(question, names, *columns, item_i=_items_of(rows, q)))
    return tuple(votes)


def anonymous_codes(n_votes: int) -> Ints:
    """Return the annotator codes of votes without annotators: all 0, taking no memory."""
    return np.broadcast_to(np.int16(0), (n_votes,))


def _items_of(rows: Rows, question: int) -> Ints:
    asked = np.zeros(len(rows.items), dtype=np.bool_)
    item_r = rows.item_r[rows.question_r == question]
    asked[item_r[item_r >= 0]] = True
    return np.flatnonzero(asked).astype(np.int32)


def _row_type(n_rows: int) -> type[np.int32] | type[np.int64]:
    return np.int32 if n_rows <= np.iinfo(np.int32).max else np.int64
