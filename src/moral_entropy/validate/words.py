"""Findings in words: whom they are about, lists of names, levels."""

from __future__ import annotations

from collections.abc import Sequence

from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.validate.finding import Finding, Level


def finding_of(
    fit: QuestionFit,
    side: str,
    figure: str,
    value: float,
    *,
    subject: str = "",
    low: float | None = None,
    high: float | None = None,
    n: int | None = None,
    level: Level = "info",
    text: str = "",
) -> Finding:
    """Give a finding about one fit."""
    ballot = fit.ballot
    return Finding(
        side=side,
        figure=figure,
        value=float(value),
        question=ballot.question,
        part=ballot.part,
        subject=subject,
        low=low,
        high=high,
        n=n,
        level=level,
        text=text,
    )


def level_of(doubted: bool, *, bad: bool = False) -> Level:
    """Give the level of something that is doubted or not, and if so badly or not.

    Examples
    --------
    >>> level_of(False, bad=True), level_of(True), level_of(True, bad=True)
    ('info', 'doubt', 'bad')
    """
    if not doubted:
        return "info"
    return "bad" if bad else "doubt"


def annotator_name(consensus: Consensus, fit: QuestionFit, a: int) -> str:
    """Name an annotator of a fit."""
    return str(consensus.votes.annotators[int(fit.ballot.annotator_a[a])])


def listed(names: Sequence[str], between: str = ", ", most: int = 4) -> str:
    """List names, and say how many more there are.

    Examples
    --------
    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return between.join(names[:most]) + more
