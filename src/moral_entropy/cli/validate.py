"""`moral-entropy validate`: how far the posterior of a run can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from moral_entropy.cli.flags import Quiet, Run
from moral_entropy.validate.options import ValidationOptions

if TYPE_CHECKING:
    from moral_entropy.findings import Finding
    from moral_entropy.pipeline.validate import Validation

MOST_LINES = 4
"""Doubts of one kind that are shown before the rest is counted."""


def validate(run: Run, options: ValidationOptions, quiet: Quiet = False) -> None:
    """Examine a run's posterior: NUTS, ensembles, priors, held-out votes, dependence, identifiability, gold.

    Example: moral-entropy validate run/
    """
    # Late, so that --help answers at once.
    from moral_entropy.cli.screen import Bars, print_parts
    from moral_entropy.pipeline.validate import run_validation

    with Bars(hidden=quiet) as progress:
        validation = run_validation(run, options, progress=progress)
    print_parts([validation.verdict] if quiet else _lines(validation))


def _lines(validation: Validation) -> Iterator[str]:
    """Say the verdict, what is in doubt, and where the rest is."""
    yield validation.verdict
    yield from _doubts(validation.findings)
    counts = Counter(finding.side for finding in validation.findings)
    sides = ", ".join(f"{side} {count}" for side, count in counts.items())
    yield f"\n{len(validation.findings)} findings ({sides}) in {validation.path / 'findings.parquet'}"


def _doubts(findings: Iterable[Finding]) -> Iterator[str]:
    """Return a line for every doubt, worst first, only the first few of one kind."""
    from moral_entropy.findings import RANK

    alarms = sorted((finding for finding in findings if finding.alarms), key=lambda finding: RANK[finding.level])
    shown: Counter[tuple[str, str]] = Counter()
    for finding in alarms:
        shown[finding.side, finding.figure] += 1
        if shown[finding.side, finding.figure] <= MOST_LINES:
            yield f"  {finding.level}: {finding.place}: {finding.sentences}".replace(" : ", " ")
    for (side, figure), count in shown.items():
        if count > MOST_LINES:
            yield f"  … and {count - MOST_LINES} more of {side}, {figure.replace('_', ' ')}"
