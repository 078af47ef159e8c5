"""Files of votes → parts on a cluster.

Parquet with one row per vote is read by the workers; everything else is read on this machine and sent to them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from moral_entropy.cluster.exchange import exchange, load_slices
from moral_entropy.cluster.files import ROWS_AT_ONCE, has_row_per_vote, hash_files, open_table
from moral_entropy.cluster.gold import join_gold, remarked
from moral_entropy.cluster.parts import ClusterParts, cluster_parts, send_votes
from moral_entropy.cluster.rows import agree_on_rows
from moral_entropy.cluster.vocabulary import (
    add_readings,
    finish_part,
    gather_vocabulary,
    read_part,
    read_template,
    reader_for,
    tally_part,
)
from moral_entropy.errors import UsageError
from moral_entropy.votes.items import varies
from moral_entropy.votes.options import ReadOptions
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import Reading, Votes
from moral_entropy.workers import Workers, added

LEFT_OUT = "on a cluster the words of texts are not ranked, and judges are not looked at one by one."


def read_on_cluster(
    workers: Workers,
    source: Any,
    options: ReadOptions,
    *,
    fit_by: str | None = None,
    use_gold: bool = False,
    by_domain: bool = False,
    part_rows: int | None = None,
) -> ClusterParts:
    """Read votes into parts that the workers of a cluster hold.

    Parameters
    ----------
    workers
        The workers.
    source
        Path or glob of Parquet files that every worker can read, or a list of them; or whatever `read_votes` takes,
        which is then read on this machine and sent to the workers.
    options
        How to read.
    fit_by
        Column whose values are fitted on their own.
    use_gold
        Clamp items of known label to it, as evidence.
    by_domain
        Tell items of different domains apart.
    part_rows
        Rows per part, about.
    """
    part_rows = part_rows or ROWS_AT_ONCE
    check_columns(options)
    if _is_read_by_workers(source, options):
        return _read_by_workers(workers, source, options, fit_by, (use_gold, by_domain), part_rows)
    wanted = options if fit_by is None else replace(options, facts=(fit_by,))
    votes = read_votes(source, wanted)
    votes = _remarked(votes if fit_by is None else votes.split_by(fit_by))
    n_parts = max(workers.n_threads, -(-votes.n_votes // part_rows))
    return send_votes(votes, workers, use_gold=use_gold, by_domain=by_domain, n_parts=n_parts)


def _is_read_by_workers(source: Any, options: ReadOptions) -> bool:
    """Return whether the workers can read a source: Parquet files with one row per vote."""
    paths = [source] if isinstance(source, str | Path) else source
    is_parquet = isinstance(paths, Sequence) and all(str(path).endswith((".parquet", ".pq")) for path in paths)
    is_long = options.format in ("auto", "long") and options.layout != "wide"
    return is_parquet and is_long and has_row_per_vote(source, options)


def _read_by_workers(
    workers: Workers, source: Any, options: ReadOptions, fit_by: str | None, told: tuple[bool, bool], part_rows: int
) -> ClusterParts:
    """Have the workers read all votes; questions, labels, annotators and domains are collected here."""
    if named := [name for name in ("sheet", "encoding") if getattr(options, name) is not None]:
        msg = f"{named[0]} is for other files than Parquet. Leave it out (--{named[0]})."
        raise UsageError(msg)
    read, gold_file = _portable(options, fit_by), options.gold_file
    table = open_table(source, read, part_rows)
    digest = workers.ask(hash_files, table.paths)
    reader = reader_for(table, read, fit_by)
    loaded = load_slices(workers, table)
    vocabulary = gather_vocabulary(workers, loaded, reader)
    template = read_template(vocabulary, reader)
    rows = exchange(workers, table, loaded, max(workers.n_threads, -(-table.rows // part_rows)))
    sent = workers.send(vocabulary)
    parts = [workers.ask(read_part, one, sent, reader) for one in rows]
    readings, votes_pba = zip(*workers.fetch_all(workers.each(tally_part, parts)), strict=True)
    reading = add_readings(readings, template.reading, workers.fetch(digest))
    check_items_columns(reading)
    votes_ba = added(*votes_pba)
    if gold_file is not None:
        parts, remarks = join_gold(workers, parts, template, table.found, options)
        reading = remarked(reading, gold_file, remarks)
    made = workers.each(finish_part, parts, workers.send(votes_ba), *told, workers.threads_per_task)
    template = _remarked(replace(template, reading=reading))
    return cluster_parts(workers, agree_on_rows(workers, made), template, votes_ba)


def _remarked(votes: Votes) -> Votes:
    return replace(votes, reading=replace(votes.reading, notes=(*votes.reading.notes, LEFT_OUT)))


def _portable(options: ReadOptions, fit_by: str | None) -> ReadOptions:
    """Read files of options here, as workers may not have them; a file of gold is joined to the votes later."""
    if options.gold_file is not None:
        options = replace(options, gold_file=None, gold="")
    if isinstance(options.labels, str | Path) and Path(options.labels).is_file():
        options = replace(options, labels=tomllib.loads(Path(options.labels).read_text(encoding="utf-8")))
    return options if fit_by is None else replace(options, facts=(fit_by,))


def check_columns(options: ReadOptions) -> None:
    """Raise a `UsageError` for further columns of votes, which are kept on one machine only."""
    if options.keep:
        msg = "keep (--keep) needs one machine: on a cluster further columns of votes are not kept. Leave it out."
        raise UsageError(msg)


def check_items_columns(reading: Reading) -> None:
    """Raise a `UsageError` for a column of domains, or one to fit by, that does not describe items."""
    for name, (several, varied) in reading.varied.items():
        if varies(several, varied):
            msg = (
                f"column {name!r} describes annotators or votes, not items: {varied:,} items have several values of "
                'it. Name a column that describes items (--fit-by, --domain), or none: domain="" (--domain "").'
            )
            raise UsageError(msg)


def check_solver(solver: str) -> None:
    """Raise a `UsageError` for the one solver that needs all votes on one machine."""
    if solver == "adam":
        msg = "solver='adam' needs one machine. Leave it out, or fit without a cluster."
        raise UsageError(msg)
