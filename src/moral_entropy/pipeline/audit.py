"""The run: read → fit → entropy → audit of rules → outliers → tables, manifest, report.

`run_audit` does what `moral-entropy audit` does, and prints nothing.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.audit.table import AuditTable, audit_rules
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.result import Consensus
from moral_entropy.entropy.parts import EntropyParts, decompose_entropy
from moral_entropy.errors import YardstickWarning
from moral_entropy.outliers.table import Outliers, find_outliers
from moral_entropy.pipeline.annotators import annotator_frames
from moral_entropy.pipeline.facts import manifest_facts
from moral_entropy.pipeline.frames import entropy_frame, has_posterior_table, item_frames, posterior_frames
from moral_entropy.pipeline.options import AuditOptions
from moral_entropy.pipeline.priors import check_priors, priors_for
from moral_entropy.pipeline.validate import write_findings
from moral_entropy.pipeline.vote_frames import push_frames, text_frames, vote_frames
from moral_entropy.pipeline.warned import collected, messages
from moral_entropy.progress import Progress, silent
from moral_entropy.report.html import write_report
from moral_entropy.runs.folder import writing
from moral_entropy.runs.manifest import write_manifest
from moral_entropy.runs.tables import ANNOTATORS, ENTROPY, ITEMS, POSTERIOR, SCHEMAS, with_ids, write_table
from moral_entropy.validate.alarms import alarm_sentences
from moral_entropy.validate.behind import Behind, BehindFit
from moral_entropy.validate.finding import Finding
from moral_entropy.validate.sides import examine_cheaply
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import UNKNOWN, Votes


@dataclass(frozen=True, eq=False)
class AuditRun:
    """A finished run.

    Parameters
    ----------
    path
        The run folder.
    consensus, parts, audit, outliers
        What was found; `consensus.votes` is what was read.
    manifest
        As written.
    """

    path: Path
    consensus: Consensus
    parts: EntropyParts
    audit: AuditTable
    outliers: Outliers
    manifest: dict[str, Any]


@dataclass
class Stopwatch:
    """Seconds by stage, in the order the stages began."""

    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def rounded(self) -> dict[str, float]:
        """Seconds to the millisecond, as the manifest has them."""
        return {stage: round(spent, 3) for stage, spent in self.seconds.items()}

    @contextmanager
    def timing(self, stage: str) -> Iterator[None]:
        """Add the seconds the block takes to a stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start


def run_audit(
    source: Any,
    out: str | Path,
    options: AuditOptions | None = None,
    *,
    force: bool = False,
    command: str = "",
    progress: Progress | None = None,
) -> AuditRun:
    """Read votes, fit the consensus, split its entropy, grade every rule, and write the run folder.

    Parameters
    ----------
    source
        File of votes, or a dataframe: whatever `read_votes` takes.
    out
        The run folder; it appears when the run is complete, or not at all.
    options
        What to ask for; the defaults of the command line when not given.
    force
        Replace a run folder that is already there.
    command
        What the user typed, for the manifest.
    progress
        Called with the name of the stage and the share of it done.

    Returns
    -------
    AuditRun
        Warnings of the library are in its manifest, and are not raised again.
    """
    options, progress, watch = options or AuditOptions(), progress or silent, Stopwatch()
    check_priors(options.priors)
    inputs = (source, options.read.gold_file, options.read.labels, options.priors.annotators)
    with writing(out, force=force, inputs=inputs) as folder, collected() as caught:
        with watch.timing("read"):
            progress("reading", 0.0)
            votes = _read(source, options)
        with watch.timing("fit"):
            consensus = _fit(votes, options, progress)
        with watch.timing("entropy"):
            parts = decompose_entropy(consensus)
        with watch.timing("audit"):
            audit = _grade(consensus, options, progress)
        with watch.timing("outliers"):
            outliers = find_outliers(consensus, parts, advance=lambda share: progress("outliers", share))
        with watch.timing("checks"):
            findings = check(consensus, options, progress)
        with watch.timing("write"):
            write_tables(folder, consensus, parts, progress)
            write_audit(folder, audit)
            write_votes(folder, consensus)
            write_outliers(folder, outliers)
            write_findings(folder, findings)
        manifest = manifest_facts(consensus, options, command=command, warnings=messages(caught), seconds=watch.seconds)
        manifest["advice"] = audit.advice.text
        finish(folder, manifest, watch, progress, report=options.report)
    return AuditRun(Path(out), consensus, parts, audit, outliers, manifest)


