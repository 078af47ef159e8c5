"""Marks: the votes of one question, coded but not yet sorted into a ballot.

Every layout of a file ends here: rows are about an item (and a question), marks say who voted what in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from moral_entropy.votes.columns import Found
from moral_entropy.votes.labels import LabelMap, Tally
from moral_entropy.votes.source import Source
from moral_entropy.votes.table import UNKNOWN, Floats, Ints
from moral_entropy.votes.values import code_ids, code_labels

if TYPE_CHECKING:
    import polars as pl

ANONYMOUS = "(anonymous)"
"""The one annotator of votes that came without annotators."""


@dataclass(frozen=True, eq=False)
class Rows:
    """What each row of the source is about. Axis: **r** row.

    Parameters
    ----------
    items
        Sorted ids of the items.
    item_r
        Each row's item; `UNKNOWN` where the cell is empty.
    questions, question_r
        Names of the questions and each row's, if there is a column for them.
    """

    items: pl.Series
    item_r: Ints
    questions: tuple[str, ...] = ()
    question_r: Ints | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.item_r)


@dataclass(frozen=True, eq=False)
class Marks:
    """The votes on one question. Axis: **v** vote.

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
    optional
        Whether the question is left out, rather than refused, when all its votes agree.
    """

    question: str
    labels: tuple[str, ...]
    item_v: Ints
    annotator_v: Ints
    label_v: Ints
    row_v: Ints | None = None
    item_i: Ints | None = None
    optional: bool = False


@dataclass(frozen=True, eq=False)
class Sheet:
    """Everything a layout yields: rows, annotators, and the marks of every question.

    Parameters
    ----------
    rows
        What each row is about.
    annotators
        Sorted ids of the annotators.
    marks
        One entry per question.
    count_i
        How many items each item stands for, in pre-counted data.
    """

    rows: Rows
    annotators: pl.Series
    marks: tuple[Marks, ...]
    count_i: Floats | None = None


def read_rows(source: Source, found: Found) -> Rows:
    """Read what each row is about: its item, and its question if there is a column for it."""
    ids = code_ids(source.column(found.column["item"]), textual=source.textual)
    if (name := found.get("question")) is None:
        return Rows(ids.values, ids.code_r)
    questions = code_labels(source.column(name))
    return Rows(ids.values, ids.code_r, tuple(questions.values.to_list()), questions.code_r)


def whole_rows(rows: Rows, tally: Tally, **parts: Ints) -> Ints | None:
    """Find the rows in which nothing is missing, and count the others by the first thing that is.

    Parameters
    ----------
    rows
        What each row is about.
    tally
        Where the counts go.
    parts
        Further codes a row needs, by name, such as `label=code_r`.

    Returns
    -------
    Ints or None
        Positions of the whole rows; `None` if all are.
    """
    needed = {"item": rows.item_r, "question": rows.question_r, **parts}
    whole_r = None
    for name, code_r in needed.items():
        if code_r is None or not len(code_r) or int(code_r.min()) != UNKNOWN:
            continue
        before = rows.n_rows if whole_r is None else int(whole_r.sum())
        whole_r = code_r >= 0 if whole_r is None else whole_r & (code_r >= 0)
        tally.drop(f"no {name}", before - int(whole_r.sum()))
    return None if whole_r is None else np.flatnonzero(whole_r).astype(_row_type(rows.n_rows))


def taken(values: Ints, row_v: Ints | None) -> Ints:
    """Take some rows; all of them, without a copy, if none are named."""
    return values if row_v is None else values[row_v]


def by_question(
    rows: Rows,
    name: str,
    labels: Sequence[str],
    *,
    row_v: Ints | None,
    annotator_v: Ints,
    label_v: Ints,
    change: LabelMap,
    tally: Tally,
) -> tuple[Marks, ...]:
    """Part votes by the question of their row.

    Parameters
    ----------
    rows
        What each row is about.
    name
        Name of the question if there is no column for it.
    labels
        What `label_v` points to.
    row_v, annotator_v, label_v
        The votes.
    change
        A label map; one that leaves out a label named like a question leaves out the question.
    tally
        Where the counts of votes left out go.
    """
    item_v = taken(rows.item_r, row_v)
    if rows.question_r is None:
        return (Marks(name, tuple(labels), item_v, annotator_v, label_v, row_v),)
    question_v = taken(rows.question_r, row_v)
    row_v = np.arange(rows.n_rows, dtype=_row_type(rows.n_rows)) if row_v is None else row_v
    marks = []
    for q, question in enumerate(rows.questions):
        at_v = np.flatnonzero(question_v == q)
        if change.target and change(question) is None:
            tally.drop("question left out by the label map", len(at_v))
            continue
        columns = (item_v[at_v], annotator_v[at_v], label_v[at_v], row_v[at_v])
        marks.append(Marks(question, tuple(labels), *columns, item_i=_items_of(rows, q)))
    return tuple(marks)


def nobody(n_votes: int) -> Ints:
    """Give the annotator codes of votes without annotators: all the same, taking no memory."""
    return np.broadcast_to(np.int16(0), (n_votes,))


def _items_of(rows: Rows, question: int) -> Ints:
    asked = np.zeros(len(rows.items), dtype=np.bool_)
    item_r = rows.item_r[rows.question_r == question]
    asked[item_r[item_r >= 0]] = True
    return np.flatnonzero(asked).astype(np.int32)


def _row_type(n_rows: int) -> type[np.int32] | type[np.int64]:
    return np.int32 if n_rows <= np.iinfo(np.int32).max else np.int64
