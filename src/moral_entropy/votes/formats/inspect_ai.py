"""Inspect (inspect_ai): evaluation logs, `.eval` (a zip of JSON, also with zstd) or JSON, or a folder of them.

A scorer is a judge, and its value of a sample is the vote: C, I, P, N, a number, or a dictionary with one value per
question. A panel of graders (`metadata.panel`, or a value that is a list) has one judge per grader, named after its
model. Items are samples; of further epochs, which are other outputs, `id#2` and so on, and where a folder has logs of
several models, with the model before them. The model is the column `system`, and the sample, which its epochs share,
the column `sample`.
"""

from __future__ import annotations

import json
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.exported_votes import NO_VERDICT, ExportedVotes
from moral_entropy.votes.formats.records import (
    ZIP_ERRORS,
    Record,
    dicts,
    last_text,
    listed,
    logs_in,
    mapping,
    peek,
    read_json,
    scalars,
)
from moral_entropy.votes.source import MOST_BYTES
from moral_entropy.votes.table import ReadingLog

HEADER, START, SAMPLES = "header.json", "_journal/start.json", "samples/"
ENDINGS = (".eval", ".json")
ZSTD = 93
"""How zip files call this compression."""


def detect(path: Path) -> bool:
    """Return whether a file is a log of Inspect, or a folder has some."""
    return bool(logs_in(path, ENDINGS, _is_log, limit=20))


def _is_log(path: Path) -> bool:
    head = peek(path)
    if head.kind == "zip":
        return bool({HEADER, START} & set(head.names)) and any(name.startswith(SAMPLES) for name in head.names)
    return head.has("eval", "task") and head.has("eval", "model")


def data_files(path: Path) -> list[Path]:
    """Return the logs of a folder."""
    return logs_in(path, ENDINGS, _is_log)


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a log, or of all logs of a folder."""
    logs = []
    for file in data_files(path) if path.is_dir() else [path]:
        header, samples = _read(file)
        about = mapping(header.get("eval"))
        logs.append((str(about.get("model") or ""), about.get("task"), _graders(about), samples))
    n_models = len({model for model, _, _, _ in logs})
    votes = ExportedVotes(path.name, "Inspect", log)
    for model, task, graders, samples in logs:
        for sample in samples:
            _add(votes, sample, f"{model}/" if n_models > 1 else "", {"system": model, "task": task}, graders)
    return votes.to_table("Scores are in the samples: was the log written before it was scored?")


def _graders(about: Record) -> dict[str, list[str]]:
    """Return the models of every scorer that has a panel of them."""
    graders = {}
    for scorer in dicts(about.get("scorers")):
        models = listed(mapping(scorer.get("options")).get("model"))
        names = [str(mapping(model).get("model") or model) for model in models]
        graders[str(scorer.get("name"))] = [
            name if names.count(name) == 1 else f"{name}#{names[: at + 1].count(name)}" for at, name in enumerate(names)
        ]
    return graders


def _add(
    votes: ExportedVotes, sample: Record, before: str, facts: dict[str, Any], graders: dict[str, list[str]]
) -> None:
    epoch = sample.get("epoch")
    item = f"{before}{sample.get('id')}" if before else sample.get("id")
    if isinstance(epoch, int) and epoch > 1:
        item = f"{item}#{epoch}"
    facts = facts | {"target": sample.get("target"), "sample": str(sample.get("id"))}
    about = scalars(facts) | {"text": last_text(sample.get("input"), role="user")}
    votes.add_item(item, scalars(mapping(sample.get("metadata"))) | about)
    if sample.get("error"):
        votes.log.drop("sample that failed", 1)
    for scorer, score in mapping(sample.get("scores")).items():
        value = mapping(score).get("value")
        panel = mapping(mapping(mapping(score).get("metadata")).get("panel"))
        for question, part in (value if isinstance(value, dict) else {"score": value}).items():
            ballots = listed(panel.get("votes")) or (part if isinstance(part, list) else [])
            if not ballots:
                votes.add_vote(item, scorer, question, None if isinstance(part, dict) else part, missing=NO_VERDICT)
            names = graders.get(scorer, [])
            for at, grade in enumerate(ballots):
                judge = names[at] if len(names) == len(ballots) else f"{scorer}/{at + 1}"
                failure = f"{judge} without a verdict"
                votes.add_vote(item, judge, question, grade if not isinstance(grade, dict) else None, missing=failure)


def _read(path: Path) -> tuple[Record, list[Record]]:
    """Read the header and the samples of one log."""
    if peek(path).kind != "zip":
        log = read_json(path)
        if not isinstance(log, dict) or not isinstance(log.get("eval"), dict):
            msg = f"{path.name} is no log of Inspect: it has no record 'eval'."
            raise VotesError(msg)
        return log, dicts(log.get("samples"))
    try:
        with zipfile.ZipFile(path) as archive:
            return _read_zip(archive, path.name)
    except ZIP_ERRORS as error:
        msg = f"{path.name} cannot be unpacked: {error}. Write it as JSON: inspect log convert --to json."
        raise VotesError(msg) from error


def _read_zip(archive: zipfile.ZipFile, name: str) -> tuple[Record, list[Record]]:
    names = archive.namelist()
    samples = [member for member in names if member.startswith(SAMPLES) and member.endswith(".json")]
    size = sum(archive.getinfo(member).file_size for member in samples)
    if size > MOST_BYTES:
        msg = f"{name} unpacks to {size:,} bytes, more than is read at once. Split the log."
        raise VotesError(msg)
    head = HEADER if HEADER in names else START
    if head not in names:
        msg = f"{name} is no log of Inspect: it has neither {HEADER} nor {START}."
        raise VotesError(msg)
    return mapping(_value(archive, head, name)), dicts([_value(archive, member, name) for member in samples])


def _value(archive: zipfile.ZipFile, member: str, name: str) -> Any:
    try:
        return json.loads(_unpack(archive, member))
    except (ValueError, RecursionError) as error:
        msg = f"{member} in {name} is no JSON: {str(error).splitlines()[0]}. Was the log copied whole?"
        raise VotesError(msg) from error


def _unpack(archive: zipfile.ZipFile, member: str) -> bytes:
    """Return the bytes of a member, also where it is compressed with zstd, which Python unpacks since 3.14."""
    info = archive.getinfo(member)
    if info.compress_type != ZSTD or sys.version_info >= (3, 14):
        return archive.read(member)
    file = archive.fp
    if file is None:
        return b""
    file.seek(info.header_offset + 26)
    name_length, extra_length = struct.unpack("<HH", file.read(4))
    file.seek(name_length + extra_length, 1)
    # Polars unpacks what it reads: a table of one column, with a line of the text in every row.
    lines = pl.read_csv(
        file.read(info.compress_size), has_header=False, separator="\x1f", quote_char=None, infer_schema=False
    )
    return "\n".join(lines.to_series(0).fill_null("").to_list()).encode()
