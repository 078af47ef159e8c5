"""Run → the score of every system: a share, a mean or a win rate, with an interval that can be trusted or says why not.

With known answers on a random part the judges are corrected by them (`corrected_mean`); beside it stand prediction-
powered inference on the plain votes, the known answers alone, and the uncorrected mean of the votes. Without any,
errors that judges share cannot be seen: there is an interval, and it is never called trusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from moral_entropy.findings import listed, many
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
from moral_entropy.judges.findings import as_note, one_label
from moral_entropy.judges.known import KnownItems, groups_of, known_items, questions_asked
from moral_entropy.judges.values import Quantity, quantities
from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.posterior import Parameters
from moral_entropy.options import values_by_label
from moral_entropy.runs.reload import reload_consensus
from moral_entropy.runs.run import Run, as_run
from moral_entropy.ties import DECIMALS
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

Answer = Literal["trusted", "untrusted", "undecided", ""]
Method = Literal["gold", "corrected", "votes"]

MOST_PAIRS = 6
"""Groups up to which every two are compared; of more, each with the highest."""

FEW_FOR_NORMAL = 30
"""Known answers below which the normal interval of prediction-powered inference is not to be relied on."""

UNLIKE = 4.0
"""Standard errors by which items with known answers differ from the others when they are no random part."""

MOST_DRAWS = 100
ROWS_AT_ONCE = 4_096

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


def score(
    run: Run | str | Path, by: str | None = None, *, question: str | None = None, at_least: float | None = None,
    values: Sequence[str] = (),
) -> Score:  # fmt: skip
    """Score what was judged: the share of yes, the mean or the win rate of every system, and how they differ.

    Intervals hold the sampling of items, the judges' errors and that few answers are known. Known answers (gold, or a
    filled-in spot check) must be those of a random part of the items.

    Parameters
    ----------
    run
        The run, or its folder.
    by
        A column: one score for each of its values. domain, or a column that the audit was told to keep.
    question
        Only this question.
    at_least
        The score must be at least this: trusted, untrusted or undecided.
    values
        What each label counts, as ["A=1", "B=0", "tie=0.5"]. By default the positive label counts 1, numbers count
        themselves, and of A, B and tie a win of A counts 1 and a tie a half.

    Returns
    -------
    Score
        Scores, differences, and what must be known of them.

    Examples
    --------
    >>> import moral_entropy as me
    >>> made = me.simulate_votes(n_items=300, n_annotators=5, votes_per_item=5, seed=1)
    >>> scores = me.score(me.audit(made.votes, draws=50), at_least=0.2)
    >>> scores.frame["method"].to_list(), scores.frame["verdict"].to_list()
    (['gold'], ['trusted'])
    """
    run, value_by_label = as_run(run), values_by_label(values)
    rows: list[tuple[Any, ...]] = []
    apart: list[tuple[Any, ...]] = []
    notes: list[str] = []
    for asked in questions_asked(run, question):
        known = known_items(run, asked)
        names, group_i = groups_of(run, asked, known.items, by)
        for quantity in quantities(asked, value_by_label):
            groups = list(_scored(run, known, quantity, names, group_i))
            limit = None if at_least is None else quantity.scaled(at_least)
            rows += [_score_row(asked.name, quantity, group, limit, run.interval) for group in groups]
            apart += [_difference_row(asked.name, quantity, *pair, run.interval) for pair in _pairs(groups)]
            notes += _notes(run, known, quantity, groups)
    return Score(
        pl.DataFrame(rows, schema=SCORES, orient="row"),
        pl.DataFrame(apart, schema=DIFFERENCES, orient="row"),
        tuple(dict.fromkeys(notes)),
        run.interval,
    )


def _scored(
    run: Run, known: KnownItems, quantity: Quantity, names: list[str], group_i: Ints
) -> Iterator[dict[str, Any]]:
    """Yield every group's estimates of a quantity, on the scale from 0 to 1, and how the main one was made."""
    value_k, mass = quantity.value_k, run.interval
    mean_gs: Floats | None = None
    for g, name in enumerate(names):
        here = np.flatnonzero(group_i == g)
        gold_i, p_ik, weight_i = known.gold_i[here], known.p_ik[here], known.weight_i[here]
        seen, share_i = gold_i != UNKNOWN, known.share_ik[here] @ value_k
        alone = gold_alone(value_k[gold_i[seen]], weight_i[seen], mass)
        if not seen.any():
            if mean_gs is None:
                mean_gs = drawn_means(run.consensus or reload_consensus(run), known, value_k, group_i, len(names))
            main = votes_alone(p_ik @ value_k, p_ik @ value_k**2, weight_i, mean_gs[g], mass)
            method: Method = "votes"
        elif known.evidence or seen.all() or seen.sum() < FEWEST:
            method, main = "gold", alone
        else:
            method, main = "corrected", corrected_mean(gold_i, p_ik, value_k, weight_i, mass)
        ppi = NOTHING
        if seen.sum() >= FEWEST:
            truth_g = value_k[gold_i[seen]]
            ppi = ppi_mean(truth_g, share_i[seen], share_i[~seen], weight_i[seen], weight_i[~seen], mass)
        yield {"name": name, "n_items": len(here), "n_gold": int(seen.sum()), "method": method,
               "estimates": (main, ppi, alone, gold_alone(share_i, weight_i, mass))}  # fmt: skip


