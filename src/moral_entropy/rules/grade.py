"""Grades of one rule on one group of items: rates, the Bregman family, calibration.

Takes the rule's levels (its distinct answers) and sums by level (`cells.SUMS`); returns every metric in every column.

`p` below is what the rule is graded against: the posterior probability, or gold as 0 and 1. Rates grade the yes or no
of the rule; `expected_…` rates weigh items by p and 1 - p instead of by the consensus' yes or no.

A convex generator phi makes a divergence D(p, g) = phi(p) - phi(g) - phi'(g) (p - g): what a report of g loses when
p is right. Averaged over items that share a report, it splits exactly into reliability - resolution + uncertainty
(Bröcker 2009, "Reliability, sufficiency, and the decomposition of proper scores", eq. 9). The split needs only sums
over those items. With phi = -entropy, divergence plus the mean entropy of p is the expected score of g when labels are
drawn from p.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, logit

from moral_entropy.ties import TIE, tie_key
from moral_entropy.votes.table import Floats, Ints

BINS = 15
EDGES = np.linspace(0.0, 1.0, BINS + 1)[1:-1]
"""Bins of equal width; a score on an edge belongs to the lower one."""

RATES = ("fpr", "fnr", "fdr", "for", "disagreement", "balanced_error")
"""Rates of the yes or no of a rule; each has an expected version."""

Figures = dict[str, tuple[Floats, Floats]]
"""By metric: values and denominators, column by column."""


def smooth(score_c: Floats, votes_c: Ints, smoothing: float, n_labels: int = 2) -> Floats:
    """Count an answer as `votes_c` votes for it, and add pseudo-votes for every label.

    Examples
    --------
    >>> smooth(np.array([1.0, 0.0]), np.array([3, 1]), 0.5)
    array([0.875, 0.25 ])
    """
    # Without votes and without smoothing nothing is known of any label.
    whole_c = votes_c + n_labels * smoothing
    smoothed_c = (score_c * votes_c + smoothing) / np.where(whole_c == 0, 1.0, whole_c)
    return np.where(whole_c == 0, 1.0 / n_labels, smoothed_c)


def grade(
    score_c: Floats, decision_c: Floats, smoothed_c: Floats, sum_tcs: Floats, *, expected: bool = True
) -> Figures:
    """Grade one rule by all metrics.

    Parameters
    ----------
    score_c, decision_c, smoothed_c
        The rule's answer in each cell, its yes or no, and its smoothed score; none may be NaN.
    sum_tcs
        What it is graded against.
    expected
        Whether to return the expected versions too: against gold they equal the plain ones.

    Examples
    --------
    Ten items the rule says yes to, eight of them rightly, and ten it says no to, rightly:

    >>> yes, items = np.array([[0.0], [8.0]]), np.array([[10.0], [10.0]])
    >>> sums, answer = np.stack([items, yes, yes, yes, 0 * yes, 0 * yes]), np.array([0.0, 1.0])
    >>> value_s, n_s = grade(answer, answer, smooth(answer, np.array([3, 3]), 0.5), sums, expected=False)["fdr"]
    >>> value_s.round(3).tolist(), n_s.tolist()
    ([0.2], [10.0])
    """
    # Cells of equal answer are a level; levels ascend.
    key_c = tie_key(score_c)
    order_c = np.lexsort((decision_c, key_c))
    fresh_c = [np.diff(answer_c[order_c], prepend=np.nan) != 0 for answer_c in (key_c, decision_c)]
    start_l = np.flatnonzero(fresh_c[0] | fresh_c[1])
    score_l, decision_l = score_c[order_c[start_l]], decision_c[order_c[start_l]]
    sum_tls = np.add.reduceat(sum_tcs[:, order_c], start_l, axis=1)
    items_ls, yes_ls, p_ls = sum_tls[:3]
    figures = _rates(decision_l, items_ls, yes_ls, "")
    if expected:
        figures |= _rates(decision_l, items_ls, p_ls, "expected_")
    smoothed_s = -weighted_logs(smoothed_c, sum_tcs[2]) - weighted_logs(1.0 - smoothed_c, sum_tcs[0] - sum_tcs[2])
    return figures | _scores(score_l, sum_tls, smoothed_s, expected)


def grade_label(
    score_c: Floats, decision_c: Floats, smoothed_c: Floats, sum_tcs: Floats, *, n_labels: int, expected: bool
) -> Figures:
    """Grade a label rather than each label against the rest; cells hold every item once per label."""
    items_cs, yes_cs, p_cs, p2_cs = sum_tcs[:4]
    n_s = items_cs.sum(axis=0) / n_labels
    score_c1, decision_c1 = score_c[:, None], decision_c[:, None]
    gap_cs = score_c1**2 * items_cs - 2 * score_c1 * p_cs + p2_cs
    figures = {
        "disagreement": 1.0 - share_of((decision_c1 * yes_cs).sum(axis=0), n_s),
        "brier": share_of(gap_cs.sum(axis=0), n_s),
        "cross_entropy": share_of(-weighted_logs(score_c, p_cs), n_s),
        "cross_entropy_smoothed": share_of(-weighted_logs(smoothed_c, p_cs), n_s),
    }
    if expected:
        figures["expected_disagreement"] = 1.0 - share_of((decision_c1 * p_cs).sum(axis=0), n_s)
    return {name: (value_s, n_s) for name, value_s in figures.items()}


def _rates(decision_l: Floats, items_ls: Floats, truth_ls: Floats, prefix: str) -> Figures:
    all_s, yes_s = items_ls.sum(axis=0), truth_ls.sum(axis=0)
    flagged_s = (decision_l[:, None] * items_ls).sum(axis=0)
    right_s = (decision_l[:, None] * truth_ls).sum(axis=0)
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


def _scores(score_l: Floats, sum_tls: Floats, smoothed_s: Floats, expected: bool) -> Figures:
    items_ls, _, p_ls, p2_ls, entropy_ls, doubt_ls = sum_tls
    n_s = items_ls.sum(axis=0)
    brier, gini_s = split(BRIER, score_l, items_ls, p_ls, p_ls - p2_ls)
    kl, entropy_s = split(KL, score_l, items_ls, p_ls, entropy_ls)
    zero_one, _ = split(ZERO_ONE, score_l, items_ls, p_ls, doubt_ls)
    if expected:
        brier["expected_brier"] = brier["brier"] + gini_s
    kl["cross_entropy_smoothed"] = share_of(smoothed_s, n_s)
    kl["kl_smoothed"] = kl["cross_entropy_smoothed"] - entropy_s
    kl["cross_entropy"] = kl["kl"] + entropy_s
    kl["cross_entropy_reliability"] = kl["kl_reliability"]
    kl["cross_entropy_resolution"] = kl["kl_resolution"]
    kl["cross_entropy_uncertainty"] = kl["kl_uncertainty"] + entropy_s
    # Scores ascend, so bins do: levels of one bin are neighbours.
    gap_ls, ece = p_ls - items_ls * score_l[:, None], {}
    for name, bin_l in (("ece", np.searchsorted(EDGES, score_l - TIE)), ("ece_mass", mass_bins(items_ls[:, 0]))):
        start_b = np.flatnonzero(np.diff(bin_l, prepend=-1))
        ece[name] = share_of(np.abs(np.add.reduceat(gap_ls, start_b, axis=0)).sum(axis=0), n_s)
    return {name: (value_s, n_s) for name, value_s in (brier | kl | zero_one | ece).items()}


def weighted_logs(score_c: Floats, weight_cs: Floats) -> Floats:
    """Sum weights times log scores; a weight of 0 on a score of 0 adds 0."""
    never_c = score_c <= 0
    total_s: Floats = (np.log(np.where(never_c, 1.0, score_c))[:, None] * weight_cs).sum(axis=0)
    total_s[(weight_cs[never_c] > 0).any(axis=0)] = -np.inf
    return total_s


def mass_bins(weight_l: Floats) -> Ints:
    """Return the bin of each ascending level, bins having about equally many items; a level is never split."""
    before_l = np.cumsum(weight_l) - weight_l
    bin_l = np.floor(BINS * before_l / max(weight_l.sum(), 1e-300)).astype(np.int64)
    low_l: Ints = np.minimum(bin_l, BINS - 1)
    return low_l


Generator = tuple[str, Callable[[Any], Any], Callable[[Any], Any]]
"""A convex function phi on [0, 1]: name of its divergence; minus phi, an entropy that is 0 at both ends; its slope."""

# p² and p² - p make the same divergence: it does not see a linear term.
BRIER: Generator = ("brier", lambda p: p * (1 - np.asarray(p)), lambda p: 2 * np.asarray(p) - 1)
KL: Generator = ("kl", lambda p: entr(p) + entr(1 - np.asarray(p)), logit)
# The kink is at ½, which the paper's threshold counts as yes.
ZERO_ONE: Generator = ("zero_one", lambda p: np.minimum(p, 1 - np.asarray(p)),
                       lambda p: np.where(np.asarray(p) >= 0.5, 1.0, -1.0))  # fmt: skip


def split(
    generator: Generator, g_l: Floats, weight_ls: Floats, p_ls: Floats, entropy_ls: Floats
) -> tuple[dict[str, Floats], Floats]:
    """Split the mean divergence of a report with few levels. Axes: any, **l** level, **s** draw.

    Parameters
    ----------
    generator
        Which divergence.
    g_l
        The report at each level.
    weight_ls, p_ls, entropy_ls
        Sums over the level's items: their number, what was right, and the generator's entropy of that.

    Returns
    -------
    tuple
        In every draw, the mean divergence by the generator's name, "brier", and its exact parts: "brier" is
        "brier_reliability" less "brier_resolution" plus "brier_uncertainty". And the mean entropy of what was right:
        added to divergence and uncertainty it turns both into those of the expected score.

    Examples
    --------
    Two items reported 1 that were 0.5 and 0.9, one reported 0 that was 0.1:

    >>> sums = np.array([[1.0], [2.0]]), np.array([[0.1], [1.4]]), np.array([[0.09], [0.25 + 0.09]])
    >>> parts, _ = split(BRIER, np.array([0.0, 1.0]), *sums)
    >>> float(parts["brier"][0].round(6)), round((0.1**2 + 0.5**2 + 0.1**2) / 3, 6)
    (0.09, 0.09)
    """
    name, entropy, slope = generator
    g_l1 = g_l[..., None]
    total_s = weight_ls.sum(axis=-2)
    # Rounding can put means of many probabilities outside 0 to 1, where entropies have no value.
    mean_s = share_of(p_ls.sum(axis=-2), total_s).clip(0.0, 1.0)
    level_ls = (p_ls / np.where(weight_ls == 0, 1.0, weight_ls)).clip(0.0, 1.0)
    # Averages of minus phi: at the report (with the rise of its tangent), at the level's mean, and at the items.
    gap_ls = p_ls - weight_ls * g_l1
    with np.errstate(invalid="ignore"):
        # An infinite slope times a gap of 0 is 0: a certain report that is right loses nothing.
        line_ls = weight_ls * entropy(g_l1) - np.where(gap_ls == 0, 0.0, slope(g_l1) * gap_ls)
    report_s = share_of(line_ls.sum(axis=-2), total_s)
    level_s = share_of((weight_ls * entropy(level_ls)).sum(axis=-2), total_s)
    entropy_s = share_of(entropy_ls.sum(axis=-2), total_s)
    whole_s = entropy(mean_s)
    parts = {
        "": report_s - entropy_s,
        "_reliability": report_s - level_s,
        # The rise of the tangent at the overall mean is 0 on average, so that only entropies are left.
        "_resolution": whole_s - level_s,
        "_uncertainty": whole_s - entropy_s,
    }
    return {f"{name}{part}": value_s.clip(min=0.0) for part, value_s in parts.items()}, entropy_s


def share_of(part: NDArray[Any], total: NDArray[Any]) -> Floats:
    """Divide; NaN where there is nothing to divide by."""
    shares: Floats = np.divide(part, np.where(total == 0, np.nan, total))
    return shares
