"""The two layouts of a table of votes: "long", one row per vote, and "wide", one row per item, a column per annotator.

In a long table the label is one, or several in one cell, or a 0/1 column for each of several questions; annotators may
be missing. In a wide one an empty cell is no vote, and with a column of counts a row stands for many items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from moral_entropy.errors import VotesError
from moral_entropy.votes.columns import ColumnRoles
from moral_entropy.votes.counts import QUESTION, read_numbers
from moral_entropy.votes.labels import (
    NO_YES,
    LabelMap,
    check_few,
    code_label_sets,
    labels_in_sets,
    load_label_map,
    map_labels,
    note_blank,
    sets_with,
)
from moral_entropy.votes.options import ReadOptions
from moral_entropy.votes.question_votes import (
    ANONYMOUS,
    QuestionVotes,
    Rows,
    anonymous_codes,
    complete_rows,
    read_rows,
    split_by_question,
    take_rows,
)
from moral_entropy.votes.source import ReadingLog, Source, from_polars
from moral_entropy.votes.table import Ints
from moral_entropy.votes.values import Coded, code_ids, code_labels, count_codes, no_answers, recode, sort_labels

if TYPE_CHECKING:
    import polars as pl

YES_NO_WORDS = frozenset({"0", "1", "true", "false", "yes", "no", "y", "n", "t", "f"})
NO_VOTE = "."


def read_long(
    source: Source, roles: ColumnRoles, options: ReadOptions, log: ReadingLog
) -> tuple[Rows, pl.Series, tuple[QuestionVotes, ...]]:
    """Read one row per vote.

    Parameters
    ----------
    source, roles, options
        The table, which column plays which role, and what the user asked for.
    log
        Where counts and notes go.

    Returns
    -------
    tuple
        What each row is about, the annotators, and the votes on each question.
    """
    rows = read_rows(source, roles)
    annotators = _read_annotators(source, roles, rows)
    label_map = load_label_map(options.labels)
    if options.questions:
        votes = _question_columns(source, rows, annotators.code_r, options, label_map, log)
    else:
        votes = _label_column(source, roles, rows, annotators.code_r, options, label_map, log)
    return rows, annotators.values, votes


def _read_annotators(source: Source, roles: ColumnRoles, rows: Rows) -> Coded:
    import polars as pl

    if (name := roles.get("annotator")) is None:
        return Coded(pl.Series([ANONYMOUS]), anonymous_codes(rows.n_rows))
    return code_ids(source.column(name), textual=source.textual)


def _label_column(
    source: Source, roles: ColumnRoles, rows: Rows, annotator_r: Ints, options: ReadOptions, label_map: LabelMap,
    log: ReadingLog,
) -> tuple[QuestionVotes, ...]:  # fmt: skip
    """Read votes for one label each or, where cells name several, a yes/no question for every label."""
    name = roles.column["label"]
    if options.multilabel:
        labels = code_label_sets(source.column(name), options.multilabel, label_map, log, options)
    else:
        labels = _single_labels(source, name, options, log)
    row_v = complete_rows(rows, log, label=labels.code_r, annotator=annotator_r)
    if count := roles.get("count"):
        count_r = read_numbers(source, count, required=True)
        row_v = np.arange(rows.n_rows) if row_v is None else row_v
        row_v = np.repeat(row_v, count_r[row_v])
    label_v, annotator_v = take_rows(labels.code_r, row_v), take_rows(annotator_r, row_v)
    if not options.multilabel:
        return split_by_question(
            rows, name, Coded(labels.values, label_v),
            row_v=row_v, annotator_v=annotator_v, label_map=label_map, log=log,
        )  # fmt: skip
    item_v = take_rows(rows.item_r, row_v)
    return tuple(
        QuestionVotes(label, NO_YES, item_v, annotator_v, sets_with(label, labels)[label_v], row_v)
        for label in labels_in_sets(labels)
    )


def _single_labels(source: Source, name: str, options: ReadOptions, log: ReadingLog) -> Coded:
    column = source.column(name)
    if column.dtype.is_nested():
        msg = f'column {name!r} holds several labels per cell. Read them with multilabel="," (CLI: --multilabel ",").'
        raise VotesError(msg)
    labels = code_votes(column, options, log)
    check_few(len(labels.values), name, source.rows)
    return labels


def code_votes(column: pl.Series, options: ReadOptions, log: ReadingLog) -> Coded:
    """Code a column of votes, and note which words were taken for no answer."""
    labels = code_labels(column, options.missing)
    note_blank(labels.blank, labels.values.to_list() if options.missing is None else [], log)
    return labels


def _question_columns(
    source: Source, rows: Rows, annotator_r: Ints, options: ReadOptions, label_map: LabelMap, log: ReadingLog
) -> tuple[QuestionVotes, ...]:
    """Read a question from every column the user listed."""
    voted_r = complete_rows(rows, log, annotator=annotator_r)
    votes = []
    for name in sorted(set(options.questions)):
        labels = code_votes(source.column(name), options, log)
        check_few(len(labels.values), name, rows.n_rows)
        if options.anonymous:
            _check_yes_no(labels.values, name)
        label_v = take_rows(labels.code_r, voted_r)
        log.drop("no label", int((label_v < 0).sum()))
        mapped = map_labels(Coded(labels.values, label_v), label_map, log)
        kept_v = np.flatnonzero(mapped.code_r >= 0)
        row_v = kept_v if voted_r is None else voted_r[kept_v]
        columns = (rows.item_r[row_v], annotator_r[row_v], mapped.code_r[kept_v], row_v)
        votes.append(QuestionVotes(name, tuple(mapped.values.to_list()), *columns))
    return tuple(votes)


def _check_yes_no(labels: pl.Series, name: str) -> None:
    odd = [label for label in labels.to_list() if label.casefold() not in YES_NO_WORDS]
    if odd:
        msg = (
            f"column {name!r} holds {odd[0]!r}, which is neither yes nor no. If it counts how many chose {name!r}, "
            "say of how many: of=3, or of a column (CLI: --of)."
        )
        raise VotesError(msg)


def read_wide(
    source: Source, roles: ColumnRoles, options: ReadOptions, log: ReadingLog
) -> tuple[Rows, pl.Series, tuple[QuestionVotes, ...]]:
    """Read one row per item, one column per annotator. Parameters and result are those of `read_long`."""
    import polars as pl

    names = sorted(roles.annotators)
    labels, label_ar = read_columns(source, names, options, log)
    check_few(len(labels), ", ".join(names[:3]), source.rows)
    rows = _wide_rows(source, roles, labels, label_ar, log)
    if roles.get("count"):
        rows, voted_r = _add_counts(source, roles, rows, log)
    else:
        complete_r = complete_rows(rows, log)
        voted_r = np.arange(rows.n_rows) if complete_r is None else complete_r
    row_v, annotator_v, label_v = _melt(label_ar, voted_r)
    votes = split_by_question(
        rows, QUESTION, Coded(pl.Series(labels, dtype=pl.String), label_v),
        row_v=row_v, annotator_v=anonymous_codes(len(row_v)) if options.anonymous else annotator_v,
        label_map=load_label_map(options.labels), log=log,
    )  # fmt: skip
    return rows, pl.Series([ANONYMOUS] if options.anonymous else names), votes


def read_columns(
    source: Source, names: Sequence[str], options: ReadOptions, log: ReadingLog
) -> tuple[list[str], list[Ints]]:
    """Code several columns of votes by one list of labels; words that mean no answer are judged by all of them."""
    cells = [code_labels(source.column(name), ()) for name in names]
    said = {label for column in cells for label in column.values.to_list()}
    blank = no_answers(said, options.missing)
    note_blank(blank, sorted(said - blank) if options.missing is None else [], log)
    return _common_labels([code_labels(source.column(name), blank) for name in names] if blank else cells)


def read_respondents(
    source: Source, roles: ColumnRoles, options: ReadOptions, log: ReadingLog
) -> tuple[Source, ColumnRoles]:
    """Turn one row per person and one column per item into one row per vote.

    Parameters
    ----------
    source, roles, options
        The table, which columns are items, and what the user asked for.
    log
        Where notes go.

    Returns
    -------
    tuple
        The long table and the roles of its columns.
    """
    import polars as pl

    who, n_items = roles.get("annotator"), len(roles.items)
    if who is None:
        log.note("no column of annotators: people are called by the number of their row.")
    people = pl.Series(range(1, source.rows + 1)) if who is None else source.column(who)
    _check_respondents(source, roles, people, options)
    labels, label_ir = read_columns(source, roles.items, options, log)
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


def _check_respondents(source: Source, roles: ColumnRoles, people: pl.Series, options: ReadOptions) -> None:
    """Refuse people who answered twice, and not the same."""
    import polars as pl

    answers = [source.column(name).alias(f"item {at}") for at, name in enumerate(roles.items)]
    frame = pl.DataFrame([people.alias("who"), *answers]).with_row_index("row", 1).drop_nulls("who")
    distinct = frame.unique(pl.exclude("row"), keep="first", maintain_order=True)
    again = distinct.filter(pl.col("who").is_duplicated()).sort("who", "row", maintain_order=True)
    if again.is_empty() or options.on_repeat != "error":
        return
    one, other = again.row(0, named=True), again.row(1, named=True)
    people_again = again.get_column("who").n_unique()
    msg = (
        f"{people_again:,} people have several rows with different answers. First: {one['who']!r} "
        f"(rows {one['row']:,} and {other['row']:,}). "
        'Choose on_repeat="first", "last" or, to keep each as a vote of its own, "count" (CLI: --on-repeat last).'
    )
    raise VotesError(msg)


def _common_labels(cells: Sequence[Coded]) -> tuple[list[str], list[Ints]]:
    """Code all columns by one list of labels."""
    labels = sort_labels(label for column in cells for label in column.values.to_list())
    place = {label: k for k, label in enumerate(labels)}
    return labels, [recode(column.code_r, [place[label] for label in column.values.to_list()]) for column in cells]


def _wide_rows(
    source: Source, roles: ColumnRoles, labels: Sequence[str], label_ar: Sequence[Ints], log: ReadingLog
) -> Rows:
    import polars as pl

    if roles.get("item"):
        return read_rows(source, roles)
    if roles.get("count"):
        return read_rows(source, roles, code_ids(_patterns(source, roles, labels, label_ar)))
    log.note("no item column: items are called by the number of their row.")
    numbers = Coded(pl.Series(range(1, source.rows + 1)), np.arange(source.rows, dtype=np.int32))
    return read_rows(source, roles, numbers)


def _patterns(source: Source, roles: ColumnRoles, labels: Sequence[str], label_ar: Sequence[Ints]) -> pl.Series:
    """Spell each row's votes, such as `1 1 2 . 1`; rows of different domains or questions stay apart."""
    import polars as pl

    spelt = pl.Series([*labels, NO_VOTE], dtype=pl.String)
    # The code of an empty cell, -1, is the last entry.
    parts = [spelt.gather(np.where(label_r < 0, len(labels), label_r)) for label_r in label_ar]
    for role in ("domain", "question"):
        if name := roles.get(role):
            parts.append(source.column(name).cast(pl.String).fill_null(NO_VOTE))
    frame = pl.DataFrame({str(at): part for at, part in enumerate(parts)})
    return frame.select(pl.concat_str(pl.all(), separator=" ")).to_series()


