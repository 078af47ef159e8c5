"""A file of gold labels for votes in parts: read here, its items looked up by the workers, its labels sent to them.

The parts say which items of the file have votes, and on which question; errors of the file are then found here, with
the same messages as on one machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import polars as pl

from moral_entropy.votes.columns import ColumnRoles
from moral_entropy.votes.items import ItemLabels, gold_columns, read_item_labels
from moral_entropy.votes.options import ReadOptions
from moral_entropy.votes.question_votes import Rows
from moral_entropy.votes.read import gold_name
from moral_entropy.votes.source import ReadingLog, from_polars, open_source
from moral_entropy.votes.table import UNKNOWN, Ints, Reading, Votes
from moral_entropy.votes.values import code_ids
from moral_entropy.workers import Workers

NO_ROWS = np.zeros(0, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class NamedItems:
    """Items of one part that a file of gold labels names. Axes: **m** such item, **b** ballot, **n** row of a ballot.

    Parameters
    ----------
    items
        Their ids, in order.
    first
        The first item of the part, named or not; None where it has none.
    row_bn, item_bn
        By ballot, the rows they have in it, and which of them each row is about.
    """

    items: pl.Series
    first: object
    row_bn: tuple[Ints, ...]
    item_bn: tuple[Ints, ...]


def join_gold(
    workers: Workers, parts: Sequence[Any], template: Votes, found: ColumnRoles, options: ReadOptions
) -> tuple[list[Any], ReadingLog]:
    """Return every part with its items' gold labels; and the log of reading the file.

    Parameters
    ----------
    workers, parts
        The workers, and the votes of each part as they were read.
    template
        Questions and labels of the whole.
    found
        The roles of the votes' columns.
    options
        The options of reading, which name the file.
    """
    log, sent = ReadingLog(), workers.send(_ids(found, options))
    named_p: list[NamedItems] = workers.fetch_all(workers.each(named_items_of_part, parts, sent))
    known = _read(named_p, template, found, options, log)
    gold_m = [_gold(known, named_p, template, question, log) for question in template.questions]
    by_question = dict(zip(template.questions, gold_m, strict=True))
    first_p = np.cumsum([0, *(len(named.items) for named in named_p)]).tolist()
    joined = []
    for part, named, first in zip(parts, named_p, first_p, strict=False):
        labels = [
            by_question[ballot.question][first + item_n]
            for ballot, item_n in zip(template.ballots, named.item_bn, strict=True)
        ]
        joined.append(workers.ask(with_gold, part, named.row_bn, labels))
    return joined, log


def _ids(found: ColumnRoles, options: ReadOptions) -> pl.Series:
    source = open_source(options.gold_file)
    item, *_ = gold_columns(source, found, options)
    return code_ids(source.column(item), textual=source.textual).values


def named_items_of_part(votes: Votes, ids: pl.Series) -> NamedItems:
    """Find the items of one part that the file names."""
    items = votes.items
    spelt, named = (items, ids) if items.dtype == ids.dtype else (items.cast(pl.String), ids.cast(pl.String))
    at_m = np.flatnonzero(spelt.is_in(named.implode()).to_numpy())
    row_bn = tuple(np.flatnonzero(np.isin(ballot.item_i, at_m)) for ballot in votes.ballots)
    item_bn = tuple(
        np.searchsorted(at_m, ballot.item_i[row_n]) for ballot, row_n in zip(votes.ballots, row_bn, strict=True)
    )
    return NamedItems(items.gather(at_m), items.first(), row_bn, item_bn)


def _read(
    named_p: Sequence[NamedItems], template: Votes, found: ColumnRoles, options: ReadOptions, log: ReadingLog
) -> ItemLabels:
    """Read the file as if there were no items but those that it names."""
    items = pl.concat([named.items for named in named_p])
    if not len(items):
        # No item has votes, which is an error; its message names the first item of the votes.
        items = pl.Series([next(named.first for named in named_p if named.first is not None)], dtype=items.dtype)
    nowhere = from_polars(pl.DataFrame(), template.reading.source)
    known = read_item_labels("gold", nowhere, found, Rows(items, NO_ROWS), options, template.questions, log)
    return cast("ItemLabels", known)


def _gold(known: ItemLabels, named_p: Sequence[NamedItems], template: Votes, question: str, log: ReadingLog) -> Ints:
    """Return the label on a question of every item that the file names: `gold_m`."""
    asked = [b for b, ballot in enumerate(template.ballots) if ballot.question == question]
    first_p = np.cumsum([0, *(len(named.items) for named in named_p)])
    item_n = np.sort(
        np.concatenate(
            [first + named.item_bn[b] for named, first in zip(named_p, first_p, strict=False) for b in asked]
        )
    )
    gold_m = np.full(first_p[-1], UNKNOWN, dtype=np.int16)
    gold_m[item_n] = known.of_ballot(replace(template.ballots[asked[0]], item_i=item_n.astype(np.int32)), log)
    return gold_m


def with_gold(votes: Votes, row_bn: Sequence[Ints], gold_bn: Sequence[Ints]) -> Votes:
    """Add gold labels to some rows of every ballot."""
    ballots = []
    for ballot, row_n, gold_n in zip(votes.ballots, row_bn, gold_bn, strict=True):
        gold_i = np.full(ballot.n_items, UNKNOWN, dtype=np.int16)
        gold_i[row_n] = gold_n
        ballots.append(replace(ballot, gold_i=gold_i))
    return replace(votes, ballots=tuple(ballots))


def remarked(reading: Reading, gold: Any, log: ReadingLog) -> Reading:
    """Add the file, and the log of reading it, to the facts about what was read."""
    dropped = dict(reading.dropped)
    for reason, n in log.dropped.items():
        dropped[reason] = dropped.get(reason, 0) + n
    return replace(
        reading,
        columns={**reading.columns, "gold": gold_name(gold)},
        dropped=dict(sorted(dropped.items())),
        notes=(*reading.notes, *(note for note in log.notes if note not in reading.notes)),
    )
