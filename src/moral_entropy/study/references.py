"""What models are scored against: the consensus, the majority, gold, all votes, and votes nobody trained on.

Takes a `Consensus`, returns `Condition`s: targets of every kind for the same items, and the references to score models
trained on them. No reference is neutral: `report.soft_labels` says which targets each one favours.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from moral_entropy.consensus.fit import refit
from moral_entropy.consensus.result import Consensus
from moral_entropy.errors import MoralEntropyWarning, TrainError
from moral_entropy.report.soft_labels import HELD_OUT
from moral_entropy.rules.calibration import unseen_gold
from moral_entropy.train.group_targets import is_group_kind
from moral_entropy.train.held_out import hold_out
from moral_entropy.train.reference import Reference
from moral_entropy.train.targets import Targets, targets_from_consensus
from moral_entropy.votes.table import UNKNOWN, Votes

ALL_VOTES, VOTES_LEFT = "all votes", "votes left"


@dataclass(frozen=True, eq=False)
class Condition:
    """Targets of every kind, made from the same votes for the same items, and what models are scored against."""

    name: str
    targets: dict[str, Targets]
    references: tuple[Reference, ...]

    @property
    def rows(self) -> Targets:
        """Any of the targets: items, texts and domains are the same in all."""
        return next(iter(self.targets.values()))


def make_conditions(
    consensus: Consensus, kinds: Sequence[str], *, held_out: float, seed: int, groups: pl.DataFrame | None = None
) -> tuple[list[Condition], tuple[str, ...]]:
    """Make targets from all votes; then from the votes that are left when some are held out, if any can be.

    Parameters
    ----------
    consensus
        With texts.
    kinds
        Kinds of target.
    held_out
        Share of the annotators to hold out; 0 for none.
    seed
        Decides who.
    groups
        Table `group_items` of the run, for the kinds that are about groups of annotators; it knows all votes, so that
        none can be held out beside them.

    Returns
    -------
    tuple
        The conditions, and remarks.
    """
    first = Condition(ALL_VOTES, _targets(consensus, kinds, groups), tuple(references_of(consensus)))
    notes = first.rows.notes
    if not held_out:
        return [first], notes
    if about := [kind for kind in kinds if is_group_kind(kind)]:
        return [first], (*notes, f"No votes are held out: targets {about[0]!r} are made from all votes of the run.")
    try:
        rest, held, note = hold_out(consensus.votes, share=held_out, seed=seed)
    except TrainError as error:
        return [first], (*notes, f"No votes are held out: {error}")
    with warnings.catch_warnings():
        # Fewer votes are thinner by design.
        warnings.simplefilter("ignore", MoralEntropyWarning)
        left = _targets(refit(consensus, votes=rest), kinds)
    return [first, Condition(VOTES_LEFT, left, (held_out_reference(consensus, held),))], (*notes, note)


def _targets(consensus: Consensus, kinds: Sequence[str], groups: pl.DataFrame | None = None) -> dict[str, Targets]:
    """Make targets of every kind, for the items and questions that have one of each kind."""
    made = {kind: targets_from_consensus(consensus, kind, groups=groups) for kind in kinds}
    shared = set.intersection(*(set(one.items.to_list()) for one in made.values()))
    kept = {
        kind: one.take(np.flatnonzero([item in shared for item in one.items.to_list()])) for kind, one in made.items()
    }
    has_iq = np.logical_and.reduce([one.weight_iq > 0 for one in kept.values()])
    return {kind: replace(one, weight_iq=np.where(has_iq, one.weight_iq, 0.0)) for kind, one in kept.items()}


def references_of(consensus: Consensus) -> list[Reference]:
    """Return the references that the consensus' own votes offer; gold only where there is some."""
    soft, hard, majority = (targets_from_consensus(consensus, kind) for kind in ("soft", "hard", "majority"))
    found = [Reference("consensus", soft, hard), Reference("majority", majority, majority)]
    known = _gold_as_published(consensus)
    if any((one.ballot.published_i != UNKNOWN).any() for one in known.fits):
        gold = targets_from_consensus(known, "published")
        found.append(Reference("gold", gold, gold))
    return [*found, _votes_reference("votes", consensus)]


def _gold_as_published(consensus: Consensus) -> Consensus:
    # Gold that was evidence in the fit is in the targets already.
    fits = (
        replace(one, ballot=replace(one.ballot, published_i=one.ballot.gold_i))
        for one in map(unseen_gold, consensus.fits)
    )
    return replace(consensus, fits=tuple(fits))


def _votes_reference(name: str, consensus: Consensus) -> Reference:
    """Score against every single vote: the share of votes, weighted by their number."""
    share = targets_from_consensus(consensus, "share", weight="votes")
    return Reference(name, share, share)


def held_out_reference(consensus: Consensus, held: Votes) -> Reference:
    """Return the reference of votes that were taken away.

    Parameters
    ----------
    consensus
        Any fit on the same items, with texts; only its items count.
    held
        The votes.
    """
    fits = (replace(one, ballot=ballot) for one, ballot in zip(consensus.fits, held.ballots, strict=True))
    return _votes_reference(HELD_OUT, replace(consensus, votes=held, fits=tuple(fits)))
