"""Two run folders → the items they share, question by question.

Items are the same if question and id are. Run a is the one before, run b the one after. Reads tables and manifests;
compares nothing but names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.errors import RunFolderError
from moral_entropy.runs.run import Run, as_run
from moral_entropy.schemas import BETWEEN, PARTS
from moral_entropy.votes.table import Floats

KEY = "item_key"
CARRIED = ("p", "p_low", "p_high", "label", "entropy", *PARTS, "n_votes", "domain", "count")


@dataclass(frozen=True, eq=False)
class RunTables:
    """What is compared of one run.

    Parameters
    ----------
    run
        The run.
    items
        Its items, with their ids as text.
    labels
        By question; of two labels the negative one first.
    """

    run: Run
    items: pl.DataFrame
    labels: dict[str, tuple[str, ...]]

    @property
    def path(self) -> str:
        """The run folder as the user named it."""
        return self.run.where

    @property
    def manifest(self) -> dict[str, Any]:
        """Its manifest."""
        return self.run.manifest


@dataclass(frozen=True, eq=False)
class QuestionPair:
    """The shared items of one question. Axes: **i** item, **k** label.

    Parameters
    ----------
    question
        Its name.
    labels
        Of two labels the negative one first.
    frame
        One row per item, sorted by id: `item_key`, and the columns of `items.parquet` twice, with `_a` and `_b`.
    a_ik, b_ik
        Probability of every label in either run.
    only_a, only_b
        How many items only one run has.
    """

    question: str
    labels: tuple[str, ...]
    frame: pl.DataFrame
    a_ik: Floats
    b_ik: Floats
    only_a: int
    only_b: int


@dataclass(frozen=True, eq=False)
class RunPair:
    """Two runs and what they share.

    Parameters
    ----------
    a, b
        The runs.
    questions
        The shared questions that share items.
    notes
        What the reader should know before comparing.
    """

    a: RunTables
    b: RunTables
    questions: tuple[QuestionPair, ...]
    notes: tuple[str, ...]


def read_pair(run_a: Run | str | Path, run_b: Run | str | Path) -> RunPair:
    """Read two run folders and join their items.

    Parameters
    ----------
    run_a, run_b
        The runs, or their folders.

    Examples
    --------
    >>> read_pair("nowhere", "elsewhere")
    Traceback (most recent call last):
    ...
    moral_entropy.errors.RunFolderError: nowhere is no run folder: there is no such folder. ...
    """
    a, b = _read(as_run(run_a)), _read(as_run(run_b))
    shared = _shared_questions(a, b)
    _check_labels(a, b, shared)
    pairs = [_join(a, b, question) for question in shared]
    if not any(pair.frame.height for pair in pairs):
        raise RunFolderError(_no_shared_item(a, b, shared))
    questions = tuple(pair for pair in pairs if pair.frame.height)
    return RunPair(a, b, questions, tuple(_notes(a, b, pairs)))


def _read(run: Run) -> RunTables:
    items = run.items.with_columns(pl.col("item").cast(pl.String).alias(KEY))
    repeated = items.filter(pl.struct("question", KEY).is_duplicated())
    if not repeated.is_empty():
        msg = (
            f"{repeated.height:,} rows of {run.where}/items.parquet repeat a question and item. First: "
            f"{repeated['question'][0]}, {repeated[KEY][0]!r}. Run the audit again."
        )
        raise RunFolderError(msg)
    labels = {fit["question"]: _ordered(fit["labels"], fit["positive"]) for fit in run.manifest["questions"]}
    return RunTables(run, items, labels)


def _ordered(labels: Sequence[str], positive: str | None) -> tuple[str, ...]:
    return tuple(labels) if positive is None else (*(label for label in labels if label != positive), positive)


def _shared_questions(a: RunTables, b: RunTables) -> list[str]:
    shared = [question for question in a.labels if question in b.labels]
    if not shared:
        msg = (
            f"the runs share no question: {a.path} has {_some(list(a.labels))}, {b.path} has {_some(list(b.labels))}. "
            "A single question is called like its label column; name it alike in both inputs."
        )
        raise RunFolderError(msg)
    return shared


def _check_labels(a: RunTables, b: RunTables, shared: Sequence[str]) -> None:
    others = [question for question in shared if not _same_labels(a.labels[question], b.labels[question])]
    if others:
        first = others[0]
        msg = (
            f"{len(others)} of {len(shared)} shared questions have other labels in {b.path} than in {a.path}. First: "
            f"{first!r} has {', '.join(b.labels[first])} and not {', '.join(a.labels[first])}"
            f"{' (the last is the positive one)' if len(a.labels[first]) == 2 else ''}. Audit both with the same "
            "labels: merge them with --labels map.toml, name the positive one with --positive, or labels nobody voted "
            "for with --classes."
        )
        raise RunFolderError(msg)


def _same_labels(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    # Of two labels the order says which is positive; of more it says nothing.
    return one == other if len(one) == 2 else sorted(one) == sorted(other)


def _join(a: RunTables, b: RunTables, question: str) -> QuestionPair:
    labels = a.labels[question]
    carried = (*CARRIED, BETWEEN) if any(BETWEEN in run.items.columns for run in (a, b)) else CARRIED
    one, other = (_carried(run, question, labels, carried) for run in (a, b))
    frame = one.join(other, on=KEY, how="inner", suffix="_b").sort(KEY)
    frame = frame.rename({name: f"{name}_a" for name in (*carried, "p_k")})
    a_ik, b_ik = (frame[f"p_k_{side}"].list.to_array(len(labels)).to_numpy() for side in "ab")
    frame = frame.drop("p_k_a", "p_k_b")
    only_a, only_b = one.height - frame.height, other.height - frame.height
    return QuestionPair(question, labels, frame, np.asarray(a_ik), np.asarray(b_ik), only_a, only_b)


def _carried(run: RunTables, question: str, labels: tuple[str, ...], carried: Sequence[str]) -> pl.DataFrame:
    """Return the items of one question, with the probabilities of all labels as a list `p_k`."""
    items = run.items.filter(question=question)
    if BETWEEN in carried and BETWEEN not in items.columns:
        # Nothing lies between groups where no truth per group was found; without draws nobody knows.
        items = items.with_columns((0.0 * pl.col("doubt_votes")).alias(BETWEEN))
    items = items.select(KEY, *carried)
    if len(labels) == 2:
        return items.with_columns(pl.concat_list(1.0 - pl.col("p"), "p").alias("p_k"))
    place = {label: k for k, label in enumerate(labels)}
    posterior = run.run.table("posterior").filter(question=question)
    by_label = posterior.with_columns(pl.col("class").replace_strict(place).alias("k"), pl.col("item").cast(pl.String))
    listed = by_label.sort("item", "k").group_by("item", maintain_order=True).agg(pl.col("p").alias("p_k"))
    found = items.join(listed, left_on=KEY, right_on="item", how="left")
    lost = found.filter(pl.col("p_k").list.len().fill_null(0) != len(labels))
    if not lost.is_empty():
        msg = (
            f"{run.path}/posterior.parquet lacks labels of {lost.height:,} items. First: {question}, "
            f"{lost[KEY][0]!r}. Run the audit again."
        )
        raise RunFolderError(msg)
    return found


def _no_shared_item(a: RunTables, b: RunTables, shared: Sequence[str]) -> str:
    asked_a, asked_b = (run.items.filter(pl.col("question").is_in(shared)) for run in (a, b))
    return (
        f"the runs share no item: {a.path} has {asked_a.height:,} (first: {asked_a[KEY].first()!r}), {b.path} has "
        f"{asked_b.height:,} (first: {asked_b[KEY].first()!r}). Items are matched by question and id; name the column "
        "of ids that both inputs share with --item."
    )


def _notes(a: RunTables, b: RunTables, pairs: Sequence[QuestionPair]) -> list[str]:
    notes = []
    for run, other in ((a, b), (b, a)):
        alone = [question for question in run.labels if question not in other.labels]
        if alone:
            notes.append(f"only {run.path} has {_some(alone)}: not compared")
        if not run.manifest.get("converged", True):
            notes.append(f"{run.path} did not converge: its figures may move")
    empty = [pair.question for pair in pairs if not pair.frame.height]
    if empty:
        notes.append(f"no shared item in {_some(empty)}: not compared")
    frames = [pair.frame for pair in pairs]
    moved = sum(frame.filter(pl.col("domain_a").ne_missing(pl.col("domain_b"))).height for frame in frames)
    if moved:
        notes.append(f"{moved:,} items are of another domain in {b.path}: sorted by that of {a.path}")
    weighed = sum(frame.filter(pl.col("count_a") != pl.col("count_b")).height for frame in frames)
    if weighed:
        notes.append(f"{weighed:,} items count more or less often in {b.path}: weighted as in {a.path}")
    if a.manifest.get("interval") != b.manifest.get("interval"):
        masses = f"{a.manifest.get('interval')} and {b.manifest.get('interval')}"
        notes.append(f"the runs' own intervals are of other mass, {masses}: those of grades mix both")
    return notes


def _some(names: Sequence[str]) -> str:
    """Count questions and name the first."""
    return f"{len(names)} question{'s' * (len(names) != 1)} (first: {names[0]!r})" if names else "none"


SETTINGS = (
    "version",
    "input",
    "priors",
    "fit_by",
    "solver",
    "coordinates",
    "draws",
    "seed",
    "interval",
    "use_gold",
    "annotators",
    "votes",
)


def differing_settings(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """List what two manifests say differently about input, priors and fit: name, value in a, value in b.

    Examples
    --------
    >>> differing_settings({"seed": 0, "priors": {"diagonal": 1.8}}, {"seed": 0, "priors": {"diagonal": 2.5}})
    [('priors.diagonal', 1.8, 2.5)]
    """
    flat_a, flat_b = (
        {name: value for key in SETTINGS if key in facts for name, value in _flat(key, facts[key])} for facts in (a, b)
    )
    names = dict.fromkeys([*flat_a, *flat_b])
    return [(name, flat_a.get(name), flat_b.get(name)) for name in names if flat_a.get(name) != flat_b.get(name)]


def _flat(name: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        return [(name, value)]
    return [pair for key, inner in value.items() for pair in _flat(f"{name}.{key}", inner)]
