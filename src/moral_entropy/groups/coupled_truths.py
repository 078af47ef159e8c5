"""One truth or a truth per group: a model of yes and no that spans both, fitted to the votes on one label.

An item has a place on a line for every group, and an annotator has a type: how far along the line an item must be for a
yes (the threshold), and how sharply the annotator tells (the slope). Groups that differ in their types have another
threshold for the same truth. Groups differ in truth where their places of an item differ: with probability `shared` a
group has the item's common place, else one of its own. `shared` = 1 is one truth; 0 is a truth per group, without
anything in common. The correlation of two groups' places is `shared` squared.

Places and types lie on fixed grids, so every step is a sum (mean-field EM). Votes are yes or no; knows no names.
Axes: **i** item, **a** annotator, **g** group, **v** vote, **q** place, **t** type.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import log_expit

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


def _types() -> tuple[Floats, Floats, Floats]:
    """Return the log probability of a no and of a yes by type and place, and how likely a type is at first."""
    slope_t, threshold_t = (np.ravel(grid) for grid in np.meshgrid(SLOPES, THRESHOLDS, indexing="ij"))
    logit_tq = slope_t[:, None] * PLACES - threshold_t[:, None]
    # To begin with, everybody sees the truth somehow and stands about the middle.
    first_t = np.exp(-2.0 * np.abs(slope_t - 1.0) - threshold_t**2)
    return log_expit(-logit_tq), log_expit(logit_tq), first_t / first_t.sum()


LOG_NO_TQ, LOG_YES_TQ, FIRST_T = _types()
YES_TQ = np.exp(LOG_YES_TQ)
N_TYPES = len(FIRST_T)


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
        return self._matrix(~self.yes_v), self._matrix(self.yes_v)

    @cached_property
    def by_annotator(self) -> tuple[Any, Any]:
        """The same, annotators by items."""
        no, yes = self.by_item
        return csr_array(no.T), csr_array(yes.T)

    @cached_property
    def cast_by(self) -> Any:
        """A sparse matrix of annotators by votes: 1 where the vote is the annotator's."""
        at_v = np.arange(len(self.item_v))
        shape = (self.n_annotators, len(self.item_v))
        return csr_array((np.ones(len(at_v)), (self.annotator_v, at_v)), shape=shape)

    def _matrix(self, some_v: NDArray[np.bool_]) -> Any:
        places = (self.item_v[some_v], self.annotator_v[some_v])
        return csr_array((np.ones(len(places[0])), places), shape=(self.n_items, self.n_annotators))

    def on_items(self, some_i: Ints) -> YesVotes:
        """Return the votes on some items, which are numbered anew; the annotators stay."""
        place_i = np.full(self.n_items, -1)
        place_i[some_i] = np.arange(len(some_i))
        kept_v = place_i[self.item_v] >= 0
        item_v = place_i[self.item_v[kept_v]]
        return YesVotes(item_v, self.annotator_v[kept_v], self.yes_v[kept_v], len(some_i), self.n_annotators)


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
    type_agt
        What type each annotator would be as a member of each group.
    member_ag
        Which group each annotator belongs to: 0 and 1, or the probabilities of camps.
    loglik_igq
        Log likelihood of each place of an item, from the votes of one group.
    """

    shared: float
    weight_q: Floats
    type_gt: Floats
    type_agt: Floats
    member_ag: Floats
    loglik_igq: Floats

    @cached_property
    def prior_igq(self) -> Floats:
        """Probability of each place of an item for a group before its own votes: what the others' votes say."""
        return _told_by_others(self.loglik_igq, self.weight_q, self.shared)

    @cached_property
    def place_igq(self) -> Floats:
        """Probability of each place of an item for a group, given all votes."""
        return _normalised(np.log(self.prior_igq + TINY) + self.loglik_igq)

    @cached_property
    def yes_ig(self) -> Floats:
        """Share of a group's members who are expected to say yes to an item."""
        yes_gq = self.type_gt @ YES_TQ
        return np.asarray(np.einsum("igq,gq->ig", self.place_igq, yes_gq))

    @cached_property
    def label_ig(self) -> Floats:
        """Probability that most members of a group would say yes to an item: that yes is the group's label."""
        yes_gq = tie_key(self.type_gt @ YES_TQ)
        most_gq = np.where(yes_gq == tie_key(0.5), 0.5, yes_gq > 0.5)
        return np.asarray(np.clip(np.einsum("igq,gq->ig", self.place_igq, most_gq), 0.0, 1.0))

    def on(self, votes: YesVotes) -> Truths:
        """Return what the same places and types say of other items, from the votes of the same annotators."""
        return replace(self, loglik_igq=_log_likelihood(votes, self.member_ag, self.type_agt))


