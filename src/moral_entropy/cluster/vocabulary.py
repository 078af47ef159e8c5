"""The vocabulary: rows with all values of labels, annotators, questions and domains, so that parts are read alike.

One part alone does not contain all of these values. So rows with every combination of values (the vocabulary) are
collected from all slices, appended to the rows of every part before it is read, and removed again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.cluster.files import Table
from moral_entropy.cluster.parts import some_items
from moral_entropy.consensus.parts import Part, make_part
from moral_entropy.votes.options import ReadOptions
from moral_entropy.votes.read import read_source
from moral_entropy.votes.source import from_polars
from moral_entropy.votes.table import Ballot, Ints, Reading, Votes
from moral_entropy.workers import FAN_IN, Workers

LAST = "\U0010ffff"
"""A text that sorts after every id."""

NUMBER = re.compile(r"\d[\d,]*")


@dataclass(frozen=True)
class Reader:
    """How every part is read.

    Parameters
    ----------
    name
        Name of the table.
    item, text
        Columns of the items, and of their texts if there are any.
    combinations
        Sets of columns; every combination of their values that occurs must be in the vocabulary.
    options
        How to read, as on one machine.
    fit_by
        Column whose values are fitted on their own.
    """

    name: str
    item: str
    text: str | None
    combinations: tuple[tuple[str, ...], ...]
    options: ReadOptions
    fit_by: str | None

    def read(self, frame: pl.DataFrame) -> Votes:
        """Read rows as votes, split by `fit_by` if it is given."""
        votes = read_source(from_polars(frame, self.name), self.options, whole=False)
        return votes if self.fit_by is None else votes.split_by(self.fit_by)


def reader_for(table: Table, options: ReadOptions, fit_by: str | None) -> Reader:
    """Return how the parts of a table are read, and which values all of them must know."""
    found = table.found
    asked = tuple(name for name in (found.get("question"), fit_by) if name)
    who = (*asked, *(name for name in (found.get("annotator"),) if name))
    values = options.questions or options.counts or (found.column["label"],)
    if options.anonymous and (count := found.get("count")):
        # A row may have a count of 0 votes, and then its values do not occur.
        who = (*who, count)
    facts = (found.get("domain"), found.get("gold"), found.get("published"), *options.facts)
    combinations = [(*who, value) for value in values] + [(*asked, name) for name in facts if name]
    named = tuple(tuple(dict.fromkeys(combination)) for combination in combinations)
    text = found.get("text")
    return Reader(table.name, table.item, None if text == table.item else text, named, options, fit_by)


def find_vocabulary(frame: pl.DataFrame, reader: Reader) -> pl.DataFrame:
    """Keep rows with every combination of values; of the item only whether there is one, and no texts."""
    bare = frame.drop(reader.text, strict=False) if reader.text else frame
    if bare.schema[reader.item] != pl.Boolean:
        # A row without an item is no vote, but the reader looks at its cells.
        bare = bare.with_columns(pl.col(reader.item).is_not_null())
    shown = [
        bare.unique(subset=[reader.item, *combination], keep="first", maintain_order=True)
        for combination in reader.combinations
    ]
    return pl.concat(shown).unique(maintain_order=True)


def join_vocabularies(reader: Reader, *several: pl.DataFrame) -> pl.DataFrame:
    """Join the vocabularies of several slices, each combination once."""
    return find_vocabulary(pl.concat(several, how="vertical_relaxed"), reader)


def gather_vocabulary(workers: Workers, rows: Sequence[Any], reader: Reader) -> pl.DataFrame:
    """Collect the vocabulary of all rows."""
    level = workers.each(find_vocabulary, rows, reader)
    while len(level) > 1:
        some = [level[at : at + FAN_IN] for at in range(0, len(level), FAN_IN)]
        level = [workers.ask(join_vocabularies, reader, *several) for several in some]
    vocabulary: pl.DataFrame = workers.fetch(level[0])
    return vocabulary


def read_template(vocabulary: pl.DataFrame, reader: Reader) -> Votes:
    """Read the vocabulary alone: questions, labels, annotators and domains of all votes, on made-up items."""
    return reader.read(
        _with_made_up_items(vocabulary, reader, pl.Series(range(_n_items(vocabulary, reader)), dtype=pl.Int64))
    )


def _n_items(vocabulary: pl.DataFrame, reader: Reader) -> int:
    return int(vocabulary[reader.item].sum())


def _with_made_up_items(vocabulary: pl.DataFrame, reader: Reader, items: pl.Series) -> pl.DataFrame:
    """Return the vocabulary with made-up items, one per row that had an item, and without texts."""
    has_r = vocabulary[reader.item]
    place = pl.Series(np.cumsum(has_r.to_numpy()) - 1, dtype=pl.Int64).set(~has_r, None)
    columns = [items.gather(place).alias(reader.item)]
    if reader.text:
        columns.append(pl.repeat(None, len(has_r), dtype=pl.String, eager=True).alias(reader.text))
    return vocabulary.with_columns(columns)


def read_part(frame: pl.DataFrame, vocabulary: pl.DataFrame, reader: Reader) -> Votes:
    """Read the rows of one part with the vocabulary appended, and remove the vocabulary's items again."""
    n_added = _n_items(vocabulary, reader)
    appended = _with_made_up_items(vocabulary, reader, _items_after(frame.get_column(reader.item), n_added))
    votes = reader.read(pl.concat([frame, appended.select(frame.columns)], how="vertical_relaxed"))
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
    """Return `n` ids that sort after all of some items."""
    if items.dtype.is_integer():
        return pl.Series(np.arange(n) + (int(items.max() or 0) + 1), dtype=pl.Int64)  # type: ignore[arg-type]
    return pl.Series([f"{LAST}{at}" for at in range(n)], dtype=pl.String)


