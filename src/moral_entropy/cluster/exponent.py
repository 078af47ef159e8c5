"""The exponent of a ballot in parts: learnt here, from the rows that one machine would learn from.

Of very many votes only those of evenly spaced rows are looked at, so that what is fetched stays small; items with gold
are fetched as the audit of rules fetches them.
"""

from __future__ import annotations

import numpy as np

from moral_entropy.cluster.parts import OwnRows, Part
from moral_entropy.cluster.posterior import SpreadLogPosterior, join_rows
from moral_entropy.consensus.exponent import choose_exponent, exponent_from_gold, gold_evidence
from moral_entropy.consensus.model import Parameters
from moral_entropy.consensus.temper import MOST_VOTES, Exponent, heldout_exponent, predictable_rows, spacing
from moral_entropy.votes.table import Ballot, Floats, Ints


def choose_spread_exponent(spread: SpreadLogPosterior, at: Parameters, ballot: Ballot, temper: str | float) -> Exponent:
    """Give the exponent of a fit in parts, as `choose_exponent` does."""
    if temper == "heldout":
        return learn_from_votes(spread, at)
    if temper == "gold":
        return learn_from_gold(spread, at, ballot)
    return choose_exponent(spread, at, ballot, temper)


def learn_from_votes(spread: SpreadLogPosterior, at: Parameters) -> Exponent:
    """Learn the exponent by predicting left-out votes, as `heldout_exponent` does."""
    crew, b = spread.crew, spread.b
    counted = crew.fetch_all(crew.each(predictable_of_part, spread.parts, b))
    rows_p, votes_p = zip(*counted, strict=True)
    step = spacing(sum(votes_p), MOST_VOTES)
    before_p = np.cumsum([0, *rows_p[:-1]]).tolist()
    asked = [
        crew.ask(rows_to_predict, part, b, -before % step, step)
        for part, before in zip(spread.parts, before_p, strict=True)
    ]
    return heldout_exponent(spread, at, rows=join_rows(crew.fetch_all(asked)).patterns)


def learn_from_gold(spread: SpreadLogPosterior, at: Parameters, ballot: Ballot) -> Exponent:
    """Learn the exponent from the items of known label, one after the other as on one machine."""
    fetched = spread.crew.fetch_all(spread.each(gold_of_part, at))
    evidence_ik, gold_i = (np.concatenate(column) for column in zip(*fetched, strict=True))
    return exponent_from_gold(ballot, at, evidence_ik, gold_i)


def predictable_of_part(part: Part, b: int) -> tuple[int, int]:
    """Count one part's rows that have something to predict, and their votes."""
    patterns = part.own[b].patterns
    row_r = predictable_rows(patterns)
    return len(row_r), int(np.diff(patterns.start_r)[row_r].sum())


def rows_to_predict(part: Part, b: int, first: int, step: int) -> OwnRows:
    """Give evenly spaced ones of these rows."""
    own = part.own[b]
    row_r = predictable_rows(own.patterns)[first::step]
    return OwnRows(own.patterns.take(row_r), own.count_r[row_r])


def gold_of_part(part: Part, b: int, at: Parameters) -> tuple[Floats, Ints]:
    """Give what the votes say of one part's items of known label, and those labels."""
    return gold_evidence(part.patterns[b], at, part.votes.ballots[b])
