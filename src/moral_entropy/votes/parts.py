"""The partitions of a Parquet dataset: found, checked, and read one by one, all coded alike.

Takes files in the long layout whose votes on an item are in one file; large files are cut where the item changes. What
occurs in the partitions is collected first: annotators, labels, domains. Functions of one partition are pure, and can
run anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from moral_entropy.errors import UsageError
from moral_entropy.options import ReadOptions
from moral_entropy.votes.ballots import (
    MOST_GUESSED_DOMAINS,
    QuestionVotes,
    cast_ballot,
    labels_of_ballot,
    read_domains,
    read_item_labels,
    read_long,
    refuse_single,
    relabelled,
)
from moral_entropy.votes.columns import ColumnRoles, recognise
from moral_entropy.votes.labels import choose_classes, recode, same_labels, sort_labels
from moral_entropy.votes.source import MAGIC_PARQUET, Source, from_polars, head_of, open_parquet
from moral_entropy.votes.table import UNKNOWN, Ints, Reading, ReadingLog, Votes, refuse

ROWS_AT_ONCE = 2_000_000
"""Most rows of a partition; larger files are cut where the item changes."""

NEAR_EDGE = 100_000
"""Rows after which an item is taken to have ended, where a file is cut."""

Runner = Callable[..., list[Any]]
"""Applies a function to every partition of a list, with further arguments: `run(function, parts, ...)`."""


class Part(NamedTuple):
    """A partition: some rows of a file."""

    path: str
    first: int
    rows: int


class Shape(NamedTuple):
    """What all partitions have in common: columns, ids, and by question its labels, their spellings and its voters."""

    roles: ColumnRoles
    options: ReadOptions
    annotators: pl.Series
    domains: tuple[str, ...]
    questions: tuple[tuple[str, tuple[str, ...], dict[str, str], Ints], ...]


def open_part(part: Part) -> Source:
    """Open a partition; its columns are read one at a time."""
    # Any digest makes it a file, in which a column is not taken for true labels by its name alone.
    frame = pl.scan_parquet(part.path, glob=False).slice(part.first, part.rows)
    return from_polars(frame, Path(part.path).name, sha256="of a part")


def _survey(part: Part, roles: ColumnRoles, options: ReadOptions) -> dict[str, Any]:
    """Return what occurs in a partition: annotators and labels by question, domains, hashes of the items."""
    source = open_part(part)
    rows, annotators, questions = read_long(source, roles, options, join=False)
    voted = {votes.question: annotators.gather(np.unique(votes.annotator_v)) for votes in questions}
    n_of = {votes: np.bincount(votes.label_v, minlength=len(votes.labels)) for votes in questions}
    counts = {votes.question: dict(zip(votes.labels, n_k, strict=True)) for votes, n_k in n_of.items()}
    domains = read_domains(source, roles, rows)[0] if "domain" in roles.column else ()
    hashes = rows.items.hash(0).to_numpy()
    return {"voted": voted, "labels": counts, "domains": domains, "hashes": hashes, "log": source.log}


def _item_of_hash(part: Part, roles: ColumnRoles, options: ReadOptions, value: int) -> Any:
    items = read_long(open_part(part), roles, options, join=False)[0].items
    return items.filter(items.hash(0) == value)[0]


def load_part(part: Part, shape: Shape) -> Votes:
    """Read a partition, coded as all partitions are."""
    source, roles, options = open_part(part), shape.roles, shape.options
    rows, annotators, questions = read_long(source, roles, options, join=False)
    place, names = shape.annotators.search_sorted(annotators).to_numpy(), [name for name, *_ in shape.questions]
    lenient = replace(roles, guessed=(*roles.guessed, "gold", "published"))
    truths = [role for role in ("gold", "published") if role in roles.column]
    item_labels = [read_item_labels(role, source, lenient, rows, options, names) for role in truths]
    ballots = []
    for name, labels, name_of, voted_a in shape.questions:
        votes = next((votes for votes in questions if votes.question == name), _nobody(name, labels))
        here = {label: name_of[label] for label in votes.labels if label in name_of}
        votes = relabelled(replace(votes, annotator_v=recode(votes.annotator_v, place)), labels, here)
        ballot = cast_ballot(votes, rows, shape.annotators, voted_a, options, source.log)
        present = [part for part in item_labels if part is not None]
        codes = {f"{part.role}_i": labels_of_ballot(part, ballot, source.log) for part in present}
        ballots.append(replace(ballot, **codes))  # type: ignore[arg-type]
    domains, domain_i = read_domains(source, roles, rows) if shape.domains else ((), np.full(len(rows.items), UNKNOWN))
    domain_i = recode(domain_i.astype(np.int32), [shape.domains.index(name) for name in domains])
    reading = Reading(dropped=source.log.dropped, notes=tuple(source.log.notes))
    return Votes(rows.items, shape.annotators, tuple(ballots), shape.domains, domain_i.astype(np.int32),
                 anonymous=options.anonymous, reading=reading)  # fmt: skip


def _nobody(question: str, labels: tuple[str, ...]) -> QuestionVotes:
    nothing = np.empty(0, dtype=np.int32)
    return QuestionVotes(question, labels, nothing, nothing, nothing, nothing, nothing)


def dataset_paths(source: Path) -> list[Path]:
    """Return the Parquet files of a dataset, or say which is none."""
    paths = sorted(source.glob("*.parquet")) if source.is_dir() else [source]
    if not paths:
        refuse(f"{source} holds no .parquet file. Write the votes as Parquet, those on an item in one file.")
    for path in paths:
        if not head_of(path).startswith(MAGIC_PARQUET):
            refuse(f"{path.name} is not a Parquet file. A cluster reads nothing else: write the votes as Parquet.")
    return paths


def survey(run: Runner, paths: Sequence[Path], options: ReadOptions) -> tuple[Shape, list[Part], ReadingLog]:
    """Find the columns, cut the files into partitions, and collect what occurs in them."""
    if options.order or options.scale in ("ordinal", "interval"):
        refuse("ordered labels need one machine. Leave out --scale and --order, or --cluster.", UsageError)
    sizes = [open_parquet([path], path.name).rows for path in paths]
    first = open_part(Part(str(paths[0].resolve()), 0, min(sizes[0], ROWS_AT_ONCE)))
    options = replace(options, multilabel=options.multilabel or "")
    roles, options = recognise(first, options)
    if roles.layout != "long":
        way = "Name --item, --annotator and --label."
        refuse(f"{first.name} is read as {roles.layout}; a cluster reads one row per vote. {way}", UsageError)
    if roles.column.get("text") and roles.column.get("text") != roles.column.get("item"):
        first.log.note("texts and words need one machine, and were not read.")
    roles = roles.without("text", "count")
    for path in paths:
        _check_columns(path, roles, paths[0])
    parts = [part for path, size in zip(paths, sizes, strict=True) for part in _cut(path, size, roles.column["item"])]
    surveys = run(_survey, parts, roles, options)
    _check_items(run, parts, surveys, roles, options)
    for note in dict.fromkeys(note for part in surveys for note in part["log"].notes):
        first.log.note(note)
    domains = tuple(sorted({name for part in surveys for name in part["domains"]}))
    if "domain" in roles.guessed and len(domains) > MOST_GUESSED_DOMAINS:
        first.log.note(f"the column of domains has {len(domains):,} values and is not taken for the domain.")
        roles, domains = roles.without("domain"), ()
    annotators = pl.concat([ids for part in surveys for ids in part["voted"].values()]).unique().sort()
    questions = tuple(_questions(surveys, annotators, options, first.log))
    return Shape(roles, options, annotators, domains, questions), parts, first.log


def _check_columns(path: Path, roles: ColumnRoles, first: Path) -> None:
    schema, expected = pl.read_parquet_schema(path), pl.read_parquet_schema(first)
    for name in roles.column.values():
        if schema.get(name) != expected[name]:
            has = f"has {schema[name]}" if name in schema else "has nothing"
            refuse(f"{path.name} {has} in the column {name!r}, {first.name} {expected[name]}. Write all files alike.")


def _cut(path: Path, size: int, item: str) -> Iterator[Part]:
    """Cut a file into partitions, where the item changes."""
    edges = [0]
    for edge in range(ROWS_AT_ONCE, size, ROWS_AT_ONCE):
        near = pl.scan_parquet(path, glob=False).slice(edge - 1, NEAR_EDGE).select(item).collect().to_series()
        changes = (near != near[0]).arg_true()
        edges.append(edge - 1 + (changes[0] if len(changes) else 1))
    for lo, hi in pairwise([*edges, size]):
        if hi > lo:
            yield Part(str(path.resolve()), lo, hi - lo)


def _check_items(
    run: Runner, parts: Sequence[Part], surveys: Sequence[dict[str, Any]], roles: ColumnRoles, options: ReadOptions
) -> None:
    """Refuse an item whose votes are in two partitions."""
    hashes = np.concatenate([part["hashes"] for part in surveys])
    part_h = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part["hashes"]) for part in surveys])
    order = np.argsort(hashes, kind="stable")
    again = np.flatnonzero(np.diff(hashes[order]) == 0)
    if len(again):
        pair = part_h[order[again[0] : again[0] + 2]]
        [name] = run(_item_of_hash, [parts[pair[0]]], roles, options, hashes[order[again[0]]])
        files = " and ".join(dict.fromkeys(Path(parts[n].path).name for n in pair))
        problem = f"{len(again):,} items have votes in two partitions of the dataset. First: item {name!r} ({files})"
        refuse(f"{problem}. Write all votes on an item into one file, sorted by item.")


def _questions(
    surveys: Sequence[dict[str, Any]], annotators: pl.Series, options: ReadOptions, log: ReadingLog
) -> Iterator[tuple[str, tuple[str, ...], dict[str, str], Ints]]:
    """Yield name, labels, what each spelling of a label is name_of, and voters of every question with two labels."""
    names = sorted({name for part in surveys for name in part["labels"]})
    n_questions = 0
    for name in names:
        counts: Counter[str] = sum((Counter(part["labels"].get(name, {})) for part in surveys), Counter())
        spelt = [label for label in sort_labels(counts) if counts[label]]
        name_of = same_labels(spelt, options, log)
        present = list(sort_labels(set(name_of.values())))
        n_of = {label: sum(counts[spelling] for spelling in spelt if name_of[spelling] == label) for label in present}
        labels = tuple(n_of) if options.classes is None else choose_classes(name, n_of, options.classes)
        if len(labels) < 2:
            votes = replace(_nobody(name, labels), item_v=np.zeros(sum(n_of.values()), dtype=np.int8))
            refuse_single(votes, present, log, alone=len(names) == 1)
            continue
        n_questions += 1
        voters = pl.concat([part["voted"][name] for part in surveys if name in part["voted"]]).unique().sort()
        yield name, labels, name_of, annotators.search_sorted(voters).to_numpy().astype(np.int32)
    if not n_questions:
        refuse(f"no question has votes for two labels. {' '.join(log.notes)}")
