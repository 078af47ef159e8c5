"""A run folder as the report reads it: the manifest, and tables that may be absent.

Run folders of earlier versions lack some tables; what is missing reads as a table without rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.runs.manifest import read_manifest
from moral_entropy.runs.tables import checked_folder, read_table
from moral_entropy.schemas import SCHEMAS


@dataclass(frozen=True)
class Question:
    """One question of a run.

    Parameters
    ----------
    name
        What it is called.
    labels
        The labels a vote can take.
    positive
        The positive label of two; None for more.
    """

    name: str
    labels: tuple[str, ...]
    positive: str | None

    @property
    def targets(self) -> tuple[tuple[str, str], ...]:
        """What rules are graded on: (name shown, label taken as positive); one per label where there are more than two.

        Examples
        --------
        >>> Question("tone", ("anger", "joy", "none"), None).targets[0]
        ('tone: anger', 'anger')
        """
        if self.positive is not None:
            return ((self.name, self.positive),)
        return tuple((target_name(self.name, label), label) for label in self.labels)


def target_name(question: str, label: str) -> str:
    """Name one label of a question that has more than two."""
    return f"{question}: {label}"


@dataclass(frozen=True)
class Run:
    """A run folder to report on.

    Parameters
    ----------
    path
        The folder.
    manifest
        What `manifest.json` holds.
    """

    path: Path
    manifest: dict[str, Any]

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """The questions, each once, in the order of the fits."""
        found: dict[str, Question] = {}
        for fit in self.manifest["questions"]:
            found.setdefault(fit["question"], Question(fit["question"], tuple(fit["labels"]), fit["positive"]))
        return tuple(found.values())

    @property
    def interval(self) -> float:
        """Mass of every interval."""
        return float(self.manifest["interval"])

    def has(self, table: str) -> bool:
        """Tell whether a table is there."""
        return (self.path / f"{table}.parquet").is_file()

    def frame(self, table: str) -> pl.DataFrame:
        """Read a table; without rows if the run has none."""
        return read_table(self.path, table) if self.has(table) else pl.DataFrame(schema=SCHEMAS[table])

    def scan(self, table: str) -> pl.LazyFrame:
        """Scan a table, so that only the columns asked for are read."""
        if not self.has(table):
            return pl.LazyFrame(schema=SCHEMAS[table])
        return pl.scan_parquet(self.path / f"{table}.parquet")


def open_run(path: str | Path) -> Run:
    """Open a run folder for reporting.

    Examples
    --------
    >>> open_run("nowhere")
    Traceback (most recent call last):
    ...
    moral_entropy.errors.RunFolderError: nowhere is no run folder: there is no such folder. ...
    """
    folder = checked_folder(path)
    return Run(folder, read_manifest(folder))
