"""Bregman divergences: one implementation of the Brier score, cross-entropy and 0/1 loss.

A convex generator phi makes a divergence D(p, g) = phi(p) - phi(g) - phi'(g) (p - g): what a report of g loses when
p is right. Averaged over items that share a report, it splits exactly into reliability - resolution + uncertainty
(Bröcker 2009, "Reliability, sufficiency, and the decomposition of proper scores", eq. 9). The split needs
only sums over those items, which is what these functions take.

With phi = -entropy, divergence plus the mean entropy of p is the expected score of g when labels are drawn from p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from moral_entropy.votes.table import Floats

Curve = Callable[[Any], Any]


@dataclass(frozen=True)
class Generator:
    """A convex function on [0, 1], as minus an entropy, with its slope.

    Parameters
    ----------
    name
        Name of the divergence it defines.
    entropy
        Minus phi: 0 at both ends, largest at ½.
    slope
        Derivative of phi; any slope between left and right where there is a kink.
    """

    name: str
    entropy: Curve
    slope: Curve


def _times(slope: Any, gap: Any) -> Any:
    """Multiply, where an infinite slope times a gap of 0 is 0: a certain report that is right loses nothing."""
    with np.errstate(invalid="ignore"):
        product = np.multiply(slope, gap)
    return product if np.isfinite(product).all() else np.where(gap == 0, 0.0, product)


def _gini(p: Any) -> Any:
    return p * (1 - np.asarray(p))


def _shannon(p: Any) -> Any:
    return entr(p) + entr(1 - np.asarray(p))


def _logit(p: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(p) - np.log1p(-np.asarray(p))


def _doubt(p: Any) -> Any:
    return np.minimum(p, 1 - np.asarray(p))


# p² and p² - p make the same divergence: it does not see a linear term.
BRIER = Generator("brier", _gini, lambda p: 2 * np.asarray(p) - 1)
KL = Generator("kl", _shannon, _logit)
# The kink is at ½, which the paper's threshold counts as yes.
ZERO_ONE = Generator("zero_one", _doubt, lambda p: np.where(np.asarray(p) >= 0.5, 1.0, -1.0))


def split(
    generator: Generator, g_l: Floats, weight_ls: Floats, p_ls: Floats, entropy_ls: Floats
) -> tuple[dict[str, Floats], Floats]:
    """Split the mean divergence of a report with few levels. Axes: any, **l** level, **s** draw.

    Parameters
    ----------
    generator
        Which divergence.
    g_l
        The report at each level.
    weight_ls, p_ls, entropy_ls
        Sums over the level's items: their number, what was right, and the generator's entropy of that.

    Returns
    -------
    tuple
        In every draw, the mean divergence by the generator's name, "brier", and its exact parts: "brier" is
        "brier_reliability" less "brier_resolution" plus "brier_uncertainty". And the mean entropy of what was right:
        added to divergence and uncertainty it turns both into those of the expected score.

    Examples
    --------
    Two items reported 1 that were 0.5 and 0.9, one reported 0 that was 0.1:

    >>> sums = np.array([[1.0], [2.0]]), np.array([[0.1], [1.4]]), np.array([[0.09], [0.25 + 0.09]])
    >>> parts, _ = split(BRIER, np.array([0.0, 1.0]), *sums)
    >>> float(parts["brier"][0].round(6)), round((0.1**2 + 0.5**2 + 0.1**2) / 3, 6)
    (0.09, 0.09)
    """
    g_l1 = g_l[..., None]
    total_s = weight_ls.sum(axis=-2)
    # Rounding can put means of many probabilities outside 0 to 1, where entropies have no value.
    mean_s = share_of(p_ls.sum(axis=-2), total_s).clip(0.0, 1.0)
    level_ls = (p_ls / np.where(weight_ls == 0, 1.0, weight_ls)).clip(0.0, 1.0)
    # Averages of minus phi: at the report (with the rise of its tangent), at the level's mean, and at the items.
    line_ls = weight_ls * generator.entropy(g_l1) - _times(generator.slope(g_l1), p_ls - weight_ls * g_l1)
    report_s = share_of(line_ls.sum(axis=-2), total_s)
    level_s = share_of((weight_ls * generator.entropy(level_ls)).sum(axis=-2), total_s)
    entropy_s = share_of(entropy_ls.sum(axis=-2), total_s)
    whole_s = generator.entropy(mean_s)
    parts = {
        "": report_s - entropy_s,
        "_reliability": report_s - level_s,
        # The rise of the tangent at the overall mean is 0 on average, so that only entropies are left.
        "_resolution": whole_s - level_s,
        "_uncertainty": whole_s - entropy_s,
    }
    return {f"{generator.name}{part}": value_s.clip(min=0.0) for part, value_s in parts.items()}, entropy_s


def share_of(part: NDArray[Any], whole: NDArray[Any]) -> Floats:
    """Divide; NaN where there is nothing to divide by."""
    shares: Floats = np.divide(part, np.where(whole == 0, np.nan, whole))
    return shares
