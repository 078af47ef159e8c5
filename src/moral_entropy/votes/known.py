"""Known: labels that somebody vouches for, the gold ones and those already published.

Takes a column beside the votes or a file of its own; returns, for a ballot, the label of each item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from moral_entropy.errors import VotesError
from moral_entropy.votes.columns import Found, guess_column, missing_column, named_column, shown
from moral_entropy.votes.files import on_disk
from moral_entropy.votes.labels import LabelMap, Tally, load_label_map, map_labels, match_label
from moral_entropy.votes.marks import Rows
from moral_entropy.votes.options import Options
from moral_entropy.votes.sets import NO_YES, CodedSets, code_sets
from moral_entropy.votes.source import Source, open_source
from moral_entropy.votes.table import BLOCK, UNKNOWN, Ballot, Ints
from moral_entropy.votes.values import Coded, code_ids, code_labels, count_codes, recode

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Known:
    """Labels somebody vouches for, row by row.

    Parameters
    ----------
    role
        "gold" or "published".
    where
        Column or file, for errors.
    rows
        What each row is about; items are those of the votes.
    labels
        One label a row, or a set of labels.
    """

    role: str
    where: str
    rows: Rows
    labels: Coded | CodedSets

    def on(self, ballot: Ballot, tally: Tally) -> NDArray[np.int16]:
        """Give the label of each item of a ballot; `UNKNOWN` where nobody vouches for one."""
        names, code_r = self._spelt_for(ballot.question)
        code_i = self._one_an_item(ballot, names, np.where(self._asked(ballot.question), code_r, UNKNOWN))
        present = np.flatnonzero(count_codes(code_i, len(names)))
        places = np.full(len(names), UNKNOWN)
        for k in present.tolist():
            places[k] = self._place(names[k], ballot, int((code_i == k).sum()), tally)
        return recode(code_i, places).astype(np.int16)

    def _asked(self, question: str) -> NDArray[np.bool_]:
        """Say which rows are about a question."""
        if self.rows.question_r is None:
            return np.ones(self.rows.n_rows, dtype=np.bool_)
        q = match_label(question, self.rows.questions)
        asked: NDArray[np.bool_] = self.rows.question_r == (len(self.rows.questions) if q is None else q)
        return asked

    def _spelt_for(self, question: str) -> tuple[Sequence[str], Ints]:
        if isinstance(self.labels, Coded):
            return self.labels.values.to_list(), self.labels.code_r
        named = np.array([match_label(question, sorted(cell)) is not None for cell in self.labels.sets], dtype=np.int16)
        return NO_YES, recode(self.labels.code_r, named)

    def _one_an_item(self, ballot: Ballot, names: Sequence[str], code_r: Ints) -> Ints:
        """Give each item of the ballot its label, and refuse two different ones."""
        code_i = np.full(len(self.rows.items), UNKNOWN, dtype=np.int32)
        for item, code in _vouching(self.rows.item_r, code_r):
            code_i[item] = code
        # Where all rows of an item agree, it does not matter which of them came last.
        if any((code_i[item] != code).any() for item, code in _vouching(self.rows.item_r, code_r)):
            self._refuse_torn(ballot, names, code_r)
        return code_i[ballot.item_i]

    def _refuse_torn(self, ballot: Ballot, names: Sequence[str], code_r: Ints) -> NoReturn:
        low_i = np.full(len(self.rows.items), len(names), dtype=np.int32)
        high_i = np.full(len(self.rows.items), UNKNOWN, dtype=np.int32)
        for item, code in _vouching(self.rows.item_r, code_r):
            np.minimum.at(low_i, item, code.astype(np.int32))
            np.maximum.at(high_i, item, code.astype(np.int32))
        torn = np.flatnonzero((high_i >= 0) & (low_i != high_i))
        first = int(torn[0])
        msg = (
            f"{len(torn):,} items have more than one {self.role} label on {ballot.question!r} in {self.where}. "
            f"First: item {self.rows.items[first]!r} is {names[low_i[first]]!r} and {names[high_i[first]]!r}. "
            "Give each item one."
        )
        raise VotesError(msg)

    def _place(self, name: str, ballot: Ballot, n_items: int, tally: Tally) -> int:
        at = match_label(name, ballot.labels)
        if at is None:
            msg = (
                f"{n_items:,} items have the {self.role} label {name!r} on {ballot.question!r} ({self.where}), which "
                f"no vote has. Votes say: {shown(ballot.labels)}. Rename it with labels={{{name!r}: …}} "
                f'(CLI: --labels map.toml), or do without: {self.role}="".'
            )
            raise VotesError(msg)
        if ballot.labels[at] != name:
            tally.note(f"{self.role} labels match those of the votes only without regard to case: {name!r}.")
        return at


def _vouching(item_r: Ints, code_r: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Give items and their labels, a cacheful of rows at a time, without those that lack either."""
    for at in range(0, len(code_r), BLOCK):
        item, code = item_r[at : at + BLOCK], code_r[at : at + BLOCK]
        both = (item >= 0) & (code >= 0)
        yield (item, code) if both.all() else (item[both], code[both])


