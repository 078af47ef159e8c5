"""Split an item's label entropy by what would remove it.

Takes a `Consensus` or posterior draws, returns `EntropyParts`. Touches neither votes nor files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from moral_entropy.consensus.options import Model
from moral_entropy.consensus.result import Consensus, QuestionFit, nothing_between
from moral_entropy.schemas import BETWEEN
from moral_entropy.ties import TIE
from moral_entropy.votes.table import Floats

ENOUGH_VOTES = 30
"""Votes per item from which on ambiguity and missing votes can be told apart."""

TOO_FEW_TO_TELL = (
    f"Below about {ENOUGH_VOTES} votes per item, an item that is ambiguous looks like one that lacks votes: read these "
    "two parts together there."
)

ONE_TRUE_LABEL = (
    "The paper's model gives every item one true label: what no vote can remove is not told apart from missing votes."
)

CURES = {
    "ambiguity": "no vote removes it; ship the probability, not a label",
    "doubt_votes": "more votes on the item remove it",
    "doubt_annotators": "more votes anywhere remove it",
    BETWEEN: "no vote removes it; groups have a label each, so say whose label you ship",
}
"""What to do about each part, by its column in the tables."""

COLUMNS = ("total_i", "ambiguity_i", "votes_i", "annotators_i")


@dataclass(frozen=True, eq=False)
class EntropyParts:
    """Label entropy of each item, in nats: `total_i` = `ambiguity_i` + `votes_i` + `annotators_i` + `between_i`.

    It is the entropy of the model's own label probabilities, not of the published ones, which are pooled with the vote
    share. The parts are NaN where there are no draws.

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
        The model of the fit, on which the meaning of `aleatoric_i` and `epistemic_i` depends.
    between_i
        What knowing the group of the person asked would remove, where groups have a truth each; None, which counts
        as 0, where nobody found that.
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
        """What cannot be removed (`lasting_i`). Under the paper's model what stays with the parameters known."""
        return self.lasting_i if self.model == "mixed" else self.lasting_i + self.votes_i

    @property
    def epistemic_i(self) -> Floats:
        """What more votes remove, on this item or anywhere. Under the paper's model what draws disagree about."""
        return self.votes_i + self.annotators_i if self.model == "mixed" else self.annotators_i

    def of(self, some: slice) -> EntropyParts:
        """Return the entropies of some items."""
        total_i, ambiguity_i, votes_i, annotators_i = (getattr(self, column)[some] for column in COLUMNS)
        between_i = None if self.between_i is None else self.between_i[some]
        return EntropyParts(total_i, ambiguity_i, votes_i, annotators_i, self.model, between_i)

    def with_between(self, share_i: Floats | None) -> EntropyParts:
        """Return the same entropy with the part between groups told apart, given its share of the whole.

        A model of one truth takes what lies between groups for ambiguity; where votes are few, for a lack of votes on
        the item; and last for ignorance about annotators. So it is taken from these, in this order.

        Parameters
        ----------
        share_i
            Share of each item's entropy that lies between groups, 0 to 1; None leaves the parts as they are.

        Examples
        --------
        >>> three = EntropyParts(*(np.array([x]) for x in (0.6, 0.1, 0.4, 0.1)), "mixed")
        >>> four = three.with_between(np.array([0.5]))
        >>> [part_i.round(3).item() for part_i in (four.ambiguity_i, four.votes_i, four.annotators_i, four.between_i)]
        [0.0, 0.2, 0.1, 0.3]
        """
        if share_i is None:
            return self
        between_i = share_i * self.total_i
        left_i, kept = between_i, []
        for part_i in (self.ambiguity_i, self.votes_i, self.annotators_i):
            taken_i = np.minimum(part_i, left_i)
            left_i = left_i - taken_i
            kept.append(part_i - taken_i)
        ambiguity_i, votes_i, annotators_i = kept
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
    if isinstance(posterior, QuestionFit):
        summary = posterior.summary
        return _parts(summary.mean_ik, summary.expected_entropy_i, summary.ambiguity_i, posterior.options.model)
    n_items = posterior.shape[1]
    return _parts(posterior.mean(axis=0), entr(posterior).sum(axis=-1).mean(axis=0), nothing_between(n_items), "paper")


def _parts(mean_ik: Floats, expected_i: Floats, ambiguity_i: Floats, model: Model) -> EntropyParts:
    total_i = entr(mean_ik).sum(axis=-1)
    # Jensen makes both differences non-negative; rounding can leave about -1e-16.
    annotators_i = np.maximum(total_i - expected_i, 0.0)
    expected_i = np.minimum(expected_i, total_i)
    if model == "paper":
        return EntropyParts(total_i, ambiguity_i, expected_i, annotators_i, model)
    votes_i = np.maximum(expected_i - ambiguity_i, 0.0)
    return EntropyParts(total_i, np.minimum(ambiguity_i, expected_i), votes_i, annotators_i, model)


def is_uncertain(total_i: Floats, n_labels: int) -> NDArray[np.bool_]:
    """Return which labels are uncertain: those with more than half of the entropy there can be."""
    return np.asarray(total_i > np.log(n_labels) / 2 + TIE)


def is_ambiguous(total_i: Floats, ambiguity_i: Floats, n_labels: int) -> NDArray[np.bool_]:
    """Return which items are ambiguous: the label is uncertain, and most of its entropy is ambiguity.

    More votes would not help there; the cure is to ship the soft label.

    Examples
    --------
    >>> is_ambiguous(np.array([0.6, 0.6, 0.1]), np.array([0.5, 0.1, 0.1]), 2).tolist()
    [True, False, False]
    """
    return is_uncertain(total_i, n_labels) & (ambiguity_i > total_i / 2 + TIE)


def shown_parts(model: str, *, between: bool = False) -> dict[str, str]:
    """Return the parts that a run tells apart: the name on screens by column of the tables.

    Parameters
    ----------
    model
        "mixed" or "paper".
    between
        Whether a truth per group was found, so that there is a part between groups.

    Examples
    --------
    >>> shown_parts("paper")
    {'doubt_votes': 'votes', 'doubt_annotators': 'annotators'}
    """
    parts = [part for part in CURES if (between or part != BETWEEN) and (model == "mixed" or part != "ambiguity")]
    return {part: part.removeprefix("doubt_").replace("_", " ") for part in parts}


def parts_note(model: str) -> str:
    """Return what must be said wherever the parts are shown."""
    return TOO_FEW_TO_TELL if model == "mixed" else ONE_TRUE_LABEL


def stacked(parts: Sequence[EntropyParts]) -> EntropyParts:
    """Put the entropies of several fits one below the other."""
    if len(parts) == 1:
        return parts[0]
    total_i, ambiguity_i, votes_i, annotators_i = (
        np.concatenate([getattr(part, column) for part in parts]) for column in COLUMNS
    )
    between = [part.between_i for part in parts if part.between_i is not None]
    between_i = np.concatenate(between) if len(between) == len(parts) else None
    return EntropyParts(total_i, ambiguity_i, votes_i, annotators_i, parts[0].model, between_i)
