"""Read votes: files and dataframes → `Votes`.

The only place that knows a user's columns; all other stages see integer codes. Files, or sheets, that name their
annotators are put below each other; those without annotators that are about the same items are one annotator each,
called like the file or the sheet.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import UsageError, refuse_forked
from moral_entropy.option_fields import lists_options
from moral_entropy.options import ReadOptions
from moral_entropy.progress import Advance, Bars
from moral_entropy.votes.ballots import build_ballots, read_domains, read_extra, read_item_labels, read_texts
from moral_entropy.votes.columns import ColumnRoles, fill_down, fill_marks, find_columns, plain_name, recognise
from moral_entropy.votes.formats.exports import detect_format, open_export
from moral_entropy.votes.formats.records import NOBODY_NAMED
from moral_entropy.votes.labels import as_text
from moral_entropy.votes.layouts import exclude_annotators, read_long, to_long
from moral_entropy.votes.source import (
    EXTENSIONS,
    MAGIC_PARQUET,
    Source,
    digest_of,
    from_polars,
    head_of,
    on_disk,
    open_source,
    suffix_of,
)
from moral_entropy.votes.table import Reading, Votes, refuse, shown

PANEL_COLUMNS = ("system", "cluster", "prompt_id", "prompt", "sample", "conversation", "first", "second", "position")
"""Columns that `moral-entropy judges` understands: kept with the votes wherever a table has them."""


@lists_options(ReadOptions)
def read_votes(source: Any, options: ReadOptions | None = None, **changes: Any) -> Votes:
    """Read votes from a file or a dataframe.

    Rows are votes (item, annotator, label), items with a column per annotator, or people with a column per item. What
    is not named is guessed from the columns, and `Votes.reading` says how; an empty name means "none, do not guess".
    A table that can be read in several ways ends in a `UsageError` that names the option for each.
    The order of rows never matters, save for `on_repeat="first"` and `"last"`.

    Parameters
    ----------
    source
        A path (CSV, TSV, Excel, Parquet, JSON Lines, a JSON array of records, or gzip of these), "-" for standard
        input, a pipe, a glob of Parquet parts, the export of an annotation tool, or a dataframe: polars, pandas,
        pyarrow, and whatever else narwhals knows.
    options
        All options as one object; keywords change some of them.
    **changes
        Options by name.

    Returns
    -------
    Votes
        Coded, sorted and checked.

    Raises
    ------
    VotesError
        If the votes cannot be read or make no sense.
    UsageError
        If they can be read in several ways.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"text_id": [7, 7, 9], "rater": ["ann", "bob", "ann"], "vote": ["yes", "no", "no"]})
    >>> votes = read_votes(table)
    >>> votes.items.to_list(), votes.annotators.to_list(), votes.ballots[0].counts_ik.tolist()
    ([7, 9], ['ann', 'bob'], [[1, 1], [1, 0]])
    >>> votes.reading.columns
    {'item': 'text_id', 'annotator': 'rater', 'label': 'vote'}
    """
    refuse_forked()
    options = (options or ReadOptions()).changed(changes, "read_votes")
    with on_disk(source) as stored, Bars() as bars:
        table = open_votes(stored, options)
        if NOBODY_NAMED in table.log.notes:
            options = replace(options, anonymous=True)
        return _read_table(table, options, partial(bars, "reading"))


def _read_table(table: Source, options: ReadOptions, advance: Advance) -> Votes:
    """Read votes from an opened table."""
    advance(0.1)
    recognised, options = recognise(table, options)
    if recognised.layout != "counts":
        voting = recognised.annotators or recognised.items or tuple(recognised.grid.values()) or options.questions
        table = fill_marks(fill_down(table, recognised), voting)
    options = replace(options, keep=panel_columns(table, recognised, options))
    source, roles = to_long(table, recognised, options)
    rows, annotators, questions = read_long(source, roles, options)
    questions = exclude_annotators(questions, annotators, options.exclude, source.log)
    if not any(len(votes.item_v) for votes in questions):
        reasons = ", ".join(f"{n:,} with {reason}" for reason, n in source.log.dropped.items()) or "none"
        refuse(f"{source.name} has no votes left. Rows dropped: {reasons}. Check that the right columns are read.")
    advance(0.5)
    names = [votes.question for votes in questions]
    item_labels = [read_item_labels(role, source, roles, rows, options, names) for role in ("gold", "published")]
    domains, domain_i = read_domains(source, roles, rows)
    texts = read_texts(source, roles, rows)
    extra = read_extra(source, roles, options, rows)
    advance(0.7)
    present = [labels for labels in item_labels if labels is not None]
    annotators, ballots = build_ballots(source, rows, annotators, questions, present, options)
    columns = {name: source.column(name) for name in dict.fromkeys(options.keep)}
    reading = _reading(table, recognised, options)
    return Votes(
        rows.items, annotators, ballots, domains, domain_i, texts, options.anonymous, reading, extra=extra, kept=columns
    )


def panel_columns(table: Source, roles: ColumnRoles, options: ReadOptions) -> tuple[str, ...]:
    """Return the columns to keep: those that were named, and those of panels of judges that a long table has.

    Panels: whose answer an item is, which items belong together, and what was compared in which order.
    """
    # A prompt that is read as the text still says which items belong together.
    in_use = {column for role, column in roles.column.items() if role != "text"} | {*options.questions, *options.counts}
    present = [name for name in PANEL_COLUMNS if name in table.columns and name not in in_use]
    return tuple(dict.fromkeys((*options.keep, *(present if roles.layout == "long" else ()))))


def _reading(source: Source, roles: ColumnRoles, options: ReadOptions) -> Reading:
    lists = {"annotators": roles.annotators, "items": roles.items}
    lists |= {"questions": options.questions, "counts": options.counts}
    lists |= {"annotators": tuple(dict.fromkeys(name for name, _ in roles.grid))} if roles.grid else {}
    columns = {**roles.column, **{role: shown(names) for role, names in lists.items() if names}}
    in_use = {*roles.column.values(), *options.keep, *options.facts, options.of, *roles.grid.values()}
    in_use = in_use.union(*lists.values())
    if (gold := options.gold_file) is not None:
        columns["gold"] = Path(gold).name if isinstance(gold, str | Path) else "a dataframe"
    dropped, notes = dict(sorted(source.log.dropped.items())), tuple(source.log.notes)
    not_read = (*source.log.unread, *(name for name in source.columns if name not in in_use))
    return Reading(source.name, source.sha256, columns, roles.guessed, source.rows, dropped, notes, not_read)


# --- Several files, or several sheets of a workbook, as one table ---------------------------------------------------

SHARED_ITEMS = 0.2
"""Share of the items of the smaller of two parts that must be in both, for parts without annotators to be people."""


def open_votes(source: Any, options: ReadOptions) -> Source:
    """Open a path, several of them, a glob, a folder of tables, or a dataframe, as one table."""
    paths = _paths(source, options)
    if len(paths) < 2:
        table = _open_one(paths[0] if paths else source, options)
        return _join(table.parts, table, options) if table.parts else table
    if all(path.is_file() and head_of(path).startswith(MAGIC_PARQUET) for path in paths):
        table = open_source(paths, options)
        if options.anonymous or find_columns(table.columns, options, table.name).get("annotator"):
            return table
    parts: list[Source] = []
    for path in paths:
        table = _open_one(path, options)
        parts += table.parts or [replace(table, name=path.stem.split(".")[0])]
    digest = digest_of([path for path in paths if path.is_file()])
    joined = Source(f"{paths[0].name} … {paths[-1].name}", (), 0, parts[0].fetch, sha256=digest)
    return _join(parts, joined, options)


def _open_one(source: Any, options: ReadOptions) -> Source:
    table = open_export(source, options)
    return open_source(source, options) if table is None else table


def _paths(source: Any, options: ReadOptions) -> list[Path]:
    """Return the files that a list, a glob or a folder of tables names; none for anything else."""
    names = [source] if isinstance(source, (str, Path)) else source
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, (str, Path)) for name in names):
        return []
    paths: list[Path] = []
    for name in names:
        path = Path(name)
        if not glob.has_magic(str(name)) or path.exists():
            paths.append(path)
        elif not (matches := sorted(glob.glob(str(name)))):  # noqa: PTH207
            refuse(f"no file matches {str(name)!r}. Check the path and the folder you are in.")
        else:
            paths += map(Path, matches)
    if len(paths) == 1 and paths[0].is_dir() and options.format == "auto" and detect_format(paths[0]) is None:
        return _tables_in(paths[0]) or paths
    return paths


def _tables_in(folder: Path) -> list[Path]:
    """Return the tables of a folder that is no export: files of one kind, but for hidden ones."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith((".", "~"))]
    tables = [path for path in files if suffix_of(path) in {*EXTENSIONS, "xlsx"} and suffix_of(path) != "parquet"]
    return tables if tables and len({suffix_of(path) for path in tables}) == 1 and len(tables) > 1 else []


