"""Options of the audit of consensus rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moral_entropy.options import StageOptions, option

RULES = "Audit of consensus rules"


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
    bootstrap: int = option(
        0,
        "Resample the items this many times, so that intervals against the consensus also hold which items were "
        "sampled; 0: they take the items as given. Against gold the items are resampled in any case.",
        panel=RULES,
    )

    @property
    def costs(self) -> tuple[float, float]:
        """Costs of a wrong yes and of a wrong no."""
        return self.cost_fp, self.cost_fn
