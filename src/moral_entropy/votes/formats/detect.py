"""Detect: which tool wrote a file, and its votes as a `Source`.

Asks every format in turn, and makes the export fit the reader of long tables: where votes choose several labels, or
several questions were put, the options change with it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.votes.files import hash_into, head_of
from moral_entropy.votes.formats import (
    argilla,
    crowd_kit,
    doccano,
    hf_datasets,
    label_studio,
    lewidi,
    mturk,
    potato,
    prodigy,
)
from moral_entropy.votes.formats.collect import ROLES
from moral_entropy.votes.formats.peek import peek
from moral_entropy.votes.formats.spread import spread_choices
from moral_entropy.votes.options import Options
from moral_entropy.votes.source import ReadingLog, Source, from_polars

if TYPE_CHECKING:
    import polars as pl

FORMATS: dict[str, ModuleType] = {
    "label-studio": label_studio,
    "argilla": argilla,
    "prodigy": prodigy,
    "doccano": doccano,
    "potato": potato,
    "mturk": mturk,
    "lewidi": lewidi,
    "crowd-kit": crowd_kit,
    "hf-datasets": hf_datasets,
}
TABLES = ("long", "wide")


def detect_format(path: Path) -> str | None:
    """Name the format of a file or folder; None for a plain table, or what cannot be read.

    Parameters
    ----------
    path
        The file or folder.
    """
    return next((name for name, module in FORMATS.items() if module.detect(path)), None)


def open_export(source: Any, options: Options) -> tuple[Source, Options] | None:
    """Open an export of an annotation tool; None if the source is a table, or is to be read as one.

    Parameters
    ----------
    source
        What `read_votes` was given.
    options
        What the user asked for; its `format` names the tool, or is "auto".

    Returns
    -------
    tuple or None
        The votes as a long table, and the options to read it with.
    """
    if options.format in TABLES or not _is_one_path(source, options):
        return None
    path = Path(source)
    name = options.format if options.format != "auto" else _detected(path, options)
    if name is None:
        return None
    if not path.is_dir():
        head_of(path)
    log = ReadingLog()
    log.note(f"format: {name} ({'detected' if options.format == 'auto' else 'named'}).")
    frame = FORMATS[name].to_table(path, log)
    ours = tuple(frame.collect_schema().names()[: len(ROLES)]) == ROLES
    if ours:
        _check_annotators(frame, path.name, options)
        frame, options = spread_choices(frame, options, log)
    opened = from_polars(
        frame, path.name, textual=ours or peek(path).kind == "text", sha256=_digest(path, name), tool=name, log=log
    )  # fmt: skip
    return opened, options


def _is_one_path(source: Any, options: Options) -> bool:
    if isinstance(source, (str, Path)) and (options.format != "auto" or Path(source).exists()):
        return True
    if options.format != "auto":
        msg = f'format="{options.format}" reads one file or folder, not {type(source).__name__}. Leave format out.'
        raise UsageError(msg)
    return False


def _detected(path: Path, options: Options) -> str | None:
    # Whoever says which column of a table holds the votes, or how it is laid out, wants it read as a table.
    named = {options.label, *options.questions, *options.counts} - {None, ""}
    if options.layout != "auto" or (named and named <= set(peek(path).names)):
        return None
    return detect_format(path)


def _check_annotators(frame: pl.DataFrame, name: str, options: Options) -> None:
    if options.anonymous or options.annotator or frame.get_column("annotator").is_not_null().any():
        return
    msg = (
        f"none of the {frame.height:,} votes of {name} says who voted. Export with annotators, or read them as votes "
        "of one crowd: anonymous=True (CLI: --anonymous)."
    )
    raise VotesError(msg)


def _digest(path: Path, name: str) -> str:
    """Give the SHA-256 of a file, or of all data files in a folder."""
    digest = hashlib.sha256()
    for file in FORMATS[name].data_files(path) if path.is_dir() else [path]:
        hash_into(digest, file)
    return digest.hexdigest()
