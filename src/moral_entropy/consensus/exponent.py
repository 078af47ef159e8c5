"""Which exponent a fit is tempered with: none, one that was learnt, or one that was told."""

from __future__ import annotations

import numpy as np

from moral_entropy.consensus.model import LogPosterior, Parameters
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
    known_i = np.flatnonzero(ballot.gold_i != UNKNOWN)
    if not len(known_i):
        what = "no item has a gold label, so temper='gold' has nothing to learn from"
        msg = f"{ballot.name}: {what}. Use temper='heldout'."
        raise FitError(msg)
    row_i = log_posterior.patterns.row_i[known_i]
    return gold_exponent(_evidence(log_posterior, at, row_i), at.log_prevalence_k, ballot.gold_i[known_i])


def _evidence(log_posterior: LogPosterior, at: Parameters, row_i: Ints) -> Floats:
    """Log likelihood of some rows' votes by label, relative to label 0: `evidence_ik`."""
    some = log_posterior.patterns.take(row_i)
    evidence_ik = np.zeros((some.n_rows, some.n_labels))
    row_v = np.repeat(np.arange(some.n_rows), np.diff(some.start_r))
    np.add.at(evidence_ik[:, 1:], row_v, at.push_ck()[some.code_v])
    return evidence_ik
