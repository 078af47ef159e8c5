"""How each annotator votes: sensitivity, specificity, Youden index, votes against others and gold, and their role.

Takes a `QuestionFit`, returns one row per annotator, and ranks them with reasons. Roles need draws: they are assigned
where the posterior is sure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.items.rank import ranking_rows
from moral_entropy.model.consensus import FEW_VOTES, Consensus, QuestionFit, below_chance, surely_below_chance, youden
from moral_entropy.names import ALL
from moral_entropy.rules.grade import share_of
from moral_entropy.rules.intervals import beta_interval, central_interval
from moral_entropy.schemas import SCHEMAS, with_ids
from moral_entropy.ties import DECIMALS
from moral_entropy.votes.table import Floats

NEAR_CHANCE = 0.2
"""Youden index below which an annotator whose interval holds 0 cannot be told from guessing."""

LEAN = 0.1
"""Least absolute lean of those who say yes too often or too rarely."""

ANNOTATORS_AT_ONCE = 1_024

MOST_ANNOTATORS = 5_000
"""Largest number of annotators in a ranking; all of them are in the summary."""

FIGURES = ("sensitivity", "specificity", "youden", "lean")


def describe_annotators(fit: QuestionFit, *, interval: float = 0.9) -> dict[str, NDArray[Any]]:
    """Compute every annotator's figures and role, by name.

    Parameters
    ----------
    fit
        The fit of one question.
    interval
        Mass of the intervals.

    Returns
    -------
    dict
        One value per annotator. Figures are those at the mode; with `_low` and `_high` their intervals over the draws,
        NaN without draws.

        - sensitivity, specificity: of two labels; of more, the mean of the diagonal, and nothing (NaN);
        - youden: the Youden index, see `moral_entropy.model.consensus`: 0 at chance, 1 without error, for any number
          of labels;
        - lean: how much more often than the team the annotator would say yes on items half of which are positive; NaN
          for more than two labels;
        - below_chance: posterior probability that the Youden index is below 0; NaN without draws;
        - role: "few votes", "worse than guessing", "probably worse than guessing", "like guessing", "says yes too
          often", "says yes too rarely", or nothing; of ordered levels "few votes" or nothing.

    Examples
    --------
    >>> import moral_entropy as me
    >>> votes = me.simulate_votes(n_items=200, n_annotators=4, votes_per_item=3, seed=1).votes
    >>> figures = describe_annotators(me.fit(votes, draws=100).fits[0])
    >>> (figures["youden"] > 0).tolist()
    [True, True, True, True]
    """
    ballot, n_annotators = fit.ballot, fit.ballot.n_annotators
    weight_a = ballot.votes_a / max(ballot.votes_a.sum(), 1)
    value_fa = _figures(fit.confusion_akv[None], ballot.positive, weight_a)[:, 0]
    low_fa, high_fa = np.full_like(value_fa, np.nan), np.full_like(value_fa, np.nan)
    # How often the team says yes on items half of which are positive, by draw; weighted by votes given.
    team_s = (fit.confusion_sakv[..., ballot.positive].mean(axis=-1) * weight_a).sum(axis=-1)
    for start in range(0, n_annotators if fit.n_draws else 0, ANNOTATORS_AT_ONCE):
        chunk = slice(start, start + ANNOTATORS_AT_ONCE)
        draws_fsa = _figures(fit.confusion_sakv[:, chunk], ballot.positive, weight_a, team_s)
        draws_xs = np.ascontiguousarray(draws_fsa.swapaxes(1, 2)).reshape(-1, fit.n_draws)
        ends = (end_x.reshape(len(FIGURES), -1) for end_x in central_interval(draws_xs, interval))
        low_fa[:, chunk], high_fa[:, chunk] = ends
    # Of many labels and few votes most draws have lower rates than the mode.
    low_fa, high_fa = np.minimum(low_fa, value_fa), np.maximum(high_fa, value_fa)
    columns = {
        f"{name}{bound}": own_fa[f]
        for f, name in enumerate(FIGURES)
        for bound, own_fa in (("", value_fa), ("_low", low_fa), ("_high", high_fa))
    }
    columns["below_chance"] = below_chance(fit)
    if ballot.levels is not None:
        # A rater who is often one level off does not guess: the table raters has the roles on a scale.
        return columns | {"role": np.where(ballot.votes_a < FEW_VOTES, "few votes", "")}
    return columns | {"role": _roles(np.asarray(ballot.votes_a), columns)}


def _figures(confusion_sakv: Floats, positive: int, weight_a: Floats, team_s: Floats | None = None) -> Floats:
    """Return `FIGURES` by draw and annotator: `figure_fsa`."""
    youden_sa, diagonal_sak = youden(confusion_sakv), np.diagonal(confusion_sakv, axis1=-2, axis2=-1)
    if confusion_sakv.shape[-1] > 2:
        none_sa = np.full_like(youden_sa, np.nan)
        return np.stack([diagonal_sak.mean(axis=-1), none_sa, youden_sa, none_sa])
    sensitivity_sa, specificity_sa = diagonal_sak[..., positive], diagonal_sak[..., 1 - positive]
    yes_sa = (sensitivity_sa + 1.0 - specificity_sa) / 2.0
    team_s = yes_sa @ weight_a if team_s is None else team_s
    return np.stack([sensitivity_sa, specificity_sa, youden_sa, yes_sa - team_s[:, None]])


def _roles(votes_a: NDArray[np.int64], figures: Mapping[str, Floats]) -> NDArray[np.str_]:
    """Return the role of each annotator, by their number of votes and their figures."""
    youden_a, lean_a = figures["youden"], figures["lean"]
    # Comparisons with NaN are false: without draws the only role is "few votes".
    roles = {
        "few votes": votes_a < FEW_VOTES,
        "worse than guessing": surely_below_chance(figures["below_chance"], votes_a),
        # Gold overrules the fit in `below_chance`.
        "probably worse than guessing": (figures["youden_high"] < 0) & (figures["below_chance"] > 0.5),
        "like guessing": (figures["youden_low"] <= 0) & (youden_a < NEAR_CHANCE) & (figures["below_chance"] > 0.01),
        "says yes too often": (figures["lean_low"] > 0) & (lean_a >= LEAN),
        "says yes too rarely": (figures["lean_high"] < 0) & (lean_a <= -LEAN),
    }
    return np.select(list(roles.values()), list(roles), default="")


def summarise_annotators(consensus: Consensus, tallies: Sequence[Floats]) -> pl.DataFrame:
    """Return the annotators of all fits with figures, votes against others and gold, and roles: annotator_summary.

    `tallies` count their votes by fit, see `tally_votes`.
    """
    votes, ballots = consensus.votes, [fit.ballot for fit in consensus.fits]
    figures = [describe_annotators(fit, interval=consensus.interval) for fit in consensus.fits]
    against_a, differing_a, compared_a, right_a, known_a = np.concatenate(tallies, axis=1)
    low_a, high_a = beta_interval(right_a, known_a - right_a, consensus.interval, prior="exact")
    votes_a = np.concatenate([ballot.votes_a for ballot in ballots])
    columns = {
        "question": [ballot.question for ballot in ballots for _ in ballot.annotator_a],
        "part": [ballot.part for ballot in ballots for _ in ballot.annotator_a],
        "annotator": votes.annotators.gather(np.concatenate([ballot.annotator_a for ballot in ballots])),
        "n_votes": votes_a,
        "disagreement": against_a / np.maximum(votes_a, 1),
        "disagreement_others": share_of(differing_a, compared_a),
        "gold_votes": known_a.round().astype(np.int64),
        "gold_accuracy": share_of(right_a, known_a),
        "gold_accuracy_low": low_a,
        "gold_accuracy_high": high_a,
        **{name: np.concatenate([of_fit[name] for of_fit in figures]) for name in figures[0]},
    }
    schema = with_ids(SCHEMAS["annotator_summary"], annotator=votes.annotators.dtype)
    return pl.DataFrame({name: columns[name] for name in schema}, schema=schema).fill_nan(None)


def rank_annotators(summary: pl.DataFrame) -> dict[str, list[tuple[Any, ...]]]:
    """Rank the annotators of every question by disagreement with the others and by a low Youden index.

    Those with few votes come last.
    """
    has_few, rows = pl.col("role") == "few votes", defaultdict[str, list[tuple[Any, ...]]](list)
    for ranking, column, sign in (("disagreement", "disagreement_others", -1), ("youden", "youden", 1)):
        worst_first = sign * pl.col(column).round(DECIMALS)
        ranked = summary.drop_nulls(column).sort(has_few, worst_first, maintain_order=True)
        ranked = ranked.group_by("question", maintain_order=True).head(MOST_ANNOTATORS)
        for question, group in groupby(ranked.iter_rows(named=True), itemgetter("question")):
            people = list(group)
            names, scores = [str(row["annotator"]) for row in people], [row[column] for row in people]
            reasons = [_annotator_reason(row, ranking) for row in people]
            rows[question] += ranking_rows(("annotator", question, ALL), ranking, names, scores, reasons)
    return rows


def _annotator_reason(row: dict[str, Any], ranking: str) -> str:
    lead = f"{row['role']}: " if row["role"] else ""
    votes = f"{row['n_votes']:,} vote{'s' * (row['n_votes'] != 1)}"
    place = f" in {row['part']}" if row["part"] else ""
    if ranking == "disagreement":
        share = f"{row['disagreement']:.1%} with the own vote counted"
        return f"{lead}{row['disagreement_others']:.1%} of {votes}{place} against the majority of the others ({share})"
    if row["specificity"] is None:
        rates = f"right {_with_interval(row, 'sensitivity')} of the time on average"
    else:
        rates = f"sensitivity {_with_interval(row, 'sensitivity')}, specificity {_with_interval(row, 'specificity')}"
    chance = "" if row["below_chance"] is None else f", worse than guessing with probability {row['below_chance']:.2f}"
    return f"{lead}Youden index {_with_interval(row, 'youden')}{chance}; {rates}; {votes}{place}"


def _with_interval(row: dict[str, Any], name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{row[name]:z.2f}" + ("" if low is None else f" [{low:z.2f}, {high:z.2f}]")
