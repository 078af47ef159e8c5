"""Doccano: a zip with one `<user>.jsonl` for each annotator.

The zip is read in memory, up to a fixed size, and never unpacked. The export of a project with shared annotation does
not say who annotated, and is refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.votes.delimited import checked_utf8
from moral_entropy.votes.formats.exported_votes import ExportedVotes
from moral_entropy.votes.formats.records import ZIP_ERRORS, Record, first_of, mapping, parse_records, peek, scalars
from moral_entropy.votes.table import ReadingLog

MERGED = "all"
"""Name that doccano gives to the annotations of everybody together."""

OWN_KEYS = frozenset({"id", "text", "data", "filename", "label", "labels", "cats", "entities", "Comments", "meta"})
LABELS = ("label", "labels", "cats")
MOST_MEMBERS, MOST_BYTES = 10_000, 1 << 30


def detect(path: Path) -> bool:
    """Return whether a file is a doccano export, with annotators or without."""
    seen = peek(path)
    if seen.kind == "zip":
        # An Excel workbook is a zip too.
        return "[Content_Types].xml" not in seen.names and (bool(seen.names) or path.suffix.lower() == ".zip")
    keys = {key[0] for key in seen.keys if len(key) == 1}
    lists = any((name,) in seen.lists for name in LABELS)
    return seen.kind == "json" and lists and {"id"} < keys <= OWN_KEYS and bool(keys & {"text", "data", "filename"})


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of an export."""
    if (kind := peek(path).kind) != "zip":
        msg = f"{path.name} is not a zip file, as doccano's exports with annotators are."
        raise VotesError(_merged(path.name) if kind == "json" else msg)
    votes = ExportedVotes(path.name, "doccano", log)
    for user, record in _records(path):
        item = first_of(record, "id", "text", "data", "filename")
        facts = scalars(record, without=OWN_KEYS) | scalars(mapping(record.get("meta")))
        votes.add_item(item, facts | {"text": first_of(record, "text", "data")})
        if labels := _labels(record, f"{user} in {path.name}"):
            votes.add_vote(item, user, "label", labels)
        else:
            log.drop("example the user did not label", 1)
    return votes.to_table("Nobody labelled an example.")


def _labels(record: Record, where: str) -> list[Any]:
    labels: list[Any] = first_of(record, *LABELS) or []
    labels = labels if isinstance(labels, list) else [labels]
    if any(isinstance(label, (list, dict)) for label in labels):
        msg = (
            f"example {record.get('id')!r} of {where} marks parts of the text. Votes are on whole items: "
            "export a classification project."
        )
        raise VotesError(msg)
    return labels


def _records(path: Path) -> Iterator[tuple[str, Record]]:
    """Iterate over the users and their records, user by user."""
    try:
        with zipfile.ZipFile(path) as archive:
            for user, member in _users(archive, path.name).items():
                where = f"{member.filename} in {path.name}"
                # Reads no further than the size that `_users` has seen, whatever was packed.
                data = checked_utf8(archive.read(member), where)
                yield from ((user, record) for record in parse_records(data, where))
    except ZIP_ERRORS as error:
        msg = f"{path.name} is a damaged zip file: {error}. Was it downloaded whole?"
        raise VotesError(msg) from error


def _users(archive: zipfile.ZipFile, name: str) -> dict[str, zipfile.ZipInfo]:
    """Find each user's file, and refuse a zip that is not what doccano writes."""
    users: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist()[: MOST_MEMBERS + 1]:
        where = PurePosixPath(member.filename)
        if where.suffix.lower() not in (".jsonl", ".json") or where.parts[0] == "__MACOSX" or where.name[0] == ".":
            continue
        if ".." in where.parts or where.is_absolute() or "\\" in member.filename or where.stem in users:
            msg = f"{name} holds {member.filename!r}, which doccano would not write. Export it anew."
            raise VotesError(msg)
        users[where.stem] = member
    if set(users) == {MERGED}:
        raise VotesError(_merged(name))
    size = sum(member.file_size for member in users.values())
    locked = [member.filename for member in users.values() if member.flag_bits & 1]
    if not users:
        msg = f"{name} holds no <user>.jsonl, so there are no annotators in it. Export from doccano as JSONL."
    elif len(users) > MOST_MEMBERS or size > MOST_BYTES:
        msg = f"{name} unpacks to {size:,} bytes in {len(users):,} files, more than an export has. Check the file."
    elif locked:
        msg = f"{len(locked)} files in {name} are locked with a password. First: {locked[0]!r}. Unlock them first."
    else:
        return users
    raise VotesError(msg)


def _merged(name: str) -> str:
    return (
        f"{name} looks like doccano's export of a project with shared annotation: it says what was labelled, not by "
        "whom, so there are no votes in it. Export a project without shared annotation (a zip with a file for each "
        'user), or, if it is something else, read it as a table with format="long" (CLI: --format long).'
    )
