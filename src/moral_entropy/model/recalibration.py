"""Recalibration: a few gold labels tell how sure to be, and which labels are said too often.

Takes label probabilities and the gold of some items, returns probabilities ∝ p^(1 / temperature) · exp(bias). Cross-
fitted: what is done to an item with gold is learnt from the gold of other items alone, and so is whether anything is
done at all. Grades against the same gold stay honest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from moral_entropy.votes.table import UNKNOWN, Floats, Ints

FOLDS = 5
FEWEST, MOST = 20, 4_000
"""Fewest items with gold to learn from, and most: a few numbers are learnt, which more items would not make better."""

ITEMS_AT_ONCE = 65_536

CLEAR = 1.0
"""Standard errors of gain from which p is changed: less may be luck."""

MOST_STEPS, STILL = 50, 1e-9
"""Newton's steps at most, and the length of a step that is the last."""

POWER_SPREAD, BIAS_SPREAD = 0.5, 1.0
"""Standard deviations of the priors: of one over the temperature around 1, and of a label's bias around 0."""


@dataclass(frozen=True, eq=False)
class Recalibration:
    """What was learnt from all the gold there is. Axis: **k** label.

    Parameters
    ----------
    temperature
        Above 1 where p is too sure, below 1 where it could be surer; infinite where p says nothing about gold.
    bias_k
        Added to the log probability of each label.
    n_gold
        Items with gold.
    gain, gain_se
        Log loss that is saved on items whose gold was not learnt from, in nats per item, and its standard error; NaN
        where there is too little gold.
    used
        Whether items without gold were recalibrated; where not, `reason` says why.
    reason
        Empty where they were.
    """

    temperature: float
    bias_k: Floats
    n_gold: int
    gain: float
    gain_se: float
    used: bool
    reason: str = ""


def _unchanged(n_labels: int) -> Floats:
    """Return the power and biases that leave probabilities as they are."""
    return np.asarray(np.eye(1 + n_labels)[0])


def _mapped(x: Floats, log_p_ik: Floats) -> Floats:
    """Change log probabilities: `x` is the power that they are raised to, then what is added to each label."""
    log_q_ik = x[0] * log_p_ik + x[1:]
    log_q_ik -= log_q_ik.max(axis=1, keepdims=True)
    log_q_ik -= np.log(np.exp(log_q_ik).sum(axis=1, keepdims=True))
    return np.asarray(log_q_ik)


def recalibrate(
    p_ik: Floats, gold_i: Ints, *, count_i: Floats | None = None, seed: int = 0
) -> tuple[Floats, Recalibration]:
    """Recalibrate probabilities by the gold of other items.

    Items with gold are dealt into five folds. Each fold is recalibrated by what the others teach, if among those the
    gain is clear; items without gold by what all gold teaches. Nothing is changed where fewer than 20 items have gold.
    Of more than 4,000 items with gold a sample is learnt from, and the others are treated as if they had none.

    Parameters
    ----------
    p_ik
        Label probabilities.
    gold_i
        Known labels, or `UNKNOWN`. Gold that was evidence for p itself must not be among them.
    count_i
        How many items each stands for; 1 by default.
    seed
        Of the folds.

    Returns
    -------
    tuple[Floats, Recalibration]
        The recalibrated `p_ik`, and what was learnt.

    Examples
    --------
    Probabilities of .99 that are right four times in five:

    >>> p_ik = np.tile([[0.99, 0.01], [0.01, 0.99]], (100, 1))
    >>> gold_i = np.where(np.arange(200) % 10 < 8, np.arange(200) % 2, 1 - np.arange(200) % 2)
    >>> better_ik, learnt = recalibrate(p_ik, gold_i)
    >>> learnt.used, round(learnt.temperature, 1), better_ik[0].round(1).tolist()
    (True, 3.3, [0.8, 0.2])
    """
    count_i = np.ones(len(p_ik)) if count_i is None else np.asarray(count_i, dtype=np.float64)
    known_i = np.flatnonzero(gold_i != UNKNOWN)
    if len(known_i) > MOST:
        known_i = np.sort(np.random.default_rng([seed, len(known_i)]).choice(known_i, MOST, replace=False))
    n_labels = p_ik.shape[1]
    if len(known_i) < FEWEST:
        reason = f"{len(known_i)} items have gold; recalibration needs {FEWEST}"
        return p_ik, Recalibration(1.0, np.zeros(n_labels), len(known_i), np.nan, np.nan, used=False, reason=reason)
    gold = _Gold(_log(p_ik[known_i]), gold_i[known_i].astype(np.int64), count_i[known_i])
    folds = _Folds(gold, _deal(len(known_i), seed))
    everything = frozenset(range(FOLDS))
    gain, gain_se = folds.gain(everything)
    used = gain > CLEAR * gain_se
    whole = folds.learnt_from(everything)
    new_ik = p_ik.copy()
    if used:
        # Some items at a time: each step would hold a copy of all.
        for start in range(0, len(p_ik), ITEMS_AT_ONCE):
            some = slice(start, start + ITEMS_AT_ONCE)
            new_ik[some] = np.exp(_mapped(whole, _log(p_ik[some])))
        new_ik[known_i] = p_ik[known_i]
    for f, fold in enumerate(folds.item_f):
        others = everything - {f}
        other_gain, other_se = folds.gain(others)
        if other_gain > CLEAR * other_se:
            new_ik[known_i[fold]] = np.exp(_mapped(folds.learnt_from(others), gold.log_p_ik[fold]))
    return new_ik, _described(whole, gain, gain_se, len(known_i), used=used)


