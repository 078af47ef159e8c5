"""`moral-entropy validate`: how far the consensus of a run can be trusted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from moral_entropy.cli.flags import Quiet, Run
from moral_entropy.options import ValidationOptions


def validate(run: Run, options: ValidationOptions, quiet: Quiet = False) -> None:
    """Can the consensus of a run be trusted? Priors, held-out votes, copies, gold, sampling and more.

    Example: moral-entropy validate run/
    """
    # Late, so that --help answers at once.
    from moral_entropy.cli.screen import filled, print_parts
    from moral_entropy.findings import merge_alike, sentences_of
    from moral_entropy.pipeline import run_validation
    from moral_entropy.progress import show_progress

    with show_progress(hidden=quiet) as progress:
        findings, verdict = run_validation(run, options, progress=progress)
    lines = [verdict if quiet else filled(verdict)]
    if not quiet:
        doubts = [(worst, alike) for worst, alike in merge_alike(findings) if worst.is_warning]
        lines += [filled(f"  {worst.level}: {sentences_of(worst, alike)}", "    ") for worst, alike in doubts]
        counts = Counter(finding.check for finding in findings)
        checks = ", ".join(f"{name} {count}" for name, count in counts.items())
        lines.append(f"\n{len(findings)} findings ({checks}) in {Path(run) / 'findings.parquet'}")
    print_parts(lines)
