"""Inspect (inspect_ai): evaluation logs, `.eval` (a zip of JSON) or JSON, or a folder of them.

A scorer is a judge, and its value of a sample is the vote: C, I, P, N, a number, or a dictionary with one value per
question. Items are samples; of further epochs, which are other outputs, `id#2` and so on, and where a folder has logs
of several models, with the model before them. The model is the column `system`.
"""

from __future__ import annotations

import json
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.doccano import MOST_BYTES
from moral_entropy.votes.formats.exported_votes import (
    NO_VERDICT,
    ExportedVotes,
    Record,
    dicts,
    last_text,
    logs_in,
    mapping,
    peek,
    read_json,
    scalars,
)
from moral_entropy.votes.table import ReadingLog

TITLE = "Inspect"
HEADER, START, SAMPLES = "header.json", "_journal/start.json", "samples/"
QUESTION = "score"
ENDINGS = (".eval", ".json")


def detect(path: Path) -> bool:
    """Return whether a file is a log of Inspect, or a folder has some."""
    return bool(logs_in(path, ENDINGS, _is_log, most=20))


def _is_log(path: Path) -> bool:
    seen = peek(path)
    if seen.kind == "zip":
        return any(name in seen.names for name in (HEADER, START)) and any(n.startswith(SAMPLES) for n in seen.names)
    return seen.has("eval", "task") and seen.has("eval", "model")


def data_files(path: Path) -> list[Path]:
    """Return the logs of a folder."""
    return logs_in(path, ENDINGS, _is_log)


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a log, or of all logs of a folder.

    Parameters
    ----------
    path
        The file or folder.
    log
        Where counts and notes go.
    """
    logs = [_read(file) for file in (data_files(path) if path.is_dir() else [path])]
    models = {_model(header) for header, _ in logs}
    votes = ExportedVotes(path.name, TITLE, log)
    for header, samples in logs:
        before = f"{_model(header)}/" if len(models) > 1 else ""
        for sample in samples:
            _add(votes, sample, before, {"system": _model(header), "task": mapping(header.get("eval")).get("task")})
    return votes.to_table("Scores are in the samples: was the log written before it was scored?")


def _model(header: Record) -> str:
    return str(mapping(header.get("eval")).get("model") or "")


def _add(votes: ExportedVotes, sample: Record, before: str, facts: dict[str, Any]) -> None:
    epoch = sample.get("epoch")
    item = f"{before}{sample.get('id')}" if before else sample.get("id")
    if isinstance(epoch, int) and epoch > 1:
        item = f"{item}#{epoch}"
    target = sample.get("target")
    about = {**scalars(facts), **scalars({"target": target}), "text": last_text(sample.get("input"), role="user")}
    votes.add_item(item, scalars(mapping(sample.get("metadata"))) | about)
    if sample.get("error"):
        votes.log.drop("sample that failed", 1)
    for scorer, score in mapping(sample.get("scores")).items():
        value = mapping(score).get("value")
        parts = value if isinstance(value, dict) else {QUESTION: value}
        for question, part in parts.items():
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
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, OSError) as error:
        msg = f"{path.name} cannot be unpacked: {error}. Write it as JSON: inspect log convert --to json."
        raise VotesError(msg) from error


def _read_zip(archive: zipfile.ZipFile, name: str) -> tuple[Record, list[Record]]:
    members = [one for one in archive.infolist() if one.filename.startswith(SAMPLES) and one.filename.endswith(".json")]
    size = sum(member.file_size for member in members)
    if size > MOST_BYTES:
        msg = f"{name} unpacks to {size:,} bytes, more than is read at once. Split the log."
        raise VotesError(msg)
    head = HEADER if HEADER in archive.namelist() else START
    if head not in archive.namelist():
        msg = f"{name} is no log of Inspect: it has neither {HEADER} nor {START}."
        raise VotesError(msg)
    header = next(_objects(archive, [archive.getinfo(head)], name), {})
    return header, list(_objects(archive, members, name))


def _objects(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], name: str) -> Iterator[Record]:
    for member in members:
        try:
            value = json.loads(archive.read(member))
        except (ValueError, RecursionError) as error:
            msg = f"{member.filename} in {name} is no JSON: {str(error).splitlines()[0]}. Was the log copied whole?"
            raise VotesError(msg) from error
        if isinstance(value, dict):
            yield value
