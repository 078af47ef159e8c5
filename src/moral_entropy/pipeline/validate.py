"""`validate`: the consensus of a run folder, checked thoroughly; findings go into the same folder."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from moral_entropy.checks.gold import gold_findings
from moral_entropy.checks.options import ValidationOptions
from moral_entropy.checks.run import CHECKS, check_names, run_check, verdict
from moral_entropy.findings import Finding
from moral_entropy.progress import Progress, silent
from moral_entropy.report.html import write_report
from moral_entropy.runs.findings import add_findings, read_findings
from moral_entropy.runs.manifest import change_manifest
from moral_entropy.runs.reload import reload_consensus
from moral_entropy.runs.run import read_run


def run_validation(
    run: str | Path, options: ValidationOptions | None = None, *, progress: Progress | None = None
) -> tuple[list[Finding], str]:
    """Check the consensus of a run, and write findings.parquet and the report into its folder.

    Parameters
    ----------
    run
        A run folder, as `audit` wrote it.
    options
        What to check; everything when not given.
    progress
        Called with the name of the check and the share of it done.

    Returns
    -------
    tuple
        What was found this time, in the order of the checks; and the verdict in words, on all findings of the run.
        Findings of checks that were not asked for are kept from earlier.
    """
    options, progress = options or ValidationOptions(), progress or silent
    names = check_names(options.checks) if options.checks is not None else tuple(CHECKS)
    opened = read_run(run)
    progress("fitting", 0.0)
    consensus = reload_consensus(opened)
    findings: list[Finding] = []
    for name in names:
        required, advance = options.checks is not None, partial(progress, name)
        findings += run_check(consensus, name, required=required, advance=advance, **vars(options))
    if "gold" in names:
        findings += gold_findings(opened.rules)
    add_findings(opened, findings)
    change_manifest(opened.folder, validated=sorted({*opened.manifest.get("validated", ()), *names}))
    if (opened.folder / "report.html").is_file():
        write_report(opened.folder)
    return findings, verdict(read_findings(opened))
