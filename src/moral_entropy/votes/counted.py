"""Counted: how many annotators chose what, without saying who.

A row an item. Either a column per class of one question (`counts`), or a column per yes/no question with how
many of n said yes (`questions` and `of`). Every vote is that of the one anonymous annotator.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moral_entropy.errors import VotesError
from moral_entropy.votes.amounts import read_numbers
from moral_entropy.votes.columns import Found, naming, shown
from moral_entropy.votes.labels import Tally, load_label_map, map_labels
from moral_entropy.votes.marks import ANONYMOUS, Marks, Rows, Sheet, by_question, nobody, read_rows, whole_rows
from moral_entropy.votes.options import Options
from moral_entropy.votes.sets import NO_YES
from moral_entropy.votes.source import Source
from moral_entropy.votes.table import Ints
from moral_entropy.votes.values import Coded, code_labels, recode
from moral_entropy.votes.wide import QUESTION


def read_counted(source: Source, found: Found, options: Options, tally: Tally) -> Sheet:
    """Read a row an item, with how many chose what.

    Parameters
    ----------
    source, found, options
        The table, which of its columns is what, and what the user asked for.
    tally
        Where counts and remarks go.
    """
    import polars as pl

    rows = read_rows(source, found)
    whole_r = whole_rows(rows, tally)
    row_r = _one_row_an_item(rows, np.arange(rows.n_rows) if whole_r is None else whole_r, options, tally)
    read = _counted_classes if options.counts else _counted_questions
    return Sheet(rows, pl.Series([ANONYMOUS]), read(source, rows, row_r, options, tally))


def _counted_classes(source: Source, rows: Rows, row_r: Ints, options: Options, tally: Tally) -> tuple[Marks, ...]:
    import polars as pl

    columns = list(dict.fromkeys(options.counts))
    classes = code_labels(pl.Series(columns))
    times = [np.maximum(read_numbers(source, name), 0)[row_r] for name in columns]
    row_v = np.concatenate([np.repeat(row_r, n_r) for n_r in times])
    class_v = np.repeat(np.arange(len(columns)), [int(n_r.sum()) for n_r in times])
    change = load_label_map(options.labels)
    labels = map_labels(Coded(classes.values, recode(class_v, classes.code_r)), change, tally)
    kept_v = np.flatnonzero(labels.code_r >= 0)
    return by_question(
        rows, QUESTION, labels.values.to_list(),
        row_v=row_v[kept_v], annotator_v=nobody(len(kept_v)), label_v=labels.code_r[kept_v], change=change, tally=tally,
    )  # fmt: skip


def _counted_questions(source: Source, rows: Rows, row_r: Ints, options: Options, tally: Tally) -> tuple[Marks, ...]:
    names = sorted(set(options.questions))
    yes_rq = np.stack([read_numbers(source, name)[row_r] for name in names], axis=1)
    of_r = _of(source, options)[row_r]
    most_r = yes_rq.max(axis=1)
    if over := int((most_r > of_r).sum()):
        # Somebody voted twice, or one annotator more was asked; the largest count is the least that fits.
        tally.note(f"{over:,} items have a count above the number of annotators; their largest count is taken as it.")
        of_r = np.maximum(of_r, most_r)
    marks = []
    for q, name in enumerate(names):
        asked_r = yes_rq[:, q] >= 0
        tally.drop("no label", int((~asked_r).sum()))
        yes_r, at_r = yes_rq[asked_r, q], row_r[asked_r]
        no_r = of_r[asked_r] - yes_r
        row_v = np.concatenate([np.repeat(at_r, no_r), np.repeat(at_r, yes_r)])
        label_v = np.repeat(np.array([0, 1], dtype=np.int16), [int(no_r.sum()), int(yes_r.sum())])
        marks.append(Marks(name, NO_YES, rows.item_r[row_v], nobody(len(row_v)), label_v, row_v, optional=True))
    return tuple(marks)


def _of(source: Source, options: Options) -> NDArray[np.int64]:
    if isinstance(options.of, str) and options.of in source.columns:
        return read_numbers(source, options.of, required=True)
    if str(options.of).isdigit() and int(str(options.of)) > 0:
        return np.full(source.rows, int(str(options.of)))
    msg = (
        f"of is {options.of!r}, which is neither a number of annotators nor a column. Found: {shown(source.columns)}. "
        f"{naming('of', 'COLUMN')}"
    )
    raise VotesError(msg)


def _one_row_an_item(rows: Rows, row_r: Ints, options: Options, tally: Tally) -> Ints:
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
    tally.drop("repeated row", len(again))
    gone = again + 1 if options.on_repeat == "first" else again
    return np.sort(row_r[np.delete(order, gone)])
