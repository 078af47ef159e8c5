"""Exports of annotation tools: which tool wrote a file, and its votes as a `Source`.

Asks every tool's module in turn. Where votes choose several labels, each label becomes a yes/no question, here or by
the options with which the table is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from moral_entropy.errors import MoralEntropyError, UsageError, VotesError
from moral_entropy.plugins import FORMATS as PLUGGED
from moral_entropy.plugins import failed, load_plugin
from moral_entropy.votes.files import hash_into, head_of
from moral_entropy.votes.formats import (
    argilla,
    crowd_kit,
    doccano,
    emfd,
    hf_datasets,
    inspect_ai,
    judge_records,
    label_studio,
    langfuse,
    lewidi,
    mfrc,
    mftc,
    mturk,
    openai_evals,
    own_export,
    potato,
    prodigy,
    promptfoo,
)
from moral_entropy.votes.formats.exported_votes import NOBODY_NAMED, ROLES
from moral_entropy.votes.formats.peek import peek
from moral_entropy.votes.labels import NO_YES, LabelMap, load_label_map, rename_label
from moral_entropy.votes.options import TABLES, ReadOptions
from moral_entropy.votes.source import ReadingLog, Source, from_polars, open_source

if TYPE_CHECKING:
    import polars as pl

FORMATS: dict[str, ModuleType] = {
    "inspect": inspect_ai,
    "promptfoo": promptfoo,
    "langfuse": langfuse,
    "openai-evals": openai_evals,
    "label-studio": label_studio,
    "argilla": argilla,
    "prodigy": prodigy,
    "doccano": doccano,
    "potato": potato,
    "mturk": mturk,
    "lewidi": lewidi,
    "mftc": mftc,
    "mfrc": mfrc,
    "emfd": emfd,
    "judges": judge_records,
    "crowd-kit": crowd_kit,
    "hf-datasets": hf_datasets,
    "moral-entropy": own_export,
}
ANY_SEPARATOR = ","


def detect_format(path: Path) -> str | None:
    """Return the format of a file or folder; None for a plain table, or what cannot be read.

    Parameters
    ----------
    path
        The file or folder.
    """
    return next((name for name, module in FORMATS.items() if module.detect(path)), None)


def open_export(source: Any, options: ReadOptions) -> tuple[Source, ReadOptions] | None:
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
    if name not in FORMATS:
        return _open_with_plugin(path, name), options
    log = ReadingLog()
    log.note(f"format: {name} ({'detected' if options.format == 'auto' else 'named'}).")
    frame = FORMATS[name].to_table(path, log)
    ours = tuple(frame.collect_schema().names()[: len(ROLES)]) == ROLES
    if ours:
        if NOBODY_NAMED in log.notes and frame.get_column("annotator").is_null().all():
            options = replace(options, anonymous=True)
        _check_annotators(frame, path.name, options)
        frame, options = split_choices(frame, options, log)
    opened = from_polars(
        frame, path.name, textual=ours or peek(path).kind == "text", sha256=_digest(path, name), tool=name, log=log
    )  # fmt: skip
    return opened, options


def _open_with_plugin(path: Path, name: str) -> Source:
    """Let a plugin read the file; what it returns is a dataframe with one row per vote."""
    read = load_plugin(PLUGGED, name)
    try:
        frame = read(path)
    except MoralEntropyError:
        raise
    except Exception as error:
        raise failed(name, f"to read {path.name}", error) from error
    digest = hashlib.sha256()
    if path.is_file():
        hash_into(digest, path)
    log = ReadingLog()
    log.note(f"format: {name} (named; a plugin).")
    digested = digest.hexdigest() if path.is_file() else ""
    return replace(open_source(frame), name=path.name, sha256=digested, tool=name, log=log)


def _is_one_path(source: Any, options: ReadOptions) -> bool:
    if isinstance(source, (str, Path)) and (options.format != "auto" or Path(source).exists()):
        return True
    if options.format != "auto":
        msg = f'format="{options.format}" reads one file or folder, not {type(source).__name__}. Leave format out.'
        raise UsageError(msg)
    return False


def _detected(path: Path, options: ReadOptions) -> str | None:
    # A user who says which column of a table holds the votes, or how it is laid out, wants it read as a table.
    named = {options.label, *options.questions, *options.counts} - {None, ""}
    if options.layout != "auto" or (named and named <= set(peek(path).names)):
        return None
    return detect_format(path)


def _check_annotators(frame: pl.DataFrame, name: str, options: ReadOptions) -> None:
    if options.anonymous or options.annotator or frame.get_column("annotator").is_not_null().any():
        return
    msg = (
        f"none of the {frame.height:,} votes of {name} says who voted. Export with annotators, or read them as votes "
        "of one crowd: anonymous=True (CLI: --anonymous)."
    )
    raise VotesError(msg)


def _digest(path: Path, name: str) -> str:
    """Return the SHA-256 of a file, or of all data files in a folder."""
    digest = hashlib.sha256()
    for file in FORMATS[name].data_files(path) if path.is_dir() else [path]:
        hash_into(digest, file)
    return digest.hexdigest()


def split_choices(frame: pl.DataFrame, options: ReadOptions, log: ReadingLog) -> tuple[pl.DataFrame, ReadOptions]:
    """Turn votes that choose several labels into a yes/no question for each label.

    With one question in the export this is left to the reader of tables, as for `multilabel`.

    Parameters
    ----------
    frame
        The long table of an export; one without lists of labels is returned as it is.
    options
        What the user asked for. A separator splits texts into labels.
    log
        Where notes go.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"item": [1, 1], "annotator": ["a", "a"], "question": ["tone", "sure"],
    ...                       "label": [["sad", "cross"], ["yes"]]})
    >>> split_choices(table, ReadOptions(), ReadingLog())[0].select("question", "label").rows()
    [('sure', 'yes'), ('tone: cross', '1'), ('tone: sad', '1')]
    """
    import polars as pl

    several = frame.get_column("question").n_unique() > 1
    if options.multilabel and several and frame.schema["label"] == pl.String:
        frame = frame.with_columns(pl.col("label").str.split(options.multilabel))
    if not isinstance(frame.schema["label"], pl.List):
        return frame, options
    if not several:
        question = frame.item(0, "question")
        log.note(f"{question!r} allows several labels: each is a yes/no question of its own.")
        return frame, replace(options, multilabel=options.multilabel or ANY_SEPARATOR)
    return _split_questions(frame, replace(options, multilabel=None), log)


def _split_questions(frame: pl.DataFrame, options: ReadOptions, log: ReadingLog) -> tuple[pl.DataFrame, ReadOptions]:
    import polars as pl

    length = pl.col("label").list.len()
    counted = frame.group_by("question").agg((length != 1).any().alias("several")).filter("several")
    sets = sorted(counted.get_column("question").to_list())
    single = frame.filter(~pl.col("question").is_in(sets)).with_columns(pl.col("label").list.first())
    label_map = load_label_map(options.labels)
    log.note(f"each label of {', '.join(repr(name) for name in sets)} is a yes/no question of its own.")
    votes_on = {
        name: frame.filter(pl.col("question") == name) for name in sets if rename_label(name, label_map) is not None
    }
    log.drop("question left out by the label map", frame.height - single.height - sum(map(len, votes_on.values())))
    parts = [part for votes in votes_on.values() for part in _yes_no(votes, label_map)]
    chosen = {label for votes in votes_on.values() for label in _labels(votes)}
    unsplit = set(single.get_column("label").drop_nulls().to_list())
    return pl.concat([single, *parts]), _unused(label_map, chosen - unsplit, options)


def _yes_no(votes: pl.DataFrame, label_map: LabelMap) -> Iterator[pl.DataFrame]:
    """Iterate over tables of yes and no, one for each label of a question, after the label map."""
    import polars as pl

    new = {label: rename_label(label, label_map) for label in _labels(votes)}
    mapped = pl.element().str.strip_chars().replace_strict(new, default=None, return_dtype=pl.String)
    votes = votes.with_columns(pl.col("label").list.eval(mapped.drop_nulls()))
    no, yes = NO_YES
    for label in sorted({label for label in new.values() if label is not None}):
        named = pl.col("label").list.contains(label)
        answer = pl.when(pl.col("label").is_null()).then(None).when(named).then(pl.lit(yes)).otherwise(pl.lit(no))
        yield votes.with_columns(pl.col("question") + f": {label}", answer.alias("label"))


def _labels(votes: pl.DataFrame) -> list[str]:
    """Return the labels that some vote chooses."""
    labels = votes.get_column("label").explode().drop_nulls().str.strip_chars().unique().sort()
    return [label for label in labels.to_list() if label]


def _unused(label_map: LabelMap, used: set[str], options: ReadOptions) -> ReadOptions:
    """Take the labels that are renamed already out of the label map with which the table is read."""
    folded = {label.casefold() for label in used}
    if not folded & {name.casefold() for name in label_map}:
        return options
    left = {name: target for name, target in label_map.items() if name.casefold() not in folded}
    return replace(options, labels={name: False if target is None else target for name, target in left.items()})
