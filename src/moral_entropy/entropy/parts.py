"""Split an item's label entropy by what is still unknown.

Takes a `Consensus` or posterior draws, returns `EntropyParts`. Touches neither votes nor files.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.names import ALL
from moral_entropy.votes.table import UNKNOWN, Floats


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


@dataclass(frozen=True)
class DomainEntropy:
    """Mean entropies of one question in one domain; pre-counted items as often as they count."""

    question: str
    domain: str
    n_items: int
    total: float
    aleatoric: float
    epistemic: float


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
        return _stacked([decompose_entropy(fit) for fit in posterior.fits])
    if isinstance(posterior, QuestionFit):
        return _parts(posterior.summary.mean_ik, posterior.summary.expected_entropy_i)
    return _parts(posterior.mean(axis=0), entr(posterior).sum(axis=-1).mean(axis=0))


def _parts(mean_ik: Floats, aleatoric_i: Floats) -> EntropyParts:
    total_i = entr(mean_ik).sum(axis=-1)
    # Jensen makes the difference non-negative; rounding can leave about -1e-16.
    epistemic_i = np.maximum(total_i - aleatoric_i, 0.0)
    return EntropyParts(total_i, np.minimum(aleatoric_i, total_i), epistemic_i)


def _stacked(parts: list[EntropyParts]) -> EntropyParts:
    return EntropyParts(
        total_i=np.concatenate([part.total_i for part in parts]),
        aleatoric_i=np.concatenate([part.aleatoric_i for part in parts]),
        epistemic_i=np.concatenate([part.epistemic_i for part in parts]),
    )


def entropy_by_domain(consensus: Consensus, parts: EntropyParts | None = None) -> list[DomainEntropy]:
    """Average the entropies by question and domain, all domains together first.

    Parameters
    ----------
    consensus
        The consensus.
    parts
        Its entropies, if they are at hand already.
    """
    parts = parts or decompose_entropy(consensus)
    votes = consensus.votes
    weight_i = np.concatenate([fit.ballot.count_i for fit in consensus.fits])
    item_i = np.concatenate([fit.ballot.item_i for fit in consensus.fits])
    domain_i = votes.domain_i[item_i]
    question_i = np.repeat([fit.question for fit in consensus.fits], [fit.ballot.n_items for fit in consensus.fits])
    rows = []
    for question in votes.questions:
        asked_i = question_i == question
        rows.append(_mean(question, ALL, parts, weight_i, asked_i))
        for code in np.unique(domain_i[asked_i]):
            if code != UNKNOWN:
                inside_i = asked_i & (domain_i == code)
                rows.append(_mean(question, votes.domains[code], parts, weight_i, inside_i))
    return rows


def _mean(
    question: str, domain: str, parts: EntropyParts, weight_i: Floats, inside_i: NDArray[np.bool_]
) -> DomainEntropy:
    weight = weight_i[inside_i]

    def mean(values_i: Floats) -> float:
        return float(np.average(values_i[inside_i], weights=weight))

    return DomainEntropy(
        question=question,
        domain=domain,
        n_items=round(weight.sum()),
        total=mean(parts.total_i),
        aleatoric=mean(parts.aleatoric_i),
        epistemic=mean(parts.epistemic_i),
    )
