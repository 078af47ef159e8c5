"""Decisions of people about labels: one JSON line each, only ever appended; what they say together.

`serve` writes them, `audit --decisions FILE` and `serve` read them. A line has who, when, what and why, and all that a
new run needs: the label decided on, the label of the consensus at that time, and the weight of a row of a sheet. A line
that was torn by a crash is passed over. An item on which people differ counts only once somebody has settled it.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import polars as pl

from moral_entropy.errors import FileError, VotesError
from moral_entropy.runs.run import Run
from moral_entropy.schemas import SCHEMAS, with_ids
from moral_entropy.verdict.figures import KEYS
from moral_entropy.verdict.sheet import spot_checks

DECISIONS = "decisions.jsonl"
"""The file of a run folder that holds its decisions."""

CAUSES = ("ambiguous", "guideline gap", "annotator error", "other")
"""Why votes were not enough."""

LABELLING = ("check", "settle", "confirm")
"""Kinds of decisions that have a label: blind, after a conflict, in bulk. The others are skip, undo and sheet."""

Decision = Mapping[str, Any]
Key = tuple[str, str]


class DecisionLog:
    """The decisions in a file: read as far as it goes, appended to with one write each; shared between threads."""

    def __init__(self, path: Path) -> None:
        self.path, self.n_torn = path, 0
        self._entries: list[Decision] = []
        self._ids: set[str] = set()
        self._size, self._lock = 0, Lock()

    def entries(self) -> list[Decision]:
        """Return all decisions so far, also those that another process has written since."""
        with self._lock:
            self._read()
            return self._entries

    def standing(self) -> dict[Key, dict[str, Decision]]:
        """Return the decisions that stand, by question and item, then by person."""
        return standing(self.entries())

    def decided(self) -> dict[Key, Decision]:
        """Return the decision on every item that has one."""
        return {key: entry for key, people in self.standing().items() if (entry := agreed(people)) is not None}

    def conflicts(self) -> list[Key]:
        """Return the items on which people have decided differently, and nobody has settled it."""
        people = self.standing().items()
        return [key for key, by_person in people if len(_labelled(by_person)) > 1 and agreed(by_person) is None]

    def append(self, entries: Sequence[Decision]) -> None:
        """Write decisions to the disk before this returns, whole; those that are there are not written again."""
        with self._lock:
            self._read()
            lines = [json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries if entry["id"] not in self._ids]
            if not lines:
                return
            try:
                with self.path.open("ab", buffering=0) as file:
                    # After a crash the last line may be torn: what follows begins a line of its own.
                    text = ("\n" * (file.tell() > self._size) + "".join(lines)).encode()
                    if (file.write(text) or 0) < len(text):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    os.fsync(file)
            except OSError as error:
                msg = f"cannot write {self.path}: {error.strerror or error}. Nothing was decided; make room and repeat."
                raise FileError(msg) from error
            self._read()

    def _read(self) -> None:
        """Read the lines that were added since, up to the last that is complete."""
        if not self.path.exists() or self.path.stat().st_size <= self._size:
            return
        with self.path.open("rb") as file:
            file.seek(self._size)
            text = file.read()
        lines = text[: text.rfind(b"\n") + 1]
        self._size += len(lines)
        # A new list: whoever holds the old one keeps it as it was.
        self._entries = [*self._entries, *filter(None, map(self._parse, lines.splitlines()))]

    def _parse(self, line: bytes) -> Decision | None:
        try:
            entry = json.loads(line)
            if entry["id"] in self._ids:
                return None
            self._ids.add(entry["id"])
            return dict(entry)
        except (ValueError, KeyError, TypeError):
            self.n_torn += bool(line.strip())
            return None


def standing(entries: Iterable[Decision]) -> dict[Key, dict[str, Decision]]:
    """Return the decisions that stand, by question and item, then by person: the last of each that was not undone.

    Examples
    --------
    >>> first = {"id": "1", "kind": "check", "question": "q", "item": "a", "who": "ann", "label": "yes"}
    >>> again = first | {"id": "2", "label": "no"}
    >>> standing([first, again])["q", "a"]["ann"]["label"]
    'no'
    >>> standing([first, again, {"id": "3", "kind": "undo", "of": "2"}])["q", "a"]["ann"]["label"]
    'yes'
    """
    entries = list(entries)
    undone = {entry["of"] for entry in entries if entry["kind"] == "undo"}
    by_key: dict[Key, dict[str, Decision]] = {}
    for entry in entries:
        if entry["id"] not in undone and "item" in entry:
            by_person = by_key.setdefault((entry["question"], entry["item"]), {})
            # The last to decide comes last.
            by_person.pop(entry["who"], None)
            by_person[entry["who"]] = entry
    return by_key


def _labelled(by_person: Mapping[str, Decision]) -> list[Decision]:
    return [entry for entry in by_person.values() if entry.get("label") is not None]


def agreed(by_person: Mapping[str, Decision]) -> Decision | None:
    """Return the decision on an item: the last final one, else what all who have a label agree on; else None."""
    labelled = _labelled(by_person)
    final = [entry for entry in labelled if entry.get("final")]
    return (final or labelled)[-1] if final or len({entry["label"] for entry in labelled}) == 1 else None


def decided_rows(entries: Iterable[Decision], item: pl.DataType | None = None) -> pl.DataFrame:
    """Return what was decided as rows of the table spot_checks: checks of a sheet measure, all others repair.

    Parameters
    ----------
    entries
        The decisions.
    item
        Type of the items' ids; text when not given.
    """
    rows = [
        (*key, entry.get("sheet") or 0, "measure" if entry.get("sheet") else "repair", entry.get("weight") or 0.0,
         entry["label"], entry.get("was"))
        for key, by_person in standing(entries).items() if (entry := agreed(by_person)) is not None
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema=SCHEMAS["spot_checks"], orient="row")
    return frame.cast(with_ids(SCHEMAS["spot_checks"], item=item or pl.String()))


def read_decisions(path: str | Path) -> pl.DataFrame:
    """Read what was decided from a file, or in a run folder, as rows of spot_checks; an error where nothing was."""
    file = Path(path) / DECISIONS if Path(path).is_dir() else Path(path)
    rows = decided_rows(DecisionLog(file).entries())
    if rows.is_empty():
        msg = f"{file} has no decision on a label. Decide some first: moral-entropy serve RUN."
        raise VotesError(msg)
    return rows


def with_decisions(run: Run, entries: Iterable[Decision], sheet: pl.DataFrame | None = None) -> Run:
    """Return a run with decisions as the answers of its spot checks; what is on disk stays as it is.

    Parameters
    ----------
    run
        The run.
    entries
        The decisions.
    sheet
        All rows of sheets, where there are more than the run has.
    """
    rows = spot_checks(run) if sheet is None else sheet
    decisions = decided_rows(entries, rows.schema["item"])
    rows = pl.concat([rows.join(decisions, on=KEYS, how="anti", maintain_order="left"), decisions])
    return replace(run, tables={**run.tables, "spot_checks": rows})
