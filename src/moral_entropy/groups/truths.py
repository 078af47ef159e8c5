"""One truth or a truth per group: a model of yes and no that spans both, fitted to the votes on one label.

An item has a place on a line for every group, and an annotator has a type: how far along the line an item must be for a
yes (the threshold), and how sharply the annotator tells (the slope). Groups that differ in their types have another
threshold for the same truth. Groups differ in truth where their places of an item differ: with probability `shared` a
group has the item's common place, else one of its own. `shared` = 1 is one truth; 0 is a truth per group, without
anything in common. Which of them holds is decided by predicting the votes of every annotator from those of all others:
a group with another threshold is predicted as well by one truth, a group with another truth is predicted better by the
votes of its own members.

Places and types lie on fixed grids, so every step is a sum (mean-field EM). Votes are yes or no; knows no names.
Axes: **i** item, **a** annotator, **g** group, **v** vote, **q** place, **t** type.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse import csr_array
from scipy.special import log_expit, logsumexp, softmax

from moral_entropy.ties import tie_key
from moral_entropy.votes.table import Floats, Ints

PLACES = np.linspace(-3.0, 3.0, 13)
"""Where an item can be: from a sure no to a sure yes."""

SLOPES = np.array([0.0, 0.5, 1.0, 2.0])
THRESHOLDS = np.arange(-3.0, 4.0)
TYPICAL = 2.0
"""A group's types are shrunk to those of all groups by so many pseudo-annotators."""

PASSES = 60
CLOSE = 1e-3
"""Passes end when no probability of a place moves by more than this."""

TINY = 1e-300

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

CELLS_AT_ONCE = 200_000
"""Items times groups whose places are held at once."""

ONE_TRUTH, PER_GROUP, CANNOT_TELL = "one truth", "a truth per group", "cannot tell"


SLOPE_T, THRESHOLD_T = (np.ravel(grid) for grid in np.meshgrid(SLOPES, THRESHOLDS, indexing="ij"))
LOGIT_TQ = SLOPE_T[:, None] * PLACES - THRESHOLD_T[:, None]
LOG_NO_TQ, LOG_YES_TQ = log_expit(-LOGIT_TQ), log_expit(LOGIT_TQ)
# To begin with, everybody sees the truth somehow and stands about the middle.
FIRST_T = np.exp(-2.0 * np.abs(SLOPE_T - 1.0) - THRESHOLD_T**2)
FIRST_T = FIRST_T / FIRST_T.sum()
YES_TQ = np.exp(LOG_YES_TQ)


@dataclass(frozen=True, eq=False)
class YesVotes:
    """Votes for or against one label.

    Parameters
    ----------
    item_v, annotator_v
        Whose vote on what, as codes from 0 on.
    yes_v
        Whether it is a yes.
    n_items, n_annotators
        How many there are.
    """

    item_v: Ints
    annotator_v: Ints
    yes_v: NDArray[np.bool_]
    n_items: int
    n_annotators: int

    @cached_property
    def by_item(self) -> tuple[Any, Any]:
        """The no votes and the yes votes, each as a sparse matrix of items by annotators."""
        places = ((self.item_v[is_v], self.annotator_v[is_v]) for is_v in (~self.yes_v, self.yes_v))
        shape = (self.n_items, self.n_annotators)
        no, yes = (csr_array((np.ones(len(place[0])), place), shape=shape) for place in places)
        return no, yes

    @cached_property
    def by_annotator(self) -> tuple[Any, Any]:
        """The same, annotators by items."""
        no, yes = self.by_item
        return csr_array(no.T), csr_array(yes.T)

    def on_items(self, kept_i: Ints) -> YesVotes:
        """Return the votes on some items, which are numbered anew; the annotators stay."""
        place_i = np.full(self.n_items, -1)
        place_i[kept_i] = np.arange(len(kept_i))
        kept_v = place_i[self.item_v] >= 0
        item_v = place_i[self.item_v[kept_v]]
        return YesVotes(item_v, self.annotator_v[kept_v], self.yes_v[kept_v], len(kept_i), self.n_annotators)


@dataclass(frozen=True, eq=False)
class Truths:
    """The model at its fit, for one value of `shared`.

    Parameters
    ----------
    shared
        Probability that a group has an item's common place.
    weight_q
        How common each place is.
    type_gt
        How common each type is in each group.
    type_at
        What type each annotator is.
    group_a
        Which group each annotator belongs to; -1 where the annotator is left out.
    loglik_igq
        Log likelihood of each place of an item, from the votes of one group.
    """

    shared: float
    weight_q: Floats
    type_gt: Floats
    type_at: Floats
    group_a: Ints
    loglik_igq: Floats

    @cached_property
    def log_place_igq(self) -> Floats:
        """Log probability of each place of an item for a group, given all votes, up to a constant."""
        prior_igq = message_from_others(self.loglik_igq, self.weight_q, self.shared)
        return np.asarray(np.log(prior_igq + TINY) + self.loglik_igq)

    @cached_property
    def yes_ig(self) -> Floats:
        """Share of a group's members who are expected to say yes to an item."""
        return np.asarray(np.einsum("igq,gq->ig", softmax(self.log_place_igq, axis=-1), self.type_gt @ YES_TQ))

    @cached_property
    def label_ig(self) -> Floats:
        """Probability that most members of a group would say yes to an item: that yes is the group's label."""
        yes_gq = tie_key(self.type_gt @ YES_TQ)
        most_gq = np.where(yes_gq == tie_key(0.5), 0.5, yes_gq > 0.5)
        return np.asarray(np.einsum("igq,gq->ig", softmax(self.log_place_igq, axis=-1), most_gq).clip(0.0, 1.0))


