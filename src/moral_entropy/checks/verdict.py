"""Can the consensus be trusted? The findings in one or two sentences, for the screen and the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moral_entropy.checks.sides import CHEAP, SIDES
from moral_entropy.findings import RANK, Finding

NOT_EXAMINED = "The consensus was not examined. Run: moral-entropy validate"


def verdict(findings: Iterable[Finding]) -> str:
    """Say in words how far the consensus can be trusted.

    Examples
    --------
    >>> verdict([Finding("laplace", "pareto_k", 0.3, level="good"), Finding("identifiability", "groups", 1.0)])
    'No doubt was found. Asked: Can the votes tell? Are the intervals right? Only the quick checks were made.'
    >>> print(verdict([Finding("dependence", "dependent_pairs", 1, "care", level="bad", text="a and b copy.")]))
    The consensus itself may be wrong. To settle first: Do annotators vote independently? (care: a and b copy.)
    """
    found = sorted(findings, key=lambda finding: RANK[finding.level])
    if not found:
        return NOT_EXAMINED
    bad, doubted = (_questions(found, level) for level in ("bad", "doubt"))
    doubted = [question for question in doubted if question not in bad]
    if bad:
        rest = f" Doubts remain: {' '.join(doubted)}" if doubted else ""
        return f"The consensus itself may be wrong. To settle first: {' '.join(bad)} {_worst(found)}{rest}"
    if doubted:
        return f"The consensus holds, with doubts: {' '.join(doubted)} {_worst(found)}"
    quick = "" if is_thorough(found) else " Only the quick checks were made."
    return f"No doubt was found. Asked: {' '.join(_questions(found))}{quick}"


def is_thorough(findings: Iterable[Finding]) -> bool:
    """Tell whether more was examined than an audit does by itself: the cheap sides, and gold where it has some."""
    return any(finding.side not in (*CHEAP, "gold") for finding in findings if finding.side in SIDES)


def title_of(side: str) -> str:
    """Return the question of a side; of one that is not known, its name."""
    return SIDES[side].title if side in SIDES else side.capitalize()


def _questions(found: Sequence[Finding], level: str | None = None) -> list[str]:
    named = {finding.side for finding in found if level is None or finding.level == level}
    return [title_of(side) for side in (*SIDES, *sorted(named - set(SIDES))) if side in named]


def _worst(found: Sequence[Finding]) -> str:
    """The first of the worst in brackets, with how many more there are."""
    alarms = [finding for finding in found if finding.alarms]
    first, more = alarms[0], len(alarms) - 1
    lead = f"{first.place}: " if first.place else ""
    return f"({lead}{first.text or first.figure}" + (f" And {more} more.)" if more else ")")
