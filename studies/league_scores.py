"""How right a method is on a set with gold: accuracy, log loss, Brier score and calibration, and the means of several.

Takes label probabilities and gold; returns scores. Methods that give labels only have an accuracy and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from real_gold import score as score_logs
from scipy.stats import rankdata

from moral_entropy.votes.table import Floats, Ints

CLIP = 1e-6
"""Log loss holds no probability below this, lest one sure error make it infinite."""

DIGITS = 6
"""Accuracies that agree to so many digits share a rank."""


@dataclass(frozen=True)
class Scores:
    """How right some probabilities are.

    Parameters
    ----------
    accuracy
        Share of items whose likeliest label is right; a tie of n labels is right to 1/n.
    log_loss
        Mean of minus the log probability of the right label, in nats, none below `CLIP`; None of labels only.
    brier
        Mean squared distance from the right label, halved; None of labels only.
    ece
        Expected calibration error of the likeliest label, 15 bins of equal width; None of labels only.
    n_clipped
        Items whose right label was given less than `CLIP`.
    n_undefined
        Items for which the method gave no number; they count as one over the number of labels.
    """

    accuracy: float
    log_loss: float | None = None
    brier: float | None = None
    ece: float | None = None
    n_clipped: int = 0
    n_undefined: int = 0


def score(p_ik: Floats, gold_i: Ints, *, labels_only: bool = False) -> Scores:
    """Hold label probabilities against gold.

    Parameters
    ----------
    p_ik
        Label probabilities of the items with gold.
    gold_i
        The right labels.
    labels_only
        Whether the method gives no probabilities, and `p_ik` is 1 for its label.

    Examples
    --------
    >>> score(np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([0, 1]))
    Scores(accuracy=0.75, log_loss=0.399..., brier=0.13, ece=0.04..., n_clipped=0, n_undefined=0)
    """
    undefined_i = ~np.isfinite(p_ik).all(axis=1)
    p_ik = np.where(undefined_i[:, None], 1.0 / p_ik.shape[1], p_ik)
    found = score_logs(np.log(np.maximum(p_ik, CLIP)), gold_i, np.ones(len(gold_i)))
    n_undefined = int(undefined_i.sum())
    if labels_only:
        return Scores(found.accuracy, n_undefined=n_undefined)
    right_ik = np.eye(p_ik.shape[1])[gold_i]
    return Scores(
        accuracy=found.accuracy,
        log_loss=found.log_loss,
        brier=float((0.5 * (p_ik - right_ik) ** 2).sum(axis=1).mean()),
        ece=found.ece,
        n_clipped=int(((p_ik < CLIP) & (right_ik == 1)).sum()),
        n_undefined=n_undefined,
    )


def mean_scores(scores: Sequence[Scores]) -> Scores:
    """Average the scores of several questions; counts add up."""

    def mean(value: Callable[[Scores], float | None]) -> float | None:
        values = [found for one in scores if (found := value(one)) is not None]
        return float(np.mean(values)) if values else None

    return Scores(
        accuracy=float(np.mean([one.accuracy for one in scores])),
        log_loss=mean(lambda one: one.log_loss),
        brier=mean(lambda one: one.brier),
        ece=mean(lambda one: one.ece),
        n_clipped=sum(one.n_clipped for one in scores),
        n_undefined=sum(one.n_undefined for one in scores),
    )


@dataclass(frozen=True)
class Line:
    """How a method fared on a set: its scores and CPU seconds, or why there are none."""

    scores: Scores | None
    seconds: float | None = None
    failed: str = ""


@dataclass(frozen=True)
class Entry:
    """A set of the league, and how every method fared on it, by the method's key."""

    name: str
    kinds: tuple[str, ...]
    n_items: int
    n_annotators: int
    n_labels: int
    n_votes: int
    n_gold: int
    lines: dict[str, Line]

    def accuracy(self, key: str) -> float | None:
        """Return a method's accuracy, if it has one."""
        scores = self.lines[key].scores
        return scores.accuracy if scores else None

    def log_loss(self, key: str) -> float | None:
        """Return a method's log loss, if it has one."""
        scores = self.lines[key].scores
        return scores.log_loss if scores else None

    def standard_error(self, key: str) -> float:
        """Return how far an accuracy would differ on another sample of gold items."""
        accuracy = self.accuracy(key) or 0.0
        return float(np.sqrt(accuracy * (1.0 - accuracy) / self.n_gold))

    def ranks(self) -> dict[str, float]:
        """Rank the methods by accuracy: 1 is the best, ties share a rank, those without an answer come last."""
        found = [self.accuracy(key) for key in self.lines]
        behind = [1.0 if accuracy is None else -round(accuracy, DIGITS) for accuracy in found]
        return dict(zip(self.lines, map(float, rankdata(behind)), strict=True))


@dataclass(frozen=True)
class Summary:
    """A method over several sets: mean rank by accuracy; mean accuracy and ratio of log losses where all are there."""

    rank: float
    accuracy: float | None
    ratio: float | None
    n_answered: int


def summarise(entries: Sequence[Entry], key: str, share: str) -> Summary:
    """Sum up a method over several sets.

    Parameters
    ----------
    entries
        The sets.
    key
        Of the method.
    share
        Key of the method whose log loss is the measure of all others.
    """
    accuracies = [entry.accuracy(key) for entry in entries]
    losses = [(entry.log_loss(key), entry.log_loss(share)) for entry in entries]
    return Summary(
        rank=float(np.mean([entry.ranks()[key] for entry in entries])),
        accuracy=_mean(accuracies),
        ratio=_geometric(losses),
        n_answered=sum(accuracy is not None for accuracy in accuracies),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    values = list(values)
    return None if None in values else float(np.mean([value or 0.0 for value in values]))


def _geometric(losses: Sequence[tuple[float | None, float | None]]) -> float | None:
    logs = [np.log(one / other) for one, other in losses if one is not None and other is not None]
    return float(np.exp(np.mean(logs))) if len(logs) == len(losses) else None
