"""Is the yardstick straight? The findings in one or two sentences, for the screen and the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moral_entropy.validate.finding import RANK, Finding, Level

SIDES = {
    "identifiability": "what the votes can tell",
    "laplace": "the Gaussian around the mode",
    "nuts": "sampling by NUTS",
    "ensemble": "other starts and resamples",
    "prior-power": "the priors' say",
    "priors": "other priors",
    "heldout": "held-out votes",
    "dependence": "independence of the votes",
    "temper": "the likelihood's exponent",
    "gold": "calibration against gold",
}
"""The examinations, in the order they are shown, and what each is about."""

THOROUGH = ("nuts", "ensemble", "heldout", "dependence")
"""Sides that only `moral-entropy validate` examines; an audit runs the cheap ones."""

NOT_EXAMINED = "The yardstick was not examined: moral-entropy validate does."


def verdict(findings: Iterable[Finding]) -> str:
    """Say in words how far the consensus can be trusted as a yardstick.

    Examples
    --------
    >>> verdict([Finding("laplace", "pareto_k", 0.3, level="good"), Finding("identifiability", "groups", 1.0)])
    'Nothing found that bends the yardstick; looked at what the votes can tell and the Gaussian around the mode only.'
    >>> print(verdict([Finding("dependence", "dependent_pairs", 1, "care", level="bad", text="a and b copy.")]))
    The yardstick is bent: independence of the votes must be settled first (care: a and b copy.)
    """
    found = sorted(findings, key=lambda finding: RANK[finding.level])
    if not found:
        return NOT_EXAMINED
    bad, doubted = (_sides(found, level) for level in ("bad", "doubt"))
    doubted = [side for side in doubted if side not in bad]
    if bad:
        rest = f" Doubts remain about {_listed(doubted)}." if doubted else ""
        return f"The yardstick is bent: {_listed(bad)} must be settled first {_worst(found)}.{rest}".replace(
            ".).", ".)"
        )
    if doubted:
        return f"The yardstick holds with reservations about {_listed(doubted)} {_worst(found)}.".replace(".).", ".)")
    return f"Nothing found that bends the yardstick; looked at {_listed(_sides(found))}{_how_far(found)}."


def is_thorough(findings: Iterable[Finding]) -> bool:
    """Whether more was examined than an audit does by itself."""
    return any(finding.side in THOROUGH for finding in findings)


def worst_level(findings: Iterable[Finding]) -> Level:
    """Give the worst level of some findings; "info" of none.

    Examples
    --------
    >>> worst_level([Finding("gold", "ece", 0.3, level="doubt"), Finding("gold", "ece", 0.1, level="good")])
    'doubt'
    """
    return min((finding.level for finding in findings), key=RANK.__getitem__, default="info")


def titled(side: str) -> str:
    """Name a side as a title.

    Examples
    --------
    >>> titled("nuts"), titled("laplace")
    ('Sampling by NUTS', 'The Gaussian around the mode')
    """
    name = SIDES.get(side, side)
    return f"{name[0].upper()}{name[1:]}"


def about(finding: Finding) -> str:
    """Name what a finding concerns: question, part, domain, and whom.

    Examples
    --------
    >>> about(Finding("dependence", "pair_excess", 0.2, "care", domain="BLM", subject="a · b"))
    'care, BLM, a · b'
    """
    question = f"{finding.question} ({finding.part})" if finding.part else finding.question
    return ", ".join(name for name in (question, finding.domain, finding.subject) if name)


def _sides(found: Sequence[Finding], level: str | None = None) -> list[str]:
    named = {finding.side for finding in found if level is None or finding.level == level}
    order = [*SIDES, *sorted(named - set(SIDES))]
    return [SIDES.get(side, side) for side in order if side in named]


def _worst(found: Sequence[Finding]) -> str:
    """The first of the worst in brackets, with how many more there are."""
    alarms = [finding for finding in found if finding.alarms]
    first, more = alarms[0], len(alarms) - 1
    lead = f"{first.question}: " if first.question else ""
    return f"({lead}{first.text or first.figure}" + (f" And {more} more.)" if more else ")")


def _how_far(found: Sequence[Finding]) -> str:
    return "" if is_thorough(found) else " only"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
