"""A study of targets on a run folder: tables and a page in a folder of its own, and a section in the run's report.

`run_study` does what `moral-entropy study` does, and prints nothing.
"""

from __future__ import annotations

import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from moral_entropy import __version__
from moral_entropy.files import whole_file
from moral_entropy.progress import Progress, Stopwatch, silent
from moral_entropy.report.html import REPORT, write_report
from moral_entropy.runs.folder import writing
from moral_entropy.runs.manifest import note_files, write_manifest
from moral_entropy.runs.run import read_run
from moral_entropy.runs.tables import checked_folder
from moral_entropy.study.compare import Study, compare_targets
from moral_entropy.study.options import StudyOptions
from moral_entropy.study.page import study_page
from moral_entropy.study.progress_folder import progress_folder
from moral_entropy.study.tables import joined_table
from moral_entropy.train.run_targets import consensus_with_texts, groups_of

LIBRARIES = ("numpy", "scipy", "polars", "scikit-learn", "torch", "transformers")


def run_study(
    run: str | Path,
    out: str | Path,
    options: StudyOptions | None = None,
    *,
    force: bool = False,
    command: str = "",
    progress: Progress = silent,
) -> Study:
    """Compare kinds of target on the texts of a run; write the study, and add it to the run's report.

    Parameters
    ----------
    run
        A run folder, as `audit` wrote it.
    out
        The study's folder: study.parquet, study_differences.parquet, study_curves.parquet, study.md and manifest.json.
        It appears when the study is complete, or not at all; a study that was stopped goes on where it was when it
        is started again.
    options
        What to compare, and how.
    force
        Replace the folder of an earlier study.
    command
        What the user typed, for the manifest.
    progress
        Called with the name of the stage and the share of it done.
    """
    options, watch, folder_of_run = options or StudyOptions(), Stopwatch(), checked_folder(run)
    began = time.process_time()
    kept = progress_folder(out)
    with writing(out, force=force, inputs=(run, options.votes)) as folder:
        with watch.timing("fit"):
            progress("fit again", 0.0)
            consensus = consensus_with_texts(folder_of_run, options)
        with watch.timing("train"):
            study = compare_targets(
                consensus,
                options,
                progress=kept,
                groups=groups_of(read_run(folder_of_run)),
                advance=lambda share: progress("training", share),
            )
        tables = {"study": study.scores, "study_differences": study.differences, "study_curves": study.curves}
        for name, frame in tables.items():
            frame.write_parquet(folder / f"{name}.parquet", compression="zstd")
        (folder / "study.md").write_text(study_page(study), encoding="utf-8")
        spent = {"seconds": watch.rounded, "cpu_seconds": round(time.process_time() - began, 3)}
        write_manifest(folder, _manifest(study, options, str(run), command, spent))
    kept.clear()
    add_to_run(folder_of_run, study)
    return study


def add_to_run(run: Path, study: Study) -> None:
    """Put the study's table into a run folder, and write the run's report anew if it has one."""
    with whole_file(run / "soft_labels.parquet") as partial:
        joined_table(study.scores, study.differences).write_parquet(partial, compression="zstd")
    note_files(run, ["soft_labels.parquet"])
    if (run / REPORT).is_file():
        write_report(run)


def _manifest(study: Study, options: StudyOptions, run: str, command: str, spent: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": __version__,
        "command": command,
        "run": run,
        **study.facts,
        "settings": options.hyperparameters(),
        "notes": list(study.notes),
        "versions": {name: found for name in LIBRARIES if (found := _version(name)) is not None},
        **spent,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
