"""How judges stand to each other: the consensus of the panel, corrected by known answers as far as these ask for it.

The share of right votes that known answers alone show is too noisy to order judges a few points apart, and a consensus
may be wrong about some of them. Takes a `Panel` with known answers, returns one figure per judge, to be ranked by.
"""

from __future__ import annotations

import numpy as np

from moral_entropy.judges.panel import Panel
from moral_entropy.votes.table import UNKNOWN, Floats

FEWEST = 5
"""Known answers of a judge below which they say nothing about it alone."""


def standings(panel: Panel) -> Floats:
    """Return the share of each judge's votes that are right, as it is best guessed: `standing_j`.

    The consensus of all, with judges who are counted as one in it once, lets one expect a share for every judge. Known
    answers show by how much that is off: for all judges together, and for each by how much more or less. What is the
    judge's own is taken as drawn from a normal distribution around 0, whose variance is what the judges differ by
    beyond the noise of the known answers (the moment estimate of DerSimonian and Laird, judges weighing alike), and
    shrunk accordingly. Where the consensus fits, it orders the judges; where it is wrong about them, known answers do.

    Parameters
    ----------
    panel
        The panel. Figures of judges without a vote are NaN.
    """
    p_ik, known_i = panel.labels(panel.log_iz), panel.gold_i != UNKNOWN
    voted_ji = panel.vote_ji != UNKNOWN
    expected_ji = np.take_along_axis(p_ik, np.maximum(panel.vote_ji, 0).T, axis=1).T
    off_jg = ((panel.vote_ji == panel.gold_i) - expected_ji)[:, known_i]
    own_j, variance_j, common = _apart(off_jg, voted_ji[:, known_i], panel.weight_i[known_i])
    told_j = np.isfinite(variance_j)
    between = max(float((own_j**2 - variance_j)[told_j].mean()), 0.0) if told_j.any() else 0.0
    kept_j = between / np.maximum(between + variance_j, 1e-300)
    return np.asarray(_means(expected_ji, voted_ji, panel.weight_i) + common + kept_j * own_j)


def _apart(off_jg: Floats, voted_jg: Floats, weight_g: Floats) -> tuple[Floats, Floats, float]:
    """Split what the consensus is off into what all judges share and each one's own, with the variance of the latter.

    An item on which the consensus is wrong about everybody is no news about any judge: residuals are taken from their
    mean over the judges of the item.
    """
    n_j = voted_jg.sum(axis=1)
    off_j = np.where(n_j > 0, _means(off_jg, voted_jg, weight_g), 0.0)
    common = float(off_j[n_j >= FEWEST].mean()) if (n_j >= FEWEST).any() else 0.0
    usual_g = (off_jg * voted_jg).sum(axis=0) / np.maximum(voted_jg.sum(axis=0), 1)
    rest_jg = np.where(voted_jg, off_jg - usual_g, 0.0)
    rest_jg = np.where(voted_jg, rest_jg - (rest_jg.sum(axis=1) / np.maximum(n_j, 1))[:, None], 0.0)
    variance_j = (rest_jg**2).sum(axis=1) / np.maximum(n_j * (n_j - 1.0), 1.0)
    return off_j - common, np.where(n_j >= FEWEST, variance_j, np.inf), common


def _means(value_ji: Floats, voted_ji: Floats, weight_i: Floats) -> Floats:
    """Return the mean over each judge's items; NaN for judges without any."""
    total_j = voted_ji @ weight_i
    return np.asarray(np.where(total_j > 0, (value_ji * voted_ji) @ weight_i / np.maximum(total_j, 1e-300), np.nan))
