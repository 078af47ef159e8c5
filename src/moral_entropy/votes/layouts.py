"""The layouts of a table of votes → the votes on each question, coded but not yet sorted into ballots.

"long" has one row per vote: the label is one, or several in one cell, or a column for each of several questions.
"wide" has one row per item and a column per annotator; with a column of counts a row stands for many items.
"respondents" has one row per person. "counts" says how many chose a label, or how many of n said yes, without
annotators. `to_long` turns all of them into the first, which `read_long` reads. `Rows` say which item and question each
row is about, `QuestionVotes` who voted what.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.option_fields import did_you_mean
from moral_entropy.options import ReadOptions
from moral_entropy.votes.columns import ColumnRoles, naming
from moral_entropy.votes.labels import (
    LIST_SEPARATOR,
    MISSING,
    NO,
    NO_YES,
    YES,
    Cells,
    Coded,
    as_text,
    code_cells,
    code_ids,
    code_labels,
    count_codes,
    fold_ids,
    load_label_map,
    means_nothing,
    note_same,
    note_typing_errors,
    recode,
    rename_label,
    sort_labels,
    spell_label,
)
from moral_entropy.votes.source import Source
from moral_entropy.votes.table import UNKNOWN, Floats, Ints, ReadingLog, refuse, shown

ANONYMOUS = "(anonymous)"
"""The one annotator of votes that came without annotators."""

QUESTION = "label"
"""Name of the question, where the table has none."""

NO_VOTE = "."
EXCLUDED = "an excluded annotator"
PLUS = "+"
Columns = Sequence[pl.Series]
ON_REPEAT = 'Choose on_repeat="first", "last" or, to keep each as a vote of its own, "count" (CLI: --on-repeat last).'


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
    separator
        What stands between the labels of a cell, where some cells name several.
    stacked
        Rows of the file, where columns of it were put below each other; else 0.
    """

    items: pl.Series
    item_r: Ints
    questions: tuple[str, ...] = ()
    question_r: Ints | None = None
    count_i: Floats | None = None
    separator: str = ""
    stacked: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.item_r)

    def line(self, row: int) -> int:
        """Return the number of a row in the file, from 1 on."""
        return (row % self.stacked if self.stacked else row) + 1


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
    score_v
        What each vote says in numbers, where the question asks for a score.
    """

    question: str
    labels: tuple[str, ...]
    item_v: Ints
    annotator_v: Ints
    label_v: Ints
    row_v: Ints | None = None
    item_i: Ints | None = None
    score_v: Floats | None = None

    def rows(self, at_v: Ints) -> Ints:
        """Return the rows of the source that votes at these positions came from."""
        return at_v if self.row_v is None else self.row_v[at_v]

    def take(self, at_v: Ints) -> QuestionVotes:
        """Keep only the votes at these positions."""
        codes = {name: getattr(self, name)[at_v] for name in ("item_v", "annotator_v", "label_v")}
        score_v = None if self.score_v is None else self.score_v[at_v]
        return replace(self, row_v=self.rows(at_v), score_v=score_v, **codes)


# --- One row per vote ---------------------------------------------------------------------------------------------


def read_long(
    source: Source, roles: ColumnRoles, options: ReadOptions, *, join: bool = True
) -> tuple[Rows, pl.Series, tuple[QuestionVotes, ...]]:
    """Read what each row is about, the annotators, and the votes on each question; notes go into the source's log.

    Ids that differ in case or blanks only are joined, if `join` is true.
    """
    join = join and not options.keep_case
    items = code_ids(source.column(roles.column["item"]), textual=source.textual)
    rows = Rows(items.values, items.code_r, stacked=source.stacked)
    if (name := roles.get("question")) is not None:
        questions = code_labels(source.column(name))
        rows = rows._replace(questions=tuple(questions.values.to_list()), question_r=questions.code_r)
    annotators = Coded(pl.Series([ANONYMOUS]), np.broadcast_to(np.int16(0), (rows.n_rows,)))
    if (name := roles.get("annotator")) is not None:
        annotators = code_ids(source.column(name), textual=source.textual)
        if join:
            annotators = _one_spelling("annotators", annotators, rows.item_r, rows, source.log)
    if join:
        partner_r = np.arange(rows.n_rows) if options.anonymous else annotators.code_r
        items = _one_spelling("items", items, partner_r, rows, source.log)
    rows = rows._replace(items=items.values, item_r=items.code_r)
    if (name := roles.get("item_count")) is not None:
        count_i = np.zeros(len(rows.items))
        count_i[rows.item_r] = source.column(name).to_numpy()
        rows = rows._replace(count_i=count_i)
    columns = [roles.column["label"]] if roles.get("label") else sorted(set(options.questions))
    votes: list[QuestionVotes] = []
    for column in columns:
        cells = code_cells(source.column(column), options, source.log)
        if options.questions and options.anonymous and not source.stacked:
            _check_yes_no(cells, column)
        # Empty cells of a sheet with a column per annotator are votes that nobody was asked for.
        labels = {} if source.stacked else {"label": cells.code_r}
        row_v = _complete_rows(rows, ReadingLog() if votes else source.log, **labels, annotator=annotators.code_r)
        if source.stacked or votes:
            row_v = np.arange(rows.n_rows) if row_v is None else row_v
            voted_v = cells.code_r[row_v] >= 0
            source.log.drop("no label", 0 if source.stacked else int((~voted_v).sum()))
            row_v = row_v[voted_v]
        if count := roles.get("count"):
            count_r = read_numbers(source, count, required=True)
            row_v = np.arange(rows.n_rows) if row_v is None else row_v
            row_v = np.repeat(row_v, count_r[row_v])
        for part in _answers(
            rows, column, cells, row_v, annotators.code_r, options, source.log, prefixed=len(columns) > 1
        ):
            votes.append(part)
            if cells.separator and part.labels == NO_YES:
                rows = rows._replace(separator=cells.separator)
    return rows, annotators.values, tuple(votes)


def _one_spelling(kind: str, ids: Coded, partner_r: Ints, rows: Rows, log: ReadingLog) -> Coded:
    """Join ids that differ in case, blanks or invisible marks only, unless somebody voted under both."""
    if ids.values.dtype != pl.String:
        return ids
    folded = fold_ids(ids.values)
    if folded.n_unique() == len(folded):
        return ids
    code = folded.rank("dense").cast(pl.Int64) - 1
    twin_c = folded.is_duplicated().to_numpy()
    row_r = np.flatnonzero(np.append(twin_c, False)[ids.code_r])
    question_r = np.zeros(rows.n_rows, dtype=np.int8) if rows.question_r is None else rows.question_r
    old_r = ids.code_r[row_r]
    pairs = pl.DataFrame({"old": old_r, "new": code.to_numpy()[old_r]})
    pairs = pairs.with_columns(partner=pl.Series(partner_r[row_r]), question=pl.Series(question_r[row_r]))
    place = pl.struct("partner", "question").n_unique()
    voted = pairs.unique().group_by("new").agg((pl.len() > place).alias("twice")).filter("twice")
    apart = set(voted.get_column("new").to_list())
    n_c = count_codes(ids.code_r, len(ids.values))
    name_of: dict[str, str] = {}
    groups = pl.DataFrame({"name": ids.values, "new": code, "n": n_c}).filter(pl.Series(twin_c))
    for (new,), group in groups.sort("n", "name", descending=[True, False]).group_by("new", maintain_order=True):
        if new not in apart:
            name_of |= dict.fromkeys(group.get_column("name").to_list(), group.item(0, "name"))
    if not name_of:
        return ids
    note_same(name_of, log, kind)
    names = ids.values.replace(name_of)
    values = names.unique().sort()
    return Coded(values, recode(ids.code_r, values.search_sorted(names).to_numpy()))


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


def _check_yes_no(cells: Cells, column: str) -> None:
    labels = [label for cell in cells.labels_c for label in cell or ()]
    if odd := [label for label in labels if label.casefold() not in YES + NO]:
        way = "If it is a count, say of how many: of=3, or of a column (CLI: --of)"
        refuse(f"column {column!r} holds {odd[0]!r}, which is neither yes nor no. {way}.")


def _answers(
    rows: Rows, column: str, cells: Cells, row_v: Ints | None, annotator_r: Ints, options: ReadOptions,
    log: ReadingLog, *, prefixed: bool
) -> Iterator[QuestionVotes]:  # fmt: skip
    """Yield the votes in an answer column, by the question of their row and, of lists, by label."""

    def take(values: Ints) -> Ints:
        """Take the rows that hold votes; all of them without a copy."""
        return values if row_v is None else values[row_v]

    votes = QuestionVotes(column, (), take(rows.item_r), take(annotator_r), take(cells.code_r), row_v)
    if rows.question_r is None:
        yield from _labels_of(votes, cells, options, log, prefixed=prefixed)
        return
    if row_v is None:
        votes = replace(votes, row_v=np.arange(rows.n_rows, dtype=_row_type(rows.n_rows)))
    question_v, label_map = take(rows.question_r), load_label_map(options.labels)
    for q, question in enumerate(rows.questions):
        at_v = np.flatnonzero(question_v == q)
        # A map that leaves out a label named like a question leaves out the question.
        if label_map and rename_label(question, label_map) is None:
            log.drop("question left out by the label map", len(at_v))
            continue
        item_i = np.flatnonzero(count_codes(rows.item_r[rows.question_r == q], len(rows.items))).astype(np.int32)
        part = replace(votes.take(at_v), question=f"{question}: {column}" if prefixed else question, item_i=item_i)
        yield from _labels_of(part, cells, options, log, prefixed=prefixed or len(rows.questions) > 1)


def _labels_of(
    votes: QuestionVotes, cells: Cells, options: ReadOptions, log: ReadingLog, *, prefixed: bool
) -> Iterator[QuestionVotes]:
    """Yield votes for one label each as they are, and votes for several as a yes/no question for each label."""
    n_c = count_codes(votes.label_v, len(cells.labels_c))
    present = {c: cell for c, cell in enumerate(cells.labels_c) if n_c[c] and cell is not None}
    labels = sort_labels(label for cell in present.values() for label in cell)
    if not cells.separator or not (options.multilabel or any(not cells.single_c[c] for c in present)):
        place = {label: k for k, label in enumerate(labels)}
        places = [place.get(cell[0], UNKNOWN) if cell else UNKNOWN for cell in cells.labels_c]
        if places != list(range(len(labels))):
            votes = replace(votes, label_v=recode(votes.label_v, places))
        votes = replace(votes, labels=tuple(labels))
        reason = "label left out by the label map" if options.labels else "no choice"
        log.drop(reason, sum(int(n_c[c]) for c, cell in present.items() if not cell))
        yield votes if all(present.values()) else votes.take(np.flatnonzero(votes.label_v >= 0))
        return
    if cells.separator == LIST_SEPARATOR:
        log.note(f"{votes.question!r} allows several labels: each is a yes/no question of its own.")
    mentions = {label: sum(int(n_c[c]) for c, cell in present.items() if label in cell) for label in labels}
    note_typing_errors(mentions, log)
    for label in labels:
        if means_nothing(label, options) and len(labels) > 1:
            log.note(f"{label!r} beside lists of labels means no to every label ({mentions[label]:,} votes).")
            continue
        answer_c = [int(label in (cell or ())) for cell in cells.labels_c]
        name = f"{votes.question}: {label}" if prefixed else label
        yield replace(votes, question=name, labels=NO_YES, label_v=recode(votes.label_v, answer_c).astype(np.int16))


def _row_type(n_rows: int) -> type[np.int32] | type[np.int64]:
    return np.int32 if n_rows <= np.iinfo(np.int32).max else np.int64


# --- Other layouts, turned into one row per vote ------------------------------------------------------------------


def to_long(source: Source, roles: ColumnRoles, options: ReadOptions) -> tuple[Source, ColumnRoles]:
    """Turn a table of any layout into one with a row per vote, and the roles of its columns."""
    if roles.layout == "long":
        return source, roles
    turn = {"wide": _from_wide, "respondents": _from_respondents, "counts": _from_counts, "grid": _from_grid}
    return turn[roles.layout](source, roles, options)


def _from_grid(source: Source, roles: ColumnRoles, options: ReadOptions) -> tuple[Source, ColumnRoles]:
    carried = _carried(source, roles, options)
    item = roles.get("item") or _new_name("item", carried)
    if not roles.get("item"):
        source.log.note("no item column: items are called by the number of their row.")
        carried.append(pl.Series(item, range(1, source.rows + 1)))
    frames = []
    for person in dict.fromkeys(person for person, _ in roles.grid):
        cells = [as_text(source.column(roles.grid[person, name])).alias(name) for name in options.questions]
        frames.append(pl.DataFrame([*carried, *cells]).with_columns(pl.lit(person).alias("(annotator)")))
    long = _with_rows(source, pl.concat(frames), source.rows)
    return long, replace(roles, column={**roles.column, "item": item, "annotator": "(annotator)"}, layout="long")


def _stack(source: Source, names: Sequence[str], carried: Columns, cells: Columns, key: str, value: str) -> Source:
    """Put columns below each other: their names become the column `key`, their cells the column `value`."""
    if len({column.dtype for column in cells}) > 1:
        cells = [pl.Series([spell_label(cell) for cell in column.to_list()], dtype=pl.String) for column in cells]
    n_rows = len(cells[0])
    columns = {column.name: pl.concat([column] * len(names)) for column in carried}
    columns[key] = pl.Series(names, dtype=pl.String).gather(np.repeat(np.arange(len(names)), n_rows))
    columns[value] = pl.concat([column.rename(value) for column in cells])
    return _with_rows(source, pl.DataFrame(columns), n_rows)


def _with_rows(source: Source, frame: pl.DataFrame, stacked: int) -> Source:
    """Return a source with other rows, in which columns were put below each other."""
    return replace(
        source, columns=tuple(frame.columns), rows=frame.height, fetch=frame.get_column, stacked=stacked, parts=()
    )


def _carried(source: Source, roles: ColumnRoles, options: ReadOptions) -> list[pl.Series]:
    names = dict.fromkeys([*roles.column.values(), *options.keep, *options.facts])
    return [source.column(name) for name in names]


def _new_name(name: str, carried: Sequence[pl.Series]) -> str:
    return f"({name})" if any(column.name == name for column in carried) else name


def _from_wide(source: Source, roles: ColumnRoles, options: ReadOptions) -> tuple[Source, ColumnRoles]:
    names = sorted(roles.annotators)
    cells, carried = [source.column(name) for name in names], _carried(source, roles, options)
    item = roles.get("item") or _new_name("item", carried)
    columns = {**roles.column, "item": item}
    if count := columns.pop("count", None):
        table = _add_counts(source, roles, cells, carried, item, count)
        cells, carried = table[: len(cells)], table[len(cells) :]
        columns["item_count"] = carried[-1].name
    elif not roles.get("item"):
        source.log.note("no item column: items are called by the number of their row.")
        carried.append(pl.Series(item, range(1, source.rows + 1)))
    key, value = _new_name("annotator", carried), _new_name(QUESTION, carried)
    if not options.anonymous:
        columns["annotator"] = key
    long = _stack(source, names, carried, cells, key, value)
    return long, replace(roles, column=columns | {"label": value}, layout="long")


def _add_counts(
    source: Source, roles: ColumnRoles, cells: Sequence[pl.Series], carried: Sequence[pl.Series], item: str, count: str
) -> list[pl.Series]:
    """Add up the counts of rows that are the same item or pattern, such as `1 1 2 . 1`; a pattern keeps one row."""
    if roles.get("item") and roles.get("question"):
        refuse(f"an item has one count, so {count!r} cannot count several questions. Read them one by one.")
    number = pl.Series("(count)", read_numbers(source, count, required=True))
    frame = pl.DataFrame([column.rename(f"(cell {at})") for at, column in enumerate(cells)] + list(carried))
    if not roles.get("item"):
        # Rows of different domains or questions stay apart.
        spelt = [pl.Series(str(at), [_spelt(cell) for cell in column.to_list()]) for at, column in enumerate(cells)]
        further = [name for role in ("domain", "question") if (name := roles.get(role))]
        spelt += [as_text(source.column(name)).fill_null(NO_VOTE).rename(name) for name in further]
        frame = frame.with_columns(pl.DataFrame(spelt).select(pl.concat_str(pl.all(), separator=" ").alias(item)))
    frame = frame.with_columns(number)
    source.log.drop("no item", frame.get_column(item).null_count())
    source.log.drop("a count of 0", int((number == 0).sum()))
    frame = frame.filter(pl.col("(count)") > 0, pl.col(item).is_not_null())
    frame = frame.with_columns(pl.col("(count)").sum().over(item))
    first = frame.unique(item, keep="first", maintain_order=True)
    total = first.get_column("(count)").sum()
    source.log.note(f"{first.height:,} rows stand for {total:,.0f} items, as {count!r} counts them.")
    return (frame if roles.get("item") else first).get_columns()


def _spelt(cell: object) -> str:
    label = spell_label(cell)
    return NO_VOTE if label is None or label in MISSING else label


def _from_respondents(source: Source, roles: ColumnRoles, options: ReadOptions) -> tuple[Source, ColumnRoles]:
    person, items = roles.get("annotator"), list(roles.items)
    if person is None:
        source.log.note("no column of annotators: people are called by the number of their row.")
    people = pl.Series(range(1, source.rows + 1)) if person is None else source.column(person)
    cells = [source.column(name) for name in items]
    carried = [people.rename("(annotator)"), *(source.column(name) for name in options.keep)]
    long = _stack(source, items, carried, cells, "(item)", _new_name(QUESTION, carried))
    # Headings that are sentences are what was voted on.
    texts = {"text": "(item)"} if any(len(name.split()) > 3 for name in items) else {}
    columns = {"item": "(item)", "annotator": "(annotator)", "label": long.columns[-1]}
    return long, ColumnRoles(columns | texts, roles.guessed)


def read_numbers(source: Source, name: str, *, required: bool = False) -> NDArray[np.int64]:
    """Read a column of whole numbers of 0 or more; where a cell is empty `UNKNOWN` or, if `required`, an error."""
    column = source.column(name)
    empty = column.is_null()
    if column.dtype == pl.String:
        column = column.str.strip_chars()
        empty = empty | column.is_in(list(MISSING))
    number = column.cast(pl.Float64, strict=False).fill_nan(None)
    integral = number.is_not_null() & (number >= 0) & (number == number.floor()) & (number < 2**31)
    bad = ~(integral.fill_null(False) | (pl.Series([False]) if required else empty.fill_null(True)))
    if bad.any():
        first = int(bad.arg_max() or 0)
        problem = f"{int(bad.sum()):,} cells of column {name!r} in {source.name} are not whole numbers of 0 or more"
        refuse(f"{problem}. First: {column[first]!r} (row {first + 1:,}). Correct them, or name another column.")
    return number.fill_null(UNKNOWN).cast(pl.Int64).to_numpy()


def _from_counts(source: Source, roles: ColumnRoles, options: ReadOptions) -> tuple[Source, ColumnRoles]:
    """Stack counts: a column per label, or two rows per column of a question with how many said no and yes."""
    row_r = _one_row_per_item(source, roles, options)
    carried = [column.gather(row_r) for column in _carried(source, roles, options)]
    names = list(dict.fromkeys(options.counts)) or sorted(set(options.questions))
    numbers = [read_numbers(source, name)[row_r] for name in names]
    label = _new_name(QUESTION, carried)
    columns = {**roles.column, "count": "(count)", "label": label}
    if options.counts:
        cells = [pl.Series(np.maximum(number, 0)) for number in numbers]
        return _stack(source, names, carried, cells, label, "(count)"), replace(roles, column=columns, layout="long")
    of_r = _how_many_voted(source, options)[row_r]
    most_r = np.max(numbers, axis=0, initial=0)
    if over := int((most_r > of_r).sum()):
        # Somebody voted twice, or one annotator more was asked; the largest count is the least that fits.
        problem = f"{over:,} items have a count above the number of annotators"
        source.log.note(f"{problem}; their largest count is taken as it.")
        of_r = np.maximum(of_r, most_r)
    source.log.drop("no label", sum(int((number < 0).sum()) for number in numbers))
    twice = [pl.concat([column, column]) for column in carried]
    answer = pl.Series(label, NO_YES).gather(np.repeat([0, 1], len(row_r)))
    cells = [pl.Series(np.where(np.tile(n, 2) < 0, 0, np.concatenate([of_r - n, n]))) for n in numbers]
    long = _stack(source, names, [*twice, answer], cells, "(question)", "(count)")
    return long, replace(roles, column=columns | {"question": "(question)"}, layout="long")


def _how_many_voted(source: Source, options: ReadOptions) -> NDArray[np.int64]:
    if isinstance(options.of, str) and options.of in source.columns:
        return read_numbers(source, options.of, required=True)
    if str(options.of).isdigit() and int(str(options.of)) > 0:
        return np.full(source.rows, int(str(options.of)))
    problem = f"of is {options.of!r}, which is neither a number of annotators nor a column"
    refuse(f"{problem}. Found: {shown(source.columns)}. {naming('of', 'COLUMN')}")


def _one_row_per_item(source: Source, roles: ColumnRoles, options: ReadOptions) -> Ints:
    """Refuse, choose between, or keep rows that count the same item again; return the rows to read."""
    items = code_ids(source.column(roles.column["item"]), textual=source.textual)
    name = roles.get("question")
    question_r = code_labels(source.column(name)).code_r if name else np.zeros(source.rows, dtype=np.int8)
    frame = pl.DataFrame({"item": items.code_r, "question": question_r}).with_row_index("row")
    frame = frame.filter(pl.col("item") >= 0, pl.col("question") >= 0).sort("item", "question", "row")
    if options.on_repeat == "count":
        return np.arange(source.rows)
    single = frame.unique(["item", "question"], keep="last" if options.on_repeat == "last" else "first")
    again = frame.join(single, on="row", how="anti").get_column("row")
    if len(again) and options.on_repeat == "error":
        second = frame.filter(pl.struct("item", "question").is_duplicated()).head(2).get_column("row").to_list()
        item = items.values[int(items.code_r[second[0]])]
        place = f"item {item!r} (rows {second[0] + 1:,} and {second[1] + 1:,})"
        refuse(f"{len(again):,} of {frame.height:,} rows count an item again. First: {place}. {ON_REPEAT}")
    source.log.drop("repeated row", len(again))
    return np.delete(np.arange(source.rows), again.to_numpy())


# --- Annotators that a user names ---------------------------------------------------------------------------------


def find_annotators(names: Sequence[str], annotators: pl.Series, option: str) -> Ints:
    """Find annotators by name; those that are none are an error.

    Parameters
    ----------
    names
        As a user writes them; spaces around a name do not matter.
    annotators
        Names of all annotators, or their numbers.
    option
        What the user wrote them for, as in `exclude`.

    Examples
    --------
    >>> import polars as pl
    >>> find_annotators(["bob"], pl.Series(["ann", "bob"]), "exclude").tolist()
    [1]
    """
    place = {str(name): a for a, name in enumerate(annotators.to_list())}
    plain = [str(name).strip() for name in names]
    unknown = [name for name in dict.fromkeys(plain) if name not in place]
    if unknown:
        n = len(unknown)
        problem = f"{option}: {n} of {len(set(plain))} names {'is no annotator' if n == 1 else 'are no annotators'}"
        names_of = f"{shown([repr(name) for name in unknown])}.{did_you_mean(unknown[0], place)}"
        refuse(f"{problem}: {names_of} Annotators: {shown(list(place))}.")
    return np.array([place[name] for name in plain], dtype=np.int64)


def exclude_annotators(
    questions: Sequence[QuestionVotes], annotators: pl.Series, names: Sequence[str], log: ReadingLog
) -> tuple[QuestionVotes, ...]:
    """Leave out the votes of some annotators, and log how many votes that were.

    Parameters
    ----------
    questions
        The votes of every question.
    annotators
        Who `annotator_v` points to.
    names
        Whose votes to leave out.
    log
        Where the count goes.
    """
    if not names:
        return tuple(questions)
    excluded_a = np.zeros(len(annotators), dtype=np.bool_)
    excluded_a[find_annotators(names, annotators, "exclude")] = True
    at_v = [np.flatnonzero(~excluded_a[votes.annotator_v]) for votes in questions]
    log.drop(EXCLUDED, sum(len(votes.item_v) - len(at) for votes, at in zip(questions, at_v, strict=True)))
    return tuple(votes.take(at) for votes, at in zip(questions, at_v, strict=True))


def merged_annotators(groups: Sequence[str], annotators: pl.Series) -> Ints:
    """Number the groups of annotators that a user wants counted as one, as `A+B`; everyone else is alone in theirs.

    Groups that share a name are one group. A name may have a plus itself, as in `C++`.

    Parameters
    ----------
    groups
        As a user writes them.
    annotators
        Names of all annotators, or their numbers.

    Returns
    -------
    Ints
        Number of each annotator's group, from 0 on.

    Examples
    --------
    >>> import polars as pl
    >>> merged_annotators(["ann+cy"], pl.Series(["ann", "bob", "cy"])).tolist()
    [0, 1, 0]
    """
    group_a = np.arange(len(annotators))
    all_names = {str(name) for name in annotators.to_list()}
    for group in groups:
        names = split_names(group, all_names)
        if len(set(names)) < 2:
            refuse(f"merge has {group!r}, which names one annotator. Write those who count as one as A+B.")
        members = find_annotators(names, annotators, "merge")
        group_a[np.isin(group_a, group_a[members])] = group_a[members].min()
    return np.unique(group_a, return_inverse=True)[1].astype(np.int64)


def split_names(group: str, all_names: set[str]) -> list[str]:
    """Split at every plus that is not part of a known name; the longest known name wins.

    Examples
    --------
    >>> split_names("C+++ann", {"C++", "ann"})
    ['C++', 'ann']
    """
    parts, names, at = group.split(PLUS), [], 0
    while at < len(parts):
        ends = range(len(parts), at, -1)
        end = next((end for end in ends if PLUS.join(parts[at:end]).strip() in all_names), at + 1)
        names.append(PLUS.join(parts[at:end]).strip())
        at = end
    return names
