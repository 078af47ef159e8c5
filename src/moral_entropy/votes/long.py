"""Long: a row a vote.

Takes rows of item, annotator and label, where the label is one, or a set of them in one cell, or a 0/1 column
for each of several questions. Also reads votes without annotators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from moral_entropy.errors import VotesError
from moral_entropy.votes.amounts import read_numbers
from moral_entropy.votes.columns import Found
from moral_entropy.votes.labels import LabelMap, Tally, check_few, load_label_map, map_labels
from moral_entropy.votes.marks import ANONYMOUS, Marks, Rows, Sheet, by_question, nobody, read_rows, taken, whole_rows
from moral_entropy.votes.options import Options
from moral_entropy.votes.sets import NO_YES, code_sets
from moral_entropy.votes.source import Source
from moral_entropy.votes.table import Ints
from moral_entropy.votes.values import Coded, code_ids, code_labels

if TYPE_CHECKING:
    import polars as pl

YES_NO_WORDS = frozenset({"0", "1", "true", "false", "yes", "no", "y", "n", "t", "f"})


def read_long(source: Source, found: Found, options: Options, tally: Tally) -> Sheet:
    """Read a row a vote.

    Parameters
    ----------
    source, found, options
        The table, which of its columns is what, and what the user asked for.
    tally
        Where counts and remarks go.
    """
    rows = read_rows(source, found)
    annotators = _read_annotators(source, found, rows)
    change = load_label_map(options.labels)
    if options.questions:
        marks = _question_columns(source, rows, annotators.code_r, options, change, tally)
    elif options.multilabel:
        marks = _label_sets(source, found, rows, annotators.code_r, options, change, tally)
    else:
        marks = _one_label(source, found, rows, annotators.code_r, change, tally)
    return Sheet(rows, annotators.values, marks)


def _read_annotators(source: Source, found: Found, rows: Rows) -> Coded:
    import polars as pl

    if (name := found.get("annotator")) is None:
        return Coded(pl.Series([ANONYMOUS]), nobody(rows.n_rows))
    return code_ids(source.column(name), textual=source.textual)


def _one_label(
    source: Source, found: Found, rows: Rows, annotator_r: Ints, change: LabelMap, tally: Tally
) -> tuple[Marks, ...]:
    name = found.column["label"]
    column = source.column(name)
    if column.dtype.is_nested():
        msg = f'column {name!r} holds several labels a cell. Read them with multilabel="," (CLI: --multilabel ",").'
        raise VotesError(msg)
    labels = code_labels(column)
    check_few(len(labels.values), name, rows.n_rows)
    row_v = whole_rows(rows, tally, label=labels.code_r, annotator=annotator_r)
    if count := found.get("count"):
        row_v = _times(row_v, read_numbers(source, count, required=True))
    labels = map_labels(Coded(labels.values, taken(labels.code_r, row_v)), change, tally)
    label_v = labels.code_r
    if not labels.complete:
        kept_v = np.flatnonzero(label_v >= 0)
        row_v, label_v = kept_v if row_v is None else row_v[kept_v], label_v[kept_v]
    annotator_v = taken(annotator_r, row_v)
    return by_question(
        rows, name, labels.values.to_list(),
        row_v=row_v, annotator_v=annotator_v, label_v=label_v, change=change, tally=tally,
    )  # fmt: skip


def _times(row_v: Ints | None, count_r: Ints) -> Ints:
    """Repeat each row as often as its count says."""
    row_v = np.arange(len(count_r)) if row_v is None else row_v
    return np.repeat(row_v, count_r[row_v])


def _label_sets(
    source: Source,
    found: Found,
    rows: Rows,
    annotator_r: Ints,
    options: Options,
    change: LabelMap,
    tally: Tally,
) -> tuple[Marks, ...]:
    """Make a yes/no question of every label that some cell names."""
    cells = code_sets(source.column(found.column["label"]), options.multilabel or ",", change, tally)
    row_v = whole_rows(rows, tally, label=cells.code_r, annotator=annotator_r)
    if count := found.get("count"):
        row_v = _times(row_v, read_numbers(source, count, required=True))
    cell_v, item_v = taken(cells.code_r, row_v), taken(rows.item_r, row_v)
    annotator_v = taken(annotator_r, row_v)
    return tuple(
        Marks(label, NO_YES, item_v, annotator_v, named[cell_v], row_v, optional=True) for label, named in cells.named()
    )


def _question_columns(
    source: Source, rows: Rows, annotator_r: Ints, options: Options, change: LabelMap, tally: Tally
) -> tuple[Marks, ...]:
    """Make a question of every column the user listed."""
    voted_r = whole_rows(rows, tally, annotator=annotator_r)
    marks = []
    for name in sorted(set(options.questions)):
        labels = code_labels(source.column(name))
        check_few(len(labels.values), name, rows.n_rows)
        if options.anonymous:
            _check_yes_no(labels.values, name)
        label_v = taken(labels.code_r, voted_r)
        tally.drop("no label", int((label_v < 0).sum()))
        changed = map_labels(Coded(labels.values, label_v), change, tally)
        kept_v = np.flatnonzero(changed.code_r >= 0)
        row_v = kept_v if voted_r is None else voted_r[kept_v]
        columns = (rows.item_r[row_v], annotator_r[row_v], changed.code_r[kept_v], row_v)
        marks.append(Marks(name, tuple(changed.values.to_list()), *columns, optional=True))
    return tuple(marks)


def _check_yes_no(labels: pl.Series, name: str) -> None:
    odd = [label for label in labels.to_list() if label.casefold() not in YES_NO_WORDS]
    if odd:
        msg = (
            f"column {name!r} holds {odd[0]!r}, which is neither yes nor no. If it counts how many chose {name!r}, "
            "say of how many: of=3, or of a column (CLI: --of)."
        )
        raise VotesError(msg)
