"""Promptfoo: results as `promptfoo eval -o results.json` writes them.

An output is an item: a test of a provider with a prompt. Judges are its model-graded assertions (`llm-rubric` and the
like; all assertions where none is model-graded), and a vote is pass or fail, or `[[X]]` in the reason. A question is
the assertion's metric. Assertions without a verdict are failures of the judge, and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.exported_votes import BRACKETS, NO_VERDICT, ExportedVotes
from moral_entropy.votes.formats.records import Record, dicts, first_of, mapping, peek, read_json, scalars
from moral_entropy.votes.table import ReadingLog

JUDGES = re.compile(
    r"rubric|model-graded|factuality|g-eval|relevance|faithfulness|context-recall|select-best|closedqa|conversation"
)
"""Types of assertions that a language model grades."""

FAILED = re.compile(
    r"could not (?:extract|parse)|no output|api (?:call )?error|timed? ?out|fetch failed", re.IGNORECASE
)
"""Reasons of an assertion whose judge failed."""


def detect(path: Path) -> bool:
    """Return whether a file has results of promptfoo."""
    head = peek(path)
    return any(
        head.has(*inside, "gradingResult") and (head.has(*inside, "testCase") or head.has(*inside, "vars"))
        for inside in (("results",), ("results", "results"))
    )


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a file of results."""
    results = mapping(read_json(path)).get("results")
    rows = dicts(results if isinstance(results, list) else mapping(results).get("results"))
    if not rows:
        msg = f"{path.name} has no results of promptfoo. Write them with: promptfoo eval -o results.json"
        raise VotesError(msg)
    graded = any(JUDGES.search(_type(part)) for row in rows for part in _components(row))
    multiple = [name for name in ("provider", "prompt") if len({_named(row, name) for row in rows}) > 1]
    votes = ExportedVotes(path.name, "promptfoo", log)
    for row in rows:
        item = "/".join([str(_test(row)), *(_named(row, name) for name in multiple)])
        votes.add_item(item, _facts(row))
        if first_of(row, "error") is not None and row.get("failureReason") == 2:
            log.drop("output that failed", 1)
        times: Counter[tuple[str, str]] = Counter()
        for part in _components(row):
            if graded and not JUDGES.search(_type(part)):
                log.drop("assertion that no model graded", 1)
                continue
            question, judge = str(first_of(mapping(part.get("assertion")), "metric") or "pass"), _judge(part)
            times[question, judge] += 1
            name = judge if (again := times[question, judge]) == 1 else f"{judge}#{again}"
            votes.add_vote(item, name, question, _verdict(part), missing=NO_VERDICT)
    return votes.to_table("Votes are the results of assertions, such as llm-rubric: the tests have none.")


def _components(row: Record) -> list[Record]:
    """Return the results of single assertions, those of nested sets too; of one alone its own."""
    grading = mapping(row.get("gradingResult"))
    return dicts(grading.get("componentResults")) if "componentResults" in grading else [grading][: len(grading)]


def _type(part: Record) -> str:
    return str(mapping(part.get("assertion")).get("type") or "")


def _judge(part: Record) -> str:
    provider = mapping(part.get("assertion")).get("provider")
    name = first_of(provider, "label", "id") if isinstance(provider, dict) else provider
    return str(name or _type(part) or "assertion")


def _verdict(part: Record) -> Any:
    reason = str(part.get("reason") or "")
    if FAILED.search(reason):
        return None
    if marked := BRACKETS.findall(reason):
        return marked[-1]
    passed = part.get("pass")
    return ("pass" if passed else "fail") if isinstance(passed, bool) else None


def _test(row: Record) -> Any:
    test = mapping(row.get("testCase"))
    name = first_of(mapping(row.get("vars")), "id", "item", "case_id") or first_of(mapping(test.get("metadata")), "id")
    return name or first_of(test, "description") or first_of(row, "testIdx", "id") or 0


def _named(row: Record, name: str) -> str:
    value = row.get(name)
    return str(first_of(value, "label", "id", "raw") if isinstance(value, dict) else value or "")


def _facts(row: Record) -> dict[str, Any]:
    output = mapping(row.get("response")).get("output")
    about = scalars(mapping(row.get("vars"))) | scalars(mapping(mapping(row.get("testCase")).get("metadata")))
    return about | {"system": _named(row, "provider"), "text": output if isinstance(output, str) else None}
