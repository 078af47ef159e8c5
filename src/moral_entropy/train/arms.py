"""The two sides of a study: targets of all votes, and targets without the votes that are held out.

Takes a `Consensus`, gives `Arm`s: targets of every kind for the same items, with what pupils of them are held against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moral_entropy.consensus.result import Consensus
from moral_entropy.errors import TrainError
from moral_entropy.train.references import Reference, held_out_reference, hold_out, references_of, refit
from moral_entropy.train.targets import Targets, targets_from_consensus

ALL_VOTES, VOTES_LEFT = "all votes", "votes left"


@dataclass(frozen=True, eq=False)
class Arm:
    """Targets of every kind, made from the same votes for the same items, and what their pupils are held against."""

    name: str
    lessons: dict[str, Targets]
    references: tuple[Reference, ...]

    @property
    def rows(self) -> Targets:
        """Any of the targets: items, texts and domains are the same in all."""
        return next(iter(self.lessons.values()))


def make_arms(
    consensus: Consensus,
    kinds: Sequence[str],
    *,
    held_out: float,
    seed: int,
    fit_options: Mapping[str, Any] | None = None,
) -> tuple[list[Arm], tuple[str, ...]]:
    """Give the targets of all votes; then those without the votes held out, if any can be.

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
    fit_options
        As `refit` takes them.

    Returns
    -------
    tuple
        The arms, and remarks.
    """
    first = Arm(ALL_VOTES, _lessons(consensus, kinds), tuple(references_of(consensus)))
    notes = first.rows.notes
    if not held_out:
        return [first], notes
    try:
        cut = hold_out(consensus.votes, share=held_out, seed=seed)
    except TrainError as error:
        return [first], (*notes, f"No votes are held out: {error}")
    left = _lessons(refit(consensus, cut.rest, fit_options), kinds)
    second = Arm(VOTES_LEFT, left, (held_out_reference(consensus, cut.held),))
    return [first, second], (*notes, cut.note)


def _lessons(consensus: Consensus, kinds: Sequence[str]) -> dict[str, Targets]:
    """Make the targets of every kind, for the items and questions that all kinds have one for."""
    made = {kind: targets_from_consensus(consensus, kind) for kind in kinds}
    shared = set.intersection(*(set(one.items.to_list()) for one in made.values()))
    kept = {
        kind: one.take(np.flatnonzero([item in shared for item in one.items.to_list()])) for kind, one in made.items()
    }
    has_iq = np.logical_and.reduce([one.weight_iq > 0 for one in kept.values()])
    return {kind: replace(one, weight_iq=np.where(has_iq, one.weight_iq, 0.0)) for kind, one in kept.items()}
