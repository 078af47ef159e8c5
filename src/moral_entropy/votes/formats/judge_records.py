"""Judges' verdicts in JSON or JSON Lines: a dictionary of judges per item, or one record per item and judge.

`{"id": 1, "scores": {"gpt-4o": 4, "llama": "… [[A]]"}}`, as Braintrust and many scripts write it, or
`{"id": 1, "judge": "gpt-4o", "output": "… Score: 4"}`. A verdict may be inside a text (`verdict_text`); where there is
none, the judge has failed, which is counted. Records with a plain column of labels are read as a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.exported_votes import (
    NO_VERDICT,
    ExportedVotes,
    Peek,
    Record,
    first_of,
    mapping,
    peek,
    read_records,
    scalars,
    text_of,
    verdict_in,
)
from moral_entropy.votes.table import ReadingLog

TITLE = "judges' records"
QUESTION = "verdict"
IDS = ("id", "item", "item_id", "question_id", "sample_id", "example_id", "span_id")
PANELS = ("scores", "judges", "verdicts", "judgments", "judgements", "grades")
JUDGE = ("judge", "judge_model", "grader", "evaluator")
SAID = ("verdict", "judgment", "judgement", "judge_output", "output", "response", "completion")
LABELS = frozenset({"label", "vote", "annotation", "rating", "score"})


def detect(path: Path) -> bool:
    """Return whether a file has verdicts of judges, by item or one by one."""
    seen = peek(path)
    return seen.kind == "json" and any(seen.has(name) for name in IDS) and (_has_panel(seen) or _has_verdict(seen))


def _has_panel(seen: Peek) -> bool:
    return any(len(key) > 1 and key[0] in PANELS and (key[0],) not in seen.lists for key in seen.keys)


def _has_verdict(seen: Peek) -> bool:
    told = any(seen.has(name) for name in LABELS)
    return not told and any(seen.has(name) for name in JUDGE) and any(seen.has(name) for name in SAID)


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a file.

    Parameters
    ----------
    path
        The JSON or JSON Lines file.
    log
        Where counts and notes go.
    """
    votes = ExportedVotes(path.name, TITLE, log)
    for at, record in enumerate(read_records(path), 1):
        item = first_of(record, *IDS)
        if item is None or isinstance(item, (dict, list)):
            msg = f"record {at:,} of {path.name} has no id: one of {', '.join(IDS)} names the item."
            raise VotesError(msg)
        votes.add_item(item, _facts(record))
        for judge, question, said in _verdicts(record):
            verdict = verdict_in(said) if isinstance(said, (str, dict)) else said
            # A short text without any pattern is the label itself.
            if verdict is None and isinstance(said, str) and len(said.split()) == 1:
                verdict = said
            votes.add_vote(item, judge, question, verdict, missing=NO_VERDICT)
    return votes.to_table("A verdict is a label, or in a text [[A]], Score: 4, or yes or no.")


def _verdicts(record: Record) -> Iterator[tuple[Any, str, Any]]:
    panels = [name for name in PANELS if isinstance(record.get(name), dict)]
    for name in panels[:1]:
        for judge, said in mapping(record.get(name)).items():
            yield judge, QUESTION, said
    if not panels:
        yield first_of(record, *JUDGE), str(record.get("criterion") or QUESTION), first_of(record, *SAID)


def _facts(record: Record) -> dict[str, Any]:
    known = {*IDS, *PANELS, *JUDGE, *SAID, "criterion"}
    metadata = scalars(mapping(record.get("metadata")))
    about = {name: value for name, value in scalars(record).items() if name not in known}
    told = metadata | about
    return told | {"text": text_of(told)}