def _described(whole: Floats, gain: float, gain_se: float, n_gold: int, *, used: bool) -> Recalibration:
    temperature = 1.0 / float(whole[0]) if whole[0] > 0.0 else np.inf
    reason = "" if used else f"no clear gain: {gain:z.3f} nats per item, standard error {gain_se:.3f}"
    return Recalibration(temperature, whole[1:], n_gold, gain, gain_se, used=used, reason=reason)


@dataclass(frozen=True, eq=False)
class _Gold:
    """Items with gold: log probabilities, labels, and how many items each stands for."""

    log_p_ik: Floats
    label_i: Ints
    count_i: Floats

    def take(self, some_i: Ints) -> _Gold:
        # Item beside item: sums over few labels are slow where each item's labels lie side by side.
        return _Gold(np.asfortranarray(self.log_p_ik[some_i]), self.label_i[some_i], self.count_i[some_i])

    def log_score_i(self, log_p_ik: Floats) -> Floats:
        return np.asarray(log_p_ik[np.arange(len(self.label_i)), self.label_i])


def _log(p_ik: Floats) -> Floats:
    # The smallest number keeps a "never" finite, and far below anything else.
    log_p_ik = np.log(np.maximum(p_ik, np.finfo(np.float64).tiny))
    return np.asarray(log_p_ik - log_p_ik.max(axis=1, keepdims=True))


def _deal(n: int, seed: int) -> list[Ints]:
    """Deal items into folds; which one an item comes to has nothing to do with its gold."""
    order_i = np.random.default_rng([seed, n]).permutation(n)
    cuts = np.linspace(0, n, FOLDS + 1).round().astype(int)
    return [np.sort(order_i[first:last]) for first, last in pairwise(cuts)]


class _Folds:
    """Items with gold in folds; what some folds teach is learnt once."""

    def __init__(self, gold: _Gold, item_f: Sequence[Ints]) -> None:
        self.gold, self.item_f = gold, item_f
        self._learnt: dict[frozenset[int], Floats] = {}

    def learnt_from(self, folds: frozenset[int]) -> Floats:
        """Learn from the items of some folds: see `_mapped`."""
        if folds not in self._learnt:
            items = np.concatenate([self.item_f[f] for f in sorted(folds)])
            self._learnt[folds] = _fit(self.gold.take(items))
        return self._learnt[folds]

    def gain(self, folds: frozenset[int]) -> tuple[float, float]:
        """Return what each of some folds gains from the others of them, on average, and its standard error."""
        gains, counts = [], []
        for f in sorted(folds):
            here = self.gold.take(self.item_f[f])
            before_ik = _mapped(_unchanged(here.log_p_ik.shape[1]), here.log_p_ik)
            after_ik = _mapped(self.learnt_from(folds - {f}), here.log_p_ik)
            gains.append(here.log_score_i(after_ik) - here.log_score_i(before_ik))
            counts.append(here.count_i)
        gain_i, count_i = np.concatenate(gains), np.concatenate(counts)
        gain = float(np.average(gain_i, weights=count_i))
        # Items are independent, counted ones too: n items alike are n pieces of evidence.
        variance = float(np.average((gain_i - gain) ** 2, weights=count_i))
        return gain, float(np.sqrt(variance / count_i.sum()))


def _fit(gold: _Gold) -> Floats:
    """Find the power and the biases that minimise the log loss with their priors, by Newton's steps: it is convex.

    The power is not negative: where gold contradicts p, p counts for nothing rather than for its opposite.
    """
    x = _unchanged(gold.log_p_ik.shape[1])
    for free in (slice(0, None), slice(1, None)):
        for _ in range(MOST_STEPS):
            value, slope, curvature = _cost(x, gold)
            step = np.zeros_like(x)
            step[free] = np.linalg.solve(curvature[free, free], slope[free])
            # Near the end the cost's own rounding would decide whether it is lower.
            while _cost(x - step, gold)[0] > value + 1e-10 * abs(value) and np.abs(step).max() > STILL:
                step /= 2.0
            x = x - step
            if np.abs(step).max() < STILL:
                break
        if x[0] >= 0.0:
            break
        x[0] = 0.0
    return np.asarray(x)


def _cost(x: Floats, gold: _Gold) -> tuple[float, Floats, Floats]:
    """Compute the log loss with its priors at a power and biases, and its first and second derivatives."""
    n_labels = len(x) - 1
    log_q_ik = _mapped(x, gold.log_p_ik)
    spread = np.array([POWER_SPREAD, *[BIAS_SPREAD] * n_labels])
    off = (x - _unchanged(n_labels)) / spread
    value = 0.5 * float(off @ off) - float(gold.count_i @ gold.log_score_i(log_q_ik))
    weighted_ik = gold.count_i[:, None] * np.exp(log_q_ik)
    off_ik = weighted_ik.copy()
    off_ik[np.arange(len(off_ik)), gold.label_i] -= gold.count_i
    slope = np.concatenate([[(off_ik * gold.log_p_ik).sum()], off_ik.sum(axis=0)]) + off / spread
    # The curvature is the covariance, under q, of the log probability and of the labels' indicators.
    mean_i = (weighted_ik * gold.log_p_ik).sum(axis=1) / gold.count_i
    around_ik = weighted_ik * (gold.log_p_ik - mean_i[:, None])
    curvature = np.diag(1.0 / spread**2)
    curvature[0, 0] += float((around_ik * gold.log_p_ik).sum())
    curvature[0, 1:] += around_ik.sum(axis=0)
    curvature[1:, 0] += around_ik.sum(axis=0)
    curvature[1:, 1:] += np.diag(weighted_ik.sum(axis=0)) - weighted_ik.T @ np.exp(log_q_ik)
    return value, slope, curvature
