"""Grades of one rule on one group of items: rates, the Bregman family, calibration.

Takes the rule's levels (its distinct answers) and `CellSums` added up by level; returns every metric in every column.

`p` below is what the rule is graded against: the posterior probability, or gold as 0 and 1. Rates grade the yes or no
of the rule; `expected_…` rates weigh items by p and 1 - p instead of by the consensus' yes or no.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moral_entropy.rules.bregman import BRIER, KL, ZERO_ONE, share_of, split
from moral_entropy.rules.sums import CellSums, product
from moral_entropy.ties import TIE, tie_key
from moral_entropy.votes.table import Floats, Ints

BINS = 15

RATES = ("fpr", "fnr", "fdr", "for", "disagreement", "balanced_error")

MEANINGS: dict[str, str] = {
    "fpr": "of the items the reference says no to, the share the rule says yes to",
    "fnr": "of the items the reference says yes to, the share the rule says no to",
    "fdr": "of the items the rule says yes to, the share the reference says no to",
    "for": "of the items the rule says no to, the share the reference says yes to",
    "disagreement": "share of items on which rule and reference differ",
    "balanced_error": "mean of fpr and fnr",
    **{f"expected_{name}": f"{name} with items weighted by p and 1 - p" for name in RATES},
    "brier": "mean squared distance of the rule's score from p",
    "brier_reliability": "part of brier: how far scores are from the mean p behind them",
    "brier_resolution": "part of brier, taken off: how far those means are from each other",
    "brier_uncertainty": "part of brier: how much p varies",
    "expected_brier": "mean squared distance of the score from labels drawn from p",
    "kl": "mean Kullback-Leibler divergence of the score from p, in nats",
    "kl_reliability": "part of kl: as for brier",
    "kl_resolution": "part of kl, taken off: as for brier",
    "kl_uncertainty": "part of kl: entropy of the mean p less the mean entropy of p",
    "kl_smoothed": "kl of the smoothed score: the answer as that many votes, plus pseudo-votes either way",
    "cross_entropy": "mean cross-entropy of the score with p, in nats: kl plus the entropy of p",
    "cross_entropy_reliability": "part of cross_entropy: as for kl",
    "cross_entropy_resolution": "part of cross_entropy, taken off: as for kl",
    "cross_entropy_uncertainty": "part of cross_entropy: entropy of the mean p",
    "cross_entropy_smoothed": "cross_entropy of the smoothed score",
    "zero_one": "mean regret of the rule's yes or no: |2p - 1| where it is on the other side of ½ than p",
    "zero_one_reliability": "part of zero_one: as for brier",
    "zero_one_resolution": "part of zero_one, taken off: as for brier",
    "zero_one_uncertainty": "part of zero_one: min(p, 1 - p) of the mean p less its mean",
    "ece": f"expected calibration error of the score, {BINS} bins of equal width",
    "ece_mass": f"expected calibration error of the score, {BINS} bins of equally many items",
    "abstained": "share of items the rule gives no answer to; they are in none of its other figures",
    "tied": "share of items on which the rule sits on a tie",
    "log_loss": "against gold: the same as cross_entropy, by the name it goes by",
}
"""Every metric, with its meaning in one line."""

METRICS = tuple(MEANINGS)


@dataclass(frozen=True, eq=False)
class Levels:
    """Distinct answers of some rules in a group of items. Axes: **r** rule, **l** level, **s** column, **c** cell.

    Parameters
    ----------
    score_rl, decision_rl
        The answers, scores ascending.
    sums
        Sums by rule and level.
    smoothed_rc, cells
        Smoothed scores of the cells behind the levels, and their sums.
    """

    score_rl: Floats
    decision_rl: Floats
    sums: CellSums
    smoothed_rc: Floats
    cells: CellSums


def levels_of_one(score_c: Floats, decision_c: Floats, votes_c: Ints, sums: CellSums, smoothing: float) -> Levels:
    """Put cells of equal answer of one rule together; none of them may be NaN.

    Parameters
    ----------
    score_c, decision_c
        The rule's answer in each cell.
    votes_c
        Number of votes of each item of the cell: smoothing counts the answer as that many votes.
    sums
        Sums of the cells.
    smoothing
        Pseudo-votes for yes and for no.
    """
    key_c = tie_key(score_c)
    order_c = np.lexsort((decision_c, key_c))
    pair_c2 = np.column_stack([key_c, decision_c])[order_c]
    fresh_c = np.ones(len(order_c), dtype=bool)
    fresh_c[1:] = (pair_c2[1:] != pair_c2[:-1]).any(axis=1)
    start_l = np.flatnonzero(fresh_c)
    score_rl, decision_rl = score_c[order_c[start_l]][None], decision_c[order_c[start_l]][None]
    smoothed_rc = smooth(score_c[None], votes_c, smoothing)
    return Levels(score_rl, decision_rl, sums.runs(order_c, start_l), smoothed_rc, sums)


def levels_of_hard(yes_rc: Floats, votes_c: Ints, sums: CellSums, smoothing: float) -> Levels:
    """Put cells of equal answer together for several rules that all say yes (1) or no (0)."""
    score_rl = np.tile([0.0, 1.0], (len(yes_rc), 1))
    return Levels(score_rl, score_rl, sums.sides(yes_rc), smooth(yes_rc, votes_c, smoothing), sums)


def smooth(score_rc: Floats, votes_c: Ints, smoothing: float, n_labels: int = 2) -> Floats:
    """Count an answer as `votes_c` votes for it, and add pseudo-votes for every label.

    Examples
    --------
    >>> smooth(np.array([[1.0, 0.0]]), np.array([3, 1]), 0.5)
    array([[0.875, 0.25 ]])
    """
    # Without votes and without smoothing nothing is known of any label.
    whole_c = votes_c + n_labels * smoothing
    smoothed_rc = (score_rc * votes_c + smoothing) / np.where(whole_c == 0, 1.0, whole_c)
    return np.where(whole_c == 0, 1.0 / n_labels, smoothed_rc)


@dataclass(frozen=True, eq=False)
class Grades:
    """Every metric in every column. Axes: **m** metric, **s** column.

    Parameters
    ----------
    names
        Names of the metrics.
    value_ms
        Their values; NaN where the denominator is empty.
    n_m
        Number of items of the denominator in the first column; expected numbers are rounded.
    """

    names: tuple[str, ...]
    value_ms: Floats
    n_m: NDArray[np.int64]


def grade(levels: Levels, *, expected: bool = True) -> list[Grades]:
    """Grade rules by all metrics.

    Parameters
    ----------
    levels
        Their answers, and what they are graded against.
    expected
        Whether to return the expected versions too: against gold they equal the plain ones.

    Examples
    --------
    Ten items the rule says yes to, eight of them rightly, and ten it says no to, rightly:

    >>> yes, all = np.array([[0.0], [8.0]]), np.array([[10.0], [10.0]])
    >>> sums = CellSums(all, yes, yes, yes, 0 * yes, 0 * yes)
    >>> (grades,) = grade(levels_of_hard(np.array([[0.0, 1.0]]), np.array([3, 3]), sums, 0.5), expected=False)
    >>> dict(zip(grades.names, grades.value_ms[:, 0].round(3).tolist()))["fdr"]
    0.2
    """
    sums = levels.sums
    figures = _rates(levels.decision_rl, sums.weight_cs, sums.positive_cs, "")
    if expected:
        figures |= _rates(levels.decision_rl, sums.weight_cs, sums.p_cs, "expected_")
    return as_grades(figures | _scores(levels, expected) | _calibration(levels))


Figures = dict[str, tuple[Floats, Floats]]
"""By metric: values and denominators for each rule and column."""


def as_grades(figures: Figures) -> list[Grades]:
    """Stack figures, rule by rule; n is the denominator in the first column."""
    value_mrs = np.array([value_rs for value_rs, _ in figures.values()])
    n_mr = np.array([denominator_rs[:, 0] for _, denominator_rs in figures.values()])
    n_mr = np.rint(n_mr).astype(np.int64)
    return [Grades(tuple(figures), value_mrs[:, r], n_mr[:, r]) for r in range(value_mrs.shape[1])]


def _rates(decision_rl: Floats, weight_rls: Floats, truth_rls: Floats, prefix: str) -> Figures:
    all_s, yes_s = weight_rls.sum(axis=1), truth_rls.sum(axis=1)
    flagged_s = (decision_rl[..., None] * weight_rls).sum(axis=1)
    right_s = (decision_rl[..., None] * truth_rls).sum(axis=1)
    false_s, missed_s = (flagged_s - right_s).clip(min=0.0), (yes_s - right_s).clip(min=0.0)
    no_s, quiet_s = all_s - yes_s, all_s - flagged_s
    fpr_s, fnr_s = share_of(false_s, no_s), share_of(missed_s, yes_s)
    figures = {
        "fpr": (fpr_s, no_s),
        "fnr": (fnr_s, yes_s),
        "fdr": (share_of(false_s, flagged_s), flagged_s),
        "for": (share_of(missed_s, quiet_s), quiet_s),
        "disagreement": (share_of(false_s + missed_s, all_s), all_s),
        "balanced_error": ((fpr_s + fnr_s) / 2, all_s),
    }
    return {prefix + name: figure for name, figure in figures.items()}


def _scores(levels: Levels, expected: bool) -> Figures:
    sums, n_s = levels.sums, levels.sums.weight_cs.sum(axis=1)
    reported = (levels.score_rl, sums.weight_cs, sums.p_cs)
    brier, gini_s = split(BRIER, *reported, sums.p_cs - sums.p2_cs)
    kl, entropy_s = split(KL, *reported, sums.entropy_cs)
    zero_one, _ = split(ZERO_ONE, *reported, sums.doubt_cs)
    if expected:
        brier["expected_brier"] = brier["brier"] + gini_s
    kl["cross_entropy_smoothed"] = _cross_entropy(levels)
    kl["kl_smoothed"] = kl["cross_entropy_smoothed"] - entropy_s
    kl["cross_entropy"] = kl["kl"] + entropy_s
    kl["cross_entropy_reliability"] = kl["kl_reliability"]
    kl["cross_entropy_resolution"] = kl["kl_resolution"]
    kl["cross_entropy_uncertainty"] = kl["kl_uncertainty"] + entropy_s
    return {name: (value_s, n_s) for name, value_s in (brier | kl | zero_one).items()}


def _cross_entropy(levels: Levels) -> Floats:
    """Compute the mean cross-entropy of the smoothed scores from cells: smoothing depends on the number of votes."""
    cells = levels.cells
    total_rs = -weighted_logs(levels.smoothed_rc, cells.p_cs)
    total_rs -= weighted_logs(1.0 - levels.smoothed_rc, cells.weight_cs - cells.p_cs)
    return share_of(total_rs, cells.weight_cs.sum(axis=0))


def weighted_logs(score_rc: Floats, weight_cs: Floats) -> Floats:
    """Sum weights times log scores; a weight of 0 on a score of 0 adds 0."""
    never_rc = score_rc <= 0
    total_rs = product(np.log(np.where(never_rc, 1.0, score_rc)), weight_cs)
    if never_rc.any():
        total_rs[never_rc.astype(float) @ (weight_cs > 0) > 0] = -np.inf
    return total_rs


def _calibration(levels: Levels) -> Figures:
    sums = levels.sums
    n_rs = sums.weight_cs.sum(axis=1)
    gap_rls = sums.p_cs - sums.weight_cs * levels.score_rl[..., None]
    width_rl = [width_bins(score_l) for score_l in levels.score_rl]
    mass_rl = [mass_bins(weight_l) for weight_l in sums.weight_cs[..., 0]]
    return {
        name: (share_of(np.array([*map(_summed_gaps, gap_rls, bin_rl)]), n_rs), n_rs)
        for name, bin_rl in (("ece", width_rl), ("ece_mass", mass_rl))
    }


def _summed_gaps(gap_ls: Floats, bin_l: Ints) -> Floats:
    # Scores ascend, so bins do: levels of one bin are neighbours.
    start_b = np.flatnonzero(np.diff(bin_l, prepend=-1))
    total_s: Floats = np.abs(np.add.reduceat(gap_ls, start_b, axis=0)).sum(axis=0)
    return total_s


def width_bins(score_l: Floats) -> Ints:
    """Return the bin of equal width of each score; a score on an edge belongs to the lower bin."""
    return np.searchsorted(np.linspace(0.0, 1.0, BINS + 1)[1:-1], score_l - TIE)


def mass_bins(weight_l: Floats) -> Ints:
    """Return the bin of each ascending level, bins having about equally many items; a level is never split."""
    before_l = np.cumsum(weight_l) - weight_l
    bin_l = np.floor(BINS * before_l / max(weight_l.sum(), 1e-300)).astype(np.int64)
    low_l: Ints = np.minimum(bin_l, BINS - 1)
    return low_l
