"""Do groups see one truth, or one each? Told by the left-out votes of left-out annotators.

Both readings are fitted (`coupled_truths`) and have to tell the votes of every annotator from those of all others. A
group with another threshold is predicted as well by one truth; a group with another truth is predicted better by the
votes of its own members. Takes votes and groups, returns a `Reading` in words; knows no names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from moral_entropy.groups.coupled_truths import Truths, YesVotes, fit_truths, left_out_scores
from moral_entropy.votes.table import Floats, Ints

SHARED = (1.0, 0.9, 0.8, 0.65, 0.5, 0.25, 0.0)
"""How much groups may share, from one truth to nothing in common."""

NOTABLE = SHARED.index(0.65)
"""Where groups' truths differ notably, on more than a quarter of the items: a claim of one truth means that this
predicts worse. Smaller differences cost too little to be ruled out by groups of three annotators."""

LEVEL = 0.05
"""How often chance alone may lead to a claim."""

MATERIAL = 0.05
"""Nats per annotator that a claim needs: where votes have no signal, differences are tiny and all of one sign."""

MAX_VOTES = 40_000
"""Votes looked at: more are thinned out to some of the items."""

Answer = Literal["one truth", "a truth per group", "cannot tell"]


@dataclass(frozen=True, eq=False)
class Reading:
    """Which reading the votes support.

    Parameters
    ----------
    answer
        The reading.
    shared
        The probability that a group has an item's common place, as left-out votes choose it.
    gain
        How much better a truth per group tells a left-out annotator's votes than one truth does, in nats per annotator.
    gain_p
        How often chance alone would make the gain so large.
    loss
        How much worse notably different truths tell them than one truth does, in nats per annotator.
    loss_p
        How often chance alone would make the loss so large.
    n_annotators
        Whose votes were left out, one at a time.
    """

    answer: Answer
    shared: float
    gain: float
    gain_p: float
    loss: float
    loss_p: float
    n_annotators: int


def read_truths(votes: YesVotes, group_a: Ints) -> tuple[Reading, tuple[Truths, ...]]:
    """Say whether groups of annotators see one truth.

    Parameters
    ----------
    votes
        Votes on one label.
    group_a
        Each annotator's group, from 0 on; those below 0 are left out.

    Returns
    -------
    tuple
        The reading, and the fit for each of `SHARED`.
    """
    member_ag = (group_a[:, None] == np.arange(group_a.max() + 1)).astype(np.float64)
    fits: list[Truths] = []
    for shared in SHARED:
        fits.append(fit_truths(votes, member_ag, shared, fits[-1] if fits else None))
    counted_a = (group_a >= 0) & (np.bincount(votes.annotator_v, minlength=votes.n_annotators) > 0)
    at_a = np.flatnonzero(counted_a)
    score_as = np.stack([left_out_scores(votes, fit)[at_a, group_a[at_a]] for fit in fits], axis=1)
    return judge(score_as), tuple(fits)


def judge(score_as: Floats) -> Reading:
    """Judge by the log probability of each left-out annotator's votes, under each of `SHARED`.

    How much groups share is chosen for each annotator by the votes of the others.

    Examples
    --------
    >>> better = -np.abs(np.array(SHARED) - 0.5)
    >>> judge(10.0 * better + np.arange(8.0)[:, None] * better).answer
    'a truth per group'
    """
    total_s = score_as.sum(axis=0)
    chosen_a = np.array([_first_best(total_s - score_s) for score_s in score_as])
    gain_a = score_as[np.arange(len(score_as)), chosen_a] - score_as[:, 0]
    loss_a = score_as[:, 0] - score_as[:, NOTABLE]
    (gain, gain_p), (loss, loss_p) = mean_above_zero(gain_a), mean_above_zero(loss_a)
    shared = SHARED[_first_best(total_s)]
    answer: Answer = "cannot tell"
    if gain_p < LEVEL and gain >= MATERIAL and shared < 1.0:
        answer = "a truth per group"
    elif loss_p < LEVEL and loss >= MATERIAL:
        answer = "one truth"
    return Reading(answer, shared, gain, gain_p, loss, loss_p, len(score_as))


def _first_best(score_s: Floats) -> int:
    # Of values that predict alike, the one nearest to one truth.
    return int((score_s >= score_s.max() - 1e-6).argmax())


def mean_above_zero(x_a: Floats) -> tuple[float, float]:
    """Return a mean, and how often chance alone would make it so high: one-sided t test, 1 where nothing varies.

    Examples
    --------
    >>> mean, p = mean_above_zero(np.array([1.0, 2.0, 3.0]))
    >>> round(mean, 3), round(p, 4)
    (2.0, 0.0371)
    """
    n, mean = len(x_a), float(x_a.mean()) if len(x_a) else 0.0
    error = float(x_a.std(ddof=1)) / np.sqrt(n) if n > 1 else 0.0
    return mean, float(stats.t.sf(mean / error, n - 1)) if error > 1e-9 else 1.0


def thinned(votes: YesVotes, seed: int, most: int = MAX_VOTES) -> tuple[YesVotes, Ints]:
    """Return the votes on some of the items where there are very many, and which items those are."""
    every_i = np.arange(votes.n_items)
    if len(votes.item_v) <= most:
        return votes, every_i
    rng = np.random.default_rng(seed)
    size = max(int(votes.n_items * most / len(votes.item_v)), 1)
    some_i = np.sort(rng.choice(votes.n_items, size=size, replace=False))
    return votes.on_items(some_i), some_i
