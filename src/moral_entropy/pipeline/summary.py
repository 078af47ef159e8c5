"""Consensus → a line per fit: what the screen shows of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.entropy.parts import EntropyParts


@dataclass(frozen=True)
class FitLine:
    """One fit in a line.

    Parameters
    ----------
    question, part
        What was fitted; `part` is empty unless a question was fitted in several.
    n_items
        Items, pre-counted ones as often as they count.
    label, prevalence
        The positive label of two, the commonest of more; and its share of the items, see `QuestionFit.share_k`.
    entropy, aleatoric, epistemic
        Means over items, in nats; the last two are NaN without draws.
    uncertain
        Share of items whose entropy exceeds half of what it can be, log(number of labels).
    converged
        Whether the climb met its tolerance.
    """

    question: str
    part: str
    n_items: float
    label: str
    prevalence: float
    entropy: float
    aleatoric: float
    epistemic: float
    uncertain: float
    converged: bool


def fit_lines(consensus: Consensus, parts: EntropyParts) -> list[FitLine]:
    """Give a line per fit, in the order of the fits."""
    ends = np.cumsum([0, *(fit.ballot.n_items for fit in consensus.fits)])
    return [
        _fit_line(fit, parts, slice(start, stop))
        for fit, start, stop in zip(consensus.fits, ends[:-1], ends[1:], strict=True)
    ]


def _fit_line(fit: QuestionFit, parts: EntropyParts, rows: slice) -> FitLine:
    ballot, weight_i = fit.ballot, fit.ballot.count_i
    label = ballot.positive if ballot.n_labels == 2 else int(fit.share_k.argmax())
    half = np.log(ballot.n_labels) / 2
    return FitLine(
        question=ballot.question,
        part=ballot.part,
        n_items=float(weight_i.sum()),
        label=ballot.labels[label],
        prevalence=float(fit.share_k[label]),
        entropy=float(np.average(parts.total_i[rows], weights=weight_i)),
        aleatoric=float(np.average(parts.aleatoric_i[rows], weights=weight_i)),
        epistemic=float(np.average(parts.epistemic_i[rows], weights=weight_i)),
        uncertain=float(np.average(parts.total_i[rows] > half, weights=weight_i)),
        converged=fit.climb.converged,
    )