def _without_last(ballot: Ballot, n_items: int) -> Ballot:
    rows = slice(0, int(np.searchsorted(ballot.item_i, n_items)))
    share = some_items(ballot, rows, np.zeros(0, dtype=np.int64))
    weight_v = np.repeat(share.count_i, share.votes_i)
    own_a = np.bincount(share.code_v // share.n_labels, weights=weight_v, minlength=share.n_annotators)
    return replace(share, votes_a=own_a.astype(np.int64))


def tally_part(votes: Votes) -> tuple[Reading, tuple[Ints, ...]]:
    """Return how one part was read, and by ballot the votes of each annotator."""
    return votes.reading, tuple(ballot.votes_a for ballot in votes.ballots)


def add_readings(readings: Sequence[Reading], template: Reading, sha256: str) -> Reading:
    """Add up how parts were read, without what the vocabulary added to each."""
    dropped: Counter[str] = Counter()
    varied = {
        name: (
            sum(reading.varied[name][0] for reading in readings),
            sum(reading.varied[name][1] for reading in readings),
        )
        for name in template.varied
    }
    for reading in readings:
        dropped.update(reading.dropped)
        dropped.subtract(template.dropped)
    return replace(
        template,
        sha256=sha256,
        rows=sum(reading.rows - template.rows for reading in readings),
        dropped={reason: n for reason, n in sorted(dropped.items()) if n},
        notes=add_notes([reading.notes for reading in readings], template.notes),
        varied=varied,
    )


def add_notes(several: Sequence[Sequence[str]], template: Sequence[str]) -> tuple[str, ...]:
    """Join the notes of parts; counts at their beginning are added up.

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


def finish_part(votes: Votes, votes_ba: Sequence[Ints], use_gold: bool, by_domain: bool, threads: int | None) -> Part:
    """Make a part of votes: with each annotator's number of votes in all parts, identical items collapsed."""
    ballots = tuple(_known_to(ballot, votes_a) for ballot, votes_a in zip(votes.ballots, votes_ba, strict=True))
    return make_part(replace(votes, ballots=ballots), use_gold, by_domain, threads)


def _known_to(ballot: Ballot, votes_a: Ints) -> Ballot:
    share = some_items(ballot, slice(0, ballot.n_items), votes_a)
    if votes_a.all():
        return share
    # An annotator may occur in the vocabulary alone: then all their votes are on other ballots.
    kept_a = np.flatnonzero(votes_a)
    place_a = np.cumsum(votes_a > 0) - 1
    code_v = place_a[share.code_v // share.n_labels] * share.n_labels + share.code_v % share.n_labels
    return replace(
        share, annotator_a=share.annotator_a[kept_a], code_v=code_v.astype(np.int32), votes_a=share.votes_a[kept_a]
    )
