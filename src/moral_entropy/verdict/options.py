"""Options of the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moral_entropy.errors import UsageError
from moral_entropy.options import StageOptions, option

VERDICT = "Verdict"

TOLERANCE = 0.10
"""Share of wrong labels that is tolerated unless the user says otherwise."""


@dataclass(frozen=True)
class VerdictOptions(StageOptions):
    """What is checked, and what is tolerated."""

    spot_check: tuple[Any, ...] = option(
        (),
        "Filled-in sheets of checked labels (spot-check.csv of an earlier run); in Python also dataframes.",
        metavar="FILE",
        panel=VERDICT,
        everyday=True,
    )
    tolerance: float = option(TOLERANCE, "Share of wrong labels that is tolerated.", panel=VERDICT)

    def __post_init__(self) -> None:
        """Check that the tolerance is a share."""
        super().__post_init__()
        if not 0.0 < self.tolerance < 1.0:
            msg = f"tolerance is {self.tolerance:g}; it is a share between 0 and 1, such as 0.1."
            raise UsageError(msg)