def _join(parts: Sequence[Source], table: Source, options: ReadOptions) -> Source:
    """Put tables of one layout below each other; without a column of annotators each may be an annotator."""
    parts = _alike_columns(parts)
    log, kind = table.log, "sheets" if table.parts and table.textual else "files"
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    roles = find_columns(names, options, table.name)
    people = not options.anonymous and not roles.get("annotator")
    people = people and (bool(roles.get("label")) or _same_items(parts, roles.get("item") or roles.get("text")))
    if people and len({part.name for part in parts}) < len(parts):
        refuse(f"two of the {kind} have the same name, and each is an annotator. Rename one.")
    for part in parts:
        log.add(part.log)
    frames = []
    for part in parts:
        frame = pl.DataFrame([_as_cells(part.column(name)) for name in part.columns])
        frames.append(frame.with_columns(pl.lit(part.name).alias("annotator")) if people else frame)
    listed = shown([part.name for part in parts])
    log.note(f"{len(parts)} {kind}{', each an annotator' if people else ' read as one'}: {listed}.")
    frame = pl.concat(frames, how="diagonal_relaxed")
    return from_polars(frame, table.name, textual=True, sha256=table.sha256, log=log)


def _as_cells(column: pl.Series) -> pl.Series:
    return column if column.dtype == pl.List(pl.String) else as_text(column).alias(column.name)


