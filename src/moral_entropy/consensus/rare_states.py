"""Draws of the weights of rare states: skewed as their posterior is, where a Gaussian would be far from it.

A weight that rests on few expected items has the posterior of a gamma variable: to the left of its mode, in logs, it
falls slowly, to the right very fast. The Gaussian with the mode's curvature is symmetric, and in logs so wide that its
right half would put half of all items into a state that hardly any item is in. Each weight's Gaussian numbers are
therefore mapped, quantile by quantile, to the log of the gamma variable with the same mode and curvature. Where a
weight rests on many items the two are the same.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammainccinv, gammaincinv, gammaln, log_ndtr, ndtr

from moral_entropy.votes.table import Floats

MANY = 100.0
"""Expected items from which on a gamma variable is Gaussian enough."""

ALIKE = 1e-4
"""Logs of weights at a mode closer than this are equal: a search ends within about as much of the top."""

LEAST = -100.0
"""Smallest log of a weight, relative to the largest weight of the domain."""


def skew_rare_weights(log_sdg: Floats, mode_dg: Floats) -> tuple[Floats, Floats]:
    """Map drawn weights that rest on few items to gamma variables; return them, and what it adds to the log density.

    Parameters
    ----------
    log_sdg
        Logs of the drawn weights: of every draw, domain and group of states.
    mode_dg
        Logs of the weights at the mode.
    """
    # The first of those that tie: rounding, which differs by processor, must not choose.
    largest_d = (mode_dg >= mode_dg.max(axis=1, keepdims=True) - ALIKE).argmax(axis=1)[:, None]
    step_sdg = log_sdg - np.take_along_axis(log_sdg, largest_d[None], axis=2)
    step_sdg -= mode_dg - np.take_along_axis(mode_dg, largest_d, axis=1)
    spread_dg = np.sqrt((step_sdg**2).mean(axis=0))
    added_s = np.zeros(len(log_sdg))
    for d, g in zip(*np.nonzero(spread_dg > MANY**-0.5), strict=True):
        normal_s, items = step_sdg[:, d, g] / spread_dg[d, g], spread_dg[d, g] ** -2.0
        step_s = log_gamma_quantiles(normal_s, items)
        added_s += 0.5 * normal_s**2 + items * (step_s - np.exp(step_s))
        step_sdg[:, d, g] = step_s
    moved_sdg = mode_dg + step_sdg
    moved_sdg -= moved_sdg.max(axis=2, keepdims=True)
    return np.asarray(moved_sdg - np.log(np.exp(moved_sdg).sum(axis=2, keepdims=True))), added_s


def log_gamma_quantiles(normal_s: Floats, shape: float) -> Floats:
    """Map standard normal numbers to the log of a gamma variable over its mean, which is the mode of its log.

    Examples
    --------
    >>> log_gamma_quantiles(np.array([-1.0, 0.0, 1.0]), 1e6).round(4)
    array([-0.001, -0.    ,  0.001])
    >>> log_gamma_quantiles(np.array([-1.0, 0.0, 1.0]), 0.1).round(2)
    array([-16.61,  -5.13,   0.18])
    """
    upper = normal_s > 0.0
    value_s = np.where(upper, gammainccinv(shape, ndtr(-normal_s)), gammaincinv(shape, ndtr(normal_s)))
    # Far to the left the quantile underflows, and is the power law of the density there.
    power_s = (log_ndtr(normal_s) + gammaln(shape + 1.0)) / shape
    log_s = np.where(value_s > 1e-280, np.log(np.maximum(value_s, 1e-300)), power_s)
    return np.asarray(np.maximum(log_s - np.log(shape), LEAST))
