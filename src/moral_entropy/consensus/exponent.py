"""Which exponent a fit is tempered with: none, one that was learnt, or one that was told."""

from __future__ import annotations

import numpy as np

from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.temper import NOTHING, Exponent, gold_exponent, heldout_exponent
from moral_entropy.errors import FitError
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints


def choose_exponent(log_posterior: LogPosterior, at: Parameters, ballot: Ballot, temper: str | float) -> Exponent:
    """Give the exponent of a fit.

    Parameters
    ----------
    log_posterior, at
        Of the votes, and its mode.
    ballot
        The votes, with gold where there is some.
    temper
        "off", "heldout", "gold", or a number.
    """
    if temper == "heldout":
        return heldout_exponent(log_posterior, at)
    if temper == "gold":
        return _from_gold(log_posterior, at, ballot)
    if temper == "off":
        return NOTHING
    return Exponent(float(temper), float(temper), float(temper), 0.0, 0.0, 0.0, 0)


def _from_gold(log_posterior: LogPosterior, at: Parameters, ballot: Ballot) -> Exponent:
    return exponent_from_gold(ballot, at, *gold_evidence(log_posterior.patterns, at, ballot))


def exponent_from_gold(ballot: Ballot, at: Parameters, evidence_ik: Floats, gold_i: Ints) -> Exponent:
    """Learn the exponent from the items of known label; refuse if there are none."""
    if not len(gold_i):
        what = "no item has a gold label, so temper='gold' has nothing to learn from"
        msg = f"{ballot.name}: {what}. Use temper='heldout'."
        raise FitError(msg)
    return gold_exponent(evidence_ik, at.log_prevalence_k, gold_i)


def gold_evidence(patterns: Patterns, at: Parameters, ballot: Ballot) -> tuple[Floats, Ints]:
    """Give the log likelihood of the votes on items of known label, relative to label 0, and those labels."""
    known_i = np.flatnonzero(ballot.gold_i != UNKNOWN)
    some = patterns.take(patterns.row_i[known_i])
    evidence_ik = np.zeros((some.n_rows, some.n_labels))
    row_v = np.repeat(np.arange(some.n_rows), np.diff(some.start_r))
    np.add.at(evidence_ik[:, 1:], row_v, at.push_ck()[some.code_v])
    return evidence_ik, ballot.gold_i[known_i]