def fit_truths(
    votes: YesVotes, member_ag: Floats, shared: float, start: Truths | None = None, passes: int = PASSES
) -> Truths:
    """Fit places of items and types of annotators.

    Parameters
    ----------
    votes
        The votes on one label.
    member_ag
        Which group each annotator belongs to; a row of zeros leaves an annotator out.
    shared
        Probability that a group has an item's common place.
    start
        A fit to start from, of the same groups.
    passes
        How many passes at most.

    Examples
    --------
    Two groups of two who always contradict each other: with a truth each, every group agrees with itself.

    >>> item_v, annotator_v = np.repeat(np.arange(20), 4), np.tile(np.arange(4), 20)
    >>> yes_v = (item_v % 2 == 0) == (annotator_v < 2)
    >>> votes = YesVotes(item_v, annotator_v, yes_v, 20, 4)
    >>> fit_truths(votes, np.repeat(np.eye(2), 2, axis=0), 0.0).yes_ig[:2].round()
    array([[1., 0.],
           [0., 1.]])
    """
    n_groups = member_ag.shape[1]
    if start is None:
        weight_q = np.full(len(PLACES), 1.0 / len(PLACES))
        type_gt = np.full((n_groups, N_TYPES), 1.0 / N_TYPES)
        type_agt = np.broadcast_to(FIRST_T, (votes.n_annotators, n_groups, N_TYPES))
    else:
        weight_q, type_gt, type_agt = start.weight_q, start.type_gt, start.type_agt
    place_igq = np.zeros((votes.n_items, n_groups, len(PLACES)))
    members = _votes_of_members(votes, member_ag)
    for _ in range(passes):
        loglik_igq = _log_likelihood(votes, member_ag, type_agt)
        before_igq = place_igq
        place_igq = _normalised(np.log(_told_by_others(loglik_igq, weight_q, shared) + TINY) + loglik_igq)
        if np.abs(place_igq - before_igq).max() < CLOSE:
            break
        weight_q = place_igq.sum(axis=(0, 1)) + 1.0
        weight_q = weight_q / weight_q.sum()
        type_agt = _normalised(np.log(type_gt) + _expected_scores(members, votes.n_annotators, place_igq))
        type_gt = _shrunk_types(member_ag, type_agt)
    return Truths(shared, weight_q, type_gt, type_agt, member_ag, _log_likelihood(votes, member_ag, type_agt))


def left_out_scores(votes: YesVotes, fitted: Truths) -> Floats:
    """Return the log probability of all votes of each annotator, told from the votes of the others: `score_ag`.

    The annotator's type is unknown: it is summed over, as common as it is among the other members of the group. Of
    groups that the annotator surely does not belong to the score is minus infinity.

    Parameters
    ----------
    votes, fitted
        The votes, and their fit.
    """
    score_ag = np.full(fitted.member_ag.shape, -np.inf)
    for g, size in enumerate(fitted.member_ag.sum(axis=0)):
        member_a = fitted.member_ag[:, g] > 0.0
        at_v = np.flatnonzero(member_a[votes.annotator_v])
        who_v, what_v, yes_v1 = votes.annotator_v[at_v], votes.item_v[at_v], votes.yes_v[at_v, None]
        share_at = fitted.member_ag[:, g, None] * fitted.type_agt[:, g]
        own_vq = np.where(yes_v1, (share_at @ LOG_YES_TQ)[who_v], (share_at @ LOG_NO_TQ)[who_v])
        log_iq = np.log(fitted.prior_igq[:, g] + TINY) + fitted.loglik_igq[:, g]
        yes_vt = _normalised(log_iq[what_v] - own_vq) @ YES_TQ.T
        log_vt = np.log(np.where(yes_v1, yes_vt, 1.0 - yes_vt))
        type_at = np.maximum(fitted.type_gt[g] * (size + TYPICAL) - share_at, 1e-12)
        type_at /= type_at.sum(axis=1, keepdims=True)
        cast_by = votes.cast_by if len(at_v) == len(votes.item_v) else votes.cast_by[:, at_v]
        joint_at = cast_by @ log_vt + np.log(type_at)
        score_ag[member_a, g] = log_sum(joint_at[member_a])
    return score_ag