def fit_truths(votes: YesVotes, group_a: Ints, shared: float, start: Truths | None = None) -> Truths:
    """Fit places of items and types of annotators.

    Parameters
    ----------
    votes
        The votes on one label.
    group_a
        Which group each annotator belongs to, from 0 on; -1 leaves an annotator out.
    shared
        Probability that a group has an item's common place.
    start
        A fit to start from, of the same groups.

    Examples
    --------
    Two groups of two who always contradict each other: with a truth each, every group agrees with itself.

    >>> item_v, annotator_v = np.repeat(np.arange(20), 4), np.tile(np.arange(4), 20)
    >>> yes_v = (item_v % 2 == 0) == (annotator_v < 2)
    >>> votes = YesVotes(item_v, annotator_v, yes_v, 20, 4)
    >>> fit_truths(votes, np.array([0, 0, 1, 1]), 0.0).yes_ig[:2].round()
    array([[1., 0.],
           [0., 1.]])
    """
    member_ag = (group_a[:, None] == np.arange(group_a.max() + 1)).astype(np.float64)
    if start is None:
        weight_q = np.full(len(PLACES), 1.0 / len(PLACES))
        type_gt = np.full((member_ag.shape[1], len(FIRST_T)), 1.0 / len(FIRST_T))
        type_at = np.broadcast_to(FIRST_T, (votes.n_annotators, len(FIRST_T)))
    else:
        weight_q, type_gt, type_at = start.weight_q, start.type_gt, start.type_at
    place_igq = np.zeros((votes.n_items, member_ag.shape[1], len(PLACES)))
    for _ in range(PASSES):
        loglik_igq = _log_likelihood(votes, group_a, type_at)
        before_igq = place_igq
        prior_igq = message_from_others(loglik_igq, weight_q, shared)
        place_igq = softmax(np.log(prior_igq + TINY) + loglik_igq, axis=-1)
        if np.abs(place_igq - before_igq).max() < CLOSE:
            break
        weight_q = place_igq.sum(axis=(0, 1)) + 1.0
        weight_q = weight_q / weight_q.sum()
        type_at = softmax(np.log(type_gt)[group_a] + _expected_scores(votes, group_a, place_igq), axis=-1)
        # How common each type is in each group, shrunk to how common it is in all.
        count_gt = member_ag.T @ type_at
        pooled_t = count_gt.sum(axis=0) + 1.0 / len(FIRST_T)
        type_gt = count_gt + TYPICAL * pooled_t / pooled_t.sum()
        type_gt = type_gt / type_gt.sum(axis=1, keepdims=True)
    return Truths(shared, weight_q, type_gt, type_at, group_a, _log_likelihood(votes, group_a, type_at))


def message_from_others(loglik_igq: Floats, weight_q: Floats, shared: float) -> Floats:
    """Return the probability of each place for a group before its own votes: what the other groups' votes say."""
    like_igq = np.exp(loglik_igq - loglik_igq.max(axis=2, keepdims=True))
    own_ig1 = (like_igq @ weight_q)[:, :, None]
    # Where its place is its own, a group says nothing of the common one.
    message_igq = np.log(shared * like_igq + (1.0 - shared) * own_ig1 + TINY)
    others_igq = message_igq.sum(axis=1, keepdims=True) - message_igq
    return np.asarray(shared * softmax(np.log(weight_q) + others_igq, axis=-1) + (1.0 - shared) * weight_q)


def _log_likelihood(votes: YesVotes, group_a: Ints, type_at: Floats) -> Floats:
    """Sum the expected log likelihoods of a group's votes by place: `loglik_igq`."""
    no, yes = votes.by_item
    shares = (type_at * (group_a == g)[:, None] for g in range(group_a.max() + 1))
    return np.stack([yes @ (share_at @ LOG_YES_TQ) + no @ (share_at @ LOG_NO_TQ) for share_at in shares], axis=1)


def _expected_scores(votes: YesVotes, group_a: Ints, place_igq: Floats) -> Floats:
    """Sum the expected log likelihoods of an annotator's votes by type: `score_at`."""
    no, yes = votes.by_annotator
    score_at = np.zeros((votes.n_annotators, len(FIRST_T)))
    for g in range(place_igq.shape[1]):
        at_a, place_iq = np.flatnonzero(group_a == g), place_igq[:, g]
        score_at[at_a] = yes[at_a] @ (place_iq @ LOG_YES_TQ.T) + no[at_a] @ (place_iq @ LOG_NO_TQ.T)
    return score_at


