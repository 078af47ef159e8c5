"""Options of the audit of consensus rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class GradeOptions:
    """How to grade consensus rules: the keywords of `audit_rules`, by the same names.

    Parameters
    ----------
    rules
        Names of the rules; all that make sense when not given.
    costs
        Of a false positive and of a false negative, for the advice.
    smoothing
        Pseudo-votes either way in the smoothed cross-entropy.
    bootstrap
        Resamplings of the items; 0 for intervals from the posterior draws alone.
    """

    rules: tuple[Any, ...] | None = None
    costs: tuple[float, float] = (1.0, 1.0)
    smoothing: float = 0.5
    bootstrap: int = 0
