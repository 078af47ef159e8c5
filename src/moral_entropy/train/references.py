"""What tested items are held against: the consensus, the majority, gold, their votes, and votes nobody trained on.

Takes a `Consensus`, gives `Reference`s; `hold_out` takes votes away and `refit` fits what is left. No reference is
neutral: `FAVOURED` says which targets each one favours by construction.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.audit.calibration import unseen_gold
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.result import Consensus
from moral_entropy.errors import MoralEntropyWarning, TrainError
from moral_entropy.train.scores import Standard, by_question
from moral_entropy.train.targets import Targets, targets_from_consensus
from moral_entropy.votes.table import UNKNOWN, Ballot, Votes

HELD_OUT = "held-out votes"
REFERENCES = {
    "consensus": "the Bayesian consensus: accuracy and AUC against z*, 1 where p is ½ or more, the rest against p",
    "majority": "the label of at least half of the votes",
    "gold": "labels known from elsewhere",
    "votes": "every vote cast on the tested items",
    HELD_OUT: "votes that were taken away before the targets were made",
}
"""What tested items can be held against, in the order of the tables."""

FAVOURED = {
    "consensus": "`soft` and `hard` are made from it, so a model trained on them is favoured by construction",
    "majority": "`majority` is the same rule on the training items, so it is favoured by construction",
    "gold": "no target is made from it; whether it is the thing the votes are about is for you to know",
    "votes": "no target is made from these votes, but `share` aims at the chance of a vote while `soft` aims at the "
    "label behind the votes: on log loss, Brier score and calibration `share` is favoured",
    HELD_OUT: "no target had any part in these votes; as with all votes, `share` aims at just what log loss, Brier "
    "score and calibration reward here",
}
"""Whom each of them favours, said plainly."""

SHARE = 0.25
"""Share of the annotators whose votes are taken away."""


@dataclass(frozen=True, eq=False)
class Reference:
    """What tested items are held against.

    Parameters
    ----------
    name
        One of `REFERENCES`.
    share, label
        Log loss, Brier score and calibration are against the first, accuracy and AUC against the second.
    """

    name: str
    share: Targets
    label: Targets

    def standards(self, items: pl.Series) -> list[Standard]:
        """Give the standard of each question for some items; weight 0 where there is none."""
        at_i = _rows_of(self.share.items, items)
        label_at_i = _rows_of(self.label.items, items)
        head, weight_iq = self.share.head, _at(self.share.weight_iq, at_i)
        shares = by_question(head, _at(self.share.target_io, at_i))
        labels = by_question(head, _at(self.label.target_io, label_at_i))
        return [
            Standard(share_ik, label_ik, weight_iq[:, q])
            for q, (share_ik, label_ik) in enumerate(zip(shares, labels, strict=True))
        ]


def _rows_of(known: pl.Series, items: pl.Series) -> NDArray[np.int64]:
    """Give the row of each item among the known ones; -1 where it is not."""
    row_of = {item: row for row, item in enumerate(known.to_list())}
    return np.array([row_of.get(item, -1) for item in items.to_list()], dtype=np.int64)


def _at(value_ic: Any, at_i: NDArray[np.int64]) -> Any:
    return np.where((at_i >= 0)[:, None], value_ic[at_i], 0.0)


def references_of(consensus: Consensus) -> list[Reference]:
    """Give all that the consensus' own votes have to hold answers against: gold only where there is some.

    Parameters
    ----------
    consensus
        With texts.
    """
    soft, hard = (targets_from_consensus(consensus, kind) for kind in ("soft", "hard"))
    majority = targets_from_consensus(consensus, "majority")
    found = [Reference("consensus", soft, hard), Reference("majority", majority, majority)]
    known = _gold_as_published(consensus)
    if any((one.ballot.published_i != UNKNOWN).any() for one in known.fits):
        gold = targets_from_consensus(known, "published")
        found.append(Reference("gold", gold, gold))
    return [*found, votes_reference("votes", consensus)]


def _gold_as_published(consensus: Consensus) -> Consensus:
    # Gold that was evidence in the fit is in the targets already.
    fits = (
        replace(one, ballot=replace(one.ballot, published_i=one.ballot.gold_i))
        for one in map(unseen_gold, consensus.fits)
    )
    return replace(consensus, fits=tuple(fits))


def votes_reference(name: str, consensus: Consensus) -> Reference:
    """Hold answers against every single vote: the share of votes, weighted by their number."""
    share = targets_from_consensus(consensus, "share", weight="votes")
    return Reference(name, share, share)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Votes cut in two.

    Parameters
    ----------
    rest, held
        The votes to make targets from, and those taken away; both on the same items.
    note
        What was taken away, in a sentence.
    """

    rest: Votes
    held: Votes
    note: str


