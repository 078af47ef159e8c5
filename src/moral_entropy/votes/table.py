"""Votes: integer-coded, sorted and checked.

What every other stage reads. `Votes` holds the ids and the facts about items; a `Ballot` holds the votes on
one question. Knows nothing of files or of the names of a user's columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from moral_entropy.errors import MoralEntropyError, VotesError
from moral_entropy.names import NO_DOMAIN

if TYPE_CHECKING:
    import polars as pl

Ints = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]

ITEMS_AT_ONCE = 65_536
"""Items whose votes are counted together."""

UNKNOWN = -1
"""Code of what is missing: the gold label, the published label or the domain of an item without one."""

MAX_CODE = np.iinfo(np.int32).max

BLOCK = 1 << 17
"""Votes looked at together: few enough for a core's cache."""


@dataclass(frozen=True, eq=False, repr=False)
class Ballot:
    """The votes on one question.

    Axes: **i** item, **a** annotator, **v** vote. Votes of item `i` are `code_v[start_i[i]:start_i[i + 1]]`,
    ascending; a code is `annotator * n_labels + label`.

    Parameters
    ----------
    question
        Name of the question.
    labels
        The labels a vote can take, sorted; at least two.
    positive
        Index of the positive label; only rules for two labels, and p, look at it.
    item_i, annotator_a
        Rows of `Votes.items` and `Votes.annotators`, ascending.
    start_i, code_v
        The votes, in compressed rows.
    count_i
        How many items each row stands for: 1, unless the data came pre-counted.
    gold_i, published_i
        Known truth, and labels someone already shipped; `UNKNOWN` where there is none.
    part
        Name of the part when one question is fitted in several (`Votes.split_by`), else empty.
    row_v
        Row of the source that each vote came from, where further columns are kept (`Votes.kept`).
    levels
        The value of each label where they are levels of a scale, ascending; None where they are names.
    score_v
        What each vote says in numbers, where the question asks for a score: its labels are bins then.
    gold_score_i
        Known scores of the items of such a question, NaN where there is none.
    """

    question: str
    labels: tuple[str, ...]
    positive: int
    item_i: Ints
    annotator_a: Ints
    start_i: NDArray[np.int64]
    code_v: NDArray[np.int32]
    count_i: Floats
    gold_i: NDArray[np.int16]
    published_i: NDArray[np.int16]
    part: str = ""
    row_v: Ints | None = None
    levels: tuple[float, ...] | None = None
    score_v: Floats | None = None
    gold_score_i: Floats | None = None

    @property
    def name(self) -> str:
        """What to call it in a sentence: the question, and the part if it is one."""
        return f"{self.question} ({self.part})" if self.part else self.question

    @property
    def scale(self) -> str:
        """What its labels are: names, levels or bins of scores."""
        return "nominal" if self.levels is None else "ordinal" if self.score_v is None else "interval"

    @property
    def n_items(self) -> int:
        """How many items the question was put to, voted on or not."""
        return len(self.item_i)

    @property
    def n_annotators(self) -> int:
        """How many annotators voted on the question."""
        return len(self.annotator_a)

    @property
    def n_labels(self) -> int:
        """How many labels a vote can take."""
        return len(self.labels)

    @property
    def n_votes(self) -> int:
        """How many votes there are, each pre-counted row once."""
        return len(self.code_v)

    @cached_property
    def votes_i(self) -> NDArray[np.int64]:
        """Votes per item."""
        return np.diff(self.start_i)

    @cached_property
    def counts_ik(self) -> NDArray[np.int32]:
        """Votes per item and label.

        Examples
        --------
        >>> ballot = ballot_from_codes("care", ("no", "yes"), item_v=[0, 0, 1], annotator_v=[0, 1, 0],
        ...                            label_v=[1, 0, 1])
        >>> ballot.counts_ik.tolist()
        [[1, 1], [0, 1]]
        """
        return count_labels(self.start_i, self.code_v, self.n_labels)

    @cached_property
    def votes_a(self) -> NDArray[np.int64]:
        """Votes per annotator, pre-counted rows as often as they count."""
        votes_a = np.zeros(self.n_annotators)
        # Some items at a time: a weight for every vote would be more than the votes themselves.
        for first in range(0, self.n_items, ITEMS_AT_ONCE):
            start_i = self.start_i[first : first + ITEMS_AT_ONCE + 1]
            weight_v = np.repeat(self.count_i[first : first + ITEMS_AT_ONCE], np.diff(start_i))
            np.add.at(votes_a, self.code_v[start_i[0] : start_i[-1]] // self.n_labels, weight_v)
        return votes_a.astype(np.int64)

    @cached_property
    def votes_k(self) -> Floats:
        """Votes per label, pre-counted rows as often as they count."""
        return np.asarray(self.count_i @ self.counts_ik)

    def with_totals(self, votes_a: Ints, votes_k: Floats) -> Ballot:
        """Return the ballot as a part of a larger one, of which it knows the votes per annotator and label."""
        part = replace(self)
        vars(part).update(votes_a=votes_a, votes_k=votes_k)
        return part

    def take(self, rows: Ints, *, part: str = "") -> Ballot:
        """Keep only some items, and only the annotators who voted on them.

        Parameters
        ----------
        rows
            Positions of the items to keep, ascending.
        part
            Name of this part of the question.
        """
        votes_i = self.votes_i[rows]
        start_i = np.concatenate([[0], np.cumsum(votes_i)]).astype(np.int64)
        at_v = np.repeat(self.start_i[rows] - start_i[:-1], votes_i) + np.arange(start_i[-1])
        code_v = self.code_v[at_v]
        kept_a, annotator_v = np.unique(code_v // self.n_labels, return_inverse=True)
        code_v = (annotator_v * self.n_labels + code_v % self.n_labels).astype(np.int32)
        row_v, score_v = (None if values_v is None else values_v[at_v] for values_v in (self.row_v, self.score_v))
        by_item = {name: getattr(self, name)[rows] for name in ("item_i", "count_i", "gold_i", "published_i")}
        gold_score_i = None if self.gold_score_i is None else self.gold_score_i[rows]
        return replace(
            self, annotator_a=self.annotator_a[kept_a], start_i=start_i, code_v=code_v, part=part, row_v=row_v,
            score_v=score_v, gold_score_i=gold_score_i, **by_item
        )  # fmt: skip


def count_labels(start_i: Ints, code_v: Ints, n_labels: int) -> NDArray[np.int32]:
    """Count votes per item and label, given where each item's codes start: `counts_ik`."""
    counts_ik = np.empty((len(start_i) - 1, n_labels), dtype=np.int32)
    # Some items at a time: a key of 64 bits for every vote would be more than the votes themselves.
    for first in range(0, len(counts_ik), ITEMS_AT_ONCE):
        some_i = start_i[first : first + ITEMS_AT_ONCE + 1]
        n_items = len(some_i) - 1
        key_v = np.repeat(np.arange(n_items) * n_labels, np.diff(some_i))
        key_v += code_v[some_i[0] : some_i[-1]] % n_labels
        flat = np.bincount(key_v, minlength=n_items * n_labels)
        counts_ik[first : first + n_items] = flat.reshape(n_items, n_labels)
    return counts_ik


def ballot_from_codes(
    question: str, labels: tuple[str, ...], *, item_v: Any, annotator_v: Any, label_v: Any, item_i: Ints | None = None,
    annotator_a: Ints | None = None, positive: int | None = None, count_i: Floats | None = None,
    gold_i: Ints | None = None, published_i: Ints | None = None
) -> Ballot:  # fmt: skip
    """Sort integer-coded votes into a `Ballot`.

    Parameters
    ----------
    question, labels
        The question and its labels.
    item_v, annotator_v, label_v
        One entry per vote: position of the item in `item_i`, of the annotator in `annotator_a`, of the label.
    item_i, annotator_a
        Rows of the shared id tables; by default 0, 1, 2, …, as many as occur.
    positive
        Index of the positive label; the last by default.
    count_i, gold_i, published_i
        As in `Ballot`; by default 1, `UNKNOWN`, `UNKNOWN`.

    Examples
    --------
    >>> ballot = ballot_from_codes("care", ("no", "yes"), item_v=[1, 0], annotator_v=[0, 0], label_v=[1, 0])
    >>> ballot.start_i.tolist(), ballot.code_v.tolist()
    ([0, 1, 2], [0, 1])
    """
    item_v, annotator_v = np.asarray(item_v), np.asarray(annotator_v)
    if item_i is None:
        item_i = np.arange(item_v.max(initial=-1) + 1, dtype=np.int32)
    if annotator_a is None:
        annotator_a = np.arange(annotator_v.max(initial=-1) + 1, dtype=np.int32)
    n_items, n_codes = len(item_i), len(annotator_a) * len(labels)
    if n_codes > MAX_CODE:
        refuse(f"{len(annotator_a):,} annotators times {len(labels)} labels exceed {MAX_CODE:,} codes.")
    code_v = np.multiply(annotator_v, len(labels), dtype=np.int32, casting="unsafe")
    code_v += np.asarray(label_v).astype(np.int32, copy=False)
    # One key of 64 bits per vote sorts by item and code.
    key_v = item_v.astype(np.int64)
    key_v *= n_codes
    key_v += code_v
    key_v.sort()
    start_i = np.searchsorted(key_v, np.arange(n_items + 1, dtype=np.int64) * n_codes)
    key_v %= n_codes
    code_v = key_v.astype(np.int32)
    positive = len(labels) - 1 if positive is None else positive
    # A broadcast constant takes no memory, whatever the number of items.
    count_i = np.asarray(np.broadcast_to(1.0, n_items) if count_i is None else count_i, dtype=np.float64)
    unknown_i = np.broadcast_to(np.int16(UNKNOWN), n_items)
    gold, published = (
        unknown_i if label_i is None else np.asarray(label_i, dtype=np.int16) for label_i in (gold_i, published_i)
    )
    return Ballot(question, labels, positive, item_i, annotator_a, start_i, code_v, count_i, gold, published)


@dataclass(frozen=True, eq=False)
class Reading:
    """How the votes were read: what the manifest and the first lines on the screen say.

    Parameters
    ----------
    source
        File name, or the kind of dataframe.
    sha256
        Of the file's bytes; empty for a dataframe.
    columns
        What each role was read from, guessed or named, e.g. `{"item": "text_id"}`.
    guessed
        The roles that were guessed.
    rows
        Rows in the source.
    dropped
        Rows (or votes) left out, by reason.
    notes
        Notes for the user, one sentence each.
    not_read
        Columns, and sheets, that were not read.
    """

    source: str = ""
    sha256: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    guessed: tuple[str, ...] = ()
    rows: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    not_read: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Votes:
    """Who voted what on which item, for one question or several.

    Parameters
    ----------
    items, annotators
        Sorted ids: integers where all were, else strings.
    ballots
        One per question, sorted by name.
    domains, domain_i
        Names of the domains, sorted, and each item's (`UNKNOWN` where it has none).
    texts
        The items' texts, if there are any.
    anonymous
        Whether votes came without annotators, so that all share one confusion matrix.
    reading
        How they were read.
    extra
        Further columns about items that the reader was asked to read; null where an item has none.
    kept
        Further columns that the reader was asked to keep, with one cell per row of the source: `Ballot.row_v`.
    """

    items: pl.Series
    annotators: pl.Series
    ballots: tuple[Ballot, ...]
    domains: tuple[str, ...]
    domain_i: NDArray[np.int32]
    texts: pl.Series | None = None
    anonymous: bool = False
    reading: Reading = field(default_factory=Reading)
    extra: Mapping[str, pl.Series] = field(default_factory=dict)
    kept: Mapping[str, pl.Series] = field(default_factory=dict)

    @cached_property
    def questions(self) -> tuple[str, ...]:
        """Names of the questions."""
        return tuple(dict.fromkeys(ballot.question for ballot in self.ballots))

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.items)

    @property
    def n_votes(self) -> int:
        """How many votes there are, over all questions."""
        return sum(ballot.n_votes for ballot in self.ballots)

    def __repr__(self) -> str:
        """Say in one line what there is."""
        names = ", ".join(self.questions)
        votes = f"{self.n_votes:,} votes by {len(self.annotators):,} annotators on {self.n_items:,} items"
        return f"Votes({votes}; {names})"

    def ballot(self, question: str) -> Ballot:
        """Return the votes on one question."""
        ballots = [ballot for ballot in self.ballots if ballot.question == question]
        if len(ballots) != 1:
            refuse(f"{len(ballots)} ballots are called {question!r}. Questions: {', '.join(self.questions)}.")
        return ballots[0]

    def split_by(self, column: str) -> Votes:
        """Cut every ballot in parts that are fitted on their own, one for every value of a column that was kept."""
        name_i = self.extra[column].fill_null(NO_DOMAIN).to_numpy()
        ballots = []
        for ballot in self.ballots:
            part_of = name_i[ballot.item_i]
            for name in sorted(set(part_of)):
                ballots.append(ballot.take(np.flatnonzero(part_of == name), part=name))
        return replace(self, ballots=tuple(ballots))


@dataclass
class ReadingLog:
    """What was left out while reading, and notes for the user.

    Parameters
    ----------
    notes
        One sentence each.
    dropped
        Number of rows or votes left out, by reason.
    unread
        Parts of the file that were not read, such as sheets.
    """

    notes: list[str] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)

    def drop(self, reason: str, n: int) -> None:
        """Add to the count of what was left out for a reason."""
        if n:
            self.dropped[reason] = self.dropped.get(reason, 0) + int(n)

    def note(self, sentence: str) -> None:
        """Add a note, unless it is there already."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def add(self, log: ReadingLog) -> None:
        """Add what another log holds."""
        for reason, n in log.dropped.items():
            self.drop(reason, n)
        for sentence in log.notes:
            self.note(sentence)
        self.unread += log.unread


def refuse(problem: str, error: type[MoralEntropyError] = VotesError) -> NoReturn:
    """Raise an error about votes that cannot be read, or about options that contradict each other."""
    raise error(problem)


def one_line(error: BaseException) -> str:
    """Return the first line of an error's message, without its full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".: ") if lines else type(error).__name__


LONGEST = 70
"""Names are cut off here in messages."""


def shown(names: Sequence[str], limit: int = 12) -> str:
    """Join the first dozen of some names with commas, each on one line and not longer than a line.

    Examples
    --------
    >>> shown(["a", "b", "c"], limit=2)
    'a, b, … (3 in all)'
    """
    plain = [" ".join(str(name).split()) for name in names[:limit]]
    listed = ", ".join(name if len(name) <= LONGEST else f"{name[:LONGEST]}…" for name in plain)
    return listed if len(names) <= limit else f"{listed}, … ({len(names):,} in all)"
