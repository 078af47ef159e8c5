"""Read votes: files and dataframes → `Votes`.

The only place that knows a user's columns; all other stages see integer codes.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from moral_entropy.options import lists_options
from moral_entropy.progress import Advance, bar, ignore
from moral_entropy.votes.annotators import exclude_annotators
from moral_entropy.votes.ballots import (
    build_ballots,
    check_any_votes,
    read_domains,
    read_extra,
    read_item_labels,
    read_texts,
)
from moral_entropy.votes.columns import ColumnRoles, recognise
from moral_entropy.votes.formats.exports import open_export
from moral_entropy.votes.layouts import read_counts, read_long, read_respondents, read_wide
from moral_entropy.votes.options import ReadOptions
from moral_entropy.votes.source import Source, on_disk, open_source
from moral_entropy.votes.table import Reading, ReadingLog, Votes, shown


@lists_options(ReadOptions)
def read_votes(source: Any, options: ReadOptions | None = None, **changes: Any) -> Votes:
    """Read votes from a file or a dataframe.

    Rows are votes (item, annotator, label), items with a column per annotator, or people with a column per item. What
    is not named is guessed from the columns, and `Votes.reading` says how; an empty name means "none, do not guess".
    A table that can be read in several ways ends in a `UsageError` that names the option for each.
    The order of rows never matters, save for `on_repeat="first"` and `"last"`.

    Parameters
    ----------
    source
        A path (CSV, TSV, Excel, Parquet, JSON Lines, a JSON array of records, or gzip of these), "-" for standard
        input, a pipe, a glob of Parquet parts, the export of an annotation tool, or a dataframe: polars, pandas,
        pyarrow, and whatever else narwhals knows.
    options
        All options as one object; keywords change some of them.
    **changes
        Options by name.

    Returns
    -------
    Votes
        Coded, sorted and checked.

    Raises
    ------
    VotesError
        If the votes cannot be read or make no sense.
    UsageError
        If they can be read in several ways.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"text_id": [7, 7, 9], "rater": ["ann", "bob", "ann"], "vote": ["yes", "no", "no"]})
    >>> votes = read_votes(table)
    >>> votes.items.to_list(), votes.annotators.to_list(), votes.ballots[0].counts_ik.tolist()
    ([7, 9], ['ann', 'bob'], [[1, 1], [1, 0]])
    >>> votes.reading.columns
    {'item': 'text_id', 'annotator': 'rater', 'label': 'vote'}
    """
    options = (options or ReadOptions()).changed(changes, "read_votes")
    with on_disk(source) as stored, bar("reading") as advance:
        opened, options = _open(stored, options)
        return read_source(opened, options, advance)


def _open(source: Any, options: ReadOptions) -> tuple[Source, ReadOptions]:
    """Open the export of an annotation tool, or else a table."""
    if (export := open_export(source, options)) is not None:
        return export
    return open_source(source, options), replace(options, layout=options.table_layout)


def read_source(source: Source, options: ReadOptions, advance: Advance = ignore, *, whole: bool = True) -> Votes:
    """Read votes from an opened table, as `read_votes` does.

    Parameters
    ----------
    source, options, advance
        The table, how to read it, and what to call with the share done.
    whole
        Whether these are all rows, so that it can be judged what a column describes.
    """
    log = deepcopy(source.log)
    advance(0.1)
    told, options = recognise(source, options, log)
    roles, table = told, source
    if told.layout == "respondents":
        source, roles = read_respondents(source, told, options, log)
    read_layout = {"wide": read_wide, "counts": read_counts}.get(roles.layout, read_long)
    rows, annotators, questions = read_layout(source, roles, options, log)
    questions = exclude_annotators(questions, annotators, options.exclude, log)
    check_any_votes(questions, log, source.name)
    advance(0.5)
    names = [votes.question for votes in questions]
    item_labels = {
        role: read_item_labels(role, source, roles, rows, options, names, log) for role in ("gold", "published")
    }
    domains, domain_i = read_domains(source, roles, rows, log, whole=whole)
    texts = read_texts(source, roles, rows)
    extra = read_extra(source, roles, options, rows, log, whole=whole)
    advance(0.7)
    annotators, ballots = build_ballots(rows, annotators, questions, item_labels, options, log, source.name)
    return Votes(
        items=rows.items,
        annotators=annotators,
        ballots=ballots,
        domains=domains,
        domain_i=domain_i,
        texts=texts,
        anonymous=options.anonymous,
        reading=_reading(table, told, options, log),
        extra=extra,
        kept={name: source.column(name) for name in dict.fromkeys(options.keep)},
    )


def gold_name(gold: Any) -> str:
    """Return what to call a file or dataframe of gold labels."""
    return Path(gold).name if isinstance(gold, str | Path) else "a dataframe"


def _reading(source: Source, roles: ColumnRoles, options: ReadOptions, log: ReadingLog) -> Reading:
    columns = dict(roles.column)
    several = {
        "annotators": roles.annotators,
        "items": roles.items,
        "questions": options.questions,
        "counts": options.counts,
    }
    columns |= {role: shown(names) for role, names in several.items() if names}
    if options.gold_file is not None:
        columns["gold"] = gold_name(options.gold_file)
    return Reading(
        source=source.name,
        sha256=source.sha256,
        columns=columns,
        guessed=roles.guessed,
        rows=source.rows,
        dropped=dict(sorted(log.dropped.items())),
        notes=tuple(log.notes),
        varied=dict(log.varied),
    )
