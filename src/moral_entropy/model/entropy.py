"""Split the entropy of an item's label by what would remove it.

Takes a `Consensus` or posterior draws, returns `EntropyParts`. Touches neither votes nor files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.options import Model
from moral_entropy.schemas import BETWEEN
from moral_entropy.ties import TIE
from moral_entropy.votes.table import Floats

ENOUGH_VOTES = 30
"""Votes per item from which on ambiguity and missing votes can be told apart."""

TOO_FEW_TO_TELL = (
    f"Below about {ENOUGH_VOTES} votes per item, an item that is ambiguous looks like one that lacks votes: the two "
    "are one figure there."
)

ONE_TRUE_LABEL = (
    "This is the paper's Moral Entropy: the entropy of the Bayesian consensus p, the mean over the draws. Its model "
    "gives every item one true label: what no vote can remove is not told apart from missing votes."
)

PAPER_NAMES = {"doubt_votes": "aleatoric", "doubt_annotators": "epistemic"}
"""The two parts under the paper's model, by its words."""

REMEDIES = {
    "aleatoric": "ambiguous, or too few votes; ask again, or ship the probability",
    "ambiguity": "no vote removes it; ship the probability, not a label",
    "doubt_votes": "more votes on the item remove it",
    "doubt_annotators": "more votes anywhere remove it",
    BETWEEN: "no vote removes it; groups have a label each, so say whose label you ship",
}
"""What to do about each part, by its column in the tables."""

MOST_WRONG = 0.25
"""A label is uncertain where the chance that it is wrong is above this."""


@dataclass(frozen=True, eq=False)
class EntropyParts:
    """Entropy of each item's published p, in nats; `total_i` is the sum of the others.

    The parts are NaN where there are no draws.

    Parameters
    ----------
    total_i
        Entropy of the label.
    ambiguity_i
        What stays whatever is asked of anybody, since the item lies between labels; 0 if items have one true label.
    votes_i
        What more votes on this item remove.
    annotators_i
        What more votes anywhere remove: doubt about how annotators vote, over which the draws disagree.
    model
        The model of the fit.
    between_i
        What knowing the group of the person asked would remove, where groups have a truth each; None, which counts
        as 0, where that was not found.
    """

    total_i: Floats
    ambiguity_i: Floats
    votes_i: Floats
    annotators_i: Floats
    model: Model = "paper"
    between_i: Floats | None = None

    @property
    def lasting_i(self) -> Floats:
        """What no vote removes: ambiguity, and what lies between groups."""
        return self.ambiguity_i if self.between_i is None else self.ambiguity_i + self.between_i

    @property
    def aleatoric_i(self) -> Floats:
        """The paper's aleatoric uncertainty: what stays with the parameters known."""
        return self.lasting_i + self.votes_i

    @property
    def epistemic_i(self) -> Floats:
        """The paper's epistemic uncertainty: what the draws disagree about."""
        return self.annotators_i

    def of(self, items: slice) -> EntropyParts:
        """Return the entropies of some items."""
        between_i = None if self.between_i is None else self.between_i[items]
        total_i, ambiguity_i = self.total_i[items], self.ambiguity_i[items]
        return EntropyParts(total_i, ambiguity_i, self.votes_i[items], self.annotators_i[items], self.model, between_i)

    def with_between(self, share_i: Floats) -> EntropyParts:
        """Return the same entropy with the part between groups told apart, given its share of the whole.

        A model of one truth takes what lies between groups for ambiguity; where votes are few, for a lack of votes on
        the item; and last for ignorance about annotators. So it is taken from these, in this order.

        Parameters
        ----------
        share_i
            Share of each item's entropy that lies between groups, 0 to 1.

        Examples
        --------
        >>> three = EntropyParts(*(np.array([x]) for x in (0.6, 0.1, 0.4, 0.1)), "mixed")
        >>> four = three.with_between(np.array([0.5]))
        >>> [part_i.round(3).item() for part_i in (four.ambiguity_i, four.votes_i, four.annotators_i, four.between_i)]
        [0.0, 0.2, 0.1, 0.3]
        """
        between_i = share_i * self.total_i
        left_i, remainders = between_i, []
        for part_i in (self.ambiguity_i, self.votes_i, self.annotators_i):
            taken_i = np.minimum(part_i, left_i)
            left_i = left_i - taken_i
            remainders.append(part_i - taken_i)
        ambiguity_i, votes_i, annotators_i = remainders
        return EntropyParts(self.total_i, ambiguity_i, votes_i, annotators_i, self.model, between_i - left_i)


