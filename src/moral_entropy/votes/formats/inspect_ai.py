"""Inspect (inspect_ai): evaluation logs, `.eval` (a zip of JSON) or JSON, or a folder of them.

A scorer is a judge, and its value of a sample is the vote: C, I, P, N, a number, or a dictionary with one value per
question. Items are samples; of further epochs, which are other outputs, `id#2` and so on, and where a folder has logs
of several models, with the model before them. The model is the column `system`.
"""

from __future__ import annotations

import json
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


def detect(path: Path) -> bool:
    """Return whether a file is a log of Inspect, or a folder has some."""
    return bool(logs_in(path, ENDINGS, _is_log, most=20))


def _is_log(path: Path) -> bool:
    seen = peek(path)
    if seen.kind == "zip":
        return bool({HEADER, START} & set(seen.names)) and any(name.startswith(SAMPLES) for name in seen.names)
    return seen.has("eval", "task") and seen.has("eval", "model")


def data_files(path: Path) -> list[Path]:
    """Return the logs of a folder."""
    return logs_in(path, ENDINGS, _is_log)


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a log, or of all logs of a folder."""
    logs = []
    for file in data_files(path) if path.is_dir() else [path]:
        header, samples = _read(file)
        about = mapping(header.get("eval"))
        logs.append((str(about.get("model") or ""), about.get("task"), samples))
    several = len({model for model, _, _ in logs}) > 1
    votes = ExportedVotes(path.name, "Inspect", log)
    for model, task, samples in logs:
        for sample in samples:
            _add(votes, sample, f"{model}/" if several else "", {"system": model, "task": task})
    return votes.to_table("Scores are in the samples: was the log written before it was scored?")


def _add(votes: ExportedVotes, sample: Record, before: str, facts: dict[str, Any]) -> None:
    epoch = sample.get("epoch")
    item = f"{before}{sample.get('id')}" if before else sample.get("id")
    if isinstance(epoch, int) and epoch > 1:
        item = f"{item}#{epoch}"
    about = scalars(facts | {"target": sample.get("target")}) | {"text": last_text(sample.get("input"), role="user")}
    votes.add_item(item, scalars(mapping(sample.get("metadata"))) | about)
    if sample.get("error"):
        votes.log.drop("sample that failed", 1)
    for scorer, score in mapping(sample.get("scores")).items():
        value = mapping(score).get("value")
        for question, part in (value if isinstance(value, dict) else {"score": value}).items():
            verdict = None if isinstance(part, (list, dict)) else part
            votes.add_vote(item, scorer, question, verdict, missing=NO_VERDICT)


def _read(path: Path) -> tuple[Record, list[Record]]:
    """Read the header and the samples of one log."""
    if peek(path).kind != "zip":
        whole = read_json(path)
        if not isinstance(whole, dict) or not isinstance(whole.get("eval"), dict):
            msg = f"{path.name} is no log of Inspect: it has no record 'eval'."
            raise VotesError(msg)
        return whole, dicts(whole.get("samples"))
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
        return json.loads(archive.read(member))
    except (ValueError, RecursionError) as error:
        msg = f"{member} in {name} is no JSON: {str(error).splitlines()[0]}. Was the log copied whole?"
        raise VotesError(msg) from error
