"""Log-ratio coordinates: K - 1 numbers per simplex, without the redundancy of softmax logits.

Order: log ratios of the weights to label 0's (domain by domain), then, for annotator 0, 1, … and true label 0, 1, …,
the log ratios of that confusion row to voting label 0.
"""

from __future__ import annotations

import math

import numpy as np

from moral_entropy.consensus.model import Parameters
from moral_entropy.votes.table import Floats


def pack(at: Parameters) -> Floats:
    """Return the log-ratio coordinates of some parameters.

    Examples
    --------
    >>> at = Parameters(np.log([0.5, 0.5]), np.log([[[0.8, 0.2], [0.2, 0.8]]]))
    >>> pack(at).round(3)
    array([ 0.   , -1.386,  1.386])
    """
    weights = at.log_weight_g[..., 1:] - at.log_weight_g[..., :1]
    confusion = at.log_confusion_akv[..., 1:] - at.log_confusion_akv[..., :1]
    return np.concatenate([weights.ravel(), confusion.ravel()])


def unpack(x_p: Floats, n_labels: int, weights: tuple[int, ...] = ()) -> Parameters:
    """Return the parameters at some log-ratio coordinates; leading axes (draws) are kept.

    Parameters
    ----------
    x_p
        The coordinates, along the last axis.
    n_labels
        Number of labels.
    weights
        Shape of the weights where there is not one per label: domains and groups of states.

    Examples
    --------
    >>> at = unpack(np.array([0.0, -1.386, 1.386]), 2)
    >>> at.confusion_akv.round(2).tolist()
    [[[0.8, 0.2], [0.2, 0.8]]]
    """
    *domains, n_groups = weights or (n_labels,)
    lead, n_weights = x_p.shape[:-1], math.prod(domains) * (n_groups - 1)
    prevalence = x_p[..., :n_weights].reshape(*lead, *domains, n_groups - 1)
    n_annotators = (x_p.shape[-1] - n_weights) // (n_labels * (n_labels - 1))
    confusion = x_p[..., n_weights:].reshape(*lead, n_annotators, n_labels, n_labels - 1)
    return Parameters(_log_shares(prevalence), _log_shares(confusion))


def unpack_like(x_p: Floats, at: Parameters) -> Parameters:
    """Return the parameters at some log-ratio coordinates, of the shape of others."""
    return unpack(x_p, at.log_confusion_akv.shape[-1], at.log_weight_g.shape)


def _log_shares(ratios: Floats) -> Floats:
    """Turn log ratios to the first into logs of all shares, along the last axis."""
    if ratios.shape[-1] == 1:
        # With two labels a softplus gives both shares, several times faster than reducing an axis of length two.
        ratio = ratios[..., 0]
        rest = np.log1p(np.exp(-np.abs(ratio)))
        return np.stack([np.minimum(-ratio, 0.0) - rest, np.minimum(ratio, 0.0) - rest], axis=-1)
    x = np.concatenate([np.zeros((*ratios.shape[:-1], 1)), ratios], axis=-1)
    shifted = x - x.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))
