"""Specimens: real rows that between them show every value there is, so that each part is read as the whole would be.

Labels, annotators, questions and domains are what the reader finds in a table. A part alone may lack some; with the
specimens of the whole beneath its rows, under items of their own that are taken out again, it lacks none. Items never
leave their part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from moral_entropy.cluster.crew import Crew
from moral_entropy.cluster.files import Table
from moral_entropy.cluster.parts import Part, make_part, share_of
from moral_entropy.pipeline.audit import split_by
from moral_entropy.votes.options import Options
from moral_entropy.votes.read import read_source
from moral_entropy.votes.source import from_polars
from moral_entropy.votes.table import Ballot, Ints, Reading, Votes

if TYPE_CHECKING:
    from distributed import Future

LAST = "\U0010ffff"
"""Sorts after every id of text."""

NUMBER = re.compile(r"\d[\d,]*")


@dataclass(frozen=True)
class Reader:
    """How every part is read.

    Parameters
    ----------
    name
        What the table is called.
    item, text
        Columns of the items, and of their texts if there are any.
    kinds
        Sets of columns; every combination of their values that occurs must be among the specimens.
    options
        How to read, as on one machine.
    fit_by
        Column whose values are fitted on their own.
    """

    name: str
    item: str
    text: str | None
    kinds: tuple[tuple[str, ...], ...]
    options: Options
    fit_by: str | None

    def read(self, frame: pl.DataFrame) -> Votes:
        """Read rows as votes, cut into parts that are fitted on their own if asked for."""
        votes = read_source(from_polars(frame, self.name), self.options)
        return votes if self.fit_by is None else split_by(votes, self.fit_by)


def reader_for(table: Table, options: Options, fit_by: str | None) -> Reader:
    """Say how the parts of a table are read, and which values must be known to all of them."""
    found = table.found
    asked = tuple(name for name in (found.get("question"), fit_by) if name)
    who = (*asked, *(name for name in (found.get("annotator"),) if name))
    values = options.questions or options.counts or (found.column["label"],)
    if options.anonymous and (count := found.get("count")):
        # A row may count no vote at all, and then shows nothing.
        who = (*who, count)
    beside = (found.get("domain"), found.get("gold"), found.get("published"), *options.keep)
    kinds = [(*who, value) for value in values] + [(*asked, name) for name in beside if name]
    named = tuple(tuple(dict.fromkeys(kind)) for kind in kinds)
    text = found.get("text")
    return Reader(table.name, table.item, None if text == table.item else text, named, options, fit_by)


def find_specimens(frame: pl.DataFrame, reader: Reader) -> pl.DataFrame:
    """Keep rows that show every combination of values; of their items only whether they have one, and no texts."""
    bare = frame.drop(reader.text, strict=False) if reader.text else frame
    if bare.schema[reader.item] != pl.Boolean:
        # A row without an item is no vote, yet the reader looks at its cells.
        bare = bare.with_columns(pl.col(reader.item).is_not_null())
    shown = [bare.unique(subset=[reader.item, *kind], keep="first", maintain_order=True) for kind in reader.kinds]
    return pl.concat(shown).unique(maintain_order=True)


def join_specimens(reader: Reader, *several: pl.DataFrame) -> pl.DataFrame:
    """Put the specimens of several parts together, each kind once."""
    return find_specimens(pl.concat(several, how="vertical_relaxed"), reader)


def gather_specimens(crew: Crew, rows: Sequence[Future[Any]], reader: Reader) -> pl.DataFrame:
    """Find the specimens of all rows."""
    level = crew.each(find_specimens, rows, reader)
    while len(level) > 1:
        level = [crew.ask(join_specimens, reader, *level[at : at + 8]) for at in range(0, len(level), 8)]
    specimens: pl.DataFrame = crew.fetch(level[0])
    return specimens


def read_template(specimens: pl.DataFrame, reader: Reader) -> Votes:
    """Read the specimens alone: questions, labels, annotators and domains of the whole, on items that are none."""
    return reader.read(_under(specimens, reader, pl.Series(range(_n_items(specimens, reader)), dtype=pl.Int64)))


def _n_items(specimens: pl.DataFrame, reader: Reader) -> int:
    return int(specimens[reader.item].sum())


def _under(specimens: pl.DataFrame, reader: Reader, items: pl.Series) -> pl.DataFrame:
    """Give specimens items of their own, one each where they had one, and no text."""
    has_r = specimens[reader.item]
    place = pl.Series(np.cumsum(has_r.to_numpy()) - 1, dtype=pl.Int64).set(~has_r, None)
    columns = [items.gather(place).alias(reader.item)]
    if reader.text:
        columns.append(pl.repeat(None, len(has_r), dtype=pl.String, eager=True).alias(reader.text))
    return specimens.with_columns(columns)


def read_part(frame: pl.DataFrame, specimens: pl.DataFrame, reader: Reader) -> Votes:
    """Read the rows of one part, with the specimens beneath them and taken out again."""
    n_added = _n_items(specimens, reader)
    beneath = _under(specimens, reader, _items_after(frame.get_column(reader.item), n_added))
    votes = reader.read(pl.concat([frame, beneath.select(frame.columns)], how="vertical_relaxed"))
    n_items = votes.n_items - n_added
    return replace(
        votes,
        items=votes.items.head(n_items),
        ballots=tuple(_without_last(ballot, n_items) for ballot in votes.ballots),
        domain_i=votes.domain_i[:n_items],
        texts=None if votes.texts is None else votes.texts.head(n_items),
        extra={},
    )


def _items_after(items: pl.Series, n: int) -> pl.Series:
    """Give ids that sort after all of some items."""
    if items.dtype.is_integer():
        return pl.Series(np.arange(n) + (int(items.max() or 0) + 1), dtype=pl.Int64)  # type: ignore[arg-type]
    return pl.Series([f"{LAST}{at}" for at in range(n)], dtype=pl.String)


def _without_last(ballot: Ballot, n_items: int) -> Ballot:
    rows = slice(0, int(np.searchsorted(ballot.item_i, n_items)))
    share = share_of(ballot, rows, np.zeros(0, dtype=np.int64))
    weight_v = np.repeat(share.count_i, share.votes_i)
    own_a = np.bincount(share.code_v // share.n_labels, weights=weight_v, minlength=share.n_annotators)
    return replace(share, votes_a=own_a.astype(np.int64))


@dataclass(frozen=True, eq=False)
class Tallied:
    """What was read of one part, or of all of them.

    Parameters
    ----------
    n_items, n_voiceless
        Items, and how many of them have no vote on any question.
    reading
        Rows, what was left out of them, and remarks.
    items_b, voiceless_b, votes_b
        By ballot: items, items without votes, votes.
    votes_ba
        By ballot, the votes of each annotator.
    """

    n_items: int
    n_voiceless: int
    reading: Reading
    items_b: tuple[int, ...]
    voiceless_b: tuple[int, ...]
    votes_b: tuple[int, ...]
    votes_ba: tuple[Ints, ...]


def tally_part(votes: Votes) -> Tallied:
    """Count what was read of one part."""
    from moral_entropy.pipeline.facts import votes_per_item

    return Tallied(
        n_items=votes.n_items,
        n_voiceless=int((votes_per_item(votes) == 0).sum()),
        reading=votes.reading,
        items_b=tuple(ballot.n_items for ballot in votes.ballots),
        voiceless_b=tuple(int((ballot.votes_i == 0).sum()) for ballot in votes.ballots),
        votes_b=tuple(ballot.n_votes for ballot in votes.ballots),
        votes_ba=tuple(ballot.votes_a for ballot in votes.ballots),
    )


def add_tallies(tallies: Sequence[Tallied], template: Reading, sha256: str) -> Tallied:
    """Add up what was read; what the specimens added to each part is taken off."""
    dropped: Counter[str] = Counter()
    for tally in tallies:
        dropped.update(tally.reading.dropped)
        dropped.subtract(template.dropped)
    rows = sum(tally.reading.rows - template.rows for tally in tallies)
    reading = replace(
        template,
        sha256=sha256,
        rows=rows,
        dropped={reason: n for reason, n in sorted(dropped.items()) if n},
        notes=add_notes([tally.reading.notes for tally in tallies], template.notes),
    )

    def sums(name: str) -> tuple[int, ...]:
        return tuple(map(sum, zip(*(getattr(tally, name) for tally in tallies), strict=True)))

    votes_ba = tuple(np.sum(several, axis=0) for several in zip(*(tally.votes_ba for tally in tallies), strict=True))
    return Tallied(
        n_items=sum(tally.n_items for tally in tallies),
        n_voiceless=sum(tally.n_voiceless for tally in tallies),
        reading=reading,
        items_b=sums("items_b"),
        voiceless_b=sums("voiceless_b"),
        votes_b=sums("votes_b"),
        votes_ba=votes_ba,
    )


def add_notes(several: Sequence[Sequence[str]], template: Sequence[str]) -> tuple[str, ...]:
    """Put the remarks of parts together, the counts they begin with added up.

    Examples
    --------
    >>> add_notes([["2 items have two domains."], ["3 items have two domains."]], ["positive label: '1' (guessed)."])
    ("positive label: '1' (guessed).", '5 items have two domains.')
    """
    counts: Counter[str] = Counter()
    for notes in several:
        for note in notes:
            if note not in template:
                found = NUMBER.match(note)
                counts[NUMBER.sub("", note, count=1) if found else note] += (
                    int(found[0].replace(",", "")) if found else 0
                )
    return (*template, *(f"{n:,}{text}" if n else text for text, n in counts.items()))


def finish_part(votes: Votes, votes_ba: Sequence[Ints], use_gold: bool) -> Part:
    """Tell a part how many votes each annotator gave in all, and collapse its identical items."""
    ballots = tuple(_known_to(ballot, votes_a) for ballot, votes_a in zip(votes.ballots, votes_ba, strict=True))
    return make_part(replace(votes, ballots=ballots), use_gold)


def _known_to(ballot: Ballot, votes_a: Ints) -> Ballot:
    share = share_of(ballot, slice(0, ballot.n_items), votes_a)
    if votes_a.all():
        return share
    # An annotator may be known to the specimens alone: the item of the vote belongs to another part of the question.
    kept_a = np.flatnonzero(votes_a)
    place_a = np.cumsum(votes_a > 0) - 1
    code_v = place_a[share.code_v // share.n_labels] * share.n_labels + share.code_v % share.n_labels
    return replace(
        share, annotator_a=share.annotator_a[kept_a], code_v=code_v.astype(np.int32), votes_a=share.votes_a[kept_a]
    )
