"""Findings about a consensus → the screen: the verdict first, then what is in doubt, then a count of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.markup import escape

from moral_entropy.findings import RANK, Finding
from moral_entropy.pipeline.validate import Validation

MOST_LINES = 4
"""Doubts of one kind that are shown before the rest is counted."""


def print_validation(validation: Validation, *, quiet: bool = False) -> None:
    """Print the verdict, and unless quiet what is in doubt and where the rest is."""
    console = Console(highlight=False)
    console.print(escape(validation.verdict), soft_wrap=True)
    if quiet:
        return
    for line in alarm_lines(validation.findings):
        console.print(escape(line), soft_wrap=True)
    counts = Counter(finding.side for finding in validation.findings)
    sides = ", ".join(f"{side} {count}" for side, count in counts.items())
    console.print(
        escape(f"\n{len(validation.findings)} findings ({sides}) in {validation.path / 'findings.parquet'}"),
        soft_wrap=True,
    )


def alarm_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Write a line for every doubt, worst first, only the first few of one kind."""
    alarms = sorted((finding for finding in findings if finding.alarms), key=lambda finding: RANK[finding.level])
    shown: Counter[tuple[str, str]] = Counter()
    for finding in alarms:
        shown[finding.side, finding.figure] += 1
        if shown[finding.side, finding.figure] <= MOST_LINES:
            yield f"  {finding.level}: {finding.place}: {finding.sentences}".replace(" : ", " ")
    for (side, figure), count in shown.items():
        if count > MOST_LINES:
            yield f"  … and {count - MOST_LINES} more of {side}, {figure.replace('_', ' ')}"
