"""Costs: what a wrong yes and a wrong no cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moral_entropy.errors import UsageError
from moral_entropy.votes.table import Floats

HIGHEST = 1e100
"""Highest cost: sums over any number of items stay finite."""


@dataclass(frozen=True)
class Costs:
    """What a wrong yes and a wrong no cost.

    Examples
    --------
    >>> Costs(false_positive=-1)
    Traceback (most recent call last):
    ...
    moral_entropy.errors.UsageError: a false positive costs -1. Costs are 0 or more, at most 1e+100, and not both 0.
    """

    false_positive: float = 1.0
    false_negative: float = 1.0

    def __post_init__(self) -> None:
        """Raise a `UsageError` for negative or infinite costs, and if both are 0."""
        named = {"a false positive": self.false_positive, "a false negative": self.false_negative}
        for name, cost in named.items():
            if not 0 <= cost <= HIGHEST or self.false_positive + self.false_negative == 0:
                msg = f"{name} costs {cost:g}. Costs are 0 or more, at most {HIGHEST:g}, and not both 0."
                raise UsageError(msg)

    def of_p(self, p_i: Floats) -> Floats:
        """Compute the expected cost of an item decided by its p: the cheaper of yes and no."""
        return np.minimum(self.false_positive * (1.0 - p_i), self.false_negative * p_i)
