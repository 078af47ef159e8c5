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

import numpy as np
import polars as pl
from scipy.special import expit, softmax

from moral_entropy.errors import TrainError
from moral_entropy.rules.rules import rule_named
from moral_entropy.runs.reload import label_table
from moral_entropy.runs.run import Question, Run
from moral_entropy.ties import labels_of
from moral_entropy.votes.table import Floats, Ints

FROM_DATA = ("gold", "published")
"""Kinds of target that come from a column of the data."""

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
        texts = tuple(self.texts[i] for i in rows.tolist())
        by_kind = {kind: target_io[rows] for kind, target_io in self.by_kind.items()}
        return replace(self, items=self.items.gather(rows), texts=texts, by_kind=by_kind, count_i=self.count_i[rows])

    def with_target(self, kind: str) -> Targets:
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
    sum_k = count_i @ np.where(np.isfinite(target_ik), target_ik, 0.0) + 0.5
    return np.asarray(sum_k / sum_k.sum())


# --- From a run ---------------------------------------------------------------------------------------------------


def read_targets(run: Run, kinds: Sequence[str]) -> Targets:
    """Read targets of several kinds for every item of a run that has a text."""
    for kind in kinds:
        if kind in FROM_DATA and not has_labels(run, kind):
            msg = f"{run.where} has no {kind} labels. Audit the votes with --{kind} COLUMN, or choose other targets."
            raise TrainError(msg)
    rows = run.items
    items = rows["item"].unique().sort()
    shape = len(items), len(output_names(run.questions))
    by_kind = {kind: np.full(shape, np.nan) for kind in kinds}
    count_i = np.ones(len(items))
    for question, columns in columns_of(run.questions):
        answers = rows.filter(question=question.name)
        at_i = items.search_sorted(answers["item"]).to_numpy()
        counts_ik, p_ik = _votes_and_p(run, question, answers)
        count_i[at_i] = answers["count"].to_numpy()
        for kind, target_io in by_kind.items():
            target_io[at_i, columns] = _target(question, kind, counts_ik, p_ik, answers)
    return _with_text(Targets(run.questions, items, _texts(run, items), by_kind, count_i))


def has_labels(run: Run, column: str) -> bool:
    """Tell whether a run has gold, or published labels."""
    return column in run.items.columns and run.items[column].null_count() < run.items.height


def _target(question: Question, kind: str, counts_ik: Ints, p_ik: Floats, rows: pl.DataFrame) -> Floats:
    """Compute the targets of one kind for one question: one column per output, NaN where there is no target."""
    n_labels = len(question.labels)
    if kind in FROM_DATA:
        code_of = {label: k for k, label in enumerate(ordered_labels(question))}
        hot_kk = np.vstack([np.eye(n_labels), np.full(n_labels, np.nan)])
        target_ik = hot_kk[[code_of.get(label, -1) for label in rows[kind].to_list()]]
    elif kind in ("soft", "hard"):
        label_i = labels_of(p_ik, 1 if n_labels == 2 else None, ordered=bool(question.levels))
        target_ik = np.array(p_ik) if kind == "soft" else np.eye(n_labels)[label_i]
        target_ik[counts_ik.sum(axis=1) == 0] = np.nan
    else:
        rule = rule_named("plurality" if kind == "majority" and n_labels > 2 else kind)
        score_ik = np.column_stack([rule.scores(counts_ik, label=k) for k in range(n_labels)])
        if n_labels == 2:
            score_ik[:, 0] = 1.0 - score_ik[:, 1]
        total_i = score_ik.sum(axis=1, keepdims=True)
        target_ik = score_ik / np.where(total_i > 0, total_i, np.nan)
    return target_ik if question.positive is None else target_ik[:, 1:]


def _votes_and_p(run: Run, question: Question, rows: pl.DataFrame) -> tuple[Ints, Floats]:
    """Return votes and p by item and label; of two labels the positive one is second."""
    if question.positive:
        yes_i, p_i = rows["n_positive"].to_numpy(), rows["p"].to_numpy()
        return np.column_stack([rows["n_votes"].to_numpy() - yes_i, yes_i]), np.column_stack([1.0 - p_i, p_i])
    cells = rows.select("item").join(pl.DataFrame({"label": question.labels}), how="cross")
    counts = run.table("votes", where=pl.col("question") == question.name).group_by("item", "label").len("votes")
    cells = cells.join(counts, on=["item", "label"], how="left", maintain_order="left")
    counts_ik = cells["votes"].fill_null(0).to_numpy().reshape(rows.height, len(question.labels))
    return counts_ik, label_table(run, question.name, rows)


def _with_text(targets: Targets) -> Targets:
    """Keep the items that have both a text and a target, and say how many have none or repeat another's."""
    text_i = np.array([bool(text.strip()) for text in targets.texts])
    target_i = np.any([~np.isnan(target_io).all(axis=1) for target_io in targets.by_kind.values()], axis=0)
    if not (text_i & target_i).any():
        msg = (
            f"none of {len(text_i):,} items has a text that is not blank and a target of kind "
            f"{' or '.join(targets.by_kind)}. Name the column of texts in the audit with --text COLUMN."
        )
        raise TrainError(msg)
    usable = targets.take(np.flatnonzero(text_i & target_i))
    notes, n_items = [], len(usable.texts)
    if n_blank := int((target_i & ~text_i).sum()):
        notes.append(f"{n_blank:,} of {int(target_i.sum()):,} items have no text and are left out.")
    if n_repeated := n_items - len(set(usable.texts)):
        notes.append(f"{n_repeated:,} of {n_items:,} items repeat the text of another; splits never part them.")
    return replace(usable, notes=tuple(notes))


def _texts(run: Run, items: pl.Series) -> tuple[str, ...]:
    rows = run.table("texts")
    if rows.is_empty():
        msg = f"{run.where} has no texts. Audit the votes again and name their column: --text COLUMN."
        raise TrainError(msg)
    return tuple(items.to_frame("item").join(rows, on="item", how="left", maintain_order="left")["text"].fill_null(""))


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
    test_i = np.array([text_hash(f"{seed}|{normal_text(text)}") < share * 2.0**64 for text in targets.texts])
    train, test = targets.take(np.flatnonzero(~test_i)), targets.take(np.flatnonzero(test_i))
    if len(train.texts) < FEWEST:
        msg = f"{len(train.texts)} texts are left to learn from; {FEWEST} are the fewest. Audit more items with a text."
        raise TrainError(msg)
    return train, test


def text_hash(text: str) -> int:
    """Return a number below 2^64 that depends on the text alone."""
    # Lone surrogates occur in scraped texts and have no UTF-8.
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def check_classes(targets: Targets, kind: str) -> None:
    """Refuse targets among which a question has only one answer: there is nothing to tell apart."""
    for question, columns in columns_of(targets.questions):
        target_ik = by_label(targets.by_kind[kind], columns)
        sum_k = target_ik[np.isfinite(target_ik).all(axis=1)].sum(axis=0)
        if np.count_nonzero(sum_k) < 2:
            label, total = ordered_labels(question)[int(sum_k.argmax())], sum_k.sum()
            alike = f"all {total:,.0f} targets of kind {kind!r} are {label!r}" if total else "there are none"
            msg = (
                f"nothing can be learnt about question {question.name!r}: {alike}. "
                "Choose other targets (--labels soft), or audit the votes without this question."
            )
            raise TrainError(msg)
