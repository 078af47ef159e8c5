"""`moral-entropy validate`: how far the consensus of a run can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from moral_entropy.cli.flags import Quiet, Run
from moral_entropy.options import ValidationOptions

if TYPE_CHECKING:
    from moral_entropy.findings import Finding

WIDTH = 80


def validate(run: Run, options: ValidationOptions, quiet: Quiet = False) -> None:
    """Can the consensus of a run be trusted? Priors, held-out votes, copies, gold, sampling and more.

    Example: moral-entropy validate run/
    """
    # Late, so that --help answers at once.
    from moral_entropy.cli.screen import print_parts
    from moral_entropy.pipeline import run_validation
    from moral_entropy.progress import Bars

    with Bars(hidden=quiet) as progress:
        findings, verdict = run_validation(run, options, progress=progress)
    print_parts([verdict] if quiet else _lines(Path(run), findings, verdict))


def _lines(run: Path, findings: Sequence[Finding], verdict: str) -> Iterator[str]:
    """Say the verdict, every kind of doubt, worst first, and where the rest is."""
    from moral_entropy.findings import merge_alike, sentences_of

    yield fill(verdict, WIDTH, break_on_hyphens=False)
    for worst, alike in merge_alike(findings):
        if worst.is_warning:
            sentence = f"{worst.level}: {sentences_of(worst, alike)}"
            yield fill(sentence, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    counts = Counter(finding.check for finding in findings)
    checks = ", ".join(f"{name} {count}" for name, count in counts.items())
    yield f"\n{len(findings)} findings ({checks}) in {run / 'findings.parquet'}"
