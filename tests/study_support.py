"""Votes on texts whose words carry the truth, and a classifier small enough to see through."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from moral_entropy.corpora.simulate import simulate_votes

CUES = ("wolf", "lamb", "stone")


@dataclass(frozen=True, eq=False)
class ByCue:
    """Answers a text with the mean target of the training texts that have the same cue."""

    mean: dict
    curve: tuple = ((1, 0.7, 0.71), (2, 0.6, 0.65))

    def probabilities(self, texts):
        return np.array([self.mean[text.split()[0]] for text in texts])


def train_by_cue(train, validation, options, *, advance):
    """Learn the mean target of every cue: what a saturated model has at its optimum."""
    assert validation.n_items and options.patience == 0
    at = defaultdict(list)
    for i, text in enumerate(train.texts):
        at[text.split()[0]].append(i)
    mean = {cue: train.target_io[rows].mean(axis=0) for cue, rows in at.items()}
    advance(1.0)
    return ByCue(mean)


def told_votes(truth_of_cue=(0.9, 0.1, 0.5), *, confusion_akv, n_items=1_500, votes_per_item=4, seed=0, domains=("",)):
    """Simulate votes and give every item a text that begins with a cue; cues differ in how often the truth is yes.

    With the same number for all cues the texts carry nothing.
    """
    rng = np.random.default_rng([seed, 5])
    prevalence = float(np.mean(truth_of_cue))
    simulated = simulate_votes(
        n_items=n_items,
        n_annotators=len(confusion_akv),
        votes_per_item=votes_per_item,
        prevalence_k=[1 - prevalence, prevalence],
        confusion_akv=confusion_akv,
        seed=seed,
    )
    yes_c = np.array(truth_of_cue) / sum(truth_of_cue)
    no_c = (1 - np.array(truth_of_cue)) / (1 - np.array(truth_of_cue)).sum()
    texts = [
        f"{rng.choice(CUES, p=yes_c if truth else no_c)} number {n}"
        for n, truth in enumerate(simulated.truth_i.tolist())
    ]
    domain_i = np.arange(n_items) % len(domains)
    named = tuple(name for name in domains if name)
    return replace(
        simulated.votes,
        texts=pl.Series("text", texts),
        domains=named,
        domain_i=(domain_i if named else np.full(n_items, -1)).astype(np.int32),
    )


def annotators(*pairs):
    """Confusion matrices from (specificity, sensitivity) pairs."""
    return np.array([[[right_no, 1 - right_no], [1 - right_yes, right_yes]] for right_no, right_yes in pairs])
