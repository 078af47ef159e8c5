"""Sheets and answers of a run folder: written, numbered, never lost.

`spot_checks.parquet` has the rows of every sheet, with the answers given so far; `spot-check.csv`, `spot-check-2.csv`
and so on are the sheets to fill in.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import UsageError
from moral_entropy.files import whole_file, without_formulas
from moral_entropy.options import as_plain
from moral_entropy.runs.manifest import change_manifest, note_files
from moral_entropy.runs.run import Run, Table
from moral_entropy.verdict.answers import add_answers
from moral_entropy.verdict.options import VerdictOptions
from moral_entropy.verdict.sheet import ROWS, Purpose, make_sheet, printable, spot_checks


def sheet_name(number: int) -> str:
    """Name the file of a sheet.

    Examples
    --------
    >>> sheet_name(1), sheet_name(2)
    ('spot-check.csv', 'spot-check-2.csv')
    """
    return "spot-check.csv" if number == 1 else f"spot-check-{number}.csv"


def with_answers(run: Run, sources: Iterable[Any]) -> Run:
    """Return a run with the answers of filled-in sheets; of a run on disk the folder has them then."""
    found = add_answers(run, sources)
    if run.path is not None:
        _write_checks(run.path, found)
        return replace(run)
    return replace(run, made={**run.made, "spot_checks": Table(found.schema, lambda: [found])})


def add_sheet(
    run: Run, n: int = ROWS, *, domain: str | None = None, purpose: Purpose = "measure", out: Path | None = None
) -> Path:
    """Write another sheet of a run folder, disjoint from the earlier ones; return its path.

    A file that is already there is never replaced: it may have answers.
    """
    if out is not None and out.exists():
        msg = f"{out} exists, and may hold answers. Choose another name with -o."
        raise UsageError(msg)
    sheet = make_sheet(run, n, domain=domain, purpose=purpose)
    path = out or run.folder / sheet_name(int(sheet["sheet"][0]))
    # Noted first: whatever stops this here, no later sheet has the same number.
    _write_checks(run.folder, pl.concat([spot_checks(run), sheet]))
    with whole_file(path) as written:
        # Spreadsheets take a file without this mark for the old encoding of their system.
        written.write_text(without_formulas(printable(run, sheet)).write_csv(), encoding="utf-8-sig")
    return path


def with_tolerance(run: Run, tolerance: float) -> Run:
    """Return a run folder in which another share of wrong labels is tolerated."""
    options = run.manifest["options"]
    asked = as_plain(VerdictOptions(tolerance=tolerance))
    verdict = {**asked, **options.get("verdict", {}), "tolerance": asked["tolerance"]}
    return replace(run, manifest=change_manifest(run.folder, options={**options, "verdict": verdict}))


def keep_sheets(old: Path, new: Path, sheets: Iterable[Any]) -> None:
    """Copy filled-in sheets that lie in a run folder into the one that replaces it."""
    for sheet in sheets:
        path = Path(sheet) if isinstance(sheet, str | Path) else None
        if path is not None and path.is_file() and path.resolve().parent == old.resolve():
            shutil.copyfile(path, new / path.name)


def _write_checks(folder: Path, rows: pl.DataFrame) -> None:
    with whole_file(folder / "spot_checks.parquet") as written:
        rows.write_parquet(written, compression="zstd")
    note_files(folder, ["spot_checks.parquet"])