def read_known(
    role: str, source: Source, found: Found, rows: Rows, options: Options, questions: Sequence[str], tally: Tally
) -> Known | None:
    """Read gold or published labels, if there are any.

    Parameters
    ----------
    role
        "gold" or "published".
    source, found, rows
        The votes' table, which of its columns is what, and what its rows are about.
    options
        What the user asked for, among it the file of gold labels.
    questions
        Names of the questions that were voted on.
    tally
        Where remarks go.
    """
    if role == "gold" and options.gold_file is not None:
        with on_disk(options.gold_file) as file:
            return _read_gold_file(file, found, rows, options, questions, tally)
    if (name := found.get(role)) is None:
        return None
    if options.questions:
        msg = f"a {role} column cannot answer several question columns. Use gold_file with item, question and gold."
        raise VotesError(msg)
    labels = _read_labels(source.column(name), options)
    known = Known(role, f"column {name!r}", rows, labels)
    if not (labels.code_r >= 0).any():
        if role in found.guessed:
            tally.note(f"the {role} column {name!r} is empty.")
            return None
        msg = f"the {role} column {name!r} is empty: no item has a {role} label."
        raise VotesError(msg)
    _check_set_labels(known, questions)
    return known


def _read_labels(column: pl.Series, options: Options) -> Coded | CodedSets:
    change, unheard = load_label_map(options.labels), Tally()
    if options.multilabel:
        return code_sets(column, options.multilabel, change, unheard)
    return map_labels(code_labels(column), change, unheard)


def _read_gold_file(
    path: str | Path, found: Found, rows: Rows, options: Options, questions: Sequence[str], tally: Tally
) -> Known:
    source = open_source(path)
    item, gold, question = gold_columns(source, found, options)
    ids = code_ids(source.column(item), textual=source.textual)
    item_r = recode(ids.code_r, _positions(rows.items, ids.values))
    _check_items(source.name, ids, item_r, rows, tally)
    asked = code_labels(source.column(question)) if question else None
    sets = options.multilabel and not question
    labels = (
        _read_labels(source.column(gold), options)
        if sets or not (options.multilabel or options.questions)
        else map_labels(code_labels(source.column(gold)), LabelMap(), tally)
    )
    if question is None and len(questions) > 1 and not sets:
        msg = (
            f"{source.name} does not say which of the {len(questions)} questions a gold label answers "
            f"({shown(questions)}). Add a column called question."
        )
        raise VotesError(msg)
    names = tuple(asked.values.to_list()) if asked else ()
    known = Known("gold", source.name, Rows(rows.items, item_r, names, asked.code_r if asked else None), labels)
    _check_set_labels(known, questions)
    return known


def gold_columns(source: Source, found: Found, options: Options) -> tuple[str, str, str | None]:
    """Find the columns of a file of gold labels: item, gold and, if there is one, question."""
    names = list(source.columns)
    same = found.get("item")
    item = same if same in names else guess_column("item", names)
    if item is None:
        raise missing_column(role="item", names=names, source=source.name)
    rest = [name for name in names if name != item]
    question = found.get("question") if found.get("question") in rest else guess_column("question", rest)
    rest = [name for name in rest if name != question]
    if options.gold:
        return item, named_column(options.gold, names, source.name, "gold"), question
    gold = guess_column("gold", rest) or guess_column("label", rest) or (rest[0] if len(rest) == 1 else None)
    if gold is None:
        raise missing_column(role="gold", names=names, source=source.name)
    return item, gold, question


def _positions(items: pl.Series, ids: pl.Series) -> Ints:
    """Find ids among the sorted items; `UNKNOWN` where there is no such item."""
    import polars as pl

    if items.dtype != ids.dtype:
        items, ids = items.cast(pl.String), ids.cast(pl.String)
    table = pl.DataFrame({"id": items, "at": np.arange(len(items))})
    met = pl.DataFrame({"id": ids}).join(table, on="id", how="left", maintain_order="left")
    return met.get_column("at").fill_null(UNKNOWN).to_numpy()


def _check_items(name: str, ids: Coded, item_r: Ints, rows: Rows, tally: Tally) -> None:
    strange = len(ids.values) - len(np.unique(item_r[item_r >= 0]))
    if strange == len(ids.values):
        msg = (
            f"none of the {strange:,} items of {name} has a vote. First: {ids.values[0] if strange else None!r}; "
            f"the votes begin with item {rows.items[0]!r}. Check that both name items alike."
        )
        raise VotesError(msg)
    if strange:
        tally.note(f"{strange:,} items of {name} have no vote and are ignored.")


def _check_set_labels(known: Known, questions: Sequence[str]) -> None:
    if isinstance(known.labels, CodedSets):
        strange = [label for label in known.labels.labels if match_label(label, questions) is None]
        if strange:
            msg = (
                f"{len(strange)} {known.role} labels of {known.where} occur in no vote. First: {strange[0]!r}. "
                f"Votes name: {shown(questions)}. Merge or leave it out with labels (CLI: --labels)."
            )
            raise VotesError(msg)
