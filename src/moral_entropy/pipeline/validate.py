"""`validate`: a run folder's posterior, examined from every side; findings go into the same folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import polars as pl

from moral_entropy.files import whole_file
from moral_entropy.progress import Progress, silent
from moral_entropy.report.html import write_report
from moral_entropy.runs.reload import reload_consensus
from moral_entropy.runs.tables import checked_folder
from moral_entropy.schemas import VALIDATION
from moral_entropy.validate.finding import Finding, findings_frame
from moral_entropy.validate.options import ValidationOptions
from moral_entropy.validate.sides import SIDES, check_sides, examine
from moral_entropy.validate.verdict import verdict


@dataclass(frozen=True, eq=False)
class Validation:
    """A posterior, examined.

    Parameters
    ----------
    path
        The run folder.
    findings
        In the order of the sides.
    verdict
        In words.
    """

    path: Path
    findings: tuple[Finding, ...] = field(repr=False)
    verdict: str


def run_validation(
    run: str | Path, options: ValidationOptions | None = None, *, progress: Progress | None = None
) -> Validation:
    """Examine the posterior of a run, and write validation.parquet and the report into its folder.

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
    folder = checked_folder(run)
    progress("fitting", 0.0)
    consensus = reload_consensus(folder)
    findings: list[Finding] = []
    for side in asked:
        required = options.sides is not None
        advance = partial(progress, side)
        findings += examine(consensus, side, seed=options.seed, required=required, advance=advance, **options.of(side))
    write_findings(folder, findings)
    if (folder / "report.html").is_file():
        write_report(folder)
    return Validation(folder, tuple(findings), verdict(findings))


def write_findings(folder: Path, findings: Sequence[Finding]) -> None:
    """Write validation.parquet, keeping earlier figures that were not found again this time."""
    frame = findings_frame(findings)
    file = folder / "validation.parquet"
    if file.is_file():
        kept = pl.read_parquet(file).join(frame, on=["side", "figure"], how="anti", maintain_order="left")
        frame = pl.concat([kept.match_to_schema(VALIDATION), frame])
    with whole_file(file) as written:
        frame.write_parquet(written, compression="zstd")
