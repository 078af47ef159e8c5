"""The study of targets: a run folder in, a folder of tables and a page out, and a section in the run's report.

`run_study` does what `moral-entropy train run/ --compare …` does, and prints nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy import __version__
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.result import Consensus
from moral_entropy.pipeline.audit import Stopwatch
from moral_entropy.progress import Progress, silent
from moral_entropy.report.html import REPORT, write_report
from moral_entropy.runs.folder import writing
from moral_entropy.runs.manifest import read_manifest, write_manifest
from moral_entropy.runs.reload import reload_consensus
from moral_entropy.runs.tables import checked_folder
from moral_entropy.train.compare import TARGETS, Study, compare_targets
from moral_entropy.train.page import study_page
from moral_entropy.train.references import SHARE
from moral_entropy.train.run_targets import targets_from_run
from moral_entropy.train.settings import TrainSettings
from moral_entropy.train.verdicts import joined_table

TABLE = "soft_labels"
LIBRARIES = ("numpy", "scipy", "polars", "scikit-learn", "torch", "transformers")


@dataclass(frozen=True, eq=False)
class StudyRun:
    """A finished study.

    Parameters
    ----------
    path
        Its folder: study.parquet, study_differences.parquet, study_curves.parquet, study.md, manifest.json.
    study
        What was found.
    manifest
        As written.
    """

    path: Path
    study: Study
    manifest: dict[str, Any]


def run_study(
    run: str | Path,
    out: str | Path,
    *,
    kinds: Sequence[str] = TARGETS,
    models: Sequence[str] = ("tfidf", "minilm"),
    seeds: int | Sequence[int] = 5,
    split: str = "items",
    settings: TrainSettings | None = None,
    votes: str | Path | None = None,
    text: str | None = None,
    held_out: float = SHARE,
    force: bool = False,
    command: str = "",
    progress: Progress | None = None,
) -> StudyRun:
    """Compare kinds of target on the texts of a run; write the study, and add it to the run's report.

    Parameters
    ----------
    run
        A run folder, as `audit` wrote it.
    out
        The study's folder; it appears when the study is complete, or not at all.
    kinds, models, seeds, split, settings, held_out
        As `compare_targets` takes them.
    votes, text
        File with the items' texts and its column, where the run has none.
    force
        Replace the folder of an earlier study.
    command
        What the user typed, for the manifest.
    progress
        Called with the name of the stage and the share of it done.
    """
    progress, watch, folder_of_run = progress or silent, Stopwatch(), checked_folder(run)
    with writing(out, force=force, inputs=(run, votes)) as folder:
        with watch.timing("fit"):
            progress("fit again", 0.0)
            consensus = _with_texts(folder_of_run, votes, text)
        with watch.timing("train"):
            study = compare_targets(
                consensus, kinds=kinds, models=models, seeds=seeds, split=split, settings=settings, held_out=held_out,
                fit_options=_fit_options(folder_of_run),
                advance=lambda share: progress("training", share),
            )  # fmt: skip
        manifest = _manifest(study, settings or TrainSettings(), str(run), command, watch)
        _write(folder, study, manifest)
    add_to_run(folder_of_run, study)
    return StudyRun(Path(out), study, manifest)


def _with_texts(run: Path, votes: str | Path | None, text: str | None) -> Consensus:
    consensus = reload_consensus(run)
    if consensus.votes.texts is not None and votes is None and text is None:
        return consensus
    found = targets_from_run(run, "soft", votes=votes, text=text)
    text_of = dict(zip(found.items.to_list(), found.texts, strict=True))
    texts = pl.Series("text", [text_of.get(item, "") for item in consensus.votes.items.to_list()], dtype=pl.String)
    return replace(consensus, votes=replace(consensus.votes, texts=texts))


def _fit_options(run: Path) -> dict[str, Any]:
    manifest = read_manifest(run)
    return {field.name: manifest[field.name] for field in fields(FitOptions) if manifest.get(field.name) is not None}


def _write(folder: Path, study: Study, manifest: dict[str, Any]) -> None:
    tables = {"study": study.scores, "study_differences": study.differences, "study_curves": study.curves}
    for name, frame in tables.items():
        frame.write_parquet(folder / f"{name}.parquet", compression="zstd")
    (folder / "study.md").write_text(study_page(study), encoding="utf-8")
    write_manifest(folder, manifest)


def add_to_run(run: Path, study: Study) -> None:
    """Put the study's table into a run folder, and write the run's report anew if it has one."""
    target = run / f"{TABLE}.parquet"
    aside = target.with_name(f".{TABLE}-{secrets.token_hex(3)}.parquet")
    try:
        joined_table(study.scores, study.differences).write_parquet(aside, compression="zstd")
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)
    if (run / REPORT).is_file():
        write_report(run)


def _manifest(study: Study, settings: TrainSettings, run: str, command: str, watch: Stopwatch) -> dict[str, Any]:
    return {
        "version": __version__,
        "command": command,
        "run": run,
        **study.facts,
        "settings": settings.facts(),
        "notes": list(study.notes),
        "versions": {name: found for name in LIBRARIES if (found := _version(name)) is not None},
        "seconds": watch.rounded,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
