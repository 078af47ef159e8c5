"""Votes that are taken away before targets are made, so that models can be scored against them.

Takes `Votes`, returns what is left and what was taken.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from moral_entropy.errors import TrainError
from moral_entropy.votes.table import Ballot, Votes


def hold_out(votes: Votes, *, share: float = 0.25, seed: int = 0) -> tuple[Votes, Votes, str]:
    """Take the votes of some annotators away; of votes without annotators, one vote per item and question.

    Parameters
    ----------
    votes
        The votes.
    share
        Of the annotators, at least one; at least two stay.
    seed
        Decides who, or which vote.

    Returns
    -------
    tuple
        The votes that are left and those taken away, both on the same items, and a sentence about what was taken.

    Examples
    --------
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> _, _, note = hold_out(simulate_votes(n_items=30, n_annotators=8, votes_per_item=4).votes)
    >>> note
    '2 of 8 annotators, with 32 of 120 votes, are held out.'
    """
    rng = np.random.default_rng([seed, 71])
    if votes.anonymous:
        return _hold_out_votes(votes, rng)
    voters = np.unique(np.concatenate([ballot.annotator_a for ballot in votes.ballots]))
    n_annotators = len(voters)
    if n_annotators < 3:
        msg = (
            f"{n_annotators} annotators are too few to hold any out: at least two must stay to make targets from. "
            "Compare without them: held_out=0."
        )
        raise TrainError(msg)
    n_held = min(max(round(share * n_annotators), 1), n_annotators - 2)
    held_a = np.zeros(len(votes.annotators), dtype=bool)
    held_a[rng.choice(voters, size=n_held, replace=False)] = True
    masks = [held_a[ballot.annotator_a][ballot.code_v // ballot.n_labels] for ballot in votes.ballots]
    taken = sum(int(mask_v.sum()) for mask_v in masks)
    note = f"{n_held} of {n_annotators:,} annotators, with {taken:,} of {votes.n_votes:,} votes, are held out."
    return (*_cut(votes, masks), note)


def _hold_out_votes(votes: Votes, rng: np.random.Generator) -> tuple[Votes, Votes, str]:
    masks = []
    for ballot in votes.ballots:
        several_i = ballot.votes_i > 1
        # A random one of each item's votes, where another is left.
        chosen_i = ballot.start_i[:-1] + rng.integers(np.maximum(ballot.votes_i, 1))
        mask_v = np.zeros(ballot.n_votes, dtype=bool)
        mask_v[chosen_i[several_i]] = True
        masks.append(mask_v)
    taken = sum(int(mask_v.sum()) for mask_v in masks)
    if not taken:
        msg = (
            "no item has two votes on a question, so none can be held out. Compare without this reference: held_out=0."
        )
        raise TrainError(msg)
    note = (
        f"The votes have no annotators, so none can be held out: instead one vote per item and question, drawn at "
        f"random, {taken:,} of {votes.n_votes:,}. Whoever cast it may have cast others that targets are made from."
    )
    rest, held = _cut(votes, masks)
    if all(ballot.n_labels == 2 and np.mean(ballot.votes_i > 2) <= 0.01 for ballot in rest.ballots):
        # Counts of 0, 1 and 2 are two shares; prevalence, sensitivity and specificity are three unknowns.
        note += (
            " Hardly an item has more than two votes left: without annotators these cannot tell prevalence, "
            "sensitivity and specificity apart, so the prior decides what soft targets are here, to their disadvantage."
        )
    return rest, held, note


def _cut(votes: Votes, masks: list[NDArray[np.bool_]]) -> tuple[Votes, Votes]:
    pairs = list(zip(votes.ballots, masks, strict=True))
    rest = tuple(keep_votes(ballot, ~mask_v) for ballot, mask_v in pairs)
    held = tuple(keep_votes(ballot, mask_v) for ballot, mask_v in pairs)
    return replace(votes, ballots=rest), replace(votes, ballots=held)


def keep_votes(ballot: Ballot, keep_v: NDArray[np.bool_]) -> Ballot:
    """Keep some votes of a ballot, all of its items, and the annotators who still have a vote.

    Examples
    --------
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> ballot = ballot_from_codes("care", ("no", "yes"), item_v=[0, 0, 1], annotator_v=[0, 1, 1], label_v=[1, 0, 1])
    >>> keep_votes(ballot, np.array([True, False, True])).counts_ik.tolist()
    [[0, 1], [0, 1]]
    """
    kept_v = np.concatenate([[0], np.cumsum(keep_v)])
    annotator_v, label_v = np.divmod(ballot.code_v[keep_v], ballot.n_labels)
    left_a, at_v = np.unique(annotator_v, return_inverse=True)
    return replace(
        ballot,
        start_i=kept_v[ballot.start_i].astype(np.int64),
        code_v=(at_v * ballot.n_labels + label_v).astype(np.int32),
        annotator_a=ballot.annotator_a[left_a],
    )
