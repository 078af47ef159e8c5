"""Finding: one figure about the posterior, what it concerns, and what it means.

Every examination returns findings; together they are the rows of validation.parquet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

import polars as pl

from moral_entropy.schemas import VALIDATION

Level = Literal["info", "good", "doubt", "bad"]

RANK: dict[Level, int] = {"bad": 0, "doubt": 1, "info": 2, "good": 3}
"""Levels, worst first."""


@dataclass(frozen=True)
class Finding:
    """One figure about the posterior.

    Parameters
    ----------
    side
        Which examination found it, such as "laplace" or "heldout".
    figure
        Machine name of the figure, such as "pareto_k".
    value
        The figure.
    question, part, domain
        Of which question, part and domain; empty for all.
    subject
        Whom or what it concerns: an annotator, a start, a prior; empty for the fit itself.
    low, high
        Its interval, where it has one.
    n
        How many items, votes or draws it rests on.
    level
        "info", "good", "doubt" (say so when you ship) or "bad" (settle it first).
    text
        One sentence with the figure in it; needed for doubt and worse.
    """

    side: str
    figure: str
    value: float
    question: str = ""
    part: str = ""
    domain: str = ""
    subject: str = ""
    low: float | None = None
    high: float | None = None
    n: int | None = None
    level: Level = "info"
    text: str = ""

    @property
    def alarms(self) -> bool:
        """Whether it should make a reader doubt."""
        return self.level in ("doubt", "bad")


def findings_frame(findings: Iterable[Finding]) -> pl.DataFrame:
    """Lay findings out as rows of validation.parquet.

    Examples
    --------
    >>> findings_frame([Finding("laplace", "pareto_k", 0.4)])["value"].to_list()
    [0.4]
    """
    rows = [asdict(finding) for finding in findings]
    return pl.DataFrame(rows, schema=VALIDATION)
