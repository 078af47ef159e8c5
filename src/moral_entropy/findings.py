"""Finding: one thing that was looked at, what was found, what it means and what to do about it.

Fits, checks and the audit return findings. Python's warnings, the screen, the report, the dataset card, the manifest
and the verdict are all written from them, so that they say the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from moral_entropy.errors import MoralEntropyWarning

Level = Literal["good", "info", "note", "doubt", "bad"]

Severity = Literal["high", "medium", "low", ""]

RANK: dict[Level, int] = {"bad": 0, "doubt": 1, "note": 2, "info": 3, "good": 4}
"""Levels, worst first."""

SEVERITIES: dict[Level, Severity] = {"bad": "high", "doubt": "medium", "note": "low"}
"""How grave a warning is for readers of a run, by its level."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, and what was found.

    Parameters
    ----------
    side
        Which check found it: a name of `moral_entropy.checks.run.CHECKS`.
    figure
        Machine name of the figure, such as "pareto_k".
    value
        The figure.
    question, part, domain
        Of which question, part and domain; empty for all.
    subject
        Whom or what it concerns: an annotator, a start, a prior; empty for the fit itself.
    low, high
        Its interval, where it has one.
    n
        How many items, votes or draws it rests on.
    level
        "bad" (settle it before you use the labels), "doubt" (say so when you use them), "note" (good to know), "info"
        or "good".
    text
        What was found, with the figure in it; never empty for notes, doubts and worse.
    meaning, cure
        Why it matters and what to do, in plain words; never empty for notes, doubts and worse.
    """

    side: str
    figure: str
    value: float
    question: str = ""
    part: str = ""
    domain: str = ""
    subject: str = ""
    low: float | None = None
    high: float | None = None
    n: int | None = None
    level: Level = "info"
    text: str = ""
    meaning: str = ""
    cure: str = ""

    @property
    def alarms(self) -> bool:
        """Whether it should make a reader doubt."""
        return self.level in ("doubt", "bad")

    @property
    def severity(self) -> Severity:
        """How grave it is as a warning: do not ship before it is settled, say so when you ship, good to know."""
        return SEVERITIES.get(self.level, "")

    @property
    def place(self) -> str:
        """The question, and the part of it where there are several.

        Examples
        --------
        >>> Finding("gold", "ece", 0.1, "care", "twitter").place
        'care / twitter'
        """
        return f"{self.question} / {self.part}" if self.part else self.question

    @property
    def about(self) -> str:
        """Everything it concerns: question, part, domain, and whom or what.

        Examples
        --------
        >>> Finding("dependence", "pair_excess", 0.2, "care", domain="BLM", subject="a · b").about
        'care, BLM, a · b'
        """
        return ", ".join(name for name in (self.place, self.domain, self.subject) if name)


def level_of(doubted: bool, *, bad: bool = False) -> Level:
    """Return the level of something that is doubted or not, and if so badly or not.

    Examples
    --------
    >>> level_of(False, bad=True), level_of(True), level_of(True, bad=True)
    ('info', 'doubt', 'bad')
    """
    if not doubted:
        return "info"
    return "bad" if bad else "doubt"


def worst_level(findings: Iterable[Finding]) -> Level:
    """Return the worst level of some findings; "info" of none.

    Examples
    --------
    >>> worst_level([Finding("gold", "ece", 0.3, level="doubt"), Finding("gold", "ece", 0.1, level="good")])
    'doubt'
    """
    return min((finding.level for finding in findings), key=RANK.__getitem__, default="info")


def merge_alike(findings: Iterable[Finding]) -> list[tuple[Finding, list[str]]]:
    """Merge notes, doubts and worse of one kind: the worst of them, and where else the same was found.

    Parameters
    ----------
    findings
        Any findings; those that are neither notes nor doubts are left out.

    Returns
    -------
    list
        One pair per kind (side and figure), the worst kinds first: the worst finding, the places of the others.
    """
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        if RANK[finding.level] <= RANK["note"]:
            kinds.setdefault((finding.side, finding.figure), []).append(finding)
    merged = []
    for alike in kinds.values():
        worst = min(alike, key=lambda finding: RANK[finding.level])
        others = [
            finding.subject if finding.place == worst.place else finding.place
            for finding in alike
            if finding is not worst
        ]
        merged.append((worst, [name for name in dict.fromkeys(others) if name]))
    return sorted(merged, key=lambda pair: RANK[pair[0].level])


def name_where_needed(findings: Iterable[Finding]) -> list[Finding]:
    """Leave out the question of findings that are all about the same one: its name tells nobody anything.

    Examples
    --------
    >>> [one.place for one in name_where_needed([Finding("gold", "ece", 0.3, "label")])]
    ['']
    """
    found = list(findings)
    places = {finding.place for finding in found if finding.place}
    return found if len(places) > 1 else [replace(finding, question="", part="") for finding in found]


def headline(worst: Finding, others: Sequence[str]) -> str:
    """Say what was found, where, and where else the same was found.

    Examples
    --------
    >>> headline(Finding("temper", "exponent", 0.5, "care", level="doubt", text="too sure."), ["harm"])
    'care: too sure. The same in 1 more: harm.'
    """
    said = f"{worst.place}: {worst.text}" if worst.place else _begun(worst)
    return f"{said} The same in {len(others)} more: {listed(others)}." if others else said


def _begun(finding: Finding) -> str:
    """Return the text as a sentence begins, unless it begins with a name, which is spelt as it is."""
    text = finding.text
    names = finding.subject.split(" · ")[0]
    return text if names and text.startswith(names) else f"{text[:1].upper()}{text[1:]}"


def sentences_of(worst: Finding, others: Sequence[str]) -> str:
    """Say what was found, where else the same was found, what it means and what to do."""
    return " ".join(said for said in (headline(worst, others), worst.meaning, worst.cure) if said)


def alarm_sentences(findings: Iterable[Finding]) -> list[str]:
    """Say every kind of doubt in a few sentences, worst first: what was found, what it means, what to do.

    Examples
    --------
    >>> doubts = [Finding("temper", "exponent", 0.5, name, level="doubt", text="too sure.", cure="Temper it.")
    ...           for name in ("care", "harm")]
    >>> alarm_sentences(doubts)
    ['care: too sure. The same in 1 more: harm. Temper it.']
    """
    merged = merge_alike(name_where_needed(findings))
    return [sentences_of(worst, others) for worst, others in merged if worst.alarms]


def many(count: float, noun: str) -> str:
    """Say how many there are of something.

    Examples
    --------
    >>> many(1, "item"), many(1_200, "item")
    ('1 item', '1,200 items')
    """
    return f"{count:,.0f} {noun}{'s' * (count != 1)}"


def listed(names: Sequence[str], between: str = ", ", most: int = 4) -> str:
    """List names, and say how many more there are.

    Examples
    --------
    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return between.join(names[:most]) + more


@contextmanager
def without_warnings() -> Iterator[None]:
    """Silence this package's own warnings while the block runs, where findings say the same or said it before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        yield
