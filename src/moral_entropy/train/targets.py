"""Targets: what a classifier is to learn about each text of a run, and what its outputs mean.

Kinds of target: `soft`, the consensus p as it is published; `hard`, the consensus label; `gold` and `published`, labels
that came with the data; and every rule of the audit by its name, such as `any`, `majority` or `strict-majority`. With
more than two labels `majority` is the plurality, a rule's yes to several labels is spread evenly over them, and an item
on which a rule says yes to no label has no target. Neither has an item without votes, but for gold and published.

A question of two labels has one output, the probability of its positive label (sigmoid); one of more has one output per
label, which add up to 1 (softmax). Axes: **i** item, **o** output, **k** label.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import expit, softmax

from moral_entropy.errors import RuleError, TrainError
from moral_entropy.rules.rules import rule_named
from moral_entropy.runs.run import Question, Run
from moral_entropy.ties import labels_of
from moral_entropy.votes.columns import guess_column, missing_column, named_column
from moral_entropy.votes.source import open_source
from moral_entropy.votes.table import Floats, Ints
from moral_entropy.votes.values import code_ids

FROM_DATA = {"published": "published labels", "gold": "gold labels"}
"""Kinds of target that come from a column of the data, and what is missing where there is none."""

FEWEST = 10
"""With fewer texts there is no training."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Texts and what to learn about them.

    Parameters
    ----------
    questions
        What is asked about every text.
    items, texts
        Ids of the items, and one text each; none is blank.
    by_kind
        Probabilities to learn by kind of target, `target_io`; NaN where an item has no target.
    count_i
        How many items a row stands for.
    notes
        What was left out or stands out, one sentence each.
    """

    questions: tuple[Question, ...]
    items: pl.Series
    texts: tuple[str, ...]
    by_kind: dict[str, Floats]
    count_i: Floats
    notes: tuple[str, ...] = ()

    def take(self, rows: Ints) -> Targets:
        """Keep some items, by position."""
        return replace(
            self,
            items=self.items.gather(rows),
            texts=tuple(self.texts[i] for i in rows.tolist()),
            by_kind={kind: target_io[rows] for kind, target_io in self.by_kind.items()},
            count_i=self.count_i[rows],
        )

    def known(self, kind: str) -> Targets:
        """Keep the items that have a target of a kind for some question."""
        return self.take(np.flatnonzero(~np.isnan(self.by_kind[kind]).all(axis=1)))


# --- Outputs ------------------------------------------------------------------------------------------------------


def columns_of(questions: Sequence[Question]) -> Iterator[tuple[Question, slice]]:
    """Return every question with the outputs that belong to it.

    Examples
    --------
    >>> care, tone = Question("care", ("no", "yes"), "yes"), Question("tone", ("anger", "joy", "none"), None)
    >>> [columns for _, columns in columns_of((care, tone))]
    [slice(0, 1, None), slice(1, 4, None)]
    """
    start = 0
    for question in questions:
        stop = start + len(question.targets)
        yield question, slice(start, stop)
        start = stop


def output_names(questions: Sequence[Question]) -> list[str]:
    """Return the names of all outputs, as the report shows them."""
    return [name for question in questions for name, _ in question.targets]


def probabilities(questions: Sequence[Question], logits_io: Floats) -> Floats:
    """Turn logits into probabilities: sigmoid or softmax, question by question."""
    p_io = np.empty(logits_io.shape)
    for _, columns in columns_of(questions):
        logits = np.asarray(logits_io[:, columns], dtype=np.float64)
        p_io[:, columns] = expit(logits) if logits.shape[1] == 1 else softmax(logits, axis=1)
    return p_io


def ordered_labels(question: Question) -> tuple[str, ...]:
    """Return the labels of a question; of two the positive one second."""
    return tuple(sorted(question.labels, key=lambda label: label == question.positive))


def by_label(p_io: Floats, columns: slice) -> Floats:
    """Return one question's table with one column per label: `p_ik`; of two labels the second is the positive one."""
    p_ik = p_io[:, columns]
    return np.column_stack([1.0 - p_ik, p_ik]) if p_ik.shape[1] == 1 else p_ik


def mean_target(target_ik: Floats, count_i: Floats) -> Floats:
    """Compute the mean target of one question; half a pseudo-target for every label keeps it between 0 and 1."""
    known_i = np.isfinite(target_ik).all(axis=1)
    sum_k = count_i[known_i] @ target_ik[known_i] + 0.5
    return np.asarray(sum_k / sum_k.sum())


# --- From a run ---------------------------------------------------------------------------------------------------


