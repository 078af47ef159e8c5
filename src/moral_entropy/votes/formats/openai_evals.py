"""OpenAI evals: the log that `oaieval` records, one event per line, or a folder of them.

The first line is the specification, the last the report. In a `match` the model itself is the judge: what it picked is
the vote, and what was expected is kept as `expected`. In `metrics` with a choice (model-graded evals) the last model of
the specification is the judge. A sample without a pick, and an invalid choice, are failures of the judge.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.votes.formats.exported_votes import NO_VERDICT, ExportedVotes, verdict_in
from moral_entropy.votes.formats.records import Record, last_text, listed, logs_in, mapping, peek, read_records
from moral_entropy.votes.table import ReadingLog

QUESTION = "choice"
ENDINGS = (".jsonl", ".json")


def detect(path: Path) -> bool:
    """Return whether a file is a log of OpenAI evals, or a folder has some."""
    return bool(logs_in(path, ENDINGS, _is_log, limit=20))


def _is_log(path: Path) -> bool:
    head = peek(path)
    return head.has("spec", "completion_fns") and head.has("sample_id") and head.has("data")


def data_files(path: Path) -> list[Path]:
    """Return the logs of a folder."""
    return logs_in(path, ENDINGS, _is_log)


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a log, or of all logs of a folder."""
    votes = ExportedVotes(path.name, "OpenAI evals", log)
    for file in data_files(path) if path.is_dir() else [path]:
        _add(votes, read_records(file), file.stem)
    return votes.to_table("Votes are events of the type match with a pick, or metrics with a choice.")


def _add(votes: ExportedVotes, events: list[Record], name: str) -> None:
    spec = next((mapping(event["spec"]) for event in events if "spec" in event), {})
    models = [str(model) for model in listed(spec.get("completion_fns"))] or [name]
    for event in events:
        item, data, kind = event.get("sample_id"), mapping(event.get("data")), event.get("type")
        if item is None:
            continue
        if kind == "sampling":
            votes.add_item(item, {"text": last_text(data.get("prompt"))})
        elif kind == "match":
            expected = data.get("expected")
            votes.add_item(item, {"expected": expected if isinstance(expected, (str, int, float)) else None})
            votes.add_vote(item, models[0], QUESTION, _picked(data), missing=NO_VERDICT)
        elif kind == "metrics" and "choice" in data:
            votes.add_item(item, {"system": models[0]} if len(models) > 1 else {})
            choice = None if data["choice"] == "__invalid__" or isinstance(data["choice"], list) else data["choice"]
            votes.add_vote(item, models[-1], QUESTION, choice, missing=NO_VERDICT)


def _picked(data: Record) -> Any:
    picked = data.get("picked")
    if isinstance(picked, (str, int, float, bool)):
        return picked
    return verdict_in(data.get("sampled")) if isinstance(data.get("sampled"), str) else None
