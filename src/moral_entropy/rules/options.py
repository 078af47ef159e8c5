"""Options of the audit of consensus rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moral_entropy.errors import UsageError
from moral_entropy.options import StageOptions, option

RULES = "Audit of consensus rules"

HIGHEST_COST = 1e100
"""Sums over any number of items stay finite."""


@dataclass(frozen=True)
class GradeOptions(StageOptions):
    """How to grade consensus rules: the options of `audit_rules`, which explains them."""

    rules: tuple[Any, ...] | None = option(
        None,
        "Rules to grade, as any,majority,two-vote; in Python also rules and functions of vote counts. By default all "
        "that make sense, with published labels where the data has them.",
        panel=RULES,
        everyday=True,
    )
    cost_fp: float = option(1.0, "Cost of a wrong yes, for the advice.", panel=RULES)
    cost_fn: float = option(1.0, "Cost of a wrong no, for the advice.", panel=RULES)
    smoothing: float = option(0.5, "Pseudo-votes for each side in the smoothed cross-entropy.", panel=RULES)

    def __post_init__(self) -> None:
        """Raise a `UsageError` for negative or infinite costs, and if both are 0."""
        super().__post_init__()
        for name, cost in (("a false positive", self.cost_fp), ("a false negative", self.cost_fn)):
            if not 0 <= cost <= HIGHEST_COST or self.cost_fp + self.cost_fn == 0:
                msg = f"{name} costs {cost:g}. Costs are 0 or more, at most {HIGHEST_COST:g}, and not both 0."
                raise UsageError(msg)

    @property
    def costs(self) -> tuple[float, float]:
        """Costs of a wrong yes and of a wrong no."""
        return self.cost_fp, self.cost_fn