def read_targets(
    run: Run, kinds: Sequence[str], *, votes: str | Path | None = None, text: str | None = None
) -> Targets:
    """Read targets of several kinds for every item of a run that has a text.

    Parameters
    ----------
    run
        The run.
    kinds
        Kinds of target.
    votes
        File with the items' texts, usually that of the votes; by default the texts that the audit read.
    text
        Its column of texts; guessed when not given.
    """
    for kind in kinds:
        check_kind(run, kind)
    rows = run.items
    items = rows["item"].unique().sort()
    shape = len(items), len(output_names(run.questions))
    by_kind = {kind: np.full(shape, np.nan) for kind in kinds}
    count_i = np.ones(len(items))
    for question, columns in columns_of(run.questions):
        asked = rows.filter(question=question.name)
        at_i = items.search_sorted(asked["item"]).to_numpy()
        counts_ik, p_ik = _two_labels(asked) if question.positive else _more_labels(run, question, asked)
        count_i[at_i] = asked["count"].to_numpy()
        for kind, target_io in by_kind.items():
            target_io[at_i, columns] = _target(question, kind, counts_ik, p_ik, asked)
    texts = [written or "" for written in _texts(run, items, votes, text)]
    return _with_text(Targets(run.questions, items, tuple(texts), by_kind, count_i))


def check_kind(run: Run, kind: str) -> None:
    """Refuse kinds of target that do not exist, or that a run has not."""
    if kind in FROM_DATA and not has_labels(run, kind):
        msg = f"{run.where} has no {FROM_DATA[kind]}. Audit the votes with --{kind} COLUMN, or choose other targets."
        raise TrainError(msg)
    if kind in ("soft", "hard", *FROM_DATA):
        return
    try:
        rule_named(kind)
    except RuleError as error:
        msg = (
            f"there are no targets {kind!r}. Kinds: soft, hard, gold, published, or a rule of the audit such as "
            "majority, any, strict-majority or share."
        )
        raise TrainError(msg) from error


def has_labels(run: Run, column: str) -> bool:
    """Tell whether a run has gold, or published labels."""
    return column in run.items.columns and run.items[column].null_count() < run.items.height


def _target(question: Question, kind: str, counts_ik: Ints, p_ik: Floats, asked: pl.DataFrame) -> Floats:
    """Compute the targets of one kind for one question: one column per output, NaN where there is no target."""
    labels = ordered_labels(question)
    if kind in FROM_DATA:
        code_of = {label: k for k, label in enumerate(labels)}
        rows = np.vstack([np.eye(len(labels)), np.full(len(labels), np.nan)])
        target_ik = rows[[code_of.get(label, -1) for label in asked[kind].to_list()]]
    else:
        target_ik = _by_votes(kind, counts_ik, p_ik)
        target_ik[counts_ik.sum(axis=1) == 0] = np.nan
    return target_ik if question.positive is None else target_ik[:, 1:]


def _by_votes(kind: str, counts_ik: Ints, p_ik: Floats) -> Floats:
    n_labels = counts_ik.shape[1]
    if kind == "soft":
        return np.array(p_ik)
    if kind == "hard":
        return np.eye(n_labels)[labels_of(p_ik, 1 if n_labels == 2 else None)]
    if n_labels == 2:
        yes_i = rule_named(kind).scores(counts_ik, label=1)
        return np.column_stack([1.0 - yes_i, yes_i])
    rule = rule_named("plurality" if kind == "majority" else kind)
    score_ik = np.column_stack([rule.scores(counts_ik, label=k) for k in range(n_labels)])
    total_i = score_ik.sum(axis=1, keepdims=True)
    return np.asarray(score_ik / np.where(total_i > 0, total_i, np.nan))


def _two_labels(asked: pl.DataFrame) -> tuple[Ints, Floats]:
    """Return votes and p of two labels, the positive one second."""
    yes_i, p_i = asked["n_positive"].to_numpy(), asked["p"].to_numpy()
    return np.column_stack([asked["n_votes"].to_numpy() - yes_i, yes_i]), np.column_stack([1.0 - p_i, p_i])


def _more_labels(run: Run, question: Question, asked: pl.DataFrame) -> tuple[Ints, Floats]:
    about, labels = pl.col("question") == question.name, list(question.labels)
    by_item = asked.select("item")
    posterior = run.table("posterior", where=about).pivot("class", index="item", values="p")
    counts = run.table("votes", where=about).group_by("item", "label").len().pivot("label", index="item")
    counts = by_item.join(counts, on="item", how="left", maintain_order="left")
    counts = counts.with_columns(pl.lit(0).alias(label) for label in labels if label not in counts.columns)
    counts_ik = counts.select(pl.col(labels).fill_null(0)).to_numpy().astype(np.int64)
    return counts_ik, by_item.join(posterior, on="item", how="left", maintain_order="left").select(labels).to_numpy()


def _with_text(targets: Targets) -> Targets:
    """Keep the items that have both a text and a target, and say what stands out among them."""
    blank_i = np.array([not text.strip() for text in targets.texts], dtype=bool)
    asked_i = np.any([~np.isnan(target_io).all(axis=1) for target_io in targets.by_kind.values()], axis=0)
    if blank_i.all() or not asked_i.any():
        kinds = " or ".join(targets.by_kind)
        what = "has a text that is not blank" if blank_i.all() else f"has a target of kind {kinds}"
        fix = "Name the column of texts with --text COLUMN." if blank_i.all() else "Choose other targets with --labels."
        msg = f"none of {len(targets.texts):,} items {what}. {fix}"
        raise TrainError(msg)
    kept = targets.take(np.flatnonzero(asked_i & ~blank_i))
    notes = []
    if n_blank := int((asked_i & blank_i).sum()):
        notes.append(f"{n_blank:,} of {int(asked_i.sum()):,} items have no text and are left out.")
    n_items = len(kept.texts)
    if n_repeated := n_items - len(set(kept.texts)):
        notes.append(f"{n_repeated:,} of {n_items:,} items repeat the text of another; splits keep them on one side.")
    return replace(kept, notes=tuple(notes))


