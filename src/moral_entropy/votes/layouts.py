"""The layouts of a table of votes → the votes on each question, coded but not yet sorted into ballots.

"long" has one row per vote: the label is one, or several in one cell, or a column for each of several questions.
"wide" has one row per item and a column per annotator; with a column of counts a row stands for many items.
"respondents" has one row per person. "counts" says how many chose a label, or how many of n said yes, without
annotators. `Rows` say which item and question each row is about, `QuestionVotes` who voted what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.errors import VotesError
from moral_entropy.options import ReadOptions
from moral_entropy.votes.columns import ColumnRoles, naming
from moral_entropy.votes.labels import (
    NO_YES,
    check_few,
    code_label_sets,
    labels_in_sets,
    load_label_map,
    map_labels,
    note_blank,
    rename_label,
)
from moral_entropy.votes.source import Source, from_polars
from moral_entropy.votes.table import UNKNOWN, Floats, Ints, ReadingLog, shown
from moral_entropy.votes.values import (
    MISSING,
    Coded,
    code_ids,
    code_labels,
    count_codes,
    no_answers,
    recode,
    sort_labels,
)

ANONYMOUS = "(anonymous)"
"""The one annotator of votes that came without annotators."""

QUESTION = "label"
"""Name of the question, where the table has none."""

YES_NO_WORDS = frozenset({"0", "1", "true", "false", "yes", "no", "y", "n", "t", "f"})
NO_VOTE = "."


class Rows(NamedTuple):
    """Which item and question each row of the source is about. Axes: **r** row, **i** item.

    Parameters
    ----------
    items
        Sorted ids of the items.
    item_r
        Each row's item; `UNKNOWN` where the cell is empty.
    questions, question_r
        Names of the questions and each row's, if there is a column for them.
    count_i
        How many items each item stands for, in pre-counted data.
    """

    items: pl.Series
    item_r: Ints
    questions: tuple[str, ...] = ()
    question_r: Ints | None = None
    count_i: Floats | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.item_r)


@dataclass(frozen=True, eq=False)
class QuestionVotes:
    """The votes on one question, in the order of the source. Axis: **v** vote.

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
    """

    question: str
    labels: tuple[str, ...]
    item_v: Ints
    annotator_v: Ints
    label_v: Ints
    row_v: Ints | None = None
    item_i: Ints | None = None

    def rows(self, at_v: Ints) -> Ints:
        """Return the rows of the source that some votes came from."""
        return at_v if self.row_v is None else self.row_v[at_v]

    def take(self, kept_v: Ints) -> QuestionVotes:
        """Keep only some votes."""
        codes = {name: getattr(self, name)[kept_v] for name in ("item_v", "annotator_v", "label_v")}
        return replace(self, row_v=self.rows(kept_v), **codes)


Layout = tuple[Rows, pl.Series, tuple[QuestionVotes, ...]]
"""What each row is about, the annotators, and the votes on each question."""


def read_rows(source: Source, roles: ColumnRoles, ids: Coded | None = None) -> Rows:
    """Read the item of each row, unless it is given, and the question if there is a column for it."""
    if ids is None:
        ids = code_ids(source.column(roles.column["item"]), textual=source.textual)
    if (name := roles.get("question")) is None:
        return Rows(ids.values, ids.code_r)
    questions = code_labels(source.column(name))
    return Rows(ids.values, ids.code_r, tuple(questions.values.to_list()), questions.code_r)


def _complete_rows(rows: Rows, log: ReadingLog, **codes: Ints) -> Ints | None:
    """Find the rows in which nothing is missing, None if all are complete; log the others by what they lack first."""
    complete_r = None
    for name, code_r in {"item": rows.item_r, "question": rows.question_r, **codes}.items():
        if code_r is None or not len(code_r) or int(code_r.min()) != UNKNOWN:
            continue
        before = rows.n_rows if complete_r is None else int(complete_r.sum())
        complete_r = code_r >= 0 if complete_r is None else complete_r & (code_r >= 0)
        log.drop(f"no {name}", before - int(complete_r.sum()))
    return None if complete_r is None else np.flatnonzero(complete_r).astype(_row_type(rows.n_rows))


def _take(values: Ints, row_v: Ints | None) -> Ints:
    """Take some rows; all of them, without a copy, for `None`."""
    return values if row_v is None else values[row_v]


def _split_by_question(
    rows: Rows, name: str, labels: Coded, row_v: Ints | None, annotator_v: Ints, options: ReadOptions, log: ReadingLog
) -> tuple[QuestionVotes, ...]:
    """Split votes for one label each by the question of their row; without a column for it, all are on `name`."""
    labels = map_labels(labels, options, log)
    label_v = labels.code_r
    if not labels.complete:
        kept_v = np.flatnonzero(label_v >= 0)
        row_v = kept_v if row_v is None else row_v[kept_v]
        annotator_v, label_v = annotator_v[kept_v], label_v[kept_v]
    names, item_v = tuple(labels.values.to_list()), _take(rows.item_r, row_v)
    if rows.question_r is None:
        return (QuestionVotes(name, names, item_v, annotator_v, label_v, row_v),)
    question_v = _take(rows.question_r, row_v)
    row_v = np.arange(rows.n_rows, dtype=_row_type(rows.n_rows)) if row_v is None else row_v
    votes, label_map = [], load_label_map(options.labels)
    for q, question in enumerate(rows.questions):
        at_v = np.flatnonzero(question_v == q)
        # A map that leaves out a label named like a question leaves out the question.
        if label_map and rename_label(question, label_map) is None:
            log.drop("question left out by the label map", len(at_v))
            continue
        columns = (item_v[at_v], annotator_v[at_v], label_v[at_v], row_v[at_v])
        item_i = np.flatnonzero(count_codes(rows.item_r[rows.question_r == q], len(rows.items))).astype(np.int32)
        votes.append(QuestionVotes(question, names, *columns, item_i=item_i))
    return tuple(votes)


def _anonymous(n_votes: int) -> Ints:
    """Return the annotator codes of votes without annotators: all 0, taking no memory."""
    return np.broadcast_to(np.int16(0), (n_votes,))


def _row_type(n_rows: int) -> type[np.int32] | type[np.int64]:
    return np.int32 if n_rows <= np.iinfo(np.int32).max else np.int64


# --- One row per vote ---------------------------------------------------------------------------------------------


def read_long(source: Source, roles: ColumnRoles, options: ReadOptions) -> Layout:
    """Read one row per vote; counts and notes go into the source's log."""
    rows = read_rows(source, roles)
    annotators = Coded(pl.Series([ANONYMOUS]), _anonymous(rows.n_rows))
    if (name := roles.get("annotator")) is not None:
        annotators = code_ids(source.column(name), textual=source.textual)
    if options.questions:
        return rows, annotators.values, _question_columns(source, rows, annotators.code_r, options)
    return rows, annotators.values, _label_column(source, roles, rows, annotators.code_r, options)


