"""Is the consensus itself right? Its grades and its reliability diagram against gold labels.

Takes fits whose ballots have gold, returns cells in which the consensus is graded as a rule, and the points of the
diagram. Items whose gold was evidence in the fit are left out: the consensus has seen the answer.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.rules.cells import Cells, Groups, Membership, number_rows, sort_into_cells, targets_of
from moral_entropy.rules.grade import BINS, EDGES, mass_bins
from moral_entropy.rules.intervals import beta_interval
from moral_entropy.rules.rules import Rule
from moral_entropy.schemas import SCHEMAS
from moral_entropy.ties import TIE, labels_of, tie_key
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

CONSENSUS = Rule(
    "consensus",
    "the Bayesian consensus: its probability p, and yes where p is ½ or more",
    lambda counts_ik: np.full(counts_ik.shape, np.nan),
    soft=True,
    sees="labels",
)

MODEL = replace(
    CONSENSUS,
    name="model",
    meaning="the model's own probability, before it is pooled with the vote share to the published p",
)

FEW_ITEMS = 500
"""Up to this many items, intervals of the consensus' grades resample the items themselves; beyond, bins of equal p."""


def unseen_gold(fit: QuestionFit) -> QuestionFit:
    """Leave out the gold of items whose gold was evidence in the fit."""
    gold_i = np.where(fit.known_i, UNKNOWN, fit.ballot.gold_i).astype(np.int16)
    return replace(fit, ballot=replace(fit.ballot, gold_i=gold_i)) if fit.known_i.any() else fit


def consensus_cells(
    consensus: Consensus, *, in_bins: bool = False, unpooled: bool = False
) -> tuple[Cells, list[Membership]]:
    """Sort items with gold into cells of equal consensus probability.

    Parameters
    ----------
    consensus
        The fits, with gold in their ballots.
    in_bins
        Put neighbouring probabilities in bins where there are more than a few items: enough for an interval.
    unpooled
        Take the model's own probability, before it is pooled with the vote share to the published one.
    """

    def group_by_p(fit: QuestionFit, domain_i: Ints) -> Groups:
        ballot, p_ik = fit.ballot, fit.model_ik if unpooled else fit.p_ik
        label_i, known_i, p_it = (
            labels_of(p_ik, ballot.positive, ordered=ballot.levels is not None),
            ballot.gold_i != UNKNOWN,
            p_ik[:, targets_of(ballot)],
        )
        columns = [known_i.astype(np.int8), domain_i - UNKNOWN, label_i]
        if in_bins and np.count_nonzero(known_i) > FEW_ITEMS:
            n_bins = 50 if ballot.n_labels == 2 else 20
            columns += [(p_i * n_bins).astype(np.int64) for p_i in p_it.T]
        else:
            columns += [ballot.votes_i, *map(_numbered, p_it.T)]
        # Items without gold have no weight; one group is enough for them.
        group_i, first_g = number_rows(np.where(known_i, column_i, 0) for column_i in columns)
        n_g = np.bincount(group_i)
        score_gt = np.column_stack([np.bincount(group_i, weights=p_i) / n_g for p_i in p_it.T])
        # Rounding can change the mean of equal numbers: keep the exact number where a group has only one.
        score_gt = np.where(np.abs(score_gt - p_it[first_g]) < 1e-12, p_it[first_g], score_gt)
        never = np.zeros((1, len(first_g)), dtype=bool)
        decisions = [(label_i[first_g] == target).astype(float)[None] for target in targets_of(ballot)]
        answers = [
            (score_g[None], decision_rg, never) for score_g, decision_rg in zip(score_gt.T, decisions, strict=True)
        ]
        return group_i, first_g, answers

    return sort_into_cells(consensus.votes, map(unseen_gold, consensus.fits), group_by_p)


def _numbered(p_i: Floats) -> Ints:
    """Number the distinct probabilities."""
    return np.unique(tie_key(p_i), return_inverse=True)[1]


def reliability(consensus: Consensus, *, mass: float = 0.9) -> pl.DataFrame:
    """Compute the points of the consensus' reliability diagram against gold.

    Parameters
    ----------
    consensus
        The fits, with gold in their ballots.
    mass
        Mass of the interval of the gold share (Jeffreys).

    Returns
    -------
    pl.DataFrame
        question, label, bins ("width" or "mass"), bin, p (mean), gold (share of items that are the label), low, high,
        n. Empty bins have no row; without gold there are none.
    """
    rows: list[tuple[object, ...]] = []
    for fit in map(unseen_gold, consensus.fits):
        known_i = fit.ballot.gold_i != UNKNOWN
        for target in targets_of(fit.ballot) if known_i.any() else ():
            where = (fit.question, fit.ballot.part, fit.ballot.labels[target])
            p_i, gold_i = fit.p_ik[known_i, target], fit.ballot.gold_i[known_i] == target
            count_i, level_i = fit.ballot.count_i[known_i], _numbered(p_i)
            equally_many_i = mass_bins(np.bincount(level_i, weights=count_i).astype(np.float64))[level_i]
            for bins, bin_i in (("width", np.searchsorted(EDGES, p_i - TIE)), ("mass", equally_many_i)):
                weights = (count_i * value for value in (1, p_i, gold_i))
                n_b, sum_b, yes_b = (np.bincount(bin_i, weights=weight_i, minlength=BINS) for weight_i in weights)
                low_b, high_b = beta_interval(yes_b, n_b - yes_b, mass)
                rows += [
                    (*where, bins, b, sum_b[b] / n_b[b], yes_b[b] / n_b[b], low_b[b], high_b[b], round(n_b[b]))
                    for b in np.flatnonzero(n_b).tolist()
                ]
    return pl.DataFrame(rows, schema=SCHEMAS["audit_reliability"], orient="row")
