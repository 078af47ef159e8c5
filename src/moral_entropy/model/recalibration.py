"""Recalibration: a few gold labels tell how sure to be, and which labels are said too often.

Takes label probabilities and the gold of some items, returns probabilities ∝ p^(1 / temperature) · exp(bias). Cross-
fitted: what is done to an item with gold is learnt from the gold of other items alone, and so is whether anything is
done at all. Grades against the same gold stay honest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy.special import log_softmax

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


def _mapped(x: Floats, log_p_ik: Floats) -> Floats:
    """Change log probabilities: `x` is the power that they are raised to, then what is added to each label."""
    return np.asarray(log_softmax(x[0] * log_p_ik + x[1:], axis=1))


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
    n_gold, n_labels = len(known_i), p_ik.shape[1]
    if n_gold < FEWEST:
        reason = f"{n_gold} items have gold; recalibration needs {FEWEST}"
        return p_ik, Recalibration(1.0, np.zeros(n_labels), n_gold, np.nan, np.nan, used=False, reason=reason)
    log_p_ik, label_i, count_i = _log(p_ik[known_i]), gold_i[known_i].astype(np.int64), count_i[known_i]
    # Which fold an item comes to has nothing to do with its gold.
    fold_i = np.empty(n_gold, dtype=np.int64)
    cuts = np.linspace(0, n_gold, FOLDS + 1).round().astype(int)[1:-1]
    for f, items in enumerate(np.split(np.random.default_rng([seed, n_gold]).permutation(n_gold), cuts)):
        fold_i[items] = f

    @cache
    def learn(*folds: int) -> Floats:
        """Learn from the items of these folds."""
        inside = np.isin(fold_i, folds)
        return _fit(log_p_ik[inside], label_i[inside], count_i[inside])

    def gain_of(folds: tuple[int, ...]) -> tuple[float, float]:
        """Return what each of these folds gains from the others among them, on average, and its standard error."""
        inside, gain_i = np.isin(fold_i, folds), np.zeros(n_gold)
        for f in folds:
            here = fold_i == f
            after_ik = _mapped(learn(*(g for g in folds if g != f)), log_p_ik[here])
            change_ik = after_ik - log_softmax(log_p_ik[here], axis=1)
            gain_i[here] = np.take_along_axis(change_ik, label_i[here, None], axis=1)[:, 0]
        mean = float(np.average(gain_i[inside], weights=count_i[inside]))
        # Items are independent, counted ones too: n items alike are n pieces of evidence.
        variance = float(np.average((gain_i[inside] - mean) ** 2, weights=count_i[inside]))
        return mean, float(np.sqrt(variance / count_i[inside].sum()))

    folds = tuple(range(FOLDS))
    (gain, gain_se), x = gain_of(folds), learn(*folds)
    clear = gain > CLEAR * gain_se
    new_ik = p_ik.copy()
    if clear:
        # Not all at once: each step would hold a copy of all items.
        for start in range(0, len(p_ik), ITEMS_AT_ONCE):
            chunk = slice(start, start + ITEMS_AT_ONCE)
            new_ik[chunk] = np.exp(_mapped(x, _log(p_ik[chunk])))
        new_ik[known_i] = p_ik[known_i]
    for f in folds:
        teachers = tuple(g for g in folds if g != f)
        fold_gain, fold_se = gain_of(teachers)
        if fold_gain > CLEAR * fold_se:
            new_ik[known_i[fold_i == f]] = np.exp(_mapped(learn(*teachers), log_p_ik[fold_i == f]))
    reason = "" if clear else f"no clear gain: {gain:z.3f} nats per item, standard error {gain_se:.3f}"
    temperature = 1.0 / float(x[0]) if x[0] > 0.0 else np.inf
    return new_ik, Recalibration(temperature, x[1:], n_gold, gain, gain_se, used=clear, reason=reason)


def _log(p_ik: Floats) -> Floats:
    # The smallest number keeps a "never" finite, and far below anything else.
    log_p_ik = np.log(np.maximum(p_ik, np.finfo(np.float64).tiny))
    return np.asarray(log_p_ik - log_p_ik.max(axis=1, keepdims=True))


def _fit(log_p_ik: Floats, label_i: Ints, count_i: Floats) -> Floats:
    """Find the power and the biases that minimise the log loss with their priors, by Newton's steps: it is convex.

    The power is not negative: where gold contradicts p, p counts for nothing rather than for its opposite.
    """
    cost = partial(_cost, log_p_ik=np.asfortranarray(log_p_ik), label_i=label_i, count_i=count_i)
    x: Floats = np.eye(1 + log_p_ik.shape[1])[0]
    for free in (slice(0, None), slice(1, None)):
        for _ in range(MOST_STEPS):
            value, slope, curvature = cost(x)
            step = np.zeros_like(x)
            step[free] = np.linalg.solve(curvature[free, free], slope[free])
            # Near the end the cost's own rounding would decide whether it is lower.
            while cost(x - step)[0] > value + 1e-10 * abs(value) and np.abs(step).max() > STILL:
                step /= 2.0
            x = x - step
            if np.abs(step).max() < STILL:
                break
        if x[0] >= 0.0:
            break
        x[0] = 0.0
    return x


def _cost(x: Floats, log_p_ik: Floats, label_i: Ints, count_i: Floats) -> tuple[float, Floats, Floats]:
    """Compute the log loss with its priors at a power and biases, and its first and second derivatives."""
    n_items, n_labels = log_p_ik.shape
    log_q_ik, gold = _mapped(x, log_p_ik), (np.arange(n_items), label_i)
    spread = np.array([POWER_SPREAD, *[BIAS_SPREAD] * n_labels])
    # A power of 1 and no biases leave probabilities as they are.
    off = (x - np.eye(1 + n_labels)[0]) / spread
    value = 0.5 * float(off @ off) - float(count_i @ log_q_ik[gold])
    weighted_ik = count_i[:, None] * np.exp(log_q_ik)
    off_ik = weighted_ik.copy()
    off_ik[gold] -= count_i
    slope = np.concatenate([[(off_ik * log_p_ik).sum()], off_ik.sum(axis=0)]) + off / spread
    # The curvature is the covariance, under q, of the log probability and of the labels' indicators.
    mean_i = (weighted_ik * log_p_ik).sum(axis=1) / count_i
    around_ik = weighted_ik * (log_p_ik - mean_i[:, None])
    curvature = np.diag(1.0 / spread**2)
    curvature[0, 0] += float((around_ik * log_p_ik).sum())
    curvature[0, 1:] += around_ik.sum(axis=0)
    curvature[1:, 0] += around_ik.sum(axis=0)
    curvature[1:, 1:] += np.diag(weighted_ik.sum(axis=0)) - weighted_ik.T @ np.exp(log_q_ik)
    return value, slope, curvature
