"""Exports of annotation tools: which tool wrote a file, and its votes as a `Source`.

Asks every tool's module in turn: `detect(path)` tells whether the tool wrote it, `to_table(path, log)` returns its
votes as a long table, and `data_files(path)`, where folders are read, the files that count. Where votes choose several
labels, each label becomes a yes/no question, here or by the options with which the table is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

from moral_entropy.errors import MoralEntropyError, UsageError, VotesError
from moral_entropy.options import TABLES, ReadOptions
from moral_entropy.plugins import FORMATS as PLUGGED
from moral_entropy.plugins import failed, load_plugin
from moral_entropy.votes.formats import (
    argilla,
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
    potato,
    prodigy,
    promptfoo,
)
from moral_entropy.votes.formats.exported_votes import NOBODY_NAMED, ROLES
from moral_entropy.votes.formats.records import peek
from moral_entropy.votes.labels import NO_YES, LabelMap, load_label_map, rename_label
from moral_entropy.votes.source import Source, digest_of, from_polars, head_of, open_source
from moral_entropy.votes.table import ReadingLog

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
    "hf-datasets": hf_datasets,
}


def detect_format(path: Path) -> str | None:
    """Return the format of a file or folder; None for a plain table, or what cannot be read."""
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
    log = ReadingLog([f"format: {name} ({'detected' if options.format == 'auto' else 'named'})."])
    frame = FORMATS[name].to_table(path, log)
    ours = tuple(frame.collect_schema().names()[: len(ROLES)]) == ROLES
    if ours:
        nobody = frame.get_column("annotator").is_null().all()
        if NOBODY_NAMED in log.notes and nobody:
            options = replace(options, anonymous=True)
        if nobody and not options.anonymous and not options.annotator:
            msg = (
                f"none of the {frame.height:,} votes of {path.name} says who voted. Export with annotators, or read "
                "them as votes of one crowd: anonymous=True (CLI: --anonymous)."
            )
            raise VotesError(msg)
        frame, options = split_choices(frame, options, log)
    files = FORMATS[name].data_files(path) if path.is_dir() else [path]
    textual = ours or peek(path).kind == "text"
    return from_polars(frame, path.name, textual=textual, sha256=digest_of(files), log=log), options


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
        msg = f'format="{options.format}" reads one file or folder, not {type(source).__name__}. Leave format out.'
        raise UsageError(msg)
    return False


def _detected(path: Path, options: ReadOptions) -> str | None:
    # A user who says which column of a table holds the votes, or how it is laid out, wants it read as a table.
    named = {options.label, *options.questions, *options.counts} - {None, ""}
    if options.layout != "auto" or (named and named <= set(peek(path).names)):
        return None
    return detect_format(path)


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
    several = frame.get_column("question").n_unique() > 1
    if options.multilabel and several and frame.schema["label"] == pl.String:
        frame = frame.with_columns(pl.col("label").str.split(options.multilabel))
    if not isinstance(frame.schema["label"], pl.List):
        return frame, options
    if not several:
        question = frame.item(0, "question")
        log.note(f"{question!r} allows several labels: each is a yes/no question of its own.")
        return frame, replace(options, multilabel=options.multilabel or ",")
    return _split_questions(frame, replace(options, multilabel=None), log)


def _split_questions(frame: pl.DataFrame, options: ReadOptions, log: ReadingLog) -> tuple[pl.DataFrame, ReadOptions]:
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
    # Labels that are renamed already are taken out of the label map with which the table is read.
    renamed = {label.casefold() for label in chosen - set(single.get_column("label").drop_nulls().to_list())}
    if renamed & {name.casefold() for name in label_map}:
        left = {name: target for name, target in label_map.items() if name.casefold() not in renamed}
        labels = {name: False if target is None else target for name, target in left.items()}
        options = replace(options, labels=labels)
    return pl.concat([single, *parts]), options


def _yes_no(votes: pl.DataFrame, label_map: LabelMap) -> Iterator[pl.DataFrame]:
    """Iterate over tables of yes and no, one for each label of a question, after the label map."""
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
