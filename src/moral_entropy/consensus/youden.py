"""How much an annotator's votes tell: the Youden index, and who is below chance.

The one definition of both, for the annotators' table, the roles, the checks and the report.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moral_entropy.consensus.result import QuestionFit
from moral_entropy.votes.table import Floats, Ints

SURE = 0.99
"""Posterior probability of a Youden index below 0 from which an annotator is called below chance."""

FEW_VOTES = 10
"""Annotators with fewer votes are called nothing: neither below chance nor anything else."""

ANNOTATORS_AT_ONCE = 1_024


def youden(confusion_akv: Floats) -> Floats:
    """Return the Youden index of each confusion matrix: 0 at chance, 1 without error, negative below chance.

    With two labels it is sensitivity + specificity - 1. With K labels it is (K · mean of the diagonal - 1) / (K - 1),
    which is the same for K = 2, and is 0 for whoever guesses however many labels there are.

    Parameters
    ----------
    confusion_akv
        Confusion matrices, true label by voted label in the last two axes; any axes before them.

    Examples
    --------
    >>> youden(np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.8, 0.2]]])).round(6)
    array([ 0.5, -0.6])
    >>> float(youden(np.full((3, 3), 1 / 3)).round(6))
    0.0
    """
    n_labels = confusion_akv.shape[-1]
    trace_a: Floats = confusion_akv[..., 0, 0].copy()
    for k in range(1, n_labels):
        trace_a += confusion_akv[..., k, k]
    youden_a: Floats = (trace_a - 1.0) / (n_labels - 1.0)
    return youden_a


def below_chance(fit: QuestionFit) -> Floats:
    """Return every annotator's posterior probability of a Youden index below 0; NaN without draws: `below_a`."""
    below_a = np.full(fit.ballot.n_annotators, np.nan)
    for start in range(0, fit.ballot.n_annotators if fit.n_draws else 0, ANNOTATORS_AT_ONCE):
        some = slice(start, start + ANNOTATORS_AT_ONCE)
        below_a[some] = (youden(fit.rows_sakv[:, some]) < 0).mean(axis=0)
    return below_a


def surely_below_chance(below_a: Floats, votes_a: Ints) -> NDArray[np.bool_]:
    """Tell which annotators are below chance: surely, and with enough votes to say so.

    Parameters
    ----------
    below_a
        See `below_chance`.
    votes_a
        How many votes each annotator gave.

    Examples
    --------
    >>> surely_below_chance(np.array([0.999, 0.97, 0.999, np.nan]), np.array([40, 40, 9, 40])).tolist()
    [True, False, False, False]
    """
    return (below_a >= SURE) & (votes_a >= FEW_VOTES)