def finish(folder: Path, manifest: dict[str, Any], watch: Stopwatch, progress: Progress, *, report: bool) -> None:
    """Write the manifest, and if asked the report, whose seconds then go into the manifest as well."""
    write_manifest(folder, manifest)
    if report:
        with watch.timing("report"):
            progress("report", 0.0)
            write_report(folder)
        manifest["seconds"] = watch.rounded
        write_manifest(folder, manifest)


def write_tables(folder: Path, consensus: Consensus, parts: EntropyParts, progress: Progress) -> None:
    """Write the tables of a run folder."""
    item, annotator = consensus.votes.items.dtype, consensus.votes.annotators.dtype
    n_rows = max(len(parts.total_i), 1)

    def watched_items() -> Iterator[pl.DataFrame]:
        done = 0
        for frame in item_frames(consensus, parts):
            yield frame
            done += frame.height
            progress("writing", done / n_rows)

    write_table(folder / "items.parquet", with_ids(ITEMS, item=item), watched_items)
    if has_posterior_table(consensus):
        schema = with_ids(POSTERIOR, item=item)
        write_table(folder / "posterior.parquet", schema, lambda: posterior_frames(consensus))
    schema = with_ids(ANNOTATORS, annotator=annotator)
    write_table(folder / "annotators.parquet", schema, lambda: annotator_frames(consensus))
    write_table(folder / "entropy.parquet", ENTROPY, lambda: [entropy_frame(consensus, parts)])


def write_audit(folder: Path, audit: AuditTable) -> None:
    """Write what the audit of rules found: its figures, and the tables beside them."""
    tables = {
        "audit": audit.frame,
        "audit_rules": audit.rules,
        "audit_any_by_votes": audit.any_by_votes,
        "audit_reliability": audit.reliability,
        "audit_advice": audit.advice.frame,
    }
    for name, frame in tables.items():
        frame.match_to_schema(SCHEMAS[name]).write_parquet(folder / f"{name}.parquet", compression="zstd")


def write_votes(folder: Path, consensus: Consensus) -> None:
    """Write the votes, the texts if there are any, and what every vote is worth."""
    votes = consensus.votes
    ids = {"item": votes.items.dtype, "annotator": votes.annotators.dtype}
    write_table(folder / "votes.parquet", with_ids(SCHEMAS["votes"], **ids), lambda: vote_frames(votes))
    if votes.texts is not None:
        write_table(folder / "texts.parquet", with_ids(SCHEMAS["texts"], **ids), lambda: text_frames(votes))
    write_table(folder / "pushes.parquet", with_ids(SCHEMAS["pushes"], **ids), lambda: push_frames(consensus))


def write_outliers(folder: Path, outliers: Outliers) -> None:
    """Write what is worth a look."""
    tables = {
        "outliers": outliers.frame,
        "annotator_summary": outliers.annotators,
        "agreement": outliers.agreement,
    }
    for name, frame in tables.items():
        frame.write_parquet(folder / f"{name}.parquet", compression="zstd")


def _grade(consensus: Consensus, options: AuditOptions, progress: Progress) -> AuditTable:
    return audit_rules(
        consensus.votes,
        consensus,
        **vars(options.grade),
        seed=options.fit.seed,
        threads=options.fit.threads,
        advance=lambda share: progress("auditing", share),
    )


def check(
    consensus: Consensus, options: AuditOptions, progress: Progress, *, behind: BehindFit = Behind
) -> list[Finding]:
    """Examine the posterior from the cheap sides, and warn of what raises doubt; `behind` gives each fit's votes."""
    seed = options.fit.seed
    findings = examine_cheaply(consensus, seed=seed, behind=behind, advance=lambda share: progress("checking", share))
    # That votes are thin, the fit itself has said.
    for sentence in alarm_sentences(finding for finding in findings if finding.figure != "votes_per_item"):
        warnings.warn(sentence, YardstickWarning, stacklevel=2)
    return findings


def _read(source: Any, options: AuditOptions) -> Votes:
    wanted = options.read if options.fit_by is None else replace(options.read, keep=(options.fit_by,))
    votes = read_votes(source, **vars(wanted))
    return votes if options.fit_by is None else split_by(votes, options.fit_by)


def split_by(votes: Votes, column: str) -> Votes:
    """Cut votes into parts to be fitted on their own, one for every value of a column that was kept."""
    values = votes.extra[column].cast(pl.String)
    names = tuple(values.drop_nulls().unique().sort().to_list())
    code_of = {name: code for code, name in enumerate(names)}
    part_i = values.replace_strict(code_of, default=UNKNOWN, return_dtype=pl.Int32).to_numpy()
    return votes.split(np.asarray(part_i), names)


def _fit(votes: Votes, options: AuditOptions, progress: Progress) -> Consensus:
    priors = priors_for(votes, options.priors)
    return fit(votes, priors=priors, **vars(options.fit), progress=progress)
