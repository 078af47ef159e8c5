"""Several files, or several sheets of a workbook → one table.

Parts that name their annotators are put below each other. Parts without annotators that are about the same items are
one annotator each, called like the file or the sheet.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import UsageError
from moral_entropy.options import ReadOptions
from moral_entropy.votes.columns import find_columns, plain_name
from moral_entropy.votes.formats.exports import detect_format, open_export
from moral_entropy.votes.source import (
    EXTENSIONS,
    MAGIC_PARQUET,
    Source,
    digest_of,
    from_polars,
    head_of,
    open_source,
    suffix_of,
)
from moral_entropy.votes.table import refuse, shown
from moral_entropy.votes.values import as_text

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
    log.note(
        f"{len(parts)} {kind}, each an annotator: {listed}."
        if people
        else f"{len(parts)} {kind} read as one: {listed}."
    )
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
        refuse(
            f"{parts[0].name} has the columns {shown(parts[0].columns)}, {odd.name} has {shown(odd.columns)}: files "
            "that are read together have the same columns. Audit them one by one, or rename the columns.",
            UsageError,
        )
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
