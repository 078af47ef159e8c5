"""Log-ratio coordinates: K - 1 numbers a simplex, as the softmax logits themselves are redundant.

Order: log ratios of the prevalence to label 0, then, for annotator 0, 1, … and true label 0, 1, …, the log
ratios of that confusion row to voting label 0.
"""

from __future__ import annotations

import numpy as np

from moral_entropy.consensus.model import Parameters
from moral_entropy.votes.table import Floats


def pack(at: Parameters) -> Floats:
    """Give the log-ratio coordinates of some parameters.

    Examples
    --------
    >>> at = Parameters(np.log([0.5, 0.5]), np.log([[[0.8, 0.2], [0.2, 0.8]]]))
    >>> pack(at).round(3)
    array([ 0.   , -1.386,  1.386])
    """
    prevalence = at.log_prevalence_k[1:] - at.log_prevalence_k[0]
    confusion = at.log_confusion_akv[..., 1:] - at.log_confusion_akv[..., :1]
    return np.concatenate([prevalence, confusion.ravel()])


def unpack(x_p: Floats, n_labels: int) -> Parameters:
    """Give the parameters at some log-ratio coordinates; leading axes (draws) are kept.

    Examples
    --------
    >>> at = unpack(np.array([0.0, -1.386, 1.386]), 2)
    >>> at.confusion_akv.round(2).tolist()
    [[[0.8, 0.2], [0.2, 0.8]]]
    """
    n_other = n_labels - 1
    shape = (*x_p.shape[:-1], x_p.shape[-1] // (n_labels * n_other), n_labels, n_other)
    prevalence = _with_zero(x_p[..., :n_other])
    confusion = _with_zero(x_p[..., n_other:].reshape(shape))
    return Parameters(_log_softmax(prevalence), _log_softmax(confusion))


def _with_zero(ratios: Floats) -> Floats:
    return np.concatenate([np.zeros((*ratios.shape[:-1], 1)), ratios], axis=-1)


def _log_softmax(x: Floats) -> Floats:
    # SciPy's does the same through its array-API layer, which costs more than the sum at these sizes.
    shifted = x - x.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))
