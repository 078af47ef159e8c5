"""The findings of a run: their table, the warnings made of them, worst first, and notes on how it was fitted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.files import whole_file
from moral_entropy.findings import RANK, Finding, headline, merge_alike, mute, name_where_needed
from moral_entropy.runs.manifest import note_files
from moral_entropy.runs.run import Run, as_run
from moral_entropy.schemas import SCHEMAS


def findings_frame(findings: Iterable[Finding]) -> pl.DataFrame:
    """Lay findings out as rows of findings.parquet; a figure that does not exist (NaN) is null there.

    Examples
    --------
    >>> findings_frame([Finding("laplace", "pareto_k", 0.4), Finding("nuts", "ess", float("nan"))])["value"].to_list()
    [0.4, None]
    """
    rows = [asdict(finding) | {"code": finding.code} for finding in findings]
    frame = pl.DataFrame(rows, schema=SCHEMAS["findings"])
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))


def read_findings(run: Run | str | Path) -> list[Finding]:
    """Read the findings of a run, or of a run folder."""
    frame = as_run(run).findings.drop("code", strict=False)
    return [Finding(**_without_nulls(row)) for row in frame.iter_rows(named=True)]


def cautions(run: Run) -> list[Finding]:
    """List what should make a reader doubt, worst first: the worst of each kind, its text a title without full stop."""
    merged = merge_alike(name_where_needed(read_findings(run)))
    return [replace(worst, text=headline(worst, others).removesuffix(".")) for worst, others in merged]


def caution_record(one: Finding) -> dict[str, str]:
    """Return a warning as plain values."""
    return {name: getattr(one, name) for name in ("code", "severity", "text", "meaning", "remedy")}


def add_findings(run: Run, findings: Iterable[Finding]) -> None:
    """Write findings into a run folder, keeping earlier figures that were not found again this time."""
    found = findings_frame(mute(findings, run.manifest["options"].get("verdict", {}).get("ignore", ())))
    kept = run.findings.join(found, on=["check", "metric"], how="anti", maintain_order="left")
    with whole_file(run.folder / "findings.parquet") as written:
        pl.concat([kept, found]).write_parquet(written, compression="zstd")
    note_files(run.folder, ["findings.parquet"])


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    optional = ("low", "high", "n")
    texts = {name: value or "" for name, value in row.items() if name not in (*optional, "value", "level")}
    numbers = {name: row[name] for name in optional}
    value = float("nan") if row["value"] is None else row["value"]
    level = row["level"] if row["level"] in RANK else "info"
    return {**texts, **numbers, "value": value, "level": level}


def model_notes(manifest: dict[str, Any]) -> list[str]:
    """Describe how the consensus differs from the paper's model; no notes where it does not.

    Examples
    --------
    >>> model_notes({"pooling": "full", "questions": []})
    ['full pooling: all annotators have the same error rates']
    >>> model_notes({"questions": []})
    []
    """
    notes = []
    if manifest.get("pooling", "none") == "full":
        notes.append("full pooling: all annotators have the same error rates")
    if manifest.get("constrain", "none") != "none":
        notes.append("constrained: every annotator's chance to be right is kept at chance or above")
    return notes
