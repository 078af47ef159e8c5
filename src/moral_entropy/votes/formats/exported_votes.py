"""Votes of an annotation tool's export, added one by one → a long table; and the verdict inside a judge's text.

The table has the columns item, annotator, question and label, then what the export says about the item. A label column
of lists means that some votes choose several labels.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl

from moral_entropy.votes.columns import guess_column
from moral_entropy.votes.layouts import ANONYMOUS
from moral_entropy.votes.table import ReadingLog, refuse
from moral_entropy.votes.values import canonical_label, series_of

ROLES = ("item", "annotator", "question", "label")
MOST_CHOICES = 20
FREE_TEXT_FROM = 6
"""Fewer answers than this are too few to tell free text from labels."""

NO_VERDICT = "judge without a verdict"
"""Why there is no vote of a language model that was asked for one."""

ITEM_KEY, QUESTION_KEY = "moral_entropy_item", "moral_entropy_question"
"""Under these names our exports for annotation tools remember which item and question of a run a record is about."""

NOBODY_NAMED = "the votes are anonymous: all share one confusion matrix."

NAMES = "verdict|score|rating|grade|label|choice|winner|preference|decision|judgement|judgment|answer"
BRACKETS = re.compile(r"\[\[\s*([^\[\]\n]{1,40}?)\s*\]\]")
TAGS = re.compile(rf"<({NAMES})>\s*([^<\n]{{1,40}}?)\s*</\1>", re.IGNORECASE)
STATED = re.compile(
    rf"(?:^|[\s*_#(])(?:final\s+|overall\s+|my\s+)?(?:{NAMES})\**\s*(?:is|:|=)\s*[*_\"'`]*"
    r"(-?\d+(?:\.\d+)?|[A-Za-z]+)(?:\s*/\s*\d+)?",
    re.IGNORECASE,
)
ALONE = re.compile(
    r"[\s*_\"'`(]*(yes|no|pass|fail|true|false|correct|incorrect|[A-E]|tie|-?\d+(?:\.\d+)?)[\s*_\"'`).!]*",
    re.IGNORECASE,
)
FIRST_WORD = re.compile(r"[\s*_\"'`]*(yes|no)\b[\s*_\"'`]*[,.:;!\n-]", re.IGNORECASE)
KEYS = ("verdict", "score", "rating", "grade", "label", "choice", "winner", "preference", "decision", "pass", "answer")
"""Keys of a verdict in JSON, and names of one in a text."""

Label = str | tuple[str, ...]
Vote = tuple[Any, Any, str, Any]
"""Item, annotator, question, and a label or a tuple of them."""


class ExportedVotes:
    """The votes of one export, added one by one.

    Parameters
    ----------
    name, tool
        Of the file, and of the tool that wrote it.
    log
        Where counts and notes go.
    """

    def __init__(self, name: str, tool: str, log: ReadingLog) -> None:
        self.name, self.tool, self.log = name, tool, log
        self.votes: list[Vote] = []
        self.facts: dict[Any, dict[str, Any]] = {}

    def add_item(self, item: Any, facts: Mapping[str, Any]) -> None:
        """Add an item, voted on or not, and facts about it."""
        present = {name: value for name, value in facts.items() if value is not None}
        self.facts.setdefault(_id(item), {}).update(present)

    def add_vote(self, item: Any, annotator: Any, question: Any, label: Any, *, missing: str = "no label") -> None:
        """Add a vote; a list or tuple chooses all its labels, and none at all is counted as `missing`."""
        choice: Label | None
        if isinstance(label, (list, tuple)):
            choice = tuple(dict.fromkeys(name for part in label if (name := canonical_label(part)) is not None))
        else:
            choice = canonical_label(label)
        if annotator == ANONYMOUS:
            annotator = None
            self.log.note(NOBODY_NAMED)
        if choice is None:
            self.log.drop(missing, 1)
        else:
            self.votes.append((_id(item), _id(annotator), str(question), choice))

    def to_table(self, hint: str, *, free_text: bool = False, surely: Collection[str] = ()) -> pl.DataFrame:
        """Return the votes as a long table.

        Parameters
        ----------
        hint
            What to do when there are no votes.
        free_text
            Whether some answers may be free text, to be left out.
        surely
            Questions whose answers are known to be labels.
        """
        votes = self._unwrapped(self._without_free_text(surely) if free_text else self.votes)
        if not votes:
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in self.log.dropped.items())
            left_out = f" Left out: {reasons}." if reasons else ""
            refuse(f"{self.name}, read as an export of {self.tool}, has no votes.{left_out} {hint}")
        cells = dict(zip(ROLES, zip(*votes, *self._blanks(votes), strict=True), strict=True))
        columns = [series_of(role, list(cells[role])) for role in ROLES[:3]]
        return pl.DataFrame([*columns, _label_column(cells["label"]), *self._fact_columns(cells["item"])])

    def _unwrapped(self, votes: Sequence[Vote]) -> list[Vote]:
        """Take single choices out of their lists; with several to choose from, choosing none is a vote too."""
        multiple = {question for _, _, question, label in votes if isinstance(label, tuple) and len(label) > 1}
        plain = []
        for item, annotator, question, label in votes:
            if not isinstance(label, tuple) or question in multiple:
                plain.append((item, annotator, question, label))
            elif label:
                plain.append((item, annotator, question, label[0]))
            else:
                self.log.drop("no choice", 1)
        return plain

    def _without_free_text(self, surely: Collection[str]) -> list[Vote]:
        answers: dict[str, list[Label]] = {}
        for _, _, question, label in self.votes:
            answers.setdefault(question, []).append(label)
        left_out = {question for question in answers.keys() - surely if looks_like_free_text(answers[question])}
        if not left_out or len(left_out) == len(answers):
            return self.votes
        names = ", ".join(repr(question) for question in sorted(left_out))
        self.log.note(f"answers that look like free text are left out: {names}.")
        return [vote for vote in self.votes if vote[2] not in left_out]

    def _blanks(self, votes: Sequence[Vote]) -> list[Vote]:
        """Return a row without a vote for each item that has none, so that it is kept."""
        voted = {item for item, _, _, _ in votes}
        questions = sorted({question for _, _, question, _ in votes})
        return [(item, None, question, None) for item in self.facts if item not in voted for question in questions]

    def _fact_columns(self, items: Sequence[Any]) -> list[pl.Series]:
        column_of: dict[str, str] = {}
        for name in dict.fromkeys(name for facts in self.facts.values() for name in facts):
            # A name that would be is_role for a part of the vote, or for gold labels, gets a prefix.
            is_role = name.strip().casefold() in ROLES or guess_column("gold", [name])
            column_of.setdefault(f"data.{name}" if is_role else name, name)
        return [
            series_of(column, [self.facts.get(item, {}).get(name) for item in items])
            for column, name in column_of.items()
        ]


def looks_like_free_text(labels: Sequence[Label]) -> bool:
    """Return whether answers look like free text: many different ones, few of them given twice.

    Examples
    --------
    >>> looks_like_free_text(["yes", "no"] * 9), looks_like_free_text([f"because {n}" for n in range(9)])
    (False, True)
    """
    if len(labels) < FREE_TEXT_FROM or any(isinstance(label, tuple) for label in labels):
        return False
    return len(set(labels)) > max(len(labels) / 5, min(MOST_CHOICES, len(labels) / 2 + 2))


def _id(value: Any) -> Any:
    """Return an id that is a text or a number, whatever the export holds in its place."""
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _label_column(labels: Sequence[Any]) -> pl.Series:
    if not any(isinstance(label, tuple) for label in labels):
        return pl.Series("label", labels, dtype=pl.String)
    lists = [None if label is None else [label] if isinstance(label, str) else list(label) for label in labels]
    return pl.Series("label", lists, dtype=pl.List(pl.String))


def verdict_in(text: Any) -> Any:
    """Return the verdict of a judge's text by stated patterns; None where it has none, which is the judge's failure.

    Looked for in this order: `[[A]]` (the last one), a JSON object with a verdict, `<verdict>A</verdict>`, a line such
    as `Score: 4` (the last one), and a text that is a verdict and nothing else, or begins with yes or no. A number,
    true or false is a verdict itself; of an object, the value of the first of `KEYS`.

    Examples
    --------
    >>> verdict_in("Both are fine, but [[B]]"), verdict_in("Clear and correct. Score: 4/5"), verdict_in("Yes, it does.")
    ('B', '4', 'Yes')
    >>> verdict_in('{"reason": "short", "score": 3}'), verdict_in("I cannot judge this.") is None
    (3, True)
    """
    if isinstance(text, dict):
        return next((text[key] for key in KEYS if text.get(key) not in (None, "")), None)
    if not isinstance(text, str):
        return text if isinstance(text, (bool, int, float)) else None
    if marked := BRACKETS.findall(text):
        return marked[-1]
    if (verdict := _in_json(text)) is not None:
        return verdict
    if marked := TAGS.findall(text):
        return marked[-1][1]
    if stated := STATED.findall(text):
        return stated[-1]
    match = ALONE.fullmatch(text) or FIRST_WORD.match(text)
    return None if match is None else match[1]


def _in_json(text: str) -> Any:
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return None
    try:
        value = json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        return None
    verdict = verdict_in(value) if isinstance(value, dict) else None
    return verdict if isinstance(verdict, (str, bool, int, float)) else None
