"""What should make a reader doubt a run: its findings by severity, those of one kind in one warning.

Takes a run, returns a ranked list. Finds nothing new: everything is in findings.parquet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from moral_entropy.findings import Level, headline, merge_alike
from moral_entropy.runs.findings import read_findings
from moral_entropy.runs.run import Run

Severity = Literal["high", "medium", "low"]

SEVERITIES: dict[Level, Severity] = {"bad": "high", "doubt": "medium", "note": "low"}


@dataclass(frozen=True)
class Caution:
    """One warning.

    Parameters
    ----------
    severity
        "high": do not ship before this is settled; "medium": say so when you ship; "low": good to know.
    title
        What was seen, with figures.
    meaning
        Why it matters.
    action
        What to do.
    """

    severity: Severity
    title: str
    meaning: str
    action: str


def cautions(run: Run) -> list[Caution]:
    """List what should make a reader doubt, worst first."""
    return [
        Caution(SEVERITIES[worst.level], headline(worst, others).removesuffix("."), worst.meaning, worst.cure)
        for worst, others in merge_alike(read_findings(run))
    ]