def drawn_means(consensus: Consensus, known: KnownItems, value_k: Floats, group_i: Ints, n_groups: int) -> Floats:
    """Return the mean of every group of items in each posterior draw of a fit: `mean_gs`.

    It is what is not known of the judges, as it moves a score.
    """
    sums: Floats | None = None
    place = pl.DataFrame({"item": known.items}).with_row_index("at")
    for fit in (_thinned(fit) for fit in consensus.fits if fit.question == known.question.name):
        if not fit.n_draws:
            return np.empty((n_groups, 0))
        ids = consensus.votes.items.gather(fit.ballot.item_i).to_frame("item")
        at_i = ids.join(place, on="item", how="left", maintain_order="left")["at"].to_numpy()
        if sums is None:
            sums = np.zeros((n_groups, fit.n_draws))
        _add_draws(sums, fit, value_k, group_i[at_i], known.weight_i[at_i], known.p_ik[at_i])
    total_g = np.bincount(group_i, weights=known.weight_i, minlength=n_groups)
    return np.empty((n_groups, 0)) if sums is None else sums / total_g[:, None]


def _thinned(fit: QuestionFit) -> QuestionFit:
    """Keep a hundred draws of a fit, evenly spaced."""
    thin = slice(None, None, max(1, -(-fit.n_draws // MOST_DRAWS)))
    return replace(fit, drawn=Parameters(fit.weight_sdg[thin], fit.confusion_sakv[thin]))


def _add_draws(
    sums_gs: Floats, fit: QuestionFit, value_k: Floats, group_i: Ints, weight_i: Floats, p_ik: Floats
) -> None:
    """Add the items of one fit, as published: each draw pooled with the vote share."""
    own_i = 1.0 - fit.share_weight_i
    base_i = weight_i * ((p_ik - own_i[:, None] * fit.model_ik) @ value_k)
    sums_gs += np.bincount(group_i, weights=base_i, minlength=len(sums_gs))[:, None]
    n_rows = fit.patterns.n_rows
    weight_gr = np.zeros((len(sums_gs), n_rows))
    np.add.at(weight_gr, (group_i, fit.patterns.row_i), weight_i * own_i)
    for start in range(0, n_rows, ROWS_AT_ONCE):
        row_r = np.arange(start, min(start + ROWS_AT_ONCE, n_rows))
        sums_gs += (fit.draws_of(row_r) @ value_k @ weight_gr[:, row_r].T).T


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


def _score_row(
    question: str, quantity: Quantity, group: dict[str, Any], limit: float | None, mass: float
) -> tuple[Any, ...]:
    main = group["estimates"][0]
    answer = answer_for(main, limit)
    figures = [_figure(quantity.unscaled(value)) for estimate in group["estimates"] for value in _bounds(estimate)]
    return (question, quantity.name, group["name"], group["n_items"], group["n_gold"], group["method"], *figures,
            None if limit is None else quantity.unscaled(limit), answer,
            _more(main, limit, answer, group["n_items"], mass))  # fmt: skip


def _difference_row(
    question: str, quantity: Quantity, group: dict[str, Any], other: dict[str, Any], mass: float
) -> tuple[Any, ...]:
    wide = quantity.most - quantity.least
    gaps = [difference(*pair) for pair in zip(group["estimates"], other["estimates"], strict=True)]
    answer = answer_for(gaps[0], 0.0)
    figures = [_figure(wide * value) for gap in gaps for value in _bounds(gap)]
    more = _more(gaps[0], 0.0, answer, min(group["n_items"], other["n_items"]), mass)
    return question, quantity.name, group["name"], other["name"], gaps[0].n_gold, *figures, answer, more


def _bounds(found: Estimate) -> tuple[float, float, float]:
    return (found.value, found.low, found.high) if not math.isnan(found.value) else (math.nan,) * 3


def _figure(value: float) -> float | None:
    return None if math.isnan(value) else value


def _pairs(groups: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the groups that are compared, the higher one first."""
    order = sorted(groups, key=lambda group: -round(group["estimates"][0].value, DECIMALS))
    every = list(combinations(order, 2))
    return every if len(order) <= MOST_PAIRS else every[: len(order) - 1]


def _notes(run: Run, known: KnownItems, quantity: Quantity, groups: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what a reader of a score must know: no known answers, few of them, of one kind, or not at random."""
    n, name = known.n_gold, known.question.name
    if not n:
        yield (
            f"{name}: no answer is known, and votes cannot show errors that judges share: nothing here is called "
            f"trusted. Label some random items: moral-entropy spot-check {run.path or 'RUN'} -n 100, then add "
            "--answers to it."
        )
        return
    if known.evidence:
        yield f"{name}: gold was evidence for the fit and cannot correct it; the known answers alone are scored."
    if n < FEWEST:
        yield f"{name}: {many(n, 'known answer')}, too few to correct judges by; there should be 50 or more."
    elif n < FEW_FOR_NORMAL:
        yield f"{name}: {many(n, 'known answer')}; below {FEW_FOR_NORMAL} the interval of PPI++ is too narrow at times."
    yield from map(as_note, one_label(known.question.labels, known.gold_i, question=name))
    yield from _not_random(known, quantity)
    pairs = {group["name"]: group["estimates"][:2] for group in groups if group["estimates"][1].n_gold}
    apart = [group for group, (main, ppi) in pairs.items() if main.low > ppi.high or ppi.low > main.high]
    if apart:
        yield (
            f"{name}: PPI++ and the score exclude each other for {listed(apart)}. One of their assumptions fails, most "
            "likely that known answers are a random part; believe neither before that is settled."
        )


def _not_random(known: KnownItems, quantity: Quantity) -> Iterator[str]:
    """Compare what judges expect of items with known answers and of the others."""
    value_i, seen = known.p_ik @ quantity.value_k, known.gold_i != UNKNOWN
    if min(seen.sum(), (~seen).sum()) < FEW_FOR_NORMAL:
        return
    weight_i = np.where(seen, known.weight_i, 1.0)
    mean = [float(np.average(value_i[part], weights=weight_i[part])) for part in (seen, ~seen)]
    se = math.sqrt(sum(float(np.var(value_i[part])) / part.sum() for part in (seen, ~seen)))
    if abs(mean[0] - mean[1]) > UNLIKE * se:
        shown = [f"{quantity.unscaled(value):.2f}" for value in mean]
        yield (
            f"{known.question.name}: items with known answers are unlike the others ({quantity.name} {shown[0]} and "
            f"{shown[1]} by the consensus), so that they are hardly a random part. What holds of them need not hold of "
            "all."
        )