def _texts(run: Run, items: pl.Series, votes: str | Path | None, text: str | None) -> list[str | None]:
    columns = run.manifest["columns"]
    if votes is not None:
        return _texts_from_file(votes, items, item=columns.get("item"), text=text)
    rows, read_from = run.table("texts"), columns.get("text")
    if rows.is_empty():
        msg = f"{run.where} has no texts. Name the file that has them, and its column: --votes FILE --text COLUMN."
        raise TrainError(msg)
    if text is not None and text != read_from:
        msg = f"the texts of {run.where} are of column {read_from!r}, not {text!r}. Name a file too: --votes FILE."
        raise TrainError(msg)
    return _in_order(items, rows["item"], rows["text"])


def _texts_from_file(path: str | Path, items: pl.Series, *, item: str | None, text: str | None) -> list[str | None]:
    """Look up each item's text in a file, by the item's id; None where the file has none."""
    source = open_source(path)
    names = list(source.columns)
    id_column = item if item in names else guess_column("item", names)
    if id_column is None:
        raise missing_column(role="item", names=names, source=source.name)
    text_column = named_column(text, names, source.name, "text") if text else guess_column("text", names)
    if text_column is None:
        raise missing_column(role="text", names=names, source=source.name)
    ids = code_ids(source.column(id_column), textual=source.textual)
    named = np.flatnonzero(ids.code_r >= 0)
    spelt = ids.values.gather(ids.code_r[named])
    texts = _in_order(items, spelt, source.column(text_column).cast(pl.String).gather(named))
    if all(written is None for written in texts):
        msg = (
            f"none of the {len(items):,} items of the run has a text in {source.name}. First: item {items[0]!r}; its "
            f"column {id_column!r} begins with {spelt[0] if len(spelt) else None!r}. Check that both name items alike."
        )
        raise TrainError(msg)
    return texts


def _in_order(items: pl.Series, ids: pl.Series, texts: pl.Series) -> list[str | None]:
    """Sort texts as `items` are; of several for one item, take the first in the alphabet, as `read_votes` does."""
    lookup = pl.DataFrame({"item": ids.cast(pl.String), "text": texts}).drop_nulls()
    lookup = lookup.group_by("item").agg(pl.col("text").min())
    wanted = pl.DataFrame({"item": items.cast(pl.String)})
    return wanted.join(lookup, on="item", how="left", maintain_order="left")["text"].to_list()


# --- Splits -------------------------------------------------------------------------------------------------------


def normal_text(text: str) -> str:
    r"""Normalise a text, so that texts that differ in case, white space or Unicode form are the same.

    Examples
    --------
    >>> normal_text("  Care\n FOR them ") == normal_text("care for them")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def split_targets(targets: Targets, share: float, *, seed: int) -> tuple[Targets, Targets]:
    """Split texts into those to learn from and those to test on; the same text is never on both sides.

    A text's side is decided by a hash of the text itself and the seed, so that further items, or another order, do not
    move the others.

    Parameters
    ----------
    targets
        All of them.
    share
        Of the texts to test on.
    seed
        Decides which.
    """
    tested_i = np.array([_hash(f"{seed}|{normal_text(text)}") < share for text in targets.texts])
    train, test = targets.take(np.flatnonzero(~tested_i)), targets.take(np.flatnonzero(tested_i))
    if len(train.texts) < FEWEST:
        msg = (
            f"{len(train.texts)} texts are left to train on, and {FEWEST} are the fewest. Audit more items with a text."
        )
        raise TrainError(msg)
    return train, test


def _hash(key: str) -> float:
    # Lone surrogates occur in scraped texts and have no UTF-8.
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


def check_classes(targets: Targets, kind: str) -> None:
    """Refuse targets among which a question has only one answer: there is nothing to tell apart."""
    for question, columns in columns_of(targets.questions):
        target_ik = by_label(targets.by_kind[kind], columns)
        target_ik = target_ik[np.isfinite(target_ik).all(axis=1)]
        if len(target_ik) and not ((target_ik == target_ik[0]).all() and np.isin(target_ik[0], (0.0, 1.0)).all()):
            continue
        what = f"no item has a target of kind {kind!r}"
        if len(target_ik):
            label = ordered_labels(question)[int(target_ik[0].argmax())]
            what = f"all {len(target_ik):,} targets of kind {kind!r} are {label!r}"
        msg = (
            f"nothing can be learnt about question {question.name!r}: {what}. "
            "Choose other targets (--labels soft), or audit the votes without this question."
        )
        raise TrainError(msg)
