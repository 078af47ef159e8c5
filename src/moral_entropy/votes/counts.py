"""Columns that say how many: `read_numbers`, and the layout of counts, one row per item, without annotators.

Either one column per class of one question (`counts`), or one column per yes/no question with how many of n said yes
(`questions` and `of`). Every vote is that of the one anonymous annotator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moral_entropy.errors import VotesError
from moral_entropy.votes.columns import ColumnRoles, naming, shown
from moral_entropy.votes.labels import NO_YES, load_label_map
from moral_entropy.votes.options import ReadOptions
from moral_entropy.votes.question_votes import (
    ANONYMOUS,
    QuestionVotes,
    Rows,
    anonymous_codes,
    complete_rows,
    read_rows,
    split_by_question,
)
from moral_entropy.votes.source import ReadingLog, Source
from moral_entropy.votes.table import UNKNOWN, Ints
from moral_entropy.votes.values import MISSING, Coded, code_labels, recode

if TYPE_CHECKING:
    import polars as pl

QUESTION = "label"
"""Name of the question, where the table has none."""


def read_numbers(source: Source, name: str, *, required: bool = False) -> NDArray[np.int64]:
    """Read a column of whole numbers of 0 or more; `UNKNOWN` where a cell is empty.

    Parameters
    ----------
    source, name
        The column.
    required
        Whether an empty cell is an error.
    """
    import polars as pl

    column = source.column(name)
    empty = column.is_null()
    if column.dtype == pl.String:
        column = column.str.strip_chars()
        empty = empty | column.is_in(list(MISSING))
    number = column.cast(pl.Float64, strict=False).fill_nan(None)
    whole = number.is_not_null() & (number >= 0) & (number == number.floor()) & (number < 2**31)
    bad = ~(whole.fill_null(False) | (pl.Series([False]) if required else empty.fill_null(True)))
    if bad.any():
        raise VotesError(_not_a_count(source.name, name, column, bad))
    return number.fill_null(UNKNOWN).cast(pl.Int64).to_numpy()


def _not_a_count(source: str, name: str, column: pl.Series, bad: pl.Series) -> str:
    first = int(bad.arg_max() or 0)
    return (
        f"{int(bad.sum()):,} cells of column {name!r} in {source} are not whole numbers of 0 or more. "
        f"First: {column[first]!r} (row {first + 1:,}). Correct them, or name another column."
    )


def read_counts(
    source: Source, roles: ColumnRoles, options: ReadOptions, log: ReadingLog
) -> tuple[Rows, pl.Series, tuple[QuestionVotes, ...]]:
    """Read one row per item, with how many chose what.

    Parameters
    ----------
    source, roles, options
        The table, which column plays which role, and what the user asked for.
    log
        Where counts and notes go.
    """
    import polars as pl

    rows = read_rows(source, roles)
    complete_r = complete_rows(rows, log)
    row_r = _one_row_per_item(rows, np.arange(rows.n_rows) if complete_r is None else complete_r, options, log)
    read = _read_classes if options.counts else _read_questions
    return rows, pl.Series([ANONYMOUS]), read(source, rows, row_r, options, log)


def _read_classes(
    source: Source, rows: Rows, row_r: Ints, options: ReadOptions, log: ReadingLog
) -> tuple[QuestionVotes, ...]:
    import polars as pl

    columns = list(dict.fromkeys(options.counts))
    classes = code_labels(pl.Series(columns))
    times = [np.maximum(read_numbers(source, name), 0)[row_r] for name in columns]
    row_v = np.concatenate([np.repeat(row_r, n_r) for n_r in times])
    class_v = np.repeat(np.arange(len(columns)), [int(n_r.sum()) for n_r in times])
    labels = Coded(classes.values, recode(class_v, classes.code_r))
    return split_by_question(
        rows, QUESTION, labels,
        row_v=row_v, annotator_v=anonymous_codes(len(row_v)), label_map=load_label_map(options.labels), log=log,
    )  # fmt: skip


def _read_questions(
    source: Source, rows: Rows, row_r: Ints, options: ReadOptions, log: ReadingLog
) -> tuple[QuestionVotes, ...]:
    names = sorted(set(options.questions))
    yes_rq = np.stack([read_numbers(source, name)[row_r] for name in names], axis=1)
    of_r = _of(source, options)[row_r]
    most_r = yes_rq.max(axis=1)
    if over := int((most_r > of_r).sum()):
        # Somebody voted twice, or one annotator more was asked; the largest count is the least that fits.
        log.note(f"{over:,} items have a count above the number of annotators; their largest count is taken as it.")
        of_r = np.maximum(of_r, most_r)
    votes = []
    for q, name in enumerate(names):
        asked_r = yes_rq[:, q] >= 0
        log.drop("no label", int((~asked_r).sum()))
        yes_r, at_r = yes_rq[asked_r, q], row_r[asked_r]
        no_r = of_r[asked_r] - yes_r
        row_v = np.concatenate([np.repeat(at_r, no_r), np.repeat(at_r, yes_r)])
        label_v = np.repeat(np.array([0, 1], dtype=np.int16), [int(no_r.sum()), int(yes_r.sum())])
        columns = (rows.item_r[row_v], anonymous_codes(len(row_v)), label_v, row_v)
        votes.append(QuestionVotes(name, NO_YES, *columns))
    return tuple(votes)


def _of(source: Source, options: ReadOptions) -> NDArray[np.int64]:
    if isinstance(options.of, str) and options.of in source.columns:
        return read_numbers(source, options.of, required=True)
    if str(options.of).isdigit() and int(str(options.of)) > 0:
        return np.full(source.rows, int(str(options.of)))
    msg = (
        f"of is {options.of!r}, which is neither a number of annotators nor a column. Found: {shown(source.columns)}. "
        f"{naming('of', 'COLUMN')}"
    )
    raise VotesError(msg)


def _one_row_per_item(rows: Rows, row_r: Ints, options: ReadOptions, log: ReadingLog) -> Ints:
    """Refuse, choose between, or keep rows that count the same item again."""
    key_r = rows.item_r[row_r].astype(np.int64) * max(len(rows.questions), 1)
    if rows.question_r is not None:
        key_r += rows.question_r[row_r]
    order = np.argsort(key_r, kind="stable")
    again = np.flatnonzero(key_r[order][1:] == key_r[order][:-1])
    if not len(again) or options.on_repeat == "count":
        return row_r
    if options.on_repeat == "error":
        one, other = row_r[order[again[0]]], row_r[order[again[0] + 1]]
        msg = (
            f"{len(again):,} of {len(row_r):,} rows count an item again. First: item "
            f"{rows.items[int(rows.item_r[one])]!r} (rows {one + 1:,} and {other + 1:,}). "
            'Choose on_repeat="first", "last" or, to add them up, "count" (CLI: --on-repeat).'
        )
        raise VotesError(msg)
    log.drop("repeated row", len(again))
    gone = again + 1 if options.on_repeat == "first" else again
    return np.sort(row_r[np.delete(order, gone)])
