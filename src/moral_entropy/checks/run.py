"""Can the consensus be trusted? All checks by name, each with its question; the cheap ones run in every audit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from moral_entropy.checks.dependence import check_dependence
from moral_entropy.checks.gold import check_gold
from moral_entropy.checks.heldout import check_heldout
from moral_entropy.checks.nuts import check_nuts
from moral_entropy.checks.posterior import check_laplace
from moral_entropy.checks.refits import check_ensemble, check_priors
from moral_entropy.checks.votes import check_fit, check_identifiability, check_votes
from moral_entropy.errors import MissingExtraError, UsageError
from moral_entropy.findings import RANK, Finding
from moral_entropy.model.consensus import Consensus
from moral_entropy.progress import Advance, ignore


class Check(NamedTuple):
    """One check of a consensus.

    Parameters
    ----------
    run
        Takes a `Consensus`, `seed` and keywords of its own, returns findings.
    title
        The question it answers.
    cheap
        Whether every audit runs it.
    """

    run: Callable[..., list[Finding]]
    title: str
    cheap: bool = False


CHECKS = {
    "fit": Check(check_fit, "Did the fit succeed?", cheap=True),
    "votes": Check(check_votes, "Are there enough votes?", cheap=True),
    "identifiability": Check(check_identifiability, "Can the votes tell?", cheap=True),
    "laplace": Check(check_laplace, "Are the intervals right?", cheap=True),
    "gold": Check(check_gold, "Do the probabilities agree with gold labels?"),
    "heldout": Check(check_heldout, "Does the consensus predict votes?"),
    "dependence": Check(check_dependence, "Do annotators vote independently?"),
    "ensemble": Check(check_ensemble, "Do other starts agree?"),
    "priors": Check(check_priors, "Do other assumptions say the same?"),
    "nuts": Check(check_nuts, "Does sampling give the same intervals?"),
}
"""All checks by name, in the order in which they are made and shown."""

CHEAP = tuple(name for name, check in CHECKS.items() if check.cheap)
"""Checks that every audit makes."""


def check_names(names: Collection[str]) -> tuple[str, ...]:
    """Put checks in order, and refuse names that are none.

    Examples
    --------
    >>> check_names(["gold", "left"])
    Traceback (most recent call last):
    ...
    moral_entropy.errors.UsageError: there is no check 'left'. Checks: fit, votes, identifiability, laplace, ...
    """
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        msg = f"there is no check {unknown[0]!r}. Checks: {', '.join(CHECKS)}."
        raise UsageError(msg)
    return tuple(name for name in CHECKS if name in names)


def run_check(
    consensus: Consensus, name: str, *, required: bool = True, advance: Advance = ignore, **options: Any
) -> list[Finding]:
    """Make one check of a consensus.

    Parameters
    ----------
    consensus
        The fits.
    name
        One of `CHECKS`.
    required
        Whether an extra that is not installed is an error; otherwise it is a finding.
    advance
        Called with the share done.
    **options
        Those of `ValidationOptions`; those that the check does not take, or that are None, are left out.
    """
    run = CHECKS[name].run
    takes = inspect.signature(run).parameters
    options = {key: value for key, value in (options | {"advance": advance}).items() if key in takes}
    options = {key: value for key, value in options.items() if value is not None}
    try:
        return run(consensus, **options)
    except MissingExtraError as error:
        if required:
            raise
        return [Finding(name, "left_out", float("nan"), text=str(error))]


def run_checks(consensus: Consensus, *, seed: int = 0, advance: Advance = ignore) -> list[Finding]:
    """Make the checks that cost next to nothing: what every audit does."""
    findings: list[Finding] = []
    for n, name in enumerate(CHEAP):
        findings += run_check(consensus, name, seed=seed)
        advance((n + 1) / len(CHEAP))
    return findings


def verdict(findings: Iterable[Finding]) -> str:
    """Say in words how far the consensus can be trusted.

    Examples
    --------
    >>> verdict([Finding("laplace", "pareto_k", 0.3, level="good"), Finding("identifiability", "groups", 1.0)])
    'No doubt was found. Asked: Can the votes tell? Are the intervals right? Only the quick checks were made.'
    >>> print(verdict([Finding("dependence", "excess_agreement", 1, "care", level="bad", text="votes agree.")]))
    The consensus itself may be wrong. To settle first: Do annotators vote independently? (care: votes agree.)
    """
    ordered = sorted(findings, key=lambda finding: RANK[finding.level])
    alarms = [finding for finding in ordered if finding.is_warning]
    if not alarms:
        quick = " Only the quick checks were made." * (not is_thorough(ordered))
        return f"No doubt was found. Asked: {' '.join(questions_of(ordered))}{quick}"
    bad = questions_of(finding for finding in alarms if finding.level == "bad")
    doubted = " ".join(question for question in questions_of(alarms) if question not in bad)
    lead, count = alarms[0].place and f"{alarms[0].place}: ", f" And {len(alarms) - 1} more." * (len(alarms) > 1)
    worst = f"({lead}{alarms[0].text or alarms[0].metric}{count})"
    if not bad:
        return f"The consensus holds, with doubts: {doubted} {worst}"
    remaining = f" Doubts remain: {doubted}" * bool(doubted)
    return f"The consensus itself may be wrong. To settle first: {' '.join(bad)} {worst}{remaining}"


def is_thorough(findings: Iterable[Finding]) -> bool:
    """Tell whether more was checked than an audit does by itself: the cheap checks, and gold where it has some."""
    return any(finding.check not in (*CHEAP, "gold") for finding in findings if finding.check in CHECKS)


def questions_of(findings: Iterable[Finding]) -> list[str]:
    """Return the questions of the checks that made these findings, in their order; the names of unlisted ones last."""
    names = {finding.check for finding in findings}
    unlisted = [name.capitalize() for name in sorted(names - set(CHECKS))]
    return [check.title for name, check in CHECKS.items() if name in names] + unlisted
