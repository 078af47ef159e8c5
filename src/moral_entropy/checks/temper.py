"""Are the probabilities too sure? Whether left-out votes ask for less confidence than the posterior has.

Takes fits, returns the exponent that predicts left-out votes best, and a doubt where it is clearly below 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from moral_entropy.checks.vote_access import VoteAccess, VotesOf, each_fit, votes_of_fit
from moral_entropy.consensus.fit_findings import finding_of
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.consensus.tempering import Exponent
from moral_entropy.findings import Finding
from moral_entropy.progress import Advance, ignore

SIDE = "temper"


def examine_temper(
    consensus: Consensus, *, seed: int = 0, votes_of: VotesOf | None = None, advance: Advance = ignore
) -> list[Finding]:
    """Learn the exponent of every fit from its own votes.

    Parameters
    ----------
    consensus
        The fits to examine.
    seed
        Not used: nothing here is random.
    votes_of
        Returns the votes of the n-th fit; those on this machine when not given.
    advance
        Called with the share done.
    """
    return [_finding(votes.fit, exponent_of(votes.fit, votes)) for votes in each_fit(consensus, votes_of, advance)]


def less_sure(fit: QuestionFit) -> str:
    """Say what to do about probabilities that are too sure."""
    if fit.mixture is not None:
        return "Check labels by hand or against gold; moral-entropy validate --sides dependence says who errs together."
    return "Grade against probabilities that are no surer than the votes allow: --temper heldout."


def exponent_of(fit: QuestionFit, access: VoteAccess | None = None) -> Exponent:
    """Learn the exponent from the votes of one fit."""
    if fit.exponent.n and fit.exponent.value != 1.0:
        return fit.exponent
    return (access or votes_of_fit(fit)).heldout_exponent()


def _finding(fit: QuestionFit, exponent: Exponent) -> Finding:
    high = exponent.high if np.isfinite(exponent.high) else None
    words, value = _words(fit, exponent), exponent.value
    return finding_of(fit, SIDE, "exponent", value, low=exponent.low, high=high, n=exponent.n, **words)


def _words(fit: QuestionFit, exponent: Exponent) -> dict[str, Any]:
    """Put an exponent into words: level, text, and what it means and what to do where it is below 1."""
    if exponent.n == 0:
        return {"text": "no item has two votes, so no left-out vote can tell whether the probabilities are too sure."}
    if fit.exponent.value != 1.0:
        return {"text": f"the consensus is tempered: every vote counts as {fit.exponent.value:.2f} of one."}
    if not exponent.below_one:
        return {
            "level": "good",
            "text": f"left-out votes ask for no less confidence (a vote counts as {exponent.value:.2f} of one).",
        }
    return {
        "level": "doubt",
        "text": f"votes that were left out fit best if every vote counts as {exponent.value:.2f} of one.",
        "meaning": "The probabilities are too sure: annotators make the same mistakes.",
        "cure": less_sure(fit),
    }
