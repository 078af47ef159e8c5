"""Run → the score of every system: a share, a mean or a win rate, with an interval that can be trusted or says why not.

With known answers on a random part the judges are corrected by them (`corrected_mean`); beside it stand prediction-
powered inference on the plain votes, the known answers alone, and the uncorrected mean of the votes. Without any,
errors that judges share cannot be seen: there is an interval, and it is never called trusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from moral_entropy.consensus.result import Consensus
from moral_entropy.judges.draws import drawn_means
from moral_entropy.judges.estimates import (
    FEWEST,
    NOTHING,
    Estimate,
    corrected_mean,
    difference,
    gold_alone,
    gold_needed,
    ppi_mean,
    votes_alone,
)
from moral_entropy.judges.known import KnownItems, groups_of, known_items, questions_asked
from moral_entropy.judges.options import ScoreOptions
from moral_entropy.judges.recount import notes_on_common_errors, recount, with_recount
from moral_entropy.judges.score_notes import notes_about
from moral_entropy.judges.values import Quantity, quantities
from moral_entropy.options import lists_options
from moral_entropy.runs.reload import reload_consensus
from moral_entropy.runs.run import Run, as_run
from moral_entropy.ties import DECIMALS
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

Answer = Literal["trusted", "untrusted", "undecided", ""]
Method = Literal["gold", "corrected", "votes"]

MOST_PAIRS = 6
"""Groups up to which every two are compared; of more, each with the highest."""

_FIGURES = [f"{name}{bound}" for name in ("", "ppi_", "gold_", "votes_") for bound in ("value", "low", "high")]
SCORES = pl.Schema(
    {
        **dict.fromkeys(("question", "quantity", "group"), pl.String()),
        **dict.fromkeys(("n_items", "n_gold"), pl.Int64()),
        "method": pl.String(),
        **dict.fromkeys(_FIGURES, pl.Float64()),
        "limit": pl.Float64(),
        "verdict": pl.String(),
        "more_gold": pl.Int64(),
    }
)
DIFFERENCES = pl.Schema(
    {
        **dict.fromkeys(("question", "quantity", "group", "other"), pl.String()),
        "n_gold": pl.Int64(),
        **dict.fromkeys(_FIGURES, pl.Float64()),
        "verdict": pl.String(),
        "more_gold": pl.Int64(),
    }
)


@dataclass(frozen=True, eq=False)
class Score:
    """Scores and their differences.

    Parameters
    ----------
    frame
        One row per question, quantity and group: `SCORES`. `value`, `low` and `high` are the score; those with `ppi_`
        are by prediction-powered inference, with `gold_` by the known answers alone, with `votes_` the plain votes.
    differences
        One row per two groups, the higher one first: `DIFFERENCES`.
    notes
        What a reader must know, in sentences.
    interval
        Mass of the intervals.
    """

    frame: pl.DataFrame
    differences: pl.DataFrame
    notes: tuple[str, ...]
    interval: float

    def as_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON has."""
        return {
            "interval": self.interval,
            "scores": self.frame.to_dicts(),
            "differences": self.differences.to_dicts(),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        """Say the scores in a line each."""
        lines = [
            f"{row['group']}: {row['quantity']} {row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
            for row in self.frame.iter_rows(named=True)
        ]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Scored:
    """One group's estimates of a quantity, on the scale from 0 to 1, and how the main one was made."""

    name: str
    n_items: int
    n_gold: int
    method: Method
    main: Estimate
    ppi: Estimate
    gold: Estimate
    votes: Estimate


@lists_options(ScoreOptions)
def score(run: Run | str | Path, by: str | None = None, options: ScoreOptions | None = None, **changes: Any) -> Score:
    """Score what was judged: the share of yes, the mean or the win rate of every system, and how they differ.

    Intervals hold the sampling of items, the judges' errors and that few answers are known. Known answers (gold, or a
    filled-in spot check) must be those of a random part of the items.

    Parameters
    ----------
    run
        The run, or its folder.
    by
        A column: one score for each of its values. domain, or a column that the audit was told to keep.
    options
        All options as one object; keywords change some of them.
    **changes
        Options by name.

    Returns
    -------
    Score
        Scores, differences, and what must be known of them.

    Examples
    --------
    >>> import moral_entropy as me
    >>> made = me.simulate_votes(n_items=300, n_annotators=5, votes_per_item=5, seed=1)
    >>> found = me.score(me.audit(made.votes, draws=50), at_least=0.2)
    >>> found.frame["method"].to_list(), found.frame["verdict"].to_list()
    (['gold'], ['trusted'])
    """
    run = as_run(run)
    given = {**changes, **({} if by is None else {"by": by})}
    options = (options or ScoreOptions()).changed(given, "score")
    told = options.value_of()
    confidence = options.confidence or run.manifest["options"].get("judges", {}).get("confidence")
    rows: list[tuple[Any, ...]] = []
    apart: list[tuple[Any, ...]] = []
    notes: list[str] = []
    for question in questions_asked(run, options.question):
        known = known_items(run, question, confidence=confidence)
        found_together = recount(run, known)
        known = with_recount(known, found_together)
        notes += notes_on_common_errors(found_together)
        names, group_i = groups_of(run, question, known.items, options.by)
        for quantity in quantities(question, told):
            found = list(_scored(run, known, quantity, names, group_i, found_together.consensus))
            limit = None if options.at_least is None else _on_scale(quantity, options.at_least)
            rows += [_score_row(question.name, quantity, one, limit, run.interval) for one in found]
            apart += [_difference_row(question.name, quantity, *pair, run.interval) for pair in _pairs(found)]
            notes += notes_about(run, known, quantity, found_ppi(found))
    return Score(
        pl.DataFrame(rows, schema=SCORES, orient="row"),
        pl.DataFrame(apart, schema=DIFFERENCES, orient="row"),
        tuple(dict.fromkeys(notes)),
        run.interval,
    )


def found_ppi(found: list[Scored]) -> list[tuple[str, Estimate, Estimate]]:
    """Return, by group, the score and the one by prediction-powered inference, where there are both."""
    return [(one.name, one.main, one.ppi) for one in found if one.method != "votes" and one.ppi.n_gold]


def _scored(
    run: Run, known: KnownItems, quantity: Quantity, names: list[str], group_i: Ints, consensus: Consensus | None
) -> Iterator[Scored]:
    mean_gs: Floats | None = None
    for g, name in enumerate(names):
        here = np.flatnonzero(group_i == g)
        gold_i, weight_i = known.gold_i[here], known.weight_i[here]
        n_gold, mass = int((gold_i != UNKNOWN).sum()), run.interval
        if not n_gold and mean_gs is None:
            fitted = consensus or run.consensus or reload_consensus(run)
            mean_gs = drawn_means(fitted, known, quantity.value_k, group_i, len(names))
        method, main = _main(known, quantity.value_k, here, None if mean_gs is None else mean_gs[g], mass)
        share_i = known.share_ik[here] @ quantity.value_k
        yield Scored(
            name,
            len(here),
            n_gold,
            method,
            main,
            _ppi(gold_i, share_i, quantity.value_k, weight_i, mass),
            gold_alone(quantity.value_k[gold_i[gold_i != UNKNOWN]], weight_i[gold_i != UNKNOWN], mass),
            gold_alone(share_i, weight_i, mass),
        )


def _main(
    known: KnownItems, value_k: Floats, here: Ints, mean_s: Floats | None, mass: float
) -> tuple[Method, Estimate]:
    gold_i, p_ik, weight_i = known.gold_i[here], known.p_ik[here], known.weight_i[here]
    seen = gold_i != UNKNOWN
    if not seen.any():
        draws_s = np.empty(0) if mean_s is None else mean_s
        return "votes", votes_alone(p_ik @ value_k, p_ik @ value_k**2, weight_i, draws_s, mass)
    if known.evidence or seen.all() or seen.sum() < FEWEST:
        return "gold", gold_alone(value_k[gold_i[seen]], weight_i[seen], mass)
    return "corrected", corrected_mean(gold_i, p_ik, value_k, weight_i, mass)


def _ppi(gold_i: Ints, share_i: Floats, value_k: Floats, weight_i: Floats, mass: float) -> Estimate:
    seen = gold_i != UNKNOWN
    if seen.sum() < FEWEST:
        return NOTHING
    truth_g = value_k[gold_i[seen]]
    return ppi_mean(truth_g, share_i[seen], share_i[~seen], weight_i[seen], weight_i[~seen], mass)


def answer_for(found: Estimate, limit: float | None) -> Answer:
    """Say on which side of a limit a score is; without known answers nobody knows.

    Examples
    --------
    >>> found = gold_alone(np.repeat([1.0, 0.0], [45, 5]))
    >>> answer_for(found, 0.7), answer_for(found, 0.85), answer_for(found, 0.99)
    ('trusted', 'undecided', 'untrusted')
    """
    if limit is None:
        return ""
    if found.n_gold < FEWEST:
        return "undecided"
    # Rounded: a bound at the limit shall not go by its last bits.
    if round(found.low - limit, DECIMALS) >= 0:
        return "trusted"
    return "untrusted" if round(found.high - limit, DECIMALS) < 0 else "undecided"


def _more(found: Estimate, limit: float | None, answer: Answer, n_items: int, mass: float) -> int | None:
    """Return how many more known answers would decide; None where it is decided, or where no number of them would."""
    if answer != "undecided" or limit is None:
        return None
    needed = gold_needed(found, limit, mass)
    return None if needed is None or needed > n_items else max(needed - found.n_gold, 1)


def _on_scale(quantity: Quantity, limit: float) -> float:
    return (limit - quantity.least) / (quantity.most - quantity.least)


def _score_row(question: str, quantity: Quantity, one: Scored, limit: float | None, mass: float) -> tuple[Any, ...]:
    answer = answer_for(one.main, limit)
    figures = [_figure(quantity.unscaled(value)) for found in (one.main, one.ppi, one.gold, one.votes)
               for value in _bounds(found)]  # fmt: skip
    return (question, quantity.name, one.name, one.n_items, one.n_gold, one.method, *figures,
            None if limit is None else quantity.unscaled(limit), answer,
            _more(one.main, limit, answer, one.n_items, mass))  # fmt: skip


def _difference_row(question: str, quantity: Quantity, one: Scored, other: Scored, mass: float) -> tuple[Any, ...]:
    wide = quantity.most - quantity.least
    pairs = ((one.main, other.main), (one.ppi, other.ppi), (one.gold, other.gold), (one.votes, other.votes))
    found = [difference(*pair) for pair in pairs]
    answer: Answer = answer_for(found[0], 0.0)
    figures = [_figure(wide * value) for both in found for value in _bounds(both)]
    more = _more(found[0], 0.0, answer, min(one.n_items, other.n_items), mass)
    return question, quantity.name, one.name, other.name, found[0].n_gold, *figures, answer, more


def _bounds(found: Estimate) -> tuple[float, float, float]:
    return (found.value, found.low, found.high) if not math.isnan(found.value) else (math.nan,) * 3


def _figure(value: float) -> float | None:
    return None if math.isnan(value) else value


def _pairs(found: list[Scored]) -> list[tuple[Scored, Scored]]:
    """Return the groups that are compared, the higher one first."""
    order = sorted(found, key=lambda one: -round(one.main.value, DECIMALS))
    every = list(combinations(order, 2))
    return every if len(order) <= MOST_PAIRS else every[: len(order) - 1]