def _label_column(
    source: Source, roles: ColumnRoles, rows: Rows, annotator_r: Ints, options: ReadOptions
) -> tuple[QuestionVotes, ...]:
    """Read votes for one label each or, where cells name several, a yes/no question for every label."""
    name = roles.column["label"]
    column = source.column(name)
    if options.multilabel:
        labels = code_label_sets(column, options, source.log)
    elif column.dtype.is_nested():
        msg = f'column {name!r} holds several labels per cell. Read them with multilabel="," (CLI: --multilabel ",").'
        raise VotesError(msg)
    else:
        labels = _code_votes(column, options, source.log)
    row_v = _complete_rows(rows, source.log, label=labels.code_r, annotator=annotator_r)
    if count := roles.get("count"):
        count_r = read_numbers(source, count, required=True)
        row_v = np.arange(rows.n_rows) if row_v is None else row_v
        row_v = np.repeat(row_v, count_r[row_v])
    label_v, annotator_v = _take(labels.code_r, row_v), _take(annotator_r, row_v)
    if not options.multilabel:
        coded = Coded(labels.values, label_v)
        return _split_by_question(rows, name, coded, row_v, annotator_v, options, source.log)
    item_v, cells = _take(rows.item_r, row_v), labels.values.to_list()
    named = {label: np.array([label in cell for cell in cells], dtype=np.int16) for label in labels_in_sets(labels)}
    return tuple(
        QuestionVotes(label, NO_YES, item_v, annotator_v, named_c[label_v], row_v) for label, named_c in named.items()
    )


def _code_votes(column: pl.Series, options: ReadOptions, log: ReadingLog) -> Coded:
    """Code a column of votes, and note which words were taken for no answer."""
    labels = code_labels(column, options.missing)
    note_blank(labels.blank, labels.values.to_list() if options.missing is None else [], log)
    check_few(len(labels.values), column.name, len(column))
    return labels


