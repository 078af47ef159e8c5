"""A judge's verdict inside the text that it wrote: by stated patterns, or none.

Looked for in this order: `[[A]]` (the last one), a JSON object with a verdict, `<verdict>A</verdict>`, a line such as
`Score: 4` or `Verdict: yes` (the last one), and a text that is a verdict and nothing else, or begins with yes or no.
What has none of these is a failure of the judge, and no vote.
"""

from __future__ import annotations

import json
import re
from typing import Any

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


def verdict_in(text: Any) -> Any:
    """Return the verdict of a judge's text; None where it has none.

    Parameters
    ----------
    text
        What the judge wrote. A number, true or false is a verdict itself; of an object, the value of the first of
        `KEYS`.

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
    if found := BRACKETS.findall(text):
        return found[-1]
    if (stated := _in_json(text)) is not None:
        return stated
    if found := TAGS.findall(text):
        return found[-1][1]
    if found := STATED.findall(text):
        return found[-1]
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
    found = verdict_in(value) if isinstance(value, dict) else None
    return found if isinstance(found, (str, bool, int, float)) else None
