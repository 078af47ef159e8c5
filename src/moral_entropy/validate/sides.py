"""The sides from which a posterior is examined, by name; the cheap ones run in every audit."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from moral_entropy.consensus.fitted import FittedParts
from moral_entropy.consensus.result import Consensus
from moral_entropy.errors import MissingExtraError, UsageError
from moral_entropy.progress import Advance, ignore
from moral_entropy.validate.behind import votes_behind
from moral_entropy.validate.finding import Finding

SIDES: dict[str, tuple[str, ...]] = {
    "laplace": ("pareto.examine_pareto",),
    "identifiability": ("identifiability.examine_identifiability",),
    "prior-power": ("power_scaling.examine_power_scaling",),
    "temper": ("temper.examine_temper",),
    "gold": ("gold.examine_gold",),
    "heldout": ("heldout.examine_heldout",),
    "dependence": ("dependence.examine_dependence", "predictive.examine_predictive"),
    "ensemble": ("ensemble.examine_ensemble",),
    "priors": ("priors.examine_priors",),
    "nuts": ("laplace.examine_nuts",),
}
"""Entries of each side, as module and function; imported when they run."""

CHEAP = ("laplace", "identifiability", "prior-power", "temper")
"""Sides that every audit runs."""


def check_sides(names: Sequence[str]) -> tuple[str, ...]:
    """Refuse sides there are none of.

    Examples
    --------
    >>> check_sides(["gold", "left"])
    Traceback (most recent call last):
    ...
    moral_entropy.errors.UsageError: there is no side 'left'. Sides: laplace, identifiability, ...
    """
    unknown = [name for name in names if name not in SIDES]
    if unknown:
        msg = f"there is no side {unknown[0]!r}. Sides: {', '.join(SIDES)}."
        raise UsageError(msg)
    return tuple(name for name in SIDES if name in names)


def examine(
    consensus: Consensus,
    side: str,
    *,
    seed: int = 0,
    required: bool = True,
    advance: Advance = ignore,
    **options: Any,
) -> list[Finding]:
    """Examine a posterior from one side.

    Parameters
    ----------
    consensus
        The fits.
    side
        One of `SIDES`.
    seed
        Of whatever is random there.
    required
        Whether an extra that is not installed is an error; otherwise it is a finding.
    advance
        Told the share done.
    **options
        Keywords of that side's own function.
    """
    findings: list[Finding] = []
    entries = SIDES[side]
    for n, entry in enumerate(entries):
        module, function = entry.split(".")
        run = getattr(import_module(f"moral_entropy.validate.{module}"), function)
        try:
            findings += run(
                consensus, seed=seed, advance=lambda share, n=n: advance((n + share) / len(entries)), **options
            )
        except MissingExtraError as error:
            if required:
                raise
            findings.append(Finding(side, "left_out", float("nan"), text=str(error)))
    return findings


def examine_cheaply(fitted: FittedParts, *, seed: int = 0, advance: Advance = ignore) -> list[Finding]:
    """Examine from the sides that cost next to nothing: what every audit does.

    Parameters
    ----------
    fitted
        The votes and their fits.
    seed
        Of whatever is random.
    advance
        Told the share done.
    """
    findings: list[Finding] = []
    for n, side in enumerate(CHEAP):
        findings += examine(fitted.consensus, side, seed=seed, behind=votes_behind(fitted))
        advance((n + 1) / len(CHEAP))
    return findings