def _question_columns(source: Source, rows: Rows, annotator_r: Ints, options: ReadOptions) -> tuple[QuestionVotes, ...]:
    """Read a question from every column the user listed."""
    voted_r = _complete_rows(rows, source.log, annotator=annotator_r)
    votes = []
    for name in sorted(set(options.questions)):
        labels = _code_votes(source.column(name), options, source.log)
        odd = [label for label in labels.values.to_list() if label.casefold() not in YES_NO_WORDS]
        if options.anonymous and odd:
            msg = (
                f"column {name!r} holds {odd[0]!r}, which is neither yes nor no. If it counts how many chose {name!r}, "
                "say of how many: of=3, or of a column (CLI: --of)."
            )
            raise VotesError(msg)
        label_v = _take(labels.code_r, voted_r)
        source.log.drop("no label", int((label_v < 0).sum()))
        mapped = map_labels(Coded(labels.values, label_v), options, source.log)
        kept_v = np.flatnonzero(mapped.code_r >= 0)
        row_v = kept_v if voted_r is None else voted_r[kept_v]
        columns = (rows.item_r[row_v], annotator_r[row_v], mapped.code_r[kept_v], row_v)
        votes.append(QuestionVotes(name, tuple(mapped.values.to_list()), *columns))
    return tuple(votes)


# --- One row per item, or per person ------------------------------------------------------------------------------


def read_wide(source: Source, roles: ColumnRoles, options: ReadOptions) -> Layout:
    """Read one row per item, one column per annotator."""
    names = sorted(roles.annotators)
    labels, label_ar = _read_columns(source, names, options)
    check_few(len(labels), ", ".join(names[:3]), source.rows)
    rows = _wide_rows(source, roles, labels, label_ar)
    if roles.get("count"):
        rows, voted_r = _add_counts(source, roles, rows)
    else:
        complete_r = _complete_rows(rows, source.log)
        voted_r = np.arange(rows.n_rows) if complete_r is None else complete_r
    # Votes are listed column after column.
    rows_a = [voted_r[label_r[voted_r] >= 0] for label_r in label_ar]
    row_v = np.concatenate(rows_a)
    label_v = np.concatenate([label_r[row_a] for label_r, row_a in zip(label_ar, rows_a, strict=True)])
    coded = Coded(pl.Series(labels, dtype=pl.String), label_v)
    annotator_v = _anonymous(len(row_v))
    if not options.anonymous:
        annotator_v = np.repeat(np.arange(len(names), dtype=np.int32), [*map(len, rows_a)])
    votes = _split_by_question(rows, QUESTION, coded, row_v, annotator_v, options, source.log)
    return rows, pl.Series([ANONYMOUS] if options.anonymous else names), votes


def _read_columns(source: Source, names: Sequence[str], options: ReadOptions) -> tuple[list[str], list[Ints]]:
    """Code several columns of votes by one list of labels; words that mean no answer are judged by all of them."""
    cells = [code_labels(source.column(name), ()) for name in names]
    said = {label for column in cells for label in column.values.to_list()}
    blank = no_answers(said, options.missing)
    note_blank(blank, sorted(said - blank) if options.missing is None else [], source.log)
    labels = sort_labels(said - blank)
    place = {label: k for k, label in enumerate(labels)}
    places = [[place.get(label, UNKNOWN) for label in column.values.to_list()] for column in cells]
    return labels, [recode(column.code_r, new_of) for column, new_of in zip(cells, places, strict=True)]


def read_respondents(source: Source, roles: ColumnRoles, options: ReadOptions) -> tuple[Source, ColumnRoles]:
    """Turn one row per person and one column per item into a long table and the roles of its columns."""
    who, n_items = roles.get("annotator"), len(roles.items)
    if who is None:
        source.log.note("no column of annotators: people are called by the number of their row.")
    people = pl.Series(range(1, source.rows + 1)) if who is None else source.column(who)
    if options.on_repeat == "error":
        _check_respondents(source, roles, people)
    labels, label_ir = _read_columns(source, roles.items, options)
    place = pl.Series(np.concatenate(label_ir)).cast(pl.Int64)
    columns = {
        "item": pl.Series(roles.items).gather(np.repeat(np.arange(n_items), source.rows)),
        "annotator": pl.concat([people] * n_items),
        "label": pl.Series(labels, dtype=pl.String).gather(place.set(place < 0, None)),
    } | {name: pl.concat([source.column(name)] * n_items) for name in options.keep}
    facts = {"textual": source.textual, "sha256": source.sha256, "log": source.log}
    long = from_polars(pl.DataFrame(columns), source.name, **facts)
    # Headings that are sentences are what was voted on.
    texts = {"text": "item"} if any(len(name.split()) > 3 for name in roles.items) else {}
    return long, ColumnRoles({"item": "item", "annotator": "annotator", "label": "label"} | texts, roles.guessed)


