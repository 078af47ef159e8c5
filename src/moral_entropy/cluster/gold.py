"""A file of gold labels beside votes in parts: read here, its items looked up by the workers, its labels sent back.

Which items of the file have votes, and on which question, the parts say; what is wrong with the file is then found
here, in the words of one machine.
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
class Met:
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
    """Return every part with its items' gold labels; and the remarks on the file.

    Parameters
    ----------
    workers, parts
        The workers, and the votes of each part as they were read.
    template
        Questions and labels of the whole.
    found
        Which column of the votes is what.
    options
        What the user asked for, among it the file.
    """
    tally, sent = ReadingLog(), workers.send(_ids(found, options))
    met_p: list[Met] = workers.fetch_all(workers.each(met_of_part, parts, sent))
    known = _read(met_p, template, found, options, tally)
    gold_m = [_gold(known, met_p, template, question, tally) for question in template.questions]
    by_question = dict(zip(template.questions, gold_m, strict=True))
    first_p = np.cumsum([0, *(len(met.items) for met in met_p)]).tolist()
    joined = []
    for part, met, first in zip(parts, met_p, first_p, strict=False):
        labels = [
            by_question[ballot.question][first + item_n]
            for ballot, item_n in zip(template.ballots, met.item_bn, strict=True)
        ]
        joined.append(workers.ask(with_gold, part, met.row_bn, labels))
    return joined, tally


def _ids(found: ColumnRoles, options: ReadOptions) -> pl.Series:
    source = open_source(options.gold_file)
    item, *_ = gold_columns(source, found, options)
    return code_ids(source.column(item), textual=source.textual).values


def met_of_part(votes: Votes, ids: pl.Series) -> Met:
    """Look which items of one part a file names."""
    items = votes.items
    spelt, named = (items, ids) if items.dtype == ids.dtype else (items.cast(pl.String), ids.cast(pl.String))
    at_m = np.flatnonzero(spelt.is_in(named.implode()).to_numpy())
    row_bn = tuple(np.flatnonzero(np.isin(ballot.item_i, at_m)) for ballot in votes.ballots)
    item_bn = tuple(
        np.searchsorted(at_m, ballot.item_i[row_n]) for ballot, row_n in zip(votes.ballots, row_bn, strict=True)
    )
    return Met(items.gather(at_m), items.first(), row_bn, item_bn)


def _read(
    met_p: Sequence[Met], template: Votes, found: ColumnRoles, options: ReadOptions, tally: ReadingLog
) -> ItemLabels:
    """Read the file as if its items that occur were all the items there are."""
    items = pl.concat([met.items for met in met_p])
    if not len(items):
        # All are strangers, which is an error; it names the item that the votes begin with.
        items = pl.Series([next(met.first for met in met_p if met.first is not None)], dtype=items.dtype)
    nowhere = from_polars(pl.DataFrame(), template.reading.source)
    known = read_item_labels("gold", nowhere, found, Rows(items, NO_ROWS), options, template.questions, tally)
    return cast("ItemLabels", known)


def _gold(known: ItemLabels, met_p: Sequence[Met], template: Votes, question: str, tally: ReadingLog) -> Ints:
    """Give the label on a question of every item that was met: `gold_m`."""
    asked = [b for b, ballot in enumerate(template.ballots) if ballot.question == question]
    first_p = np.cumsum([0, *(len(met.items) for met in met_p)])
    item_n = np.sort(
        np.concatenate([first + met.item_bn[b] for met, first in zip(met_p, first_p, strict=False) for b in asked])
    )
    gold_m = np.full(first_p[-1], UNKNOWN, dtype=np.int16)
    gold_m[item_n] = known.of_ballot(replace(template.ballots[asked[0]], item_i=item_n.astype(np.int32)), tally)
    return gold_m


def with_gold(votes: Votes, row_bn: Sequence[Ints], gold_bn: Sequence[Ints]) -> Votes:
    """Put gold labels down beside some rows of every ballot."""
    ballots = []
    for ballot, row_n, gold_n in zip(votes.ballots, row_bn, gold_bn, strict=True):
        gold_i = np.full(ballot.n_items, UNKNOWN, dtype=np.int16)
        gold_i[row_n] = gold_n
        ballots.append(replace(ballot, gold_i=gold_i))
    return replace(votes, ballots=tuple(ballots))


def remarked(reading: Reading, gold: Any, tally: ReadingLog) -> Reading:
    """Add the file, and the remarks on it, to what was read."""
    dropped = dict(reading.dropped)
    for reason, n in tally.dropped.items():
        dropped[reason] = dropped.get(reason, 0) + n
    return replace(
        reading,
        columns={**reading.columns, "gold": gold_name(gold)},
        dropped=dict(sorted(dropped.items())),
        notes=(*reading.notes, *(note for note in tally.notes if note not in reading.notes)),
    )