def _add_counts(source: Source, roles: ColumnRoles, rows: Rows, log: ReadingLog) -> tuple[Rows, Ints]:
    """Add up the counts of rows that are the same item or pattern; also return the rows whose votes are read."""
    name = roles.column["count"]
    if roles.get("item") and roles.get("question"):
        msg = f"an item has one count, so {name!r} cannot count several questions. Read them one by one."
        raise VotesError(msg)
    count_r = read_numbers(source, name, required=True)
    log.drop("no item", int((rows.item_r < 0).sum()))
    log.drop("a count of 0", int((count_r == 0).sum()))
    item_r = np.where(count_r == 0, -1, rows.item_r)
    kept = np.flatnonzero(count_codes(item_r, len(rows.items)) > 0)
    place = np.full(len(rows.items), -1)
    place[kept] = np.arange(len(kept))
    item_r = recode(item_r, place)
    voted_r = np.flatnonzero(item_r >= 0)
    count_i = np.zeros(len(kept))
    np.add.at(count_i, item_r[voted_r], count_r[voted_r])
    log.note(f"{len(kept):,} rows stand for {count_i.sum():,.0f} items, as {name!r} counts them.")
    if not roles.get("item"):
        # All rows of a pattern have the same votes: the first has them all.
        _, first_r = np.unique(item_r[voted_r], return_index=True)
        voted_r = np.sort(voted_r[first_r])
    return replace(rows, items=rows.items.gather(kept), item_r=item_r, count_i=count_i), voted_r


def _melt(label_ar: Sequence[Ints], voted_r: Ints) -> tuple[Ints, Ints, Ints]:
    """List the votes column after column: row, annotator and label of each."""
    rows = [voted_r[label_r[voted_r] >= 0] for label_r in label_ar]
    annotators = [np.full(len(row_v), a, dtype=np.int32) for a, row_v in enumerate(rows)]
    labels = [label_r[row_v] for label_r, row_v in zip(label_ar, rows, strict=True)]
    return np.concatenate(rows), np.concatenate(annotators), np.concatenate(labels)