def _check_respondents(source: Source, roles: ColumnRoles, people: pl.Series) -> None:
    """Refuse people who answered twice, and not the same."""
    answers = [source.column(name).alias(f"item {at}") for at, name in enumerate(roles.items)]
    frame = pl.DataFrame([people.alias("who"), *answers]).with_row_index("row", 1).drop_nulls("who")
    distinct = frame.unique(pl.exclude("row"), keep="first", maintain_order=True)
    again = distinct.filter(pl.col("who").is_duplicated()).sort("who", "row", maintain_order=True)
    if again.is_empty():
        return
    first, second = again.row(0, named=True), again.row(1, named=True)
    msg = (
        f"{again.get_column('who').n_unique():,} people have several rows with different answers. First: "
        f"{first['who']!r} (rows {first['row']:,} and {second['row']:,}). "
        'Choose on_repeat="first", "last" or, to keep each as a vote of its own, "count" (CLI: --on-repeat last).'
    )
    raise VotesError(msg)


def _wide_rows(source: Source, roles: ColumnRoles, labels: Sequence[str], label_ar: Sequence[Ints]) -> Rows:
    if roles.get("item"):
        return read_rows(source, roles)
    if roles.get("count"):
        return read_rows(source, roles, code_ids(_patterns(source, roles, labels, label_ar)))
    source.log.note("no item column: items are called by the number of their row.")
    numbers = Coded(pl.Series(range(1, source.rows + 1)), np.arange(source.rows, dtype=np.int32))
    return read_rows(source, roles, numbers)


def _patterns(source: Source, roles: ColumnRoles, labels: Sequence[str], label_ar: Sequence[Ints]) -> pl.Series:
    """Spell each row's votes, such as `1 1 2 . 1`; rows of different domains or questions stay apart."""
    spelt = pl.Series([*labels, NO_VOTE], dtype=pl.String)
    # The code of an empty cell, -1, is the last entry.
    parts = [spelt.gather(np.where(label_r < 0, len(labels), label_r)) for label_r in label_ar]
    further = [name for role in ("domain", "question") if (name := roles.get(role))]
    parts += [source.column(name).cast(pl.String).fill_null(NO_VOTE) for name in further]
    frame = pl.DataFrame({str(at): part for at, part in enumerate(parts)})
    return frame.select(pl.concat_str(pl.all(), separator=" ")).to_series()


def _add_counts(source: Source, roles: ColumnRoles, rows: Rows) -> tuple[Rows, Ints]:
    """Add up the counts of rows that are the same item or pattern; also return the rows whose votes are read."""
    name = roles.column["count"]
    if roles.get("item") and roles.get("question"):
        msg = f"an item has one count, so {name!r} cannot count several questions. Read them one by one."
        raise VotesError(msg)
    count_r = read_numbers(source, name, required=True)
    source.log.drop("no item", int((rows.item_r < 0).sum()))
    source.log.drop("a count of 0", int((count_r == 0).sum()))
    item_r = np.where(count_r == 0, -1, rows.item_r)
    kept = np.flatnonzero(count_codes(item_r, len(rows.items)) > 0)
    item_r = recode(item_r, places_of(kept, len(rows.items)))
    voted_r = np.flatnonzero(item_r >= 0)
    count_i = np.bincount(item_r[voted_r], weights=count_r[voted_r], minlength=len(kept)).astype(np.float64)
    source.log.note(f"{len(kept):,} rows stand for {count_i.sum():,.0f} items, as {name!r} counts them.")
    if not roles.get("item"):
        # All rows of a pattern have the same votes: the first has them all.
        _, first_r = np.unique(item_r[voted_r], return_index=True)
        voted_r = np.sort(voted_r[first_r])
    return rows._replace(items=rows.items.gather(kept), item_r=item_r, count_i=count_i), voted_r


def places_of(chosen: Ints, n_codes: int) -> Ints:
    """Return the position of each code among those chosen; `UNKNOWN` for the others."""
    place = np.full(n_codes, UNKNOWN)
    place[chosen] = np.arange(len(chosen))
    return place


