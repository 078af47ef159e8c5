"""Judges' verdicts in JSON or JSON Lines: a dictionary of judges per item, or one record per item and judge.

`{"id": 1, "scores": {"gpt-4o": 4, "llama": "… [[A]]"}}`, as Braintrust and many scripts write it;
`{"id": 1, "judge": "gpt-4o", "output": "… Score: 4"}`; or one object of all judges, `{"gpt-4o": {"1": "yes"}}`. A
verdict may be inside a text (`verdict_in`); where there is none, the judge has failed, which is counted. Records with a
plain column of labels are read as a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.exported_votes import NO_VERDICT, ExportedVotes, verdict_in
from moral_entropy.votes.formats.records import (
    Record,
    first_of,
    mapping,
    peek,
    read_records,
    scalars,
    text_of,
)
from moral_entropy.votes.table import ReadingLog

QUESTION = "verdict"
IDS = ("id", "item", "item_id", "question_id", "sample_id", "example_id", "span_id")
PANELS = ("scores", "judges", "verdicts", "judgments", "judgements", "grades")
JUDGE = ("judge", "judge_model", "grader", "evaluator")
SAID = ("verdict", "judgment", "judgement", "judge_output", "output", "response", "completion")
LABELS = ("label", "vote", "annotation", "rating", "score")


def detect(path: Path) -> bool:
    """Return whether a file has verdicts of judges, by item or one by one."""
    head = peek(path)

    def has(names: Iterable[str]) -> bool:
        return any(head.has(name) for name in names)

    panel = any(len(key) > 1 and key[0] in PANELS and (key[0],) not in head.lists for key in head.keys)
    return head.kind == "json" and has(IDS) and (panel or (has(JUDGE) and has(SAID) and not has(LABELS)))


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a file."""
    votes = ExportedVotes(path.name, "judges' records", log)
    for at, record in enumerate(read_records(path), 1):
        item = first_of(record, *IDS)
        if item is None or isinstance(item, (dict, list)):
            msg = f"record {at:,} of {path.name} has no id: one of {', '.join(IDS)} names the item."
            raise VotesError(msg)
        about = scalars(record, without={*IDS, *PANELS, *JUDGE, *SAID, "criterion"})
        facts = scalars(mapping(record.get("metadata"))) | about
        votes.add_item(item, facts | {"text": text_of(facts)})
        for judge, question, answer in _verdicts(record):
            verdict = verdict_in(answer) if isinstance(answer, (str, dict)) else answer
            # A short text without any pattern is the label itself.
            if verdict is None and isinstance(answer, str) and len(answer.split()) == 1:
                verdict = answer
            votes.add_vote(item, judge, question, verdict, missing=NO_VERDICT)
    return votes.to_table("A verdict is a label, or in a text [[A]], Score: 4, or yes or no.")


def _verdicts(record: Record) -> list[tuple[Any, str, Any]]:
    if panel := next((name for name in PANELS if isinstance(record.get(name), dict)), None):
        return [(judge, QUESTION, answer) for judge, answer in record[panel].items()]
    return [(first_of(record, *JUDGE), str(record.get("criterion") or QUESTION), first_of(record, *SAID))]
