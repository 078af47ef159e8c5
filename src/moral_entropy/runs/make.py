"""Fitted votes and what was found about them → a `Run`: its tables and its manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

import polars as pl

from moral_entropy.consensus.fitted import FittedParts, PartFit
from moral_entropy.findings import Finding
from moral_entropy.rules.table import AuditTable
from moral_entropy.runs.annotator_tables import annotator_frames, push_frames
from moral_entropy.runs.findings import findings_frame
from moral_entropy.runs.item_tables import (
    entropy_frame,
    item_frames,
    posterior_frames,
    text_frames,
    vote_frames,
)
from moral_entropy.runs.run import Table, rows_in_groups
from moral_entropy.runs.tables import ROWS_PER_GROUP
from moral_entropy.schemas import BETWEEN, SCHEMAS, with_between, with_ids
from moral_entropy.votes.table import Floats


def make_tables(
    fitted: FittedParts,
    sums: Sequence[Floats],
    audit: AuditTable,
    outliers: Mapping[str, pl.DataFrame],
    findings: Iterable[Finding],
    more: Mapping[str, pl.DataFrame] | None = None,
) -> dict[str, Table]:
    """Return every table of a run by name, in the order they are written; rows about items are made on demand.

    Parameters
    ----------
    fitted
        The votes and their fits.
    sums
        Entropies by domain: see `entropy_sums`.
    audit, outliers, findings
        What the audit of rules, the search for outliers and the checks found.
    more
        Tables about groups of annotators and about texts, where they were asked for.
    """
    consensus = fitted.consensus
    small = {
        "entropy": entropy_frame(consensus, sums),
        "audit": audit.frame,
        "audit_rules": audit.rules,
        "audit_any_by_votes": audit.any_by_votes,
        "audit_reliability": audit.reliability,
        "audit_advice": audit.advice.frame,
        **outliers,
        "findings": findings_frame(findings),
        **(more or {}),
    }
    by_annotator = {
        "annotators": partial(annotator_frames, consensus, outliers["annotator_summary"]),
        "pushes": partial(push_frames, consensus),
    }
    ids = {"item": item_type(fitted), "annotator": consensus.votes.annotators.dtype}
    tables = item_tables(fitted, ids)
    tables |= {name: Table(with_ids(SCHEMAS[name], **ids), frames) for name, frames in by_annotator.items()}
    return tables | {name: _table(name, frame) for name, frame in small.items()}


def _table(name: str, frame: pl.DataFrame) -> Table:
    matched = frame.match_to_schema(_schema(name, frame))
    return Table(matched.schema, lambda: [matched])


def _schema(name: str, frame: pl.DataFrame) -> pl.Schema:
    schema = with_between(SCHEMAS[name]) if BETWEEN in frame.columns else SCHEMAS[name]
    ids = {column: frame.schema[column] for column in ("item", "annotator") if column in frame.columns}
    return with_ids(schema, **ids)


def item_tables(fitted: FittedParts, ids: Mapping[str, pl.DataType]) -> dict[str, Table]:
    """Return the tables with one or more rows per item or vote."""
    ballots = [fit.ballot for fit in fitted.consensus.fits]
    every = range(len(ballots))
    wanted: dict[str, tuple[Callable[..., Iterable[pl.DataFrame]], Sequence[int]]] = {
        "items": (item_frames, every),
        "posterior": (posterior_frames, [b for b in every if ballots[b].n_labels > 2]),
        "votes": (vote_frames, every),
    }
    frames = {name: partial(_by_ballot, fitted, work, some) for name, (work, some) in wanted.items() if len(some)}
    if any(fitted.fetch_each(has_texts)):
        frames["texts"] = partial(fitted.stream, text_frames)
    schemas = {name: with_ids(SCHEMAS[name], **ids) for name in frames}
    if any(fitted.fetch_each(has_between)):
        schemas["items"] = with_between(schemas["items"])
    kept = fitted.consensus.votes.kept
    schemas["votes"] = pl.Schema({**schemas["votes"], **{name: cells.dtype for name, cells in kept.items()}})
    if not fitted.parts.whole:
        frames = {name: partial(_regrouped, made, schemas[name]) for name, made in frames.items()}
    return {name: Table(schemas[name], made) for name, made in frames.items()}


def _by_ballot(
    fitted: FittedParts, work: Callable[..., Iterable[pl.DataFrame]], some: Sequence[int]
) -> Iterator[pl.DataFrame]:
    return chain.from_iterable(fitted.stream(work, b) for b in some)


def _regrouped(frames: Callable[[], Iterable[pl.DataFrame]], schema: pl.Schema) -> Iterator[pl.DataFrame]:
    return rows_in_groups(frames(), schema, ROWS_PER_GROUP)


def has_texts(one: PartFit) -> bool:
    """Return whether the items of one part have texts."""
    return one.consensus.votes.texts is not None


def has_between(one: PartFit) -> bool:
    """Return whether the entropies of one part have a part between groups."""
    return one.between is not None


def item_type(fitted: FittedParts) -> pl.DataType:
    """Return the type of the items' ids: an integer where all were, else text."""
    found: pl.DataType = fitted.fetch_each(type_of_items)[0]
    return found


def type_of_items(one: PartFit) -> pl.DataType:
    """Return the type of the ids of one part's items."""
    return one.consensus.votes.items.dtype
