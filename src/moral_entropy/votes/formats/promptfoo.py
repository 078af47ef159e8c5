"""Promptfoo: results as `promptfoo eval -o results.json` writes them.

An output is an item: a test of a provider with a prompt. Judges are its model-graded assertions (`llm-rubric` and the
like; all assertions where none is model-graded), and a vote is pass or fail, or `[[X]]` in the reason. A question is
the assertion's metric. Assertions without a verdict are failures of the judge, and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.exported_votes import (
    BRACKETS,
    NO_VERDICT,
    ExportedVotes,
    Record,
    dicts,
    first_of,
    mapping,
    peek,
    read_json,
    scalars,
)
from moral_entropy.votes.table import ReadingLog

TITLE = "promptfoo"
QUESTION = "pass"
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
    seen = peek(path)
    return any(
        seen.has(*inside, "gradingResult") and (seen.has(*inside, "testCase") or seen.has(*inside, "vars"))
        for inside in (("results",), ("results", "results"))
    )


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a file of results.

    Parameters
    ----------
    path
        The JSON file.
    log
        Where counts and notes go.
    """
    rows = _rows(path)
    graded = [part for row in rows for part in _components(row)]
    some = any(JUDGES.search(_type(part)) for part in graded)
    places = {name: len({_named(row, name) for row in rows}) > 1 for name in ("provider", "prompt")}
    votes = ExportedVotes(path.name, TITLE, log)
    for row in rows:
        item = "/".join([str(_test(row)), *(_named(row, name) for name, several in places.items() if several)])
        votes.add_item(item, _facts(row))
        if first_of(row, "error") is not None and row.get("failureReason") == 2:
            log.drop("output that failed", 1)
        seen: Counter[tuple[str, str]] = Counter()
        for part in _components(row):
            if some and not JUDGES.search(_type(part)):
                log.drop("assertion that no model graded", 1)
                continue
            question, judge = _question(part), _judge(part)
            seen[question, judge] += 1
            again = seen[question, judge]
            votes.add_vote(
                item, judge if again == 1 else f"{judge}#{again}", question, _verdict(part), missing=NO_VERDICT
            )
    return votes.to_table("Votes are the results of assertions, such as llm-rubric: the tests have none.")


def _rows(path: Path) -> list[Record]:
    whole = read_json(path)
    results = mapping(whole).get("results")
    rows = dicts(results if isinstance(results, list) else mapping(results).get("results"))
    if not rows:
        msg = f"{path.name} has no results of promptfoo. Write them with: promptfoo eval -o results.json"
        raise VotesError(msg)
    return rows


def _components(row: Record) -> Iterator[Record]:
    """Iterate over the results of single assertions, those of nested sets too; of one alone its own."""
    grading = mapping(row.get("gradingResult"))
    yield from dicts(grading.get("componentResults")) if "componentResults" in grading else [grading][: len(grading)]


def _type(part: Record) -> str:
    return str(mapping(part.get("assertion")).get("type") or "")


def _question(part: Record) -> str:
    return str(first_of(mapping(part.get("assertion")), "metric") or QUESTION)


def _judge(part: Record) -> str:
    provider = mapping(part.get("assertion")).get("provider")
    name = first_of(provider, "label", "id") if isinstance(provider, dict) else provider
    return str(name or _type(part) or "assertion")


def _verdict(part: Record) -> Any:
    reason = str(part.get("reason") or "")
    if FAILED.search(reason):
        return None
    if found := BRACKETS.findall(reason):
        return found[-1]
    passed = part.get("pass")
    return ("pass" if passed else "fail") if isinstance(passed, bool) else None


def _test(row: Record) -> Any:
    test = mapping(row.get("testCase"))
    told = first_of(mapping(row.get("vars")), "id", "item", "case_id") or first_of(mapping(test.get("metadata")), "id")
    return told or first_of(test, "description") or first_of(row, "testIdx", "id") or 0


def _named(row: Record, name: str) -> str:
    given = row.get(name)
    return str(first_of(given, "label", "id", "raw") if isinstance(given, dict) else given or "")


def _facts(row: Record) -> dict[str, Any]:
    output = mapping(row.get("response")).get("output")
    told = scalars(mapping(row.get("vars"))) | scalars(mapping(mapping(row.get("testCase")).get("metadata")))
    return told | {"system": _named(row, "provider"), "text": output if isinstance(output, str) else None}