def log_sum(log_x: Floats) -> Floats:
    """Return the logarithm of the sum of exponentials over the last axis.

    Examples
    --------
    >>> log_sum(np.log([[1.0, 2.0]])).round(6).tolist() == [round(float(np.log(3.0)), 6)]
    True
    """
    most = log_x.max(axis=-1, keepdims=True)
    return np.asarray(np.log(np.exp(log_x - most).sum(axis=-1)) + most[..., 0])


def _normalised(log_x: Floats) -> Floats:
    x = np.exp(log_x - log_x.max(axis=-1, keepdims=True))
    return np.asarray(x / x.sum(axis=-1, keepdims=True))


def _told_by_others(loglik_igq: Floats, weight_q: Floats, shared: float) -> Floats:
    """Pass what every other group says on to each group, through the common place of the item."""
    like_igq = np.exp(loglik_igq - loglik_igq.max(axis=2, keepdims=True))
    own_ig1 = (like_igq @ weight_q)[:, :, None]
    # Where its place is its own, a group tells nothing of the common one.
    told_igq = np.log(shared * like_igq + (1.0 - shared) * own_ig1 + TINY)
    others_igq = told_igq.sum(axis=1, keepdims=True) - told_igq
    return shared * _normalised(np.log(weight_q) + others_igq) + (1.0 - shared) * weight_q


def _log_likelihood(votes: YesVotes, member_ag: Floats, type_agt: Floats) -> Floats:
    """Sum the expected log likelihoods of a group's votes by place: `loglik_igq`."""
    no, yes = votes.by_item
    share_agt = member_ag[:, :, None] * type_agt
    by_group = [
        yes @ (share_at @ LOG_YES_TQ) + no @ (share_at @ LOG_NO_TQ) for share_at in np.moveaxis(share_agt, 1, 0)
    ]
    return np.stack(by_group, axis=1)


def _votes_of_members(votes: YesVotes, member_ag: Floats) -> list[tuple[Any, Any, Any]]:
    """Return by group who may belong to it, and their no and yes votes, annotators by items."""
    no, yes = votes.by_annotator
    found: list[tuple[Any, Any, Any]] = []
    for g in range(member_ag.shape[1]):
        some_a = np.flatnonzero(member_ag[:, g] > 0.0)
        everybody = len(some_a) == len(member_ag)
        found.append((some_a, no, yes) if everybody else (some_a, no[some_a], yes[some_a]))
    return found


def _expected_scores(members: list[tuple[Any, Any, Any]], n_annotators: int, place_igq: Floats) -> Floats:
    """Sum the expected log likelihoods of an annotator's votes by type, as a member of each group: `score_agt`."""
    score_agt = np.zeros((n_annotators, len(members), N_TYPES))
    for g, (some_a, no, yes) in enumerate(members):
        place_iq = place_igq[:, g]
        score_agt[some_a, g] = yes @ (place_iq @ LOG_YES_TQ.T) + no @ (place_iq @ LOG_NO_TQ.T)
    return score_agt


def _shrunk_types(member_ag: Floats, type_agt: Floats) -> Floats:
    """Return how common each type is in each group, shrunk to how common it is in all."""
    count_gt = np.einsum("ag,agt->gt", member_ag, type_agt)
    pooled_t = count_gt.sum(axis=0) + 1.0 / N_TYPES
    type_gt = count_gt + TYPICAL * pooled_t / pooled_t.sum()
    return np.asarray(type_gt / type_gt.sum(axis=1, keepdims=True))
