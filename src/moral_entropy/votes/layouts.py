"""The layouts of a table of votes, each turned into one row per vote; and annotators that a user names.

"long" has one row per vote: the label is one, or several in one cell, or a column for each of several questions.
"wide" has one row per item and a column per annotator; with a column of counts a row stands for many items.
"respondents" has one row per person. "counts" says how many chose a label, or how many of n said yes, without
annotators. `to_long` turns all of them into the first, which `ballots.read_long` reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.option_fields import did_you_mean
from moral_entropy.options import ReadOptions
from moral_entropy.votes.columns import ColumnRoles, naming
from moral_entropy.votes.labels import MISSING, NO_YES, as_text, canonical_label, spell_label
from moral_entropy.votes.source import Source
from moral_entropy.votes.table import UNKNOWN, Ints, refuse, shown

ANONYMOUS = "(anonymous)"
"""The one annotator of votes that came without annotators."""

QUESTION = "label"
"""Name of the question, where the table has none."""

NO_VOTE = "."
PLUS = "+"
Columns = Sequence[pl.Series]
ON_REPEAT = 'Choose on_repeat="first", "last" or, to keep each as a vote of its own, "count" (CLI: --on-repeat last).'


# --- Other layouts, turned into one row per vote ------------------------------------------------------------------


def to_long(source: Source, roles: ColumnRoles, options: ReadOptions) -> tuple[Source, ColumnRoles]:
    """Turn a table of any layout into one with a row per vote, and the roles of its columns."""
    if roles.layout == "long":
        return source, roles
    turn = {"wide": _from_wide, "respondents": _from_respondents, "counts": _from_counts, "grid": _from_grid}
    return turn[roles.layout](source, roles, options)


def _from_grid(source: Source, roles: ColumnRoles, options: ReadOptions) -> tuple[Source, ColumnRoles]:
    carried = _carried(source, roles, options)
    item = _item_column(source, roles, carried)
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


def _item_column(source: Source, roles: ColumnRoles, carried: list[pl.Series]) -> str:
    """Return the column of the items; without one, add the number of each row."""
    if item := roles.column.get("item"):
        return item
    source.log.note("no item column: items are called by the number of their row.")
    carried.append(pl.Series(_new_name("item", carried), range(1, source.rows + 1)))
    return carried[-1].name


def _new_name(name: str, carried: Sequence[pl.Series]) -> str:
    return f"({name})" if any(column.name == name for column in carried) else name


def _from_wide(source: Source, roles: ColumnRoles, options: ReadOptions) -> tuple[Source, ColumnRoles]:
    names = sorted(roles.annotators)
    cells, carried = [source.column(name) for name in names], _carried(source, roles, options)
    columns = {**roles.column}
    if count := columns.pop("count", None):
        columns["item"] = roles.column.get("item") or _new_name("item", carried)
        table = _add_counts(source, roles, cells, carried, columns["item"], count)
        cells, carried = table[: len(cells)], table[len(cells) :]
        columns["item_count"] = carried[-1].name
    else:
        columns["item"] = _item_column(source, roles, carried)
    key, value = _new_name("annotator", carried), _new_name(QUESTION, carried)
    if not options.anonymous:
        columns["annotator"] = key
    long = _stack(source, names, carried, cells, key, value)
    return long, replace(roles, column=columns | {"label": value}, layout="long")


def _add_counts(
    source: Source, roles: ColumnRoles, cells: Sequence[pl.Series], carried: Sequence[pl.Series], item: str, count: str
) -> list[pl.Series]:
    """Add up the counts of rows that are the same item or pattern, such as `1 1 2 . 1`; a pattern keeps one row."""
    if roles.column.get("item") and roles.column.get("question"):
        refuse(f"an item has one count, so {count!r} cannot count several questions. Read them one by one.")
    number = pl.Series("(count)", read_numbers(source, count, required=True))
    frame = pl.DataFrame([column.rename(f"(cell {at})") for at, column in enumerate(cells)] + list(carried))
    if not roles.column.get("item"):
        # Rows of different domains or questions stay apart.
        labels = [[canonical_label(cell) or NO_VOTE for cell in column.to_list()] for column in cells]
        spelt = [pl.Series(str(at), column) for at, column in enumerate(labels)]
        further = [name for role in ("domain", "question") if (name := roles.column.get(role))]
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
    return (frame if roles.column.get("item") else first).get_columns()


def _from_respondents(source: Source, roles: ColumnRoles, options: ReadOptions) -> tuple[Source, ColumnRoles]:
    person, items = roles.column.get("annotator"), list(roles.items)
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
    if isinstance(options.of, str) and options.of in source.columns:
        of_r = read_numbers(source, options.of, required=True)[row_r]
    elif str(options.of).isdigit() and int(str(options.of)) > 0:
        of_r = np.full(len(row_r), int(str(options.of)))
    else:
        problem = f"of is {options.of!r}, which is neither a number of annotators nor a column"
        refuse(f"{problem}. Found: {shown(source.columns)}. {naming('of', 'COLUMN')}")
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


def _one_row_per_item(source: Source, roles: ColumnRoles, options: ReadOptions) -> Ints:
    """Refuse, choose between, or keep rows that count the same item again; return the rows to read."""
    if options.on_repeat == "count":
        return np.arange(source.rows)
    names = [name for role in ("item", "question") if (name := roles.column.get(role))]
    keys = pl.DataFrame([as_text(source.column(name)).str.strip_chars() for name in names]).with_row_index("row")
    single = keys.unique(names, keep="last" if options.on_repeat == "last" else "first")
    again = keys.join(single, on="row", how="anti").drop_nulls().sort("row")
    if again.height and options.on_repeat == "error":
        rows = keys.join(again.head(1), on=names, how="semi").sort("row").get_column("row").to_list()
        place = f"item {source.column(names[0])[rows[0]]!r} (rows {rows[0] + 1:,} and {rows[1] + 1:,})"
        refuse(f"{again.height:,} of {keys.height:,} rows count an item again. First: {place}. {ON_REPEAT}")
    source.log.drop("repeated row", again.height)
    return np.delete(np.arange(source.rows), again.get_column("row").to_numpy())


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
    if unknown := [name for name in dict.fromkeys(plain) if name not in place]:
        problem = f"{option}: {len(unknown)} of {len(set(plain))} names belong to no annotator"
        names_of = f"{shown([repr(name) for name in unknown])}.{did_you_mean(unknown[0], place)}"
        refuse(f"{problem}: {names_of} Annotators: {shown(list(place))}.")
    return np.array([place[name] for name in plain], dtype=np.int64)


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
