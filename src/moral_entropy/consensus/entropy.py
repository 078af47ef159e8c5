"""Split an item's label entropy by what is still unknown.

Takes a `Consensus` or posterior draws, returns `EntropyParts`. Touches neither votes nor files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.votes.table import Floats


@dataclass(frozen=True, eq=False)
class EntropyParts:
    """Label entropy of each item, in nats: `total_i` = `aleatoric_i` + `epistemic_i`.

    The aleatoric part is what stays in doubt with the parameters known. Under this model it still falls as votes
    arrive: it is doubt about this item's label, not a constant of the item. The epistemic part is what the draws
    disagree about. Both are NaN where there are no draws.
    """

    total_i: Floats
    aleatoric_i: Floats
    epistemic_i: Floats


def decompose_entropy(posterior: Consensus | QuestionFit | Floats) -> EntropyParts:
    """Split each item's label entropy over posterior draws.

    Parameters
    ----------
    posterior
        A consensus (items of all its fits one below the other), one of its fits, or label probabilities
        `posterior_sik` for every draw and item, whose last axis sums to 1.

    Examples
    --------
    Two draws, each certain, that contradict each other: all doubt is about the fit.

    >>> parts = decompose_entropy(np.array([[[1.0, 0.0]], [[0.0, 1.0]]]))
    >>> parts.aleatoric_i.round(3), parts.epistemic_i.round(3)
    (array([0.]), array([0.693]))
    """
    if isinstance(posterior, Consensus):
        return stacked([decompose_entropy(fit) for fit in posterior.fits])
    if isinstance(posterior, QuestionFit):
        return _parts(posterior.summary.mean_ik, posterior.summary.expected_entropy_i)
    return _parts(posterior.mean(axis=0), entr(posterior).sum(axis=-1).mean(axis=0))


def _parts(mean_ik: Floats, aleatoric_i: Floats) -> EntropyParts:
    total_i = entr(mean_ik).sum(axis=-1)
    # Jensen makes the difference non-negative; rounding can leave about -1e-16.
    epistemic_i = np.maximum(total_i - aleatoric_i, 0.0)
    return EntropyParts(total_i, np.minimum(aleatoric_i, total_i), epistemic_i)


def stacked(parts: Sequence[EntropyParts]) -> EntropyParts:
    """Put the entropies of several fits one below the other."""
    if len(parts) == 1:
        return parts[0]
    return EntropyParts(
        total_i=np.concatenate([part.total_i for part in parts]),
        aleatoric_i=np.concatenate([part.aleatoric_i for part in parts]),
        epistemic_i=np.concatenate([part.epistemic_i for part in parts]),
    )
