"""Read votes: files and dataframes → `Votes`.

The only place that knows a user's columns; all other stages see integer codes. Files, or sheets, that name their
annotators are put below each other; those without annotators that are about the same items are one annotator each,
called like the file or the sheet.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.errors import MoralEntropyError, UsageError, refuse_forked
from moral_entropy.option_fields import lists_options
from moral_entropy.options import TABLES, ReadOptions
from moral_entropy.plugins import FORMATS as PLUGGED
from moral_entropy.plugins import failed, load_plugin
from moral_entropy.votes.ballots import build_ballots, read_domains, read_fact, read_item_labels, read_long, read_texts
from moral_entropy.votes.columns import ColumnRoles, fill_down, fill_marks, find_columns, plain_name, recognise
from moral_entropy.votes.formats import annotation_tools, evaluations, moral_corpora  # noqa: F401 (declare formats)
from moral_entropy.votes.formats.records import FORMATS, NOBODY_NAMED, ROLES, detect_format, files_of, peek
from moral_entropy.votes.labels import as_text
from moral_entropy.votes.layouts import find_annotators, to_long
from moral_entropy.votes.source import (
    Source,
    digest_of,
    from_polars,
    head_of,
    on_disk,
    open_parts,
    open_source,
    tables_in,
)
from moral_entropy.votes.table import UNKNOWN, Reading, ReadingLog, Votes, refuse, shown

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
    with on_disk(source) as stored:
        table = open_votes(stored, options)
        if NOBODY_NAMED in table.log.notes:
            options = replace(options, anonymous=True)
        return _read_table(table, options)


def _read_table(table: Source, options: ReadOptions) -> Votes:
    """Read votes from an opened table."""
    recognised, options = recognise(table, options)
    if recognised.layout == "long":
        table = fill_down(table, recognised)
        # A prompt that is read as the text still says which items belong together.
        in_use = {column for role, column in recognised.column.items() if role != "text"}
        in_use |= {*options.questions, *options.counts, *options.keep}
        panel = [name for name in PANEL_COLUMNS if name in table.columns and name not in in_use]
        options = replace(options, keep=(*options.keep, *panel))
    voting = recognised.annotators or recognised.items or tuple(recognised.grid.values()) or options.questions
    if voting and recognised.layout != "counts":
        table = fill_marks(table, voting)
    source, roles = (table, recognised) if recognised.layout == "long" else to_long(table, recognised, options)
    rows, annotators, questions = read_long(source, roles, options)
    if options.exclude:
        excluded = find_annotators(options.exclude, annotators, "exclude")
        left_out = [np.isin(votes.annotator_v, excluded) for votes in questions]
        questions = tuple(votes.take(np.flatnonzero(~out_v)) for votes, out_v in zip(questions, left_out, strict=True))
        source.log.drop("an excluded annotator", sum(int(out_v.sum()) for out_v in left_out))
    if not any(len(votes.item_v) for votes in questions):
        reasons = ", ".join(f"{n:,} with {reason}" for reason, n in source.log.dropped.items()) or "none"
        refuse(f"{source.name} has no votes left. Rows dropped: {reasons}. Check that the right columns are read.")
    names, gold = [votes.question for votes in questions], options.gold_file
    truths = [role for role in ("gold", "published") if role in roles.column or (role == "gold" and gold is not None)]
    item_labels = [read_item_labels(role, source, roles, rows, options, names) for role in truths]
    domains: tuple[str, ...] = ()
    domain_i = np.full(len(rows.items), UNKNOWN, dtype=np.int32)
    if "domain" in roles.column:
        domains, domain_i = read_domains(source, roles, rows)
    texts = read_texts(source.column(roles.column["text"]), rows) if "text" in roles.column else None
    present = [labels for labels in item_labels if labels is not None]
    extra = {name: read_fact(source, roles, rows, name) for name in options.facts}
    annotators, ballots = build_ballots(source, rows, annotators, questions, present, options)
    columns = {name: source.column(name) for name in dict.fromkeys(options.keep)}
    return Votes(
        rows.items, annotators, ballots, domains, domain_i, texts, options.anonymous,
        _reading(table, recognised, options), extra=extra, kept=columns
    )  # fmt: skip


def _reading(source: Source, roles: ColumnRoles, options: ReadOptions) -> Reading:
    people = tuple(dict.fromkeys(name for name, _ in roles.grid)) or roles.annotators
    lists = {"annotators": people, "items": roles.items, "questions": options.questions, "counts": options.counts}
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
        single = paths[0] if paths else source
        table = open_export(single, options) or open_source(single, options)
        return _join(table.parts, table, options) if table.parts else table
    if all(path.is_file() and peek(path).kind == "parquet" for path in paths):
        table = open_parts(paths)
        if options.anonymous or find_columns(table.columns, options, table.name).column.get("annotator"):
            return table
    parts: list[Source] = []
    for path in paths:
        table = open_export(path, options) or open_source(path, options)
        parts += table.parts or [replace(table, name=path.stem.split(".")[0])]
    digest = digest_of([path for path in paths if path.is_file()])
    joined = Source(f"{paths[0].name} … {paths[-1].name}", (), 0, parts[0].fetch, sha256=digest)
    return _join(parts, joined, options)


def open_export(source: Any, options: ReadOptions) -> Source | None:
    """Open an export of an annotation tool as a long table; None if the source is a table, or is to be read as one.

    Where votes choose several labels, each label becomes a yes/no question, by the options with which it is read.
    """
    tool = "" if options.format in ("auto", *TABLES) else options.format
    if tool and not isinstance(source, (str, Path)):
        refuse(f'format="{tool}" reads one file or folder, not {type(source).__name__}.', UsageError)
    if options.format in TABLES or not isinstance(source, (str, Path)):
        return None
    path = Path(source)
    # A user who says which column of a table holds the votes wants it read as a table.
    columns = {options.label, *options.questions, *options.counts} - {None, ""}
    is_table = bool(columns) and {plain_name(str(name)) for name in columns} <= peek(path).marks
    if not (name := tool or (None if is_table else detect_format(path))):
        return None
    if not path.is_dir():
        head_of(path)
    if name not in FORMATS:
        read = load_plugin(PLUGGED, name)
        try:
            frame = read(path)
        except MoralEntropyError:
            raise
        except Exception as error:
            raise failed(name, f"to read {path.name}", error) from error
        log = ReadingLog([f"format: {name} (named; a plugin)."])
        return replace(open_source(frame), name=path.name, sha256=digest_of([path]) if path.is_file() else "", log=log)
    log = ReadingLog([f"format: {name} ({'named' if tool else 'detected'})."])
    frame = FORMATS[name].read(path, log)
    ours = tuple(frame.collect_schema().names()[: len(ROLES)]) == ROLES
    unsaid = ours and NOBODY_NAMED not in log.notes and frame.get_column("annotator").is_null().all()
    if unsaid and not options.anonymous and not options.annotator:
        problem = f"none of the {frame.height:,} votes of {path.name} says who voted"
        refuse(f"{problem}. Export with annotators, or read them as anonymous=True (CLI: --anonymous).")
    textual = ours or peek(path).kind == "text"
    return from_polars(frame, path.name, textual=textual, sha256=digest_of(files_of(name, path)), log=log)


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
        return tables_in(paths[0]) or paths
    return paths


def _join(parts: Sequence[Source], table: Source, options: ReadOptions) -> Source:
    """Put tables of one layout below each other; without a column of annotators each may be an annotator."""
    log, kind = table.log, "sheets" if table.parts and table.textual else "files"
    frames = _alike_columns(parts)
    names = list(dict.fromkeys(name for frame in frames for name in frame.columns))
    column = find_columns(names, options, table.name).column
    people = not options.anonymous and not column.get("annotator")
    people = people and (bool(column.get("label")) or _same_items(frames, column.get("item") or column.get("text")))
    if people and len({part.name for part in parts}) < len(parts):
        refuse(f"two of the {kind} have the same name, and each is an annotator. Rename one.")
    for part in parts:
        log.add(part.log)
    if people:
        pairs = zip(frames, parts, strict=True)
        frames = [frame.with_columns(pl.lit(part.name).alias("annotator")) for frame, part in pairs]
    listed = shown([part.name for part in parts])
    log.note(f"{len(parts)} {kind}{', each an annotator' if people else ' read as one'}: {listed}.")
    return from_polars(
        pl.concat(frames, how="diagonal_relaxed"), table.name, textual=True, sha256=table.sha256, log=log
    )


def _alike_columns(parts: Sequence[Source]) -> list[pl.DataFrame]:
    """Read parts as texts, with the first part's names of columns; a lone column that differs holds the labels."""
    first = {plain_name(name): name for name in parts[0].columns}
    shared = set.intersection(*({plain_name(name) for name in part.columns} for part in parts))
    lone = [[name for name in part.columns if plain_name(name) not in shared] for part in parts]
    if not shared or (len(shared) < 2 and any(len(names) != 1 for names in lone)):
        odd = max(parts[1:], key=lambda part: len({plain_name(name) for name in part.columns} ^ set(first)))
        columns = f"{parts[0].name} has the columns {shown(parts[0].columns)}, {odd.name} has {shown(odd.columns)}"
        refuse(f"{columns}: files read together need the same columns. Name one file, or rename columns.", UsageError)
    are_labels = all(len(names) == 1 for names in lone) and "label" not in shared
    frames = []
    for part, names in zip(parts, lone, strict=True):
        name_of = {name: first.get(plain_name(name), name) for name in part.columns}
        name_of |= {names[0]: "label"} if are_labels else {}
        columns_of = ((part.column(name), alias) for name, alias in name_of.items())
        is_list = pl.List(pl.String)
        frames.append(
            pl.DataFrame([(cells if cells.dtype == is_list else as_text(cells)).alias(to) for cells, to in columns_of])
        )
    return frames


def _same_items(frames: Sequence[pl.DataFrame], item: str | None) -> bool:
    """Return whether parts are about the same items, each of which is once in a part."""
    if item is None or any(item not in frame.columns for frame in frames):
        return False
    ids = [frame.get_column(item).drop_nulls() for frame in frames]
    if any(column.n_unique() < len(column) for column in ids):
        return False
    first, second = sorted(ids[:2], key=len)
    return len(set(first) & set(second)) > SHARED_ITEMS * len(first)