def hold_out(votes: Votes, *, share: float = SHARE, seed: int = 0) -> HeldOut:
    """Take the votes of some annotators away; of votes without annotators, one vote an item and question.

    Parameters
    ----------
    votes
        The votes.
    share
        Of the annotators, at least one; at least two stay.
    seed
        Decides who, or which vote.

    Examples
    --------
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> cut = hold_out(simulate_votes(n_items=30, n_annotators=8, votes_per_item=4).votes)
    >>> cut.note
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
    return _cut(votes, masks, note)


def _hold_out_votes(votes: Votes, rng: np.random.Generator) -> HeldOut:
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
        f"The votes have no annotators, so none can be held out: instead one vote an item and question, drawn at "
        f"random, {taken:,} of {votes.n_votes:,}. Whoever cast it may have cast others that targets are made from."
    )
    cut = _cut(votes, masks, note)
    if any(ballot.n_labels > 2 or np.mean(ballot.votes_i > 2) > 0.01 for ballot in cut.rest.ballots):
        return cut
    # Counts of 0, 1 and 2 are two shares; prevalence, sensitivity and specificity are three unknowns.
    return replace(
        cut,
        note=f"{note} Hardly an item has more than two votes left: without annotators these cannot tell prevalence, "
        "sensitivity and specificity apart, so the prior decides what soft targets are here, to their disadvantage.",
    )


def _cut(votes: Votes, masks: list[NDArray[np.bool_]], note: str) -> HeldOut:
    pairs = list(zip(votes.ballots, masks, strict=True))
    rest = tuple(keep_votes(ballot, ~mask_v) for ballot, mask_v in pairs)
    held = tuple(keep_votes(ballot, mask_v) for ballot, mask_v in pairs)
    return HeldOut(replace(votes, ballots=rest), replace(votes, ballots=held), note)


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


def refit(consensus: Consensus, votes: Votes, options: Mapping[str, Any] | None = None) -> Consensus:
    """Fit other votes on the same items as a consensus was fitted: same priors, draws, seed, interval and pooling.

    Parameters
    ----------
    consensus
        The earlier fit.
    votes
        The other votes.
    options
        Further keywords of `fit` that the earlier fit was made with, such as temper.
    """
    one = consensus.fits[0]
    same = {"draws": one.n_draws, "seed": consensus.seed, "interval": consensus.interval, "pooling": one.pooling}
    with warnings.catch_warnings():
        # Fewer votes are thinner by design.
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(votes, priors=consensus.priors, **{**same, **(options or {})})


def held_out_reference(consensus: Consensus, held: Votes) -> Reference:
    """Hold answers against votes that were taken away.

    Parameters
    ----------
    consensus
        Any fit on the same items, with texts; only its items count.
    held
        The votes.
    """
    fits = (replace(one, ballot=ballot) for one, ballot in zip(consensus.fits, held.ballots, strict=True))
    return votes_reference(HELD_OUT, replace(consensus, votes=held, fits=tuple(fits)))
