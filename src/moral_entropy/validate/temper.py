"""Whether left-out votes ask for less confidence than the posterior has.

Takes fits, gives the exponent that predicts left-out votes best, and a doubt where it is clearly below 1.
"""

from __future__ import annotations

import numpy as np

from moral_entropy.consensus.fitted import local_fit
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.consensus.temper import Exponent
from moral_entropy.progress import Advance, ignore
from moral_entropy.validate.behind import Behind, BehindFit, votes_behind, votes_of_fit
from moral_entropy.validate.finding import Finding, Level
from moral_entropy.validate.words import finding_of


def examine_temper(
    consensus: Consensus, *, seed: int = 0, behind: BehindFit | None = None, advance: Advance = ignore
) -> list[Finding]:
    """Learn the exponent of every fit from its own votes.

    Parameters
    ----------
    consensus
        The fits to examine.
    seed
        Not used: nothing here is random.
    behind
        Gives the votes behind a fit.
    advance
        Told the share done.
    """
    findings, behind = [], behind or votes_behind(local_fit(consensus))
    for n, fit in enumerate(consensus.fits):
        findings.append(_finding(fit, exponent_of(fit, behind(n))))
        advance((n + 1) / len(consensus.fits))
    return findings


def exponent_of(fit: QuestionFit, behind: Behind | None = None) -> Exponent:
    """Learn the exponent from the votes of one fit."""
    if fit.exponent.n and fit.exponent.value != 1.0:
        return fit.exponent
    return (behind or votes_of_fit(fit)).heldout_exponent()


def _finding(fit: QuestionFit, exponent: Exponent) -> Finding:
    level, text = _judged(fit, exponent)
    high = exponent.high if np.isfinite(exponent.high) else None
    return finding_of(
        fit, "temper", "exponent", exponent.value, low=exponent.low, high=high, n=exponent.n, level=level, text=text
    )


def _judged(fit: QuestionFit, exponent: Exponent) -> tuple[Level, str]:
    if exponent.n == 0:
        return "info", "no item has two votes, so no left-out vote can tell whether the posterior is too sure"
    if fit.exponent.value != 1.0:
        return "info", f"the consensus is tempered: each item's likelihood to the power {fit.exponent.value:.2f}"
    if exponent.below_one:
        return (
            "doubt",
            f"left-out votes are predicted best with each item's likelihood to the power {exponent.value:.2f}: the "
            "posterior is surer than the votes allow (they are not independent given the label). "
            "Grade against the tempered consensus: --temper heldout.",
        )
    return "good", f"left-out votes ask for no tempering (power {exponent.value:.2f})"
