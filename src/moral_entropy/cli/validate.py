"""`moral-entropy validate`: how far the consensus of a run can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from textwrap import fill
from typing import TYPE_CHECKING

from moral_entropy.checks.options import ValidationOptions
from moral_entropy.cli.flags import Quiet, Run

if TYPE_CHECKING:
    from moral_entropy.findings import Finding
    from moral_entropy.pipeline.validate import Validation


WIDTH = 80


def validate(run: Run, options: ValidationOptions, quiet: Quiet = False) -> None:
    """Can the consensus of a run be trusted? Priors, held-out votes, copies, gold, sampling and more.

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
    yield fill(validation.verdict, WIDTH, break_on_hyphens=False)
    yield from _doubts(validation.findings)
    counts = Counter(finding.side for finding in validation.findings)
    sides = ", ".join(f"{side} {count}" for side, count in counts.items())
    yield f"\n{len(validation.findings)} findings ({sides}) in {validation.path / 'findings.parquet'}"


def _doubts(findings: Iterable[Finding]) -> Iterator[str]:
    """Return a line for every kind of doubt, worst first."""
    from moral_entropy.findings import merge_alike, sentences_of

    for worst, others in merge_alike(findings):
        if worst.alarms:
            said = f"{worst.level}: {sentences_of(worst, others)}"
            yield fill(said, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
