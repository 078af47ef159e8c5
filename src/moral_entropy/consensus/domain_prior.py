"""What domains have in common: the weights that every domain's own are drawn towards, and how strongly.

The weights of domain d ~ Dir(strength · common), in log-ratio coordinates. Both are learnt from the expected items of
each state: the common weights are those of all items together, and the strength maximises the Dirichlet-multinomial
likelihood of the domains' items, with a weak prior. Where domains are alike the strength is large and they share one
prevalence; where they differ each has its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln

from moral_entropy.votes.table import Floats

TYPICAL_STRENGTH, SPREAD = 20.0, 1.5
"""Centre, in items, and standard deviation, in logs, of the prior of the strength."""

WEAKEST, STRONGEST = 0.5, 1e5
"""Bounds of the strength."""

NEAR = 1e-4
"""How far, in logs, the strength of lowest cost may be from where a search by cost ends."""

SAME_WEIGHT, SAME_STRENGTH = 1e-5, 0.002
"""Differences of a common weight, and of the log of the strength, that are none."""

LEAST_LEFT, FARTHEST = 0.25, 1.0
"""How much of a common weight a step leaves at least, and how far it moves the log of the strength at most."""


@dataclass(frozen=True, eq=False)
class DomainPrior:
    """The weights that domains have in common, and the pseudo-items with which they are drawn towards these."""

    common_g: Floats
    strength: float

    def pseudo_dg(self, n_domains: int) -> Floats:
        """Return the pseudo-items of every domain."""
        return np.tile(self.strength * self.common_g, (n_domains, 1))

    @property
    def coordinates_x(self) -> Floats:
        """The common weights and the log of the strength, in differences that are none."""
        return np.append(self.common_g / SAME_WEIGHT, np.log(self.strength) / SAME_STRENGTH)

    def towards(self, end_x: Floats) -> DomainPrior:
        """Return the prior at other coordinates, or that on the straight way there at which a step must end.

        Examples
        --------
        A weight that would be gone keeps a quarter:

        >>> prior = DomainPrior(np.array([0.8, 0.2]), 10.0)
        >>> gone = DomainPrior(np.array([1.0, 0.0]), 10.0)
        >>> prior.towards(gone.coordinates_x).common_g
        array([0.95, 0.05])
        """
        step_x = end_x - self.coordinates_x
        step_g, step = step_x[:-1] * SAME_WEIGHT, abs(step_x[-1]) * SAME_STRENGTH
        falls = np.append(-step_g / self.common_g / (1.0 - LEAST_LEFT), step / FARTHEST)
        share = 1.0 / max(1.0, float(falls.max()))
        common_g = self.common_g + share * step_g
        strength = self.strength * np.exp(share * step_x[-1] * SAME_STRENGTH)
        return DomainPrior(common_g / common_g.sum(), float(strength))

    def is_near(self, other: DomainPrior) -> bool:
        """Return whether another prior is so near that domains would hardly notice the difference."""
        return bool(np.abs(self.coordinates_x - other.coordinates_x).max() < 1.0)


def learn_domain_prior(items_dg: Floats, pseudo_g: Floats, label_gk: Floats) -> DomainPrior:
    """Learn what domains have in common from the expected items of each group of states.

    Parameters
    ----------
    items_dg
        Expected items by domain and group.
    pseudo_g
        Pseudo-items of the common weights: their own prior.
    label_gk
        How much of each label a group has: the strength is learnt from how domains differ in labels, since how they
        differ in what lies between labels is hardly told.

    Examples
    --------
    Domains that are alike share one prevalence; those that differ hardly pull each other.

    >>> alike = learn_domain_prior(np.full((30, 2), [80.0, 20.0]), np.ones(2), np.eye(2))
    >>> apart = learn_domain_prior(np.tile([[95.0, 5.0], [5.0, 95.0]], (15, 1)), np.ones(2), np.eye(2))
    >>> alike.strength > 200 > 10 > apart.strength
    True
    """
    total_g = items_dg.sum(axis=0) + pseudo_g
    common_g = total_g / total_g.sum()
    return DomainPrior(common_g, _strength(items_dg @ label_gk, common_g @ label_gk))


def _strength(items_dk: Floats, common_k: Floats) -> float:
    """Find the strength that maximises the likelihood of the items times its prior."""
    total_d = items_dk.sum(axis=1)

    def cost(log_strength: float) -> float:
        strength = np.exp(log_strength)
        concentration_k = strength * common_k
        fit = (gammaln(items_dk + concentration_k) - gammaln(concentration_k)).sum()
        fit += (gammaln(strength) - gammaln(total_d + strength)).sum()
        return float(0.5 * ((log_strength - np.log(TYPICAL_STRENGTH)) / SPREAD) ** 2 - fit)

    def slope(log_strength: float) -> float:
        strength = np.exp(log_strength)
        concentration_k = strength * common_k
        fit = ((digamma(items_dk + concentration_k) - digamma(concentration_k)) @ common_k).sum()
        fit += (digamma(strength) - digamma(total_d + strength)).sum()
        return float((log_strength - np.log(TYPICAL_STRENGTH)) / SPREAD**2 - strength * fit)

    # Late: it takes a tenth of a second to load, and votes without domains do without.
    from scipy.optimize import brentq, minimize_scalar

    lowest, highest = np.log(WEAKEST), np.log(STRONGEST)
    found = minimize_scalar(cost, bounds=(lowest, highest), method="bounded", options={"xatol": 1e-9}).x
    # The lowest cost is known to half the digits, where its slope is 0 to nearly all of them.
    low, high = max(lowest, found - NEAR), min(highest, found + NEAR)
    return float(np.exp(brentq(slope, low, high, xtol=1e-13) if slope(low) < 0.0 < slope(high) else found))
