"""Voters: what each annotator said about each item, for a classifier that has one output per annotator.

Annotators read texts differently. A classifier that learns the votes of each of them, over what it shares of the text,
and then averages its outputs, is the annotator-aware baseline of the literature (Davani, Díaz and Prabhakaran 2022).
`averaged` has the classifier. Touches no files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from moral_entropy.train.head import Head
from moral_entropy.votes.table import Floats, Ints

MOST_VOTERS = 50
"""At most so many annotators have an output of their own: those with the most votes. The others share one."""

FEWEST_VOTES = 30
"""Whoever has fewer votes on a question has no output of their own."""

OTHERS = "(others)"


@dataclass(frozen=True, eq=False)
class Voters:
    """What each voter said. Axes: **i** item, **b** a voter's answer to a question, **o** output.

    Parameters
    ----------
    head
        One block per question and voter.
    question_b
        Position of each block's question.
    target_io
        Share of the voter's own votes; 0 where there is none.
    votes_ib
        How many votes that are.
    """

    head: Head
    question_b: Ints
    target_io: Floats
    votes_ib: Floats

    def take(self, at_i: Ints) -> Voters:
        """Keep some items, by position."""
        return replace(self, target_io=self.target_io[at_i], votes_ib=self.votes_ib[at_i])

    def weights(self, weight_iq: Floats, *, whole: bool) -> Floats:
        """Return the weight of each answer: `weight_ib`.

        Parameters
        ----------
        weight_iq
            Weight of each item and question.
        whole
            Whether all votes on an item together count as one answer does, on average, instead of one each.
        """
        weight_ib = self.votes_ib * weight_iq[:, self.question_b]
        if not whole:
            return np.asarray(weight_ib)
        total_b = _by_question(weight_ib.sum(axis=0), self.question_b)
        return np.asarray(weight_ib * (weight_iq.sum(axis=0)[self.question_b] / np.maximum(total_b, 1e-12)))

    def shares(self, weight_iq: Floats) -> Floats:
        """Return how much of a question's votes each voter cast: `share_b`, which add up to 1 per question."""
        cast_b = (self.votes_ib * weight_iq[:, self.question_b]).sum(axis=0)
        return np.asarray(cast_b / np.maximum(_by_question(cast_b, self.question_b), 1e-12))


def _by_question(value_b: Floats, question_b: Ints) -> Floats:
    """Add up the values of all voters of a question, and return the sum for each of them."""
    return np.asarray(np.bincount(question_b, weights=value_b)[question_b])


def voters_of(head: Head, casts: Sequence[pl.DataFrame], n_items: int) -> Voters:
    """Make voters from the votes on each question.

    Parameters
    ----------
    head
        The questions.
    casts
        Votes on each question: item (its position), voter, label (its position), n (how many votes).
    n_items
        How many items there are.

    Examples
    --------
    >>> from moral_entropy.train.head import Block
    >>> cast = pl.DataFrame({"item": [0, 1] * 30, "voter": ["ann"] * 60, "label": [1, 0] * 30, "n": [1.0] * 60})
    >>> voters = voters_of(Head((Block("care", ("no", "yes"), "yes"),)), [cast], 2)
    >>> voters.head.questions, voters.target_io.tolist(), voters.votes_ib.tolist()
    (('care by ann',), [[1.0], [0.0]], [[30.0], [30.0]])
    """
    blocks, question_b, targets, votes = [], [], [], []
    for q, (block, cast) in enumerate(zip(head.blocks, casts, strict=True)):
        named = _with_others(cast)
        for (voter,), own in sorted(named.partition_by("voter", as_dict=True).items()):
            n_ik = np.zeros((n_items, len(block.labels)))
            np.add.at(n_ik, (own["item"].to_numpy(), own["label"].to_numpy()), own["n"].to_numpy())
            n_i = n_ik.sum(axis=1)
            shown = slice(None) if block.positive is None else [block.labels.index(block.positive)]
            blocks.append(replace(block, question=f"{block.question} by {voter}"))
            question_b.append(q)
            targets.append(n_ik[:, shown] / np.maximum(n_i, 1.0)[:, None])
            votes.append(n_i)
    return Voters(Head(tuple(blocks)), np.array(question_b), np.hstack(targets), np.column_stack(votes))


def _with_others(cast: pl.DataFrame) -> pl.DataFrame:
    """Let annotators with few votes share one voter."""
    total = cast.group_by("voter").agg(pl.col("n").sum()).sort(["n", "voter"], descending=[True, False])
    own = total.head(MOST_VOTERS).filter(pl.col("n") >= FEWEST_VOTES)["voter"]
    voter = pl.col("voter").cast(pl.String)
    return cast.with_columns(voter=pl.when(voter.is_in(own.implode())).then(voter).otherwise(pl.lit(OTHERS)))


def mean_of_voters(head: Head, voters: Head, question_b: Ints, share_b: Floats, p_io: Floats) -> Floats:
    """Average the probabilities of all voters of each question: `p_io` of the questions.

    Parameters
    ----------
    head
        The questions.
    voters, question_b
        The voters' blocks, and the question of each.
    share_b
        How much each counts.
    p_io
        Probabilities of the voters' outputs.
    """
    mean_io = np.zeros((len(p_io), head.n_outputs))
    for columns, q, share in zip(voters.columns, question_b.tolist(), share_b.tolist(), strict=True):
        mean_io[:, head.columns[q]] += share * p_io[:, columns]
    return mean_io
