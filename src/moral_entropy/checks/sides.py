"""The sides from which a consensus is examined, each with its question; the cheap ones run in every audit."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from moral_entropy.checks.dependence import examine_dependence
from moral_entropy.checks.ensemble import examine_ensemble
from moral_entropy.checks.fit import examine_fit
from moral_entropy.checks.gold import examine_gold
from moral_entropy.checks.heldout import examine_heldout
from moral_entropy.checks.identifiability import examine_identifiability
from moral_entropy.checks.laplace import examine_laplace
from moral_entropy.checks.nuts import examine_nuts
from moral_entropy.checks.prior_power import examine_prior_power
from moral_entropy.checks.priors import examine_priors
from moral_entropy.checks.temper import examine_temper
from moral_entropy.checks.vote_access import votes_of_fits
from moral_entropy.checks.votes import examine_votes
from moral_entropy.consensus.fitted import FittedParts
from moral_entropy.consensus.result import Consensus
from moral_entropy.errors import MissingExtraError, UsageError
from moral_entropy.findings import Finding
from moral_entropy.progress import Advance, ignore, share_of


@dataclass(frozen=True)
class Side:
    """One side from which a consensus is examined.

    Parameters
    ----------
    name
        As in findings and in --sides; the file of this folder that has the check is called the same.
    title
        The question it answers.
    meaning
        Why one should ask, in a sentence.
    run
        The check: takes a `Consensus`, `seed`, `advance` and keywords of its own, returns findings. A cheap one also
        takes `votes_of`.
    cheap
        Whether every audit runs it.
    """

    name: str
    title: str
    meaning: str
    run: Callable[..., list[Finding]]
    cheap: bool = False


# fmt: off
_SIDES = (
    Side("fit", "Did the fit succeed?",
         "A search that stopped too soon, or a second answer that fits as well, makes every figure uncertain.",
         examine_fit, cheap=True),
    Side("votes", "Are there enough votes?", "Where votes are few, the default assumption decides.",
         examine_votes, cheap=True),
    Side("identifiability", "Can the votes tell?",
         "Where votes cannot tell, the default assumption decides, and p may be sure of it nonetheless.",
         examine_identifiability, cheap=True),
    Side("laplace", "Are the intervals right?",
         "Intervals and the split of the entropy come from a Gaussian around the best fit, which must be close.",
         examine_laplace, cheap=True),
    Side("prior-power", "How much depends on assumptions?",
         "What moves when the prior is a little stronger or weaker was decided by the prior, not by the votes.",
         examine_prior_power, cheap=True),
    Side("temper", "Are the probabilities too sure?",
         "Annotators who make the same mistakes look like independent evidence; left-out votes show it.",
         examine_temper, cheap=True),
    Side("gold", "Do the probabilities agree with gold labels?",
         "Of the items with p near 0.7, seven in ten should be positive in gold.", examine_gold),
    Side("heldout", "Does the consensus predict votes?",
         "Votes left out and predicted: the only test of p that needs no gold.", examine_heldout),
    Side("dependence", "Do annotators vote independently?",
         "The model takes votes to be independent given the label; where they are not, p is too sure.",
         examine_dependence),
    Side("ensemble", "Do other starts and samples agree?",
         "Other starts, and other samples of items and annotators, should lead to the same answer.", examine_ensemble),
    Side("priors", "Do other assumptions say the same?",
         "Another prior that looks as reasonable should not change the answer.", examine_priors),
    Side("nuts", "Does sampling give the same intervals?",
         "Samples of the posterior itself, against which the Gaussian is held.", examine_nuts),
)
# fmt: on

SIDES: dict[str, Side] = {side.name: side for side in _SIDES}
"""All sides by name, in the order in which they are examined and shown."""

CHEAP = tuple(side.name for side in _SIDES if side.cheap)
"""Sides that every audit runs."""


def check_sides(names: Collection[str]) -> tuple[str, ...]:
    """Put sides in order, and refuse names that are none.

    Examples
    --------
    >>> check_sides(["gold", "left"])
    Traceback (most recent call last):
    ...
    moral_entropy.errors.UsageError: there is no side 'left'. Sides: fit, votes, identifiability, laplace, ...
    """
    unknown = [name for name in names if name not in SIDES]
    if unknown:
        msg = f"there is no side {unknown[0]!r}. Sides: {', '.join(SIDES)}."
        raise UsageError(msg)
    return tuple(name for name in SIDES if name in names)


def examine(
    consensus: Consensus, side: str, *, seed: int = 0, required: bool = True, advance: Advance = ignore, **options: Any
) -> list[Finding]:
    """Examine a consensus from one side.

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
        Called with the share done.
    **options
        Keywords of that side's own function.
    """
    try:
        return SIDES[side].run(consensus, seed=seed, advance=advance, **options)
    except MissingExtraError as error:
        if required:
            raise
        return [Finding(side, "left_out", float("nan"), text=str(error))]


def examine_cheaply(fitted: FittedParts, *, seed: int = 0, advance: Advance = ignore) -> list[Finding]:
    """Examine from the sides that cost next to nothing: what every audit does.

    Parameters
    ----------
    fitted
        The votes and their fits.
    seed
        Of whatever is random.
    advance
        Called with the share done.
    """
    findings: list[Finding] = []
    votes_of = votes_of_fits(fitted)
    for n, side in enumerate(CHEAP):
        told = share_of(advance, n, len(CHEAP))
        findings += examine(fitted.consensus, side, seed=seed, votes_of=votes_of, advance=told)
    return findings
