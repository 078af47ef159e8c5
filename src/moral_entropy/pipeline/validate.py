"""`validate`: the consensus of a run folder, examined from every side; findings go into the same folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from moral_entropy.checks.gold import gold_findings
from moral_entropy.checks.options import ValidationOptions
from moral_entropy.checks.sides import SIDES, check_sides, examine
from moral_entropy.checks.verdict import verdict
from moral_entropy.findings import Finding
from moral_entropy.progress import Progress, silent
from moral_entropy.report.html import write_report
from moral_entropy.runs.findings import add_findings, read_findings
from moral_entropy.runs.manifest import change_manifest
from moral_entropy.runs.reload import reload_consensus
from moral_entropy.runs.run import read_run


@dataclass(frozen=True, eq=False)
class Validation:
    """The result of a validation.

    Parameters
    ----------
    path
        The run folder.
    findings
        What was found this time, in the order of the sides.
    verdict
        The verdict in words, on all findings of the run.
    """

    path: Path
    findings: tuple[Finding, ...] = field(repr=False)
    verdict: str


def run_validation(
    run: str | Path, options: ValidationOptions | None = None, *, progress: Progress | None = None
) -> Validation:
    """Examine the consensus of a run, and write findings.parquet and the report into its folder.

    Parameters
    ----------
    run
        A run folder, as `audit` wrote it.
    options
        What to examine; everything when not given.
    progress
        Called with the name of the side and the share of it done.

    Returns
    -------
    Validation
        Findings of sides that were not asked for are kept from earlier.
    """
    options, progress = options or ValidationOptions(), progress or silent
    asked = check_sides(options.sides) if options.sides is not None else tuple(SIDES)
    opened = read_run(run)
    progress("fitting", 0.0)
    consensus = reload_consensus(opened)
    findings: list[Finding] = []
    for side in asked:
        required = options.sides is not None
        advance = partial(progress, side)
        findings += examine(consensus, side, seed=options.seed, required=required, advance=advance, **options.of(side))
    if "gold" in asked:
        findings += gold_findings(opened.rules)
    add_findings(opened, findings)
    change_manifest(opened.folder, validated=sorted({*opened.manifest.get("validated", ()), *asked}))
    if (opened.folder / "report.html").is_file():
        write_report(opened.folder)
    return Validation(opened.folder, tuple(findings), verdict(read_findings(opened)))
