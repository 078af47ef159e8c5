"""The exponent of a fit: none, one that is learnt from left-out votes or from gold, or one that was given.

Of very many votes only those of evenly spaced rows are looked at, so that what is fetched from parts stays small.
"""

from __future__ import annotations

import numpy as np

from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.parts import Part, Parts, Rows, join_rows
from moral_entropy.consensus.temper import (
    MOST_VOTES,
    NOTHING,
    Exponent,
    gold_exponent,
    heldout_exponent,
    predictable_rows,
    spacing,
)
from moral_entropy.errors import FitError
from moral_entropy.votes.table import UNKNOWN, Floats, Ints


def choose_exponent(parts: Parts, b: int, log_posterior: LogPosterior, at: Parameters, temper: str | float) -> Exponent:
    """Return the exponent of a fit.

    Parameters
    ----------
    parts, b
        The votes, and which ballot; gold where there is some.
    log_posterior, at
        Of the ballot, and its mode.
    temper
        "off", "heldout", "gold", or a number.
    """
    if temper == "heldout":
        return learn_from_votes(parts, b, log_posterior, at)
    if temper == "gold":
        return learn_from_gold(parts, b, at)
    if temper == "off":
        return NOTHING
    return Exponent(float(temper), float(temper), float(temper), 0.0, 0.0, 0.0, 0)


def learn_from_votes(parts: Parts, b: int, log_posterior: LogPosterior, at: Parameters) -> Exponent:
    """Learn the exponent by predicting left-out votes: see `heldout_exponent`."""
    counted = parts.fetch_each(count_predictable, b)
    rows_p, votes_p = zip(*counted, strict=True)
    step = spacing(sum(votes_p), MOST_VOTES)
    before_p = np.cumsum([0, *rows_p[:-1]]).tolist()
    asked = [
        parts.workers.ask(rows_to_predict, part, b, -before % step, step)
        for part, before in zip(parts.handles, before_p, strict=True)
    ]
    return heldout_exponent(log_posterior, at, rows=join_rows(parts.workers.fetch_all(asked)).patterns)


def learn_from_gold(parts: Parts, b: int, at: Parameters) -> Exponent:
    """Learn the exponent from the items of known label; refuse if there are none."""
    evidence_ik, gold_i = (
        np.concatenate(column) for column in zip(*parts.fetch_each(gold_evidence, b, at), strict=True)
    )
    if not len(gold_i):
        what = "no item has a gold label, so temper='gold' has nothing to learn from"
        msg = f"{parts.votes.ballots[b].name}: {what}. Use temper='heldout'."
        raise FitError(msg)
    return gold_exponent(evidence_ik, at.log_prevalence_k, gold_i)


def count_predictable(part: Part, b: int) -> tuple[int, int]:
    """Count one part's rows that have something to predict, and their votes."""
    patterns = part.rows(b)
    row_r = predictable_rows(patterns)
    return len(row_r), int(np.diff(patterns.start_r)[row_r].sum())


def rows_to_predict(part: Part, b: int, first: int, step: int) -> Rows:
    """Return evenly spaced ones of these rows."""
    row_r = predictable_rows(part.rows(b))[first::step]
    return Rows(part.rows(b).take(row_r), np.ones(len(row_r)))


def gold_evidence(part: Part, b: int, at: Parameters) -> tuple[Floats, Ints]:
    """Return the log likelihood of the votes on items of known label, relative to label 0, and those labels."""
    ballot, patterns = part.ballot(b), part.patterns[b]
    known_i = np.flatnonzero(ballot.gold_i != UNKNOWN)
    some = patterns.take(patterns.row_i[known_i])
    evidence_ik = np.zeros((some.n_rows, some.n_labels))
    row_v = np.repeat(np.arange(some.n_rows), np.diff(some.start_r))
    np.add.at(evidence_ik[:, 1:], row_v, at.push_ck()[some.code_v])
    return evidence_ik, ballot.gold_i[known_i]
