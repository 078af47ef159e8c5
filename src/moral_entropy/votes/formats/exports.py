"""Exports of annotation tools: which tool wrote a file, and its votes as a `Source`.

The formats are those that the modules beside this one declare with `records.export_of`. Where votes choose several
labels, each label becomes a yes/no question, here or by the options with which the table is read.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from moral_entropy.errors import MoralEntropyError, UsageError
from moral_entropy.options import TABLES, ReadOptions
from moral_entropy.plugins import FORMATS as PLUGGED
from moral_entropy.plugins import failed, load_plugin
from moral_entropy.votes.formats import annotation_tools, evaluations, moral_corpora  # noqa: F401 (register formats)
from moral_entropy.votes.formats.records import FORMATS, NOBODY_NAMED, ROLES, detect_format, files_of, peek
from moral_entropy.votes.source import Source, digest_of, from_polars, head_of, open_source
from moral_entropy.votes.table import ReadingLog, refuse


def open_export(source: Any, options: ReadOptions) -> Source | None:
    """Open an export of an annotation tool as a long table; None if the source is a table, or is to be read as one.

    Parameters
    ----------
    source
        What `read_votes` was given.
    options
        What the user asked for; its `format` names the tool, or is "auto".
    """
    if options.format in TABLES or not _is_one_path(source, options):
        return None
    path = Path(source)
    # A user who says which column of a table holds the votes wants it read as a table.
    columns = {options.label, *options.questions, *options.counts} - {None, ""}
    if options.format != "auto":
        name: str | None = options.format
    else:
        name = None if columns and columns <= set(peek(path).names) else detect_format(path)
    if name is None:
        return None
    if not path.is_dir():
        head_of(path)
    if name not in FORMATS:
        return _open_with_plugin(path, name)
    log = ReadingLog([f"format: {name} ({'detected' if options.format == 'auto' else 'named'})."])
    frame = FORMATS[name].read(path, log)
    ours = tuple(frame.collect_schema().names()[: len(ROLES)]) == ROLES
    unsaid = ours and NOBODY_NAMED not in log.notes and frame.get_column("annotator").is_null().all()
    if unsaid and not options.anonymous and not options.annotator:
        problem = f"none of the {frame.height:,} votes of {path.name} says who voted"
        refuse(f"{problem}. Export with annotators, or read them as anonymous=True (CLI: --anonymous).")
    textual = ours or peek(path).kind == "text"
    return from_polars(frame, path.name, textual=textual, sha256=digest_of(files_of(name, path)), log=log)


def _open_with_plugin(path: Path, name: str) -> Source:
    """Let a plugin read the file; what it returns is a dataframe with one row per vote."""
    read = load_plugin(PLUGGED, name)
    try:
        frame = read(path)
    except MoralEntropyError:
        raise
    except Exception as error:
        raise failed(name, f"to read {path.name}", error) from error
    log = ReadingLog([f"format: {name} (named; a plugin)."])
    return replace(open_source(frame), name=path.name, sha256=digest_of([path]) if path.is_file() else "", log=log)


def _is_one_path(source: Any, options: ReadOptions) -> bool:
    if isinstance(source, (str, Path)) and (options.format != "auto" or Path(source).exists()):
        return True
    if options.format != "auto":
        refuse(f'format="{options.format}" reads one file or folder, not {type(source).__name__}.', UsageError)
    return False
