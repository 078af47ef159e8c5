"""The run on a cluster: files of votes in, the run folder of one machine out.

`run_cluster_audit` does what `moral-entropy audit --cluster` does, and prints nothing. What needs all items in one
place is left out and said so: the rankings of words.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from moral_entropy.audit.table import AuditTable
from moral_entropy.cluster.checks import behind_parts
from moral_entropy.cluster.crew import Crew
from moral_entropy.cluster.exchange import exchange, load_slices
from moral_entropy.cluster.files import ROWS_AT_ONCE, hash_files, open_table
from moral_entropy.cluster.fit import Found, checked_settings, fit_parts, send_found
from moral_entropy.cluster.gold import join_gold, remarked
from moral_entropy.cluster.grade import condense, grade_parts
from moral_entropy.cluster.judged import entropy_sums, judge_part
from moral_entropy.cluster.kinds import Kinds, add_kinds, kinds_of_part, votes_of_kinds
from moral_entropy.cluster.outliers import disagreements_of_part, find_outliers_in_parts
from moral_entropy.cluster.rows import agree_on_rows
from moral_entropy.cluster.specimens import (
    Tallied,
    add_tallies,
    finish_part,
    gather_specimens,
    read_part,
    read_template,
    reader_for,
    tally_part,
)
from moral_entropy.cluster.write import write_annotators, write_entropy, write_items
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import Consensus
from moral_entropy.consensus.warn import warn_about_fit
from moral_entropy.pipeline.audit import Stopwatch, check, finish, write_audit, write_outliers
from moral_entropy.pipeline.facts import manifest_facts
from moral_entropy.pipeline.options import AuditOptions
from moral_entropy.pipeline.priors import check_priors, priors_for
from moral_entropy.pipeline.summary import FitLine
from moral_entropy.pipeline.validate import write_findings
from moral_entropy.pipeline.warned import collected, messages
from moral_entropy.progress import Progress, silent
from moral_entropy.runs.folder import writing
from moral_entropy.votes.options import Options
from moral_entropy.votes.table import Floats, Votes

if TYPE_CHECKING:
    from distributed import Future

LEFT_OUT = "on a cluster the words of texts are not ranked."


@dataclass(frozen=True, eq=False)
class ClusterRun:
    """A finished run.

    Parameters
    ----------
    path
        The run folder.
    lines
        A line per fit.
    audit
        What the audit of rules found.
    manifest
        As written.
    """

    path: Path
    lines: Sequence[FitLine]
    audit: AuditTable
    manifest: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Gathered:
    """What is known here of votes that lie with the workers.

    Parameters
    ----------
    parts
        The parts.
    votes
        An item a kind.
    kinds
        Of every ballot's items.
    tally
        What was read.
    item
        Type of the items' ids.
    texts
        Whether items have texts.
    """

    parts: Sequence[Future[Any]]
    votes: Votes
    kinds: Sequence[Kinds]
    tally: Tallied
    item: pl.DataType
    texts: bool


def run_cluster_audit(
    source: Any,
    out: str | Path,
    crew: Crew,
    options: AuditOptions | None = None,
    *,
    force: bool = False,
    command: str = "",
    progress: Progress | None = None,
    part_rows: int = ROWS_AT_ONCE,
) -> ClusterRun:
    """Read Parquet parts, fit the consensus, grade every rule, and write the run folder, with the workers of a cluster.

    Parameters
    ----------
    source
        Path or glob of Parquet files that every worker can read, or a list of them.
    out
        The run folder, on this machine; it appears when the run is complete, or not at all.
    crew
        The workers.
    options, force, command, progress
        As in `run_audit`.
    part_rows
        Rows a part, about.
    """
    options, progress, watch = options or AuditOptions(), progress or silent, Stopwatch()
    check_priors(options.priors)
    settings = checked_settings(**vars(options.fit))
    inputs = (source, options.read.gold_file, options.read.labels, options.priors.annotators)
    with writing(out, force=force, inputs=inputs) as folder, collected() as caught:
        with watch.timing("read"):
            progress("reading", 0.0)
            gathered = gather_votes(crew, source, options, settings, part_rows)
        with watch.timing("fit"):
            priors = priors_for(gathered.votes, options.priors)
            found = fit_parts(crew, gathered.parts, gathered.votes, priors, settings, progress)
            sent = [send_found(crew, one) for one in found]
            consensus, judged = _judge(crew, gathered, found, sent, priors, settings)
        with watch.timing("audit"):
            audit = grade_parts(crew, judged, consensus, found, gathered.kinds, options.grade)
        with watch.timing("outliers"):
            counted = crew.total(crew.each(disagreements_of_part, judged))
            outliers = find_outliers_in_parts(crew, judged, consensus, gathered.kinds, counted)
        with watch.timing("checks"):
            behind = behind_parts(crew, gathered.parts, judged, consensus, sent)
            findings = check(consensus, options, progress, behind=behind)
        with watch.timing("write"):
            sums = crew.total(crew.each(entropy_sums, judged))
            _write_items(folder, crew, judged, consensus, gathered, progress)
            write_annotators(folder, consensus, [share_a for share_a, *_ in counted])
            write_entropy(folder, consensus, sums)
            write_audit(folder, audit)
            write_outliers(folder, outliers)
            write_findings(folder, findings)
        facts = {"command": command, "warnings": messages(caught), "seconds": watch.seconds}
        manifest = _manifest(crew, consensus, gathered, options, facts) | {"advice": audit.advice.text}
        finish(folder, manifest, watch, progress, report=options.report)
    return ClusterRun(Path(out), fit_lines_of(consensus, sums), audit, manifest)


def gather_votes(crew: Crew, source: Any, options: AuditOptions, settings: FitOptions, part_rows: int) -> Gathered:
    """Have the workers read all votes, by item; learn here what they have in common."""
    read, gold_file = _portable(options.read, options.fit_by), options.read.gold_file
    table = open_table(source, read, part_rows)
    digest = crew.ask(hash_files, table.paths)
    reader = reader_for(table, read, options.fit_by)
    loaded = load_slices(crew, table)
    specimens = gather_specimens(crew, loaded, reader)
    template = read_template(specimens, reader)
    rows = exchange(crew, table, loaded, max(crew.n_threads, -(-table.rows // part_rows)))
    sent = crew.send(specimens)
    parts = [crew.ask(read_part, one, sent, reader) for one in rows]
    tally = add_tallies(crew.fetch_all(crew.each(tally_part, parts)), template.reading, crew.fetch(digest))
    if gold_file is not None:
        parts, remarks = join_gold(crew, parts, template, table.found, options.read)
        tally = replace(tally, reading=remarked(tally.reading, gold_file, remarks))
    votes_ba = crew.ask(_same, tally.votes_ba)
    parts = agree_on_rows(crew, crew.each(finish_part, parts, votes_ba, settings.use_gold))
    by_part = crew.fetch_all(crew.each(kinds_of_part, parts))
    kinds = [add_kinds(several) for several in zip(*by_part, strict=True)]
    votes = replace(votes_of_kinds(template, kinds, tally.votes_ba), reading=_remarked(tally))
    item = crew.fetch(crew.ask(_item_type, parts[0]))
    return Gathered(parts, votes, kinds, tally, item, reader.text is not None or table.found.get("text") is not None)


def _portable(options: Options, fit_by: str | None) -> Options:
    """Read files of options here, as workers may not have them; a file of gold is joined to the votes later."""
    if options.gold_file is not None:
        options = replace(options, gold_file=None, gold="")
    if isinstance(options.labels, str | Path) and Path(options.labels).is_file():
        options = replace(options, labels=tomllib.loads(Path(options.labels).read_text(encoding="utf-8")))
    return options if fit_by is None else replace(options, keep=(fit_by,))


def _same(value: Any) -> Any:
    return value


def _item_type(part: Any) -> pl.DataType:
    dtype: pl.DataType = part.votes.items.dtype
    return dtype


def _remarked(tally: Tallied) -> Any:
    return replace(tally.reading, notes=(*tally.reading.notes, LEFT_OUT))


def _judge(
    crew: Crew,
    gathered: Gathered,
    found: Sequence[Found],
    sent: Sequence[Future[Any]],
    priors: Priors,
    settings: FitOptions,
) -> tuple[Consensus, list[Future[Any]]]:
    """Have the workers judge their items; give the consensus on kinds of items here."""
    consensus = condense(Consensus(gathered.votes, (), priors, settings), found)
    for fit, one in zip(consensus.fits, found, strict=True):
        warn_about_fit(fit, gathered.votes, one.rival)
    return consensus, [crew.ask(judge_part, part, priors, settings, *sent) for part in gathered.parts]


def _write_items(
    folder: Path,
    crew: Crew,
    judged: Sequence[Future[Any]],
    consensus: Consensus,
    gathered: Gathered,
    progress: Progress,
) -> None:
    def advance(share: float) -> None:
        progress("writing", share)

    write_items(folder, crew, judged, consensus, gathered.item, texts=gathered.texts, advance=advance)


def _manifest(
    crew: Crew, consensus: Consensus, gathered: Gathered, options: AuditOptions, facts: dict[str, Any]
) -> dict[str, Any]:
    manifest = manifest_facts(consensus, options, **facts)
    tally = gathered.tally
    counts = {"items": tally.n_items, "items_without_votes": tally.n_voiceless, "votes": sum(tally.votes_b)}
    manifest |= counts
    for b, question in enumerate(manifest["questions"]):
        question["items"], question["votes"] = tally.items_b[b], tally.votes_b[b]
        question["items_without_votes"] = tally.voiceless_b[b]
    manifest["cluster"] = {"parts": len(gathered.parts), "threads": crew.n_threads}
    return manifest


def fit_lines_of(consensus: Consensus, sums: Sequence[Floats]) -> list[FitLine]:
    """Give a line per fit, from sums over parts: see `entropy_sums`."""
    lines = []
    for fit, sum_df in zip(consensus.fits, sums, strict=True):
        _, weight, *totals = sum_df.sum(axis=0).tolist()
        entropy, aleatoric, epistemic, uncertain = (total / weight for total in totals)
        ballot = fit.ballot
        label = ballot.positive if ballot.n_labels == 2 else int(np.argmax(fit.share_k))
        lines.append(
            FitLine(
                question=ballot.question,
                part=ballot.part,
                n_items=weight,
                label=ballot.labels[label],
                prevalence=float(fit.share_k[label]),
                entropy=entropy,
                aleatoric=aleatoric,
                epistemic=epistemic,
                uncertain=uncertain,
                converged=fit.climb.converged,
            )
        )
    return lines
