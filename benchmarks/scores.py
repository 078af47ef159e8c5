"""How right probabilities of label 1 are, where the truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

CLIP = 1e-6
"""Log loss holds no probability nearer to 0 or 1 than this, lest one sure error make it infinite."""


@dataclass(frozen=True)
class Scores:
    """How right some probabilities are.

    Parameters
    ----------
    accuracy
        Share of items whose label is right: 1 where p ≥ ½.
    brier
        Mean of (p − truth)².
    log_loss
        Mean of −log of the probability of the truth, in nats; None for tools that give labels only.
    n_undefined
        Items whose p is no number; they count as ½.
    """

    accuracy: float
    brier: float
    log_loss: float | None
    n_undefined: int


def score(p_i: Any, truth_i: Any) -> Scores:
    """Hold probabilities against the truth.

    Parameters
    ----------
    p_i
        Probability of label 1 of each item.
    truth_i
        Its true label, 0 or 1.

    Examples
    --------
    >>> score([0.9, 0.2], [1, 1])
    Scores(accuracy=0.5, brier=0.325, log_loss=0.857..., n_undefined=0)
    """
    p_i, truth_i = np.asarray(p_i, dtype=float), np.asarray(truth_i)
    undefined_i = np.isnan(p_i)
    p_i = np.where(undefined_i, 0.5, p_i)
    labels_only = bool(np.isin(p_i, (0.0, 1.0)).all())
    chance_i = np.clip(np.where(truth_i == 1, p_i, 1.0 - p_i), CLIP, 1.0 - CLIP)
    return Scores(
        accuracy=float(((p_i >= 0.5) == (truth_i == 1)).mean()),
        brier=float(((p_i - truth_i) ** 2).mean()),
        log_loss=None if labels_only else float(-np.log(chance_i).mean()),
        n_undefined=int(undefined_i.sum()),
    )
