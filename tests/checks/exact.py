"""The exact posterior of a tiny ballot, by summing over every way its items can be labelled.

With the labels given, parameters are Dirichlet; so the posterior is a mixture of Dirichlets, one per labelling, and
its moments are sums. Nothing of the package is used for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import gammaln, logsumexp


@dataclass(frozen=True, eq=False)
class Exact:
    """Posterior means and standard deviations; `label_ik` are the chances of every item's labels."""

    prevalence_k: np.ndarray
    prevalence_sd_k: np.ndarray
    confusion_akv: np.ndarray
    confusion_sd_akv: np.ndarray
    label_ik: np.ndarray


def exact_posterior(rows, alpha_k, beta_akv):
    """Sum over all labellings of the items of (item, annotator, label) triples."""
    n_items, n_labels = 1 + max(item for item, _, _ in rows), len(alpha_k)
    logs, items, votes, given = [], [], [], []
    for labelling in product(range(n_labels), repeat=n_items):
        count_k, count_akv = np.array(alpha_k, dtype=float), np.array(beta_akv, dtype=float)
        for k in labelling:
            count_k[k] += 1
        for item, annotator, label in rows:
            count_akv[annotator, labelling[item], label] += 1
        logs.append(_log_beta(count_k) + _log_beta(count_akv).sum())
        items.append(count_k)
        votes.append(count_akv)
        given.append(np.eye(n_labels)[list(labelling)])
    share = np.exp(np.array(logs) - logsumexp(logs))
    prevalence, prevalence_sd = _moments(share, np.array(items))
    confusion, confusion_sd = _moments(share, np.array(votes))
    return Exact(prevalence, prevalence_sd, confusion, confusion_sd, np.tensordot(share, np.array(given), axes=1))


def _log_beta(counts):
    return gammaln(counts).sum(axis=-1) - gammaln(counts.sum(axis=-1))


def _moments(share, counts):
    whole = counts.sum(axis=-1, keepdims=True)
    mean = counts / whole
    square = mean * (counts + 1) / (whole + 1)
    first, second = np.tensordot(share, mean, axes=1), np.tensordot(share, square, axes=1)
    return first, np.sqrt(second - first**2)
