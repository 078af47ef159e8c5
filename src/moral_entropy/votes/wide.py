"""Wide: a row an item, a column an annotator.

An empty cell is no vote. With a column of counts a row is a response pattern that stands for many items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from moral_entropy.errors import VotesError
from moral_entropy.votes.amounts import read_numbers
from moral_entropy.votes.columns import Found
from moral_entropy.votes.labels import Tally, check_few, load_label_map, map_labels
from moral_entropy.votes.marks import ANONYMOUS, Rows, Sheet, by_question, nobody, read_rows, whole_rows
from moral_entropy.votes.options import Options
from moral_entropy.votes.source import Source
from moral_entropy.votes.table import Floats, Ints
from moral_entropy.votes.values import Coded, code_ids, code_labels, count_codes, recode, sort_labels

if TYPE_CHECKING:
    import polars as pl

QUESTION = "label"
FEW_LABELS = 20
NO_VOTE = "."


def voting_columns(source: Source, names: Sequence[str]) -> list[str]:
    """Find the columns that look like annotators: few distinct cells, most of them shared with another column.

    Parameters
    ----------
    source
        The table.
    names
        Columns that play no role yet.
    """
    cells: dict[str, set[str]] = {}
    for name in names:
        if source.column(name).n_unique() <= FEW_LABELS:
            cells[name] = set(code_labels(source.column(name)).values.to_list())

    def shares(name: str) -> bool:
        others = set().union(*(other for other_name, other in cells.items() if other_name != name))
        return bool(cells[name]) and 2 * len(cells[name] & others) >= len(cells[name])

    return [name for name in cells if shares(name)]


def read_wide(source: Source, found: Found, options: Options, tally: Tally, voters: Sequence[str]) -> Sheet:
    """Read a row an item, a column an annotator.

    Parameters
    ----------
    source, found, options
        The table, which of its columns is what, and what the user asked for.
    tally
        Where counts and remarks go.
    voters
        The columns that hold votes.
    """
    import polars as pl

    voters = sorted(voters)
    cells = [code_labels(source.column(name)) for name in voters]
    labels, label_ar = _common_labels(cells)
    check_few(len(labels), ", ".join(voters[:3]), source.rows)
    rows = _rows(source, found, labels, label_ar, tally)
    rows, count_i, stands_r = _counted(source, found, rows, tally)
    row_of, annotator_of, label_of = _melted(rows, label_ar, stands_r, tally)
    change = load_label_map(options.labels)
    mapped = map_labels(Coded(pl.Series(labels, dtype=pl.String), label_of), change, tally)
    kept_v = np.flatnonzero(mapped.code_r >= 0)
    annotator_v = nobody(len(kept_v)) if options.anonymous else annotator_of[kept_v]
    marks = by_question(
        rows, QUESTION, mapped.values.to_list(),
        row_v=row_of[kept_v], annotator_v=annotator_v, label_v=mapped.code_r[kept_v], change=change, tally=tally,
    )  # fmt: skip
    return Sheet(rows, pl.Series([ANONYMOUS] if options.anonymous else voters), marks, count_i)


def _common_labels(cells: Sequence[Coded]) -> tuple[list[str], list[Ints]]:
    """Code all columns by one list of labels."""
    labels = sort_labels(label for column in cells for label in column.values.to_list())
    place = {label: k for k, label in enumerate(labels)}
    return labels, [recode(column.code_r, [place[label] for label in column.values.to_list()]) for column in cells]


def _rows(source: Source, found: Found, labels: Sequence[str], label_ar: Sequence[Ints], tally: Tally) -> Rows:
    import polars as pl

    if found.get("item"):
        return read_rows(source, found)
    if found.get("count"):
        ids = code_ids(_patterns(source, found, labels, label_ar))
    else:
        ids = Coded(pl.Series(range(1, source.rows + 1)), np.arange(source.rows, dtype=np.int32))
        tally.note("no item column: items are called by the number of their row.")
    if (name := found.get("question")) is None:
        return Rows(ids.values, ids.code_r)
    questions = code_labels(source.column(name))
    return Rows(ids.values, ids.code_r, tuple(questions.values.to_list()), questions.code_r)


def _patterns(source: Source, found: Found, labels: Sequence[str], label_ar: Sequence[Ints]) -> pl.Series:
    """Spell each row's votes, such as `1 1 2 . 1`; rows of different domains or questions stay apart."""
    import polars as pl

    spelt = pl.Series([*labels, NO_VOTE], dtype=pl.String)
    # The code of an empty cell, -1, is the last entry.
    parts = [spelt.gather(np.where(label_r < 0, len(labels), label_r)) for label_r in label_ar]
    for role in ("domain", "question"):
        if name := found.get(role):
            parts.append(source.column(name).cast(pl.String).fill_null(NO_VOTE))
    frame = pl.DataFrame({str(at): part for at, part in enumerate(parts)})
    return frame.select(pl.concat_str(pl.all(), separator=" ")).to_series()


def _counted(source: Source, found: Found, rows: Rows, tally: Tally) -> tuple[Rows, Floats | None, Ints | None]:
    """Add up the counts of rows that are the same pattern; give one row for each."""
    if (name := found.get("count")) is None:
        return rows, None, None
    if found.get("item") and found.get("question"):
        msg = f"an item has one count, so {name!r} cannot count several questions. Read them one by one."
        raise VotesError(msg)
    count_r = read_numbers(source, name, required=True)
    tally.drop("no item", int((rows.item_r < 0).sum()))
    none_r = count_r == 0
    tally.drop("a count of 0", int(none_r.sum()))
    item_r = np.where(none_r, -1, rows.item_r)
    alive = np.flatnonzero(count_codes(item_r, len(rows.items)) > 0)
    place = np.full(len(rows.items), -1)
    place[alive] = np.arange(len(alive))
    item_r = recode(item_r, place)
    stands_r = item_r >= 0
    count_i = np.zeros(len(alive))
    np.add.at(count_i, item_r[stands_r], count_r[stands_r])
    tally.note(f"{len(alive):,} rows stand for {count_i.sum():,.0f} items, as {name!r} counts them.")
    rows = replace(rows, items=rows.items.gather(alive), item_r=item_r)
    if found.get("item"):
        return rows, count_i, np.flatnonzero(stands_r)
    _, first_r = np.unique(item_r, return_index=True)
    return rows, count_i, np.sort(first_r[item_r[first_r] >= 0])


def _melted(rows: Rows, label_ar: Sequence[Ints], stands_r: Ints | None, tally: Tally) -> tuple[Ints, Ints, Ints]:
    """List the votes column after column: row, annotator and label of each."""
    if stands_r is None:
        whole_r = whole_rows(rows, tally)
        stands_r = np.arange(rows.n_rows) if whole_r is None else whole_r
    row_v, annotator_v, label_v = [], [], []
    for annotator, label_r in enumerate(label_ar):
        voted_r = stands_r[label_r[stands_r] >= 0]
        row_v.append(voted_r)
        annotator_v.append(np.full(len(voted_r), annotator, dtype=np.int32))
        label_v.append(label_r[voted_r])
    return np.concatenate(row_v), np.concatenate(annotator_v), np.concatenate(label_v)