def _alike_columns(parts: Sequence[Source]) -> list[Source]:
    """Give the columns of all parts the names of the first part's; a lone column that differs holds the labels."""
    spelling = {plain_name(name): name for name in parts[0].columns}
    shared = set.intersection(*({plain_name(name) for name in part.columns} for part in parts))
    lone = [[name for name in part.columns if plain_name(name) not in shared] for part in parts]
    if not shared or (len(shared) < 2 and any(len(names) != 1 for names in lone)):
        odd = max(parts[1:], key=lambda part: len({plain_name(name) for name in part.columns} ^ set(spelling)))
        columns = f"{parts[0].name} has the columns {shown(parts[0].columns)}, {odd.name} has {shown(odd.columns)}"
        refuse(f"{columns}: files that are read together have the same columns. Rename them.", UsageError)
    if all(len(names) == 1 for names in lone) and "label" not in shared:
        return [_renamed(part, {names[0]: "label"}, spelling) for part, names in zip(parts, lone, strict=True)]
    return [_renamed(part, {}, spelling) for part in parts]


def _renamed(part: Source, names: dict[str, str], spelling: dict[str, str]) -> Source:
    new = {name: names.get(name) or spelling.get(plain_name(name), name) for name in part.columns}
    old = {after: before for before, after in new.items()}
    return replace(part, columns=tuple(new.values()), fetch=lambda name: part.fetch(old[name]).alias(name))


def _same_items(parts: Sequence[Source], item: str | None) -> bool:
    """Return whether parts are about the same items, each of which is once in a part."""
    if item is None or any(item not in part.columns for part in parts):
        return False
    ids = [as_text(part.column(item)).drop_nulls() for part in parts]
    if any(column.n_unique() < len(column) for column in ids):
        return False
    first, second = sorted(ids[:2], key=len)
    return len(set(first) & set(second)) > SHARED_ITEMS * len(first)
