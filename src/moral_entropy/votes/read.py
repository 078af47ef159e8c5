"""Read votes: files and dataframes → `Votes`.

The only place that knows a user's columns; all other stages see integer codes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from moral_entropy.option_fields import lists_options
from moral_entropy.options import ReadOptions
from moral_entropy.progress import Advance, bar
from moral_entropy.votes.ballots import build_ballots, read_domains, read_extra, read_item_labels, read_texts
from moral_entropy.votes.columns import ColumnRoles, fill_down, fill_marks, recognise
from moral_entropy.votes.formats.exported_votes import NOBODY_NAMED
from moral_entropy.votes.join import open_votes
from moral_entropy.votes.layouts import exclude_annotators, read_long, to_long
from moral_entropy.votes.source import Source, on_disk
from moral_entropy.votes.table import Reading, Votes, refuse, shown

PANEL_COLUMNS = ("system", "cluster", "prompt_id", "prompt", "sample", "conversation", "first", "second", "position")
"""Columns that `moral-entropy judges` understands: kept with the votes wherever a table has them."""


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
        table = open_votes(stored, options)
        if NOBODY_NAMED in table.log.notes:
            options = replace(options, anonymous=True)
        return _read_table(table, replace(options, layout=options.table_layout), advance)


def _read_table(table: Source, options: ReadOptions, advance: Advance) -> Votes:
    """Read votes from an opened table."""
    advance(0.1)
    recognised, options = recognise(table, options)
    if recognised.layout != "counts":
        voting = recognised.annotators or recognised.items or tuple(recognised.grid.values()) or options.questions
        table = fill_marks(fill_down(table, recognised), voting)
    options = replace(options, keep=panel_columns(table, recognised, options))
    source, roles = to_long(table, recognised, options)
    rows, annotators, questions = read_long(source, roles, options)
    questions = exclude_annotators(questions, annotators, options.exclude, source.log)
    if not any(len(votes.item_v) for votes in questions):
        reasons = ", ".join(f"{n:,} with {reason}" for reason, n in source.log.dropped.items()) or "none"
        refuse(f"{source.name} has no votes left. Rows dropped: {reasons}. Check that the right columns are read.")
    advance(0.5)
    names = [votes.question for votes in questions]
    item_labels = [read_item_labels(role, source, roles, rows, options, names) for role in ("gold", "published")]
    domains, domain_i = read_domains(source, roles, rows)
    texts = read_texts(source, roles, rows)
    extra = read_extra(source, roles, options, rows)
    advance(0.7)
    present = [labels for labels in item_labels if labels is not None]
    annotators, ballots = build_ballots(source, rows, annotators, questions, present, options)
    columns = {name: source.column(name) for name in dict.fromkeys(options.keep)}
    reading = _reading(table, recognised, options)
    return Votes(
        rows.items, annotators, ballots, domains, domain_i, texts, options.anonymous, reading, extra=extra, kept=columns
    )


def panel_columns(table: Source, roles: ColumnRoles, options: ReadOptions) -> tuple[str, ...]:
    """Return the columns to keep: those that were named, and those of panels of judges that a long table has.

    Panels: whose answer an item is, which items belong together, and what was compared in which order.
    """
    # A prompt that is read as the text still says which items belong together.
    in_use = {column for role, column in roles.column.items() if role != "text"} | {*options.questions, *options.counts}
    present = [
        name for name in PANEL_COLUMNS if roles.layout == "long" and name in table.columns and name not in in_use
    ]
    return tuple(dict.fromkeys((*options.keep, *present)))


def _reading(source: Source, roles: ColumnRoles, options: ReadOptions) -> Reading:
    lists = {"annotators": roles.annotators, "items": roles.items}
    lists |= {"questions": options.questions, "counts": options.counts}
    lists |= {"annotators": tuple(dict.fromkeys(name for name, _ in roles.grid))} if roles.grid else {}
    columns = {**roles.column, **{role: shown(names) for role, names in lists.items() if names}}
    in_use = {*roles.column.values(), *options.keep, *options.facts, options.of, *roles.grid.values()}.union(
        *lists.values()
    )
    if (gold := options.gold_file) is not None:
        columns["gold"] = Path(gold).name if isinstance(gold, str | Path) else "a dataframe"
    return Reading(
        source=source.name,
        sha256=source.sha256,
        columns=columns,
        guessed=roles.guessed,
        rows=source.rows,
        dropped=dict(sorted(source.log.dropped.items())),
        notes=tuple(source.log.notes),
        not_read=(*source.log.unread, *(name for name in source.columns if name not in in_use)),
    )