def left_out_scores(votes: YesVotes, fitted: Truths) -> Floats:
    """Return the log probability of all votes of each annotator, predicted from the votes of the others: `score_a`.

    The annotator's type is unknown: it is summed over, as common as it is among the other members of the group. The
    score of annotators without a group means nothing.

    Parameters
    ----------
    votes, fitted
        The votes, and their fit.
    """
    who_v, group_v, yes_v1 = votes.annotator_v, fitted.group_a[votes.annotator_v], votes.yes_v[:, None]
    own_vq = np.where(yes_v1, (fitted.type_at @ LOG_YES_TQ)[who_v], (fitted.type_at @ LOG_NO_TQ)[who_v])
    yes_vt = softmax(fitted.log_place_igq[votes.item_v, group_v] - own_vq, axis=-1) @ YES_TQ.T
    log_vt = np.log(np.where(yes_v1, yes_vt, 1.0 - yes_vt))
    size_g = np.bincount(fitted.group_a[fitted.group_a >= 0], minlength=len(fitted.type_gt))
    count_gt = fitted.type_gt * (size_g + TYPICAL)[:, None]
    others_at = np.maximum(count_gt[fitted.group_a] - fitted.type_at, 1e-12)
    others_at /= others_at.sum(axis=1, keepdims=True)
    shape = (votes.n_annotators, len(who_v))
    cast_by = csr_array((np.ones(len(who_v)), (who_v, np.arange(len(who_v)))), shape=shape)
    return np.asarray(logsumexp(cast_by @ log_vt + np.log(others_at), axis=1))


def read_truths(votes: YesVotes, group_a: Ints) -> tuple[dict[str, Any], list[Truths]]:
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
        The reading (see `choose_reading`), and the fit for each of `SHARED`.
    """
    fits: list[Truths] = []
    for shared in SHARED:
        fits.append(fit_truths(votes, group_a, shared, fits[-1] if fits else None))
    counted_a = (group_a >= 0) & (np.bincount(votes.annotator_v, minlength=votes.n_annotators) > 0)
    return choose_reading(np.stack([left_out_scores(votes, fit)[counted_a] for fit in fits], axis=1)), fits


def choose_reading(score_as: Floats) -> dict[str, Any]:
    """Choose by the log probability of each left-out annotator's votes, under each of `SHARED`.

    How much groups share is chosen for each annotator by the votes of the others. Gain and loss are in nats per
    annotator: how much better a truth per group predicts than one truth, and how much worse notably different truths
    do; each with how often chance alone would make it so large.

    Examples
    --------
    >>> better = -np.abs(np.array(SHARED) - 0.5)
    >>> choose_reading(10.0 * better + np.arange(8.0)[:, None] * better)["reading"]
    'a truth per group'
    """
    total_s = score_as.sum(axis=0)
    chosen_a = np.array([_first_best(total_s - score_s) for score_s in score_as])
    gain, gain_p = mean_above_zero(score_as[np.arange(len(score_as)), chosen_a] - score_as[:, 0])
    loss, loss_p = mean_above_zero(score_as[:, 0] - score_as[:, NOTABLE])
    shared, reading = SHARED[_first_best(total_s)], CANNOT_TELL
    if gain_p < LEVEL and gain >= MATERIAL and shared < 1.0:
        reading = PER_GROUP
    elif loss_p < LEVEL and loss >= MATERIAL:
        reading = ONE_TRUTH
    return {"reading": reading, "shared": shared, "gain": gain, "gain_p": gain_p, "loss": loss, "loss_p": loss_p,
            "n_annotators": len(score_as)}  # fmt: skip


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


def thinned(votes: YesVotes, seed: int) -> YesVotes:
    """Return the votes on some of the items where there are very many."""
    if len(votes.item_v) <= MAX_VOTES:
        return votes
    size = max(int(votes.n_items * MAX_VOTES / len(votes.item_v)), 1)
    return votes.on_items(np.sort(np.random.default_rng(seed).choice(votes.n_items, size=size, replace=False)))


def labels_of_all(fit: Truths, votes: YesVotes) -> tuple[Floats, Floats]:
    """Return `yes_ig` and `label_ig` of all items, from a fit to the votes of the same annotators on some of them."""
    size = max(CELLS_AT_ONCE // len(fit.type_gt), 1)
    chunks = [np.arange(first, min(first + size, votes.n_items)) for first in range(0, votes.n_items, size)]
    fits = [replace(fit, loglik_igq=_log_likelihood(votes.on_items(chunk_i), fit.group_a, fit.type_at))
            for chunk_i in chunks]  # fmt: skip
    return np.concatenate([part.yes_ig for part in fits]), np.concatenate([part.label_ig for part in fits])
