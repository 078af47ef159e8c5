"""Head: what the outputs of a classifier mean, and the loss that trains them.

One block of outputs per question: a question of two labels has one output, the probability of its positive label
(sigmoid); one of K > 2 labels has K, which add up to 1 (softmax). NumPy only; `loop` has the same loss for PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import entr, expit, logsumexp, softmax

from moral_entropy.errors import TrainError
from moral_entropy.votes.table import Floats


@dataclass(frozen=True)
class Block:
    """The outputs of one question.

    Parameters
    ----------
    question
        What it is called.
    labels
        The labels it can take.
    positive
        The positive one of two labels; None for more than two.

    Examples
    --------
    >>> Block("care", ("no", "yes"), "yes").names, Block("tone", ("anger", "joy", "none")).names
    (('care',), ('tone: anger', 'tone: joy', 'tone: none'))
    """

    question: str
    labels: tuple[str, ...]
    positive: str | None = None

    def __post_init__(self) -> None:
        """Refuse a block that is no question."""
        if len(self.labels) < 2 or (self.positive is None) != (len(self.labels) > 2):
            msg = (
                f"question {self.question!r} has {len(self.labels)} labels and the positive one {self.positive!r}. "
                "A question has two labels, one of them positive, or more than two and no positive one."
            )
            raise TrainError(msg)

    @property
    def width(self) -> int:
        """How many outputs it has."""
        return len(self.labels) if self.positive is None else 1

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its outputs, as `report` shows them."""
        if self.positive is not None:
            return (self.question,)
        return tuple(f"{self.question}: {label}" for label in self.labels)


@dataclass(frozen=True)
class Head:
    """The outputs of a classifier, question after question. Axes: **i** item, **o** output, **q** question.

    Examples
    --------
    >>> head = Head((Block("care", ("no", "yes"), "yes"), Block("tone", ("anger", "joy", "none"))))
    >>> head.n_outputs, head.columns
    (4, (slice(0, 1, None), slice(1, 4, None)))
    >>> head.probabilities(np.zeros((1, 4))).round(2).tolist()
    [[0.5, 0.33, 0.33, 0.33]]
    """

    blocks: tuple[Block, ...]

    @property
    def questions(self) -> tuple[str, ...]:
        """Names of the questions."""
        return tuple(block.question for block in self.blocks)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return tuple(name for block in self.blocks for name in block.names)

    @property
    def n_outputs(self) -> int:
        """How many outputs there are."""
        return sum(block.width for block in self.blocks)

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        """Which outputs belong to each question."""
        ends = np.cumsum([block.width for block in self.blocks]).tolist()
        return tuple(slice(end - block.width, end) for block, end in zip(self.blocks, ends, strict=True))

    def probabilities(self, logits_io: Floats) -> Floats:
        """Turn logits into probabilities: sigmoid or softmax, block by block."""
        p_io = np.empty_like(logits_io, dtype=np.float64)
        for columns in self.columns:
            logits = np.asarray(logits_io[:, columns], dtype=np.float64)
            p_io[:, columns] = expit(logits) if logits.shape[1] == 1 else softmax(logits, axis=1)
        return p_io

    def losses(self, logits_io: Floats, target_io: Floats) -> Floats:
        """Compute the cross-entropy of each item and question, in nats: `loss_iq`."""
        loss_iq = np.empty((len(logits_io), len(self.blocks)))
        for q, columns in enumerate(self.columns):
            logits, target = logits_io[:, columns], target_io[:, columns]
            if logits.shape[1] == 1:
                loss_iq[:, q] = (np.logaddexp(0.0, logits) - target * logits)[:, 0]
            else:
                loss_iq[:, q] = target.sum(axis=1) * logsumexp(logits, axis=1) - (target * logits).sum(axis=1)
        return loss_iq

    def loss(self, logits_io: Floats, target_io: Floats, weight_iq: Floats) -> float:
        """Compute the cross-entropy against the targets: summed over questions, averaged over items.

        Parameters
        ----------
        logits_io
            Outputs before sigmoid and softmax.
        target_io
            Probabilities to learn; of a softmax block, rows that add up to 1.
        weight_iq
            Weight of each item's target; 0 where it has none.

        Examples
        --------
        No logit has a lower loss than the target's own, and that loss is the target's entropy.

        >>> head = Head((Block("care", ("no", "yes"), "yes"),))
        >>> round(head.loss(np.zeros((1, 1)), np.array([[0.5]]), np.ones((1, 1))), 3)
        0.693
        """
        return float((weight_iq * self.losses(logits_io, target_io)).sum() / max(len(logits_io), 1))

    def entropies(self, p_io: Floats) -> Floats:
        """Compute the entropy of each item's answer to each question, in nats: `entropy_iq`."""
        entropy_iq = np.empty((len(p_io), len(self.blocks)))
        for q, columns in enumerate(self.columns):
            p = p_io[:, columns]
            entropy_iq[:, q] = (entr(p) + entr(1.0 - p))[:, 0] if p.shape[1] == 1 else entr(p).sum(axis=1)
        return entropy_iq

    def facts(self) -> list[dict[str, Any]]:
        """Return the head as plain values, for a JSON file."""
        return [
            {"question": block.question, "labels": list(block.labels), "positive": block.positive}
            for block in self.blocks
        ]


def head_from_facts(facts: Sequence[Mapping[str, Any]]) -> Head:
    """Make a head from what `Head.facts` returned.

    Examples
    --------
    >>> head = Head((Block("care", ("no", "yes"), "yes"),))
    >>> head_from_facts(head.facts()) == head
    True
    """
    try:
        blocks = tuple(Block(str(one["question"]), tuple(map(str, one["labels"])), one["positive"]) for one in facts)
    except (KeyError, TypeError) as error:
        msg = f"what is said of the model's outputs is damaged: {type(error).__name__} {error}. Train it again."
        raise TrainError(msg) from error
    if not blocks:
        msg = "the model has no outputs. Train it again."
        raise TrainError(msg)
    return Head(blocks)
