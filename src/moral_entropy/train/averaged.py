"""A classifier that has one output per annotator and question, and answers with their mean.

Any model can be inside: it is trained on `Voters` as on any other targets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from moral_entropy.errors import TrainError
from moral_entropy.progress import Advance, ignore
from moral_entropy.train.classifier import Classifier, Point
from moral_entropy.train.group_targets import ANNOTATORS
from moral_entropy.train.head import Head, head_from_facts
from moral_entropy.train.targets import Targets
from moral_entropy.train.voters import Voters, mean_of_voters
from moral_entropy.votes.table import Floats, Ints

SMALLEST = 1e-9
"""Probabilities are kept so far from 0 and 1 that logits stay finite."""


@dataclass(frozen=True, eq=False)
class Averaged:
    """A trained classifier with an output per voter. Axis: **b** a voter's answer to a question.

    Parameters
    ----------
    head
        What its answers mean: the questions.
    inner
        The model with an output per voter and question.
    question_b, share_b
        The question of each voter's answer, and how much it counts: by how many votes the voter cast.
    temperature
        What the logits of the mean are divided by.
    """

    head: Head
    inner: Classifier
    question_b: Ints
    share_b: Floats
    temperature: float = 1.0

    @property
    def curve(self) -> Sequence[Point]:
        """How the losses fell."""
        return self.inner.curve

    def logits(self, texts: Sequence[str], *, advance: Advance = ignore) -> Floats:
        """Return the logit of every output for every text: `logits_io`."""
        p_io = self.inner.probabilities(texts, advance=advance)
        mean_io = mean_of_voters(self.head, self.inner.head, self.question_b, self.share_b, p_io)
        mean_io = np.clip(mean_io, SMALLEST, 1.0 - SMALLEST)
        logits_io = np.log(mean_io)
        for columns in self.head.columns:
            if columns.stop - columns.start == 1:
                logits_io[:, columns] -= np.log1p(-mean_io[:, columns])
        return np.asarray(logits_io / self.temperature)

    def probabilities(self, texts: Sequence[str], *, advance: Advance = ignore) -> Floats:
        """Return the probability of every output for every text: `p_io`."""
        return self.head.probabilities(self.logits(texts, advance=advance))

    def cooled(self, temperature: float) -> Averaged:
        """Return the model whose logits are divided by a temperature."""
        return replace(self, temperature=self.temperature * temperature)

    def save(self, folder: Path) -> None:
        """Write the model's files into a folder that is there."""
        self.inner.save(folder)

    def facts(self) -> dict[str, Any]:
        """Return what is averaged, as plain values for a JSON file."""
        return {
            "head": self.inner.head.facts(),
            "question": self.question_b.tolist(),
            "share": self.share_b.tolist(),
            "temperature": self.temperature,
        }


def voter_targets(targets: Targets, *, whole: bool) -> Targets:
    """Return what each voter said as targets of their own.

    Parameters
    ----------
    targets
        With voters.
    whole
        As `Voters.weights` has it. A model whose outputs share most of their parameters then takes steps of the usual
        length; one whose outputs share none, as tfidf, would learn too little from each voter.
    """
    voters = _voters(targets)
    weight_ib = voters.weights(targets.weight_iq, whole=whole)
    return replace(targets, head=voters.head, target_io=voters.target_io, weight_iq=weight_ib, voters=None)


def average(inner: Classifier, train: Targets) -> Averaged:
    """Let a model with an output per voter answer with the mean of those who voted in the training texts."""
    voters = _voters(train)
    return Averaged(train.head, inner, voters.question_b, voters.shares(train.weight_iq))


def _voters(targets: Targets) -> Voters:
    if targets.voters is None:
        msg = f"targets of kind {targets.kind!r} do not say who voted. Make them with kind {ANNOTATORS!r}."
        raise TrainError(msg)
    return targets.voters


def averaged_from_facts(facts: Mapping[str, Any], head: Head, inner: Classifier) -> Averaged:
    """Make a classifier again from what `Averaged.facts` returned."""
    question_b, share_b = np.array(facts["question"]), np.array(facts["share"], dtype=float)
    if not len(question_b) == len(share_b) == len(inner.head.blocks) or not np.isfinite(share_b).all():
        msg = "what is said of the model's voters is damaged. Train it again."
        raise TrainError(msg)
    return Averaged(head, inner, question_b, share_b, float(facts["temperature"]))


def voter_head(facts: Mapping[str, Any]) -> Head:
    """Return the outputs of the model inside."""
    return head_from_facts(facts["head"])