def decompose_entropy(posterior: Consensus | QuestionFit | Floats) -> EntropyParts:
    """Split each item's label entropy over posterior draws.

    Parameters
    ----------
    posterior
        A consensus (items of all its fits one below the other), one of its fits, or label probabilities
        `posterior_sik` for every draw and item, whose last axis sums to 1; these have no ambiguity.

    Examples
    --------
    Two draws, each certain, that contradict each other: all doubt is about the annotators.

    >>> parts = decompose_entropy(np.array([[[1.0, 0.0]], [[0.0, 1.0]]]))
    >>> parts.votes_i.round(3), parts.annotators_i.round(3)
    (array([0.]), array([0.693]))
    """
    if isinstance(posterior, Consensus):
        return stacked([decompose_entropy(fit) for fit in posterior.fits])
    model: Model = "paper"
    if isinstance(posterior, QuestionFit):
        total_i, model = entr(posterior.p_ik).sum(axis=-1), posterior.options.model
        epistemic_i, ambiguity_i = posterior.epistemic_i, posterior.ambiguity_i
    else:
        total_i = entr(posterior.mean(axis=0)).sum(axis=-1)
        epistemic_i, ambiguity_i = total_i - entr(posterior).sum(axis=-1).mean(axis=0), np.zeros(len(total_i))
    # Jensen makes it non-negative; rounding can leave about -1e-16.
    annotators_i = np.clip(epistemic_i, 0.0, total_i)
    ambiguity_i = np.minimum(ambiguity_i, total_i - annotators_i)
    return EntropyParts(total_i, ambiguity_i, total_i - annotators_i - ambiguity_i, annotators_i, model)


def stacked(parts: Sequence[EntropyParts]) -> EntropyParts:
    """Put the entropies of several fits one below the other."""
    names = ["total_i", "ambiguity_i", "votes_i", "annotators_i"]
    names += ["between_i"] if all(part.between_i is not None for part in parts) else []
    columns: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return replace(parts[0], **columns)


def is_uncertain(top_i: Floats) -> NDArray[np.bool_]:
    """Return which labels are uncertain: with the probability of the likeliest, the chance of error is above a quarter.

    Examples
    --------
    >>> is_uncertain(np.array([0.7, 0.8, 0.75])).tolist()
    [True, False, False]
    """
    return np.asarray(top_i < 1.0 - MOST_WRONG - TIE)


def is_ambiguous(top_i: Floats, total_i: Floats, ambiguity_i: Floats) -> NDArray[np.bool_]:
    """Return which items are ambiguous: the label is uncertain, and most of its entropy is ambiguity.

    More votes would not help there; the remedy is to ship the soft label.

    Examples
    --------
    >>> is_ambiguous(np.array([0.6, 0.6, 0.9]), np.array([0.6, 0.6, 0.1]), np.array([0.5, 0.1, 0.1])).tolist()
    [True, False, False]
    """
    return np.asarray(is_uncertain(top_i) & (ambiguity_i > total_i / 2 + TIE))


def shown_parts(model: str, votes_per_item: float, *, between: bool = False) -> dict[str, str]:
    """Return the parts that a run tells apart: the name on screens by column of the tables.

    Parameters
    ----------
    model
        "mixed" or "paper".
    votes_per_item
        Votes on an item, or on the mean item.
    between
        Whether a truth per group was found, so that there is a part between groups.

    Examples
    --------
    >>> shown_parts("mixed", 5)
    {'aleatoric': 'item', 'doubt_annotators': 'annotators'}
    """
    if model == "paper":
        return PAPER_NAMES
    if votes_per_item < ENOUGH_VOTES and not between:
        return {"aleatoric": "item", "doubt_annotators": "annotators"}
    parts = ("ambiguity", "doubt_votes", "doubt_annotators", *([BETWEEN] if between else []))
    return {part: part.removeprefix("doubt_").replace("_", " ") for part in parts}


def parts_note(model: str) -> str:
    """Return what must be said wherever the parts are shown."""
    return TOO_FEW_TO_TELL if model == "mixed" else ONE_TRUE_LABEL