# --- One row per item, with counts --------------------------------------------------------------------------------


def read_numbers(source: Source, name: str, *, required: bool = False) -> NDArray[np.int64]:
    """Read a column of whole numbers of 0 or more; where a cell is empty `UNKNOWN` or, if `required`, an error."""
    column = source.column(name)
    empty = column.is_null()
    if column.dtype == pl.String:
        column = column.str.strip_chars()
        empty = empty | column.is_in(list(MISSING))
    number = column.cast(pl.Float64, strict=False).fill_nan(None)
    whole = number.is_not_null() & (number >= 0) & (number == number.floor()) & (number < 2**31)
    bad = ~(whole.fill_null(False) | (pl.Series([False]) if required else empty.fill_null(True)))
    if bad.any():
        first = int(bad.arg_max() or 0)
        msg = (
            f"{int(bad.sum()):,} cells of column {name!r} in {source.name} are not whole numbers of 0 or more. "
            f"First: {column[first]!r} (row {first + 1:,}). Correct them, or name another column."
        )
        raise VotesError(msg)
    return number.fill_null(UNKNOWN).cast(pl.Int64).to_numpy()


def read_counts(source: Source, roles: ColumnRoles, options: ReadOptions) -> Layout:
    """Read one row per item with counts: a column per label, or a column per question with how many said yes."""
    rows = read_rows(source, roles)
    complete_r = _complete_rows(rows, source.log)
    row_r = np.arange(rows.n_rows) if complete_r is None else complete_r
    row_r = _one_row_per_item(rows, row_r, options, source.log)
    read = _count_labels if options.counts else _count_yes
    return rows, pl.Series([ANONYMOUS]), read(source, rows, row_r, options)


def _count_labels(source: Source, rows: Rows, row_r: Ints, options: ReadOptions) -> tuple[QuestionVotes, ...]:
    columns = list(dict.fromkeys(options.counts))
    classes = code_labels(pl.Series(columns))
    times = [np.maximum(read_numbers(source, name), 0)[row_r] for name in columns]
    row_v = np.concatenate([np.repeat(row_r, n_r) for n_r in times])
    class_v = np.repeat(np.arange(len(columns)), [int(n_r.sum()) for n_r in times])
    labels = Coded(classes.values, recode(class_v, classes.code_r))
    return _split_by_question(rows, QUESTION, labels, row_v, _anonymous(len(row_v)), options, source.log)


def _count_yes(source: Source, rows: Rows, row_r: Ints, options: ReadOptions) -> tuple[QuestionVotes, ...]:
    names = sorted(set(options.questions))
    yes_rq = np.stack([read_numbers(source, name)[row_r] for name in names], axis=1)
    of_r = _how_many_voted(source, options)[row_r]
    most_r = yes_rq.max(axis=1)
    if over := int((most_r > of_r).sum()):
        # Somebody voted twice, or one annotator more was asked; the largest count is the least that fits.
        what = f"{over:,} items have a count above the number of annotators"
        source.log.note(f"{what}; their largest count is taken as it.")
        of_r = np.maximum(of_r, most_r)
    votes = []
    for q, name in enumerate(names):
        asked_r = yes_rq[:, q] >= 0
        source.log.drop("no label", int((~asked_r).sum()))
        yes_r, at_r = yes_rq[asked_r, q], row_r[asked_r]
        no_r = of_r[asked_r] - yes_r
        row_v = np.concatenate([np.repeat(at_r, no_r), np.repeat(at_r, yes_r)])
        label_v = np.repeat(np.array([0, 1], dtype=np.int16), [int(no_r.sum()), int(yes_r.sum())])
        votes.append(QuestionVotes(name, NO_YES, rows.item_r[row_v], _anonymous(len(row_v)), label_v, row_v))
    return tuple(votes)


def _how_many_voted(source: Source, options: ReadOptions) -> NDArray[np.int64]:
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
        first, second = row_r[order[again[0]]], row_r[order[again[0] + 1]]
        msg = (
            f"{len(again):,} of {len(row_r):,} rows count an item again. First: item "
            f"{rows.items[int(rows.item_r[first])]!r} (rows {first + 1:,} and {second + 1:,}). "
            'Choose on_repeat="first", "last" or, to add them up, "count" (CLI: --on-repeat).'
        )
        raise VotesError(msg)
    log.drop("repeated row", len(again))
    gone = again + 1 if options.on_repeat == "first" else again
    return np.sort(row_r[np.delete(order, gone)])
