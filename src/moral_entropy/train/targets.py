"""Targets: what a classifier is to learn about each text, from a consensus or from its votes by some rule.

Takes a `Consensus`, returns `Targets`; `run_targets` does the same from a run folder. Touches no files.

Kinds of target: `soft`, the consensus p as it is published; `p_model`, the model's own, before it is pooled with the
share of the votes; `hard`, 1[p ≥ ½] (the likeliest of more than two labels); `published`, labels that came with the
data; `gold`, true labels; `share`, the raw share of votes; `smoothed`, the majority label with a tenth of its mass
spread evenly over all labels (label smoothing); `any`, `majority` (at least half), `two-vote`, and every other rule of
the audit by its name. With more than two labels, a rule's yes to several labels is spread evenly over them,
`majority` is the plurality, and an item on which a rule says yes to no label has no target. Neither has an item
without votes, so that every kind but `published` and `gold` learns from the same items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import polars as pl
from scipy.special import entr

from moral_entropy.consensus.entropy import decompose_entropy
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.errors import RuleError, TrainError
from moral_entropy.grading.rules import rule_named
from moral_entropy.ties import highest
from moral_entropy.train.head import Block, Head
from moral_entropy.train.options import Weight
from moral_entropy.votes.table import Floats, Ints

KINDS = ("soft", "share", "any", "majority", "two-vote", "hard", "published", "p_model", "smoothed", "gold")
"""The kinds of target people ask for; further rules go by their names."""

SMOOTHING = 0.1
"""Share of a label's mass that `smoothed` spreads over all labels."""

WEIGHTS: tuple[Weight, ...] = get_args(Weight)


@dataclass(frozen=True, eq=False)
class Targets:
    """Texts and what to learn about them. Axes: **i** item, **o** output, **q** question.

    Parameters
    ----------
    items
        Ids of the items.
    texts
        One text per item; none is blank.
    domains
        Where each item comes from; empty where it is not known.
    head
        What the outputs are.
    target_io
        Probabilities to learn; 0 where there is no target.
    weight_iq
        How much each item's target counts; 0 where it has none.
    kind
        Such as "soft".
    notes
        What was left out or stands out, one sentence each.
    """

    items: pl.Series
    texts: tuple[str, ...]
    domains: tuple[str, ...]
    head: Head
    target_io: Floats
    weight_iq: Floats
    kind: str
    notes: tuple[str, ...] = ()

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.texts)

    def take(self, rows: Ints) -> Targets:
        """Keep some items, by position."""
        at = np.asarray(rows)
        return replace(
            self,
            items=self.items.gather(at),
            texts=tuple(self.texts[i] for i in at.tolist()),
            domains=tuple(self.domains[i] for i in at.tolist()),
            target_io=self.target_io[at],
            weight_iq=self.weight_iq[at],
        )


@dataclass(frozen=True, eq=False)
class Answers:
    """All that is known about the answers to one question. Axes: **i** item asked, **k** label.

    Parameters
    ----------
    block
        The question.
    item_i
        Which item each row is, by position among all items.
    counts_ik
        Votes by label.
    p_ik, model_ik
        The consensus as it is published, and the model's own.
    epistemic_i
        What the posterior draws disagree about, in nats; NaN without draws.
    published_i, gold_i
        Labels that came with the data, and true ones; `UNKNOWN` where there is none.
    count_i
        How many items a row stands for.
    """

    block: Block
    item_i: Ints
    counts_ik: Ints
    p_ik: Floats
    model_ik: Floats
    epistemic_i: Floats
    published_i: Ints
    gold_i: Ints
    count_i: Floats


def targets_from_consensus(
    consensus: Consensus, kind: str = "soft", *, weight: Weight | None = None, texts: Sequence[str | None] | None = None
) -> Targets:
    """Make targets of one kind for every item of a consensus that has a text.

    Parameters
    ----------
    consensus
        The consensus.
    kind
        One of `KINDS`, or any rule of the audit.
    weight
        "epistemic": 1 − epistemic entropy / log K, so that an item on whose label the posterior draws contradict each
        other counts for nothing and one on which they agree counts fully; "votes": the number of votes. Both are
        scaled to a mean of 1 per question. "prevalence": the weight of a question is log K over the entropy of its mean
        target, so that a constant answer loses as much on a rare label as on a frequent one. By default all have the
        same weight.
    texts
        One text per item of `consensus.votes`; by default the texts read with the votes.

    Examples
    --------
    >>> import moral_entropy as me
    >>> votes = me.read_votes(pl.DataFrame({"item": [1, 1, 2, 2], "annotator": ["ann", "bob"] * 2,
    ...     "label": ["yes", "no", "no", "no"], "text": ["Help her!"] * 2 + ["It rained."] * 2}), text="text")
    >>> targets = targets_from_consensus(me.fit(votes, draws=0), "share")
    >>> targets.texts, targets.target_io.tolist()
    (('Help her!', 'It rained.'), [[0.5], [0.0]])
    """
    votes = consensus.votes
    given = votes.texts.to_list() if texts is None and votes.texts is not None else texts
    if given is None:
        msg = 'the votes came without texts. Name their column with text="COLUMN" (CLI: --text COLUMN).'
        raise TrainError(msg)
    names = ("", *votes.domains)
    domains = [names[code + 1] for code in votes.domain_i.tolist()]
    answers = [_answers_of(consensus, question) for question in votes.questions]
    return targets_of(answers, votes.items, given, domains, kind, weight=weight)


def targets_of(
    answers: Sequence[Answers],
    items: pl.Series,
    texts: Sequence[str | None],
    domains: Sequence[str],
    kind: str,
    *,
    weight: Weight | None = None,
) -> Targets:
    """Make targets of one kind from the answers to each question, for the items that have a text and a target."""
    check_kind(kind, weight)
    head = Head(tuple(one.block for one in answers))
    target_io, weight_iq = np.zeros((len(items), head.n_outputs)), np.zeros((len(items), len(answers)))
    for q, (one, columns) in enumerate(zip(answers, head.columns, strict=True)):
        target_ik = label_targets(one, kind)
        known = np.isfinite(target_ik).all(axis=1)
        chosen = target_ik if one.block.positive is None else target_ik[:, [one.block.labels.index(one.block.positive)]]
        at = one.item_i[known]
        target_io[at, columns] = chosen[known]
        weight_iq[at, q] = _weights(one, weight)[known]
        mean = weight_iq[at, q].mean() if len(at) else 1.0
        weight_iq[at, q] *= one.count_i[known] / (mean if weight and mean > 0 else 1.0)
        if weight == "prevalence":
            weight_iq[at, q] *= _rarity(target_ik[known])
    full = tuple(text or "" for text in texts)
    whole = Targets(items, full, tuple(domains), head, target_io, weight_iq, kind)
    return _with_text(whole)


def label_targets(answers: Answers, kind: str) -> Floats:
    """Compute each item's target distribution over labels: `target_ik`; NaN where there is no target."""
    n_items, n_labels = answers.counts_ik.shape
    # The code of no label is -1: the last row, which is no target.
    eye = np.vstack([np.eye(n_labels), np.full(n_labels, np.nan)])
    if kind in ("published", "gold"):
        return np.asarray(eye[answers.published_i if kind == "published" else answers.gold_i])
    if kind == "smoothed":
        return np.asarray((1.0 - SMOOTHING) * label_targets(answers, "majority") + SMOOTHING / n_labels)
    voted = answers.counts_ik.sum(axis=1) > 0
    if kind in ("soft", "p_model"):
        target_ik = answers.p_ik if kind == "soft" else answers.model_ik
    elif kind == "hard":
        target_ik = eye[_likeliest(answers)]
    elif n_labels == 2:
        yes = rule_named(kind).scores(answers.counts_ik, label=_positive(answers.block))
        target_ik = np.empty((n_items, 2))
        target_ik[:, _positive(answers.block)], target_ik[:, 1 - _positive(answers.block)] = yes, 1.0 - yes
    else:
        rule = rule_named("plurality" if kind == "majority" else kind)
        score_ik = np.column_stack([rule.scores(answers.counts_ik, label=k) for k in range(n_labels)])
        total_i = score_ik.sum(axis=1)
        target_ik = score_ik / np.where(total_i > 0, total_i, np.nan)[:, None]
    return np.where(voted[:, None], target_ik, np.nan)


def mean_logits(targets: Targets) -> Floats:
    """Compute the logits of the mean targets, a good start for a training: `logit_o`.

    Half a pseudo-target for every answer keeps them finite.
    """
    logit_o = np.empty(targets.head.n_outputs)
    for q, columns in enumerate(targets.head.columns):
        weight_i, width = targets.weight_iq[:, q], max(columns.stop - columns.start, 2)
        mean = (weight_i @ targets.target_io[:, columns] + 0.5) / (weight_i.sum() + 0.5 * width)
        logit_o[columns] = np.log(mean / (1.0 - mean)) if len(mean) == 1 else np.log(mean)
    return logit_o


def check_kind(kind: str, weight: str | None = None) -> None:
    """Refuse kinds of target or of weights that do not exist.

    Examples
    --------
    >>> check_kind("fuzzy")
    Traceback (most recent call last):
    ...
    moral_entropy.errors.TrainError: there are no targets 'fuzzy'. Kinds: soft, share, any, majority, two-vote, ...
    """
    if weight is not None and weight not in WEIGHTS:
        msg = f"there is no weighting {weight!r}. Weigh by {' or '.join(WEIGHTS)}, or not at all."
        raise TrainError(msg)
    if kind in KINDS:
        return
    try:
        rule_named(kind)
    except RuleError as error:
        msg = f"there are no targets {kind!r}. Kinds: {', '.join(KINDS)}, or a rule of the audit such as unanimous."
        raise TrainError(msg) from error


def check_classes(targets: Targets) -> None:
    """Refuse targets among which a question has only one answer: there is nothing to tell apart."""
    for q, (block, columns) in enumerate(zip(targets.head.blocks, targets.head.columns, strict=True)):
        target = targets.target_io[targets.weight_iq[:, q] > 0, columns]
        same = (target == target[:1]).all() and (target.size == 0 or np.isin(target, (0.0, 1.0)).all())
        if not same:
            continue
        if not len(target):
            what = f"no item has a target of kind {targets.kind!r}"
        else:
            label = block.labels[int(target[0].argmax())] if block.positive is None else _binary_label(block, target)
            what = f"all {len(target):,} targets of kind {targets.kind!r} are {label!r}"
        msg = (
            f"nothing can be learnt about question {block.question!r}: {what}. "
            "Choose other targets (--labels soft), or audit the votes without this question."
        )
        raise TrainError(msg)


def _binary_label(block: Block, target: Floats) -> str:
    positive = block.labels.index(str(block.positive))
    return block.labels[positive if target[0, 0] else 1 - positive]


def _positive(block: Block) -> int:
    return block.labels.index(str(block.positive))


def _likeliest(answers: Answers) -> Ints:
    if answers.block.positive is None:
        return highest(answers.p_ik)
    positive = _positive(answers.block)
    return np.where(answers.p_ik[:, positive] >= 0.5, positive, 1 - positive)


def _rarity(target_ik: Floats) -> float:
    """Return log K over the entropy of the mean target; 1 where there is none."""
    entropy = float(entr(target_ik.mean(axis=0)).sum()) if len(target_ik) else 0.0
    return float(np.log(target_ik.shape[1])) / entropy if entropy > 0 else 1.0


def _weights(answers: Answers, weight: Weight | None) -> Floats:
    if weight is None or weight == "prevalence":
        return np.ones(len(answers.item_i))
    if weight == "votes":
        return np.asarray(answers.counts_ik.sum(axis=1), dtype=float)
    if np.isnan(answers.epistemic_i).any():
        msg = (
            f"question {answers.block.question!r} has no epistemic entropy to weigh by: the consensus was fitted "
            "without draws. Audit again with --draws 1000, or weigh by votes."
        )
        raise TrainError(msg)
    weight_i: Floats = np.clip(1.0 - answers.epistemic_i / np.log(len(answers.block.labels)), 0.0, 1.0)
    return weight_i


def _with_text(targets: Targets) -> Targets:
    """Keep the items that have both a text and a target, and say what stands out among them."""
    blank = np.array([not text.strip() for text in targets.texts], dtype=bool)
    asked = (targets.weight_iq > 0).any(axis=1)
    if blank.all() or not asked.any():
        what = "has a text that is not blank" if blank.all() else f"has a target of kind {targets.kind!r}"
        fix = "Name the column of texts with --text COLUMN." if blank.all() else "Choose other targets with --labels."
        msg = f"none of {targets.n_items:,} items {what}. {fix}"
        raise TrainError(msg)
    kept = targets.take(np.flatnonzero(asked & ~blank))
    notes = []
    if (n := int((asked & blank).sum())) > 0:
        notes.append(f"{n:,} of {int(asked.sum()):,} items have no text and are left out.")
    if (n := kept.n_items - len(set(kept.texts))) > 0:
        notes.append(f"{n:,} of {kept.n_items:,} items repeat the text of another; splits keep them on one side.")
    return replace(kept, notes=tuple(notes))


def _answers_of(consensus: Consensus, question: str) -> Answers:
    fits = [fit for fit in consensus.fits if fit.question == question]
    ballot = fits[0].ballot
    positive = ballot.labels[ballot.positive] if ballot.n_labels == 2 else None
    if any(fit.ballot.labels != ballot.labels for fit in fits):
        msg = f"the parts of question {question!r} have different labels. Fit it in one part."
        raise TrainError(msg)

    def all_of(values: str) -> Any:
        return np.concatenate([getattr(fit.ballot, values) for fit in fits])

    return Answers(
        block=Block(question, ballot.labels, positive),
        item_i=all_of("item_i"),
        counts_ik=all_of("counts_ik"),
        p_ik=np.concatenate([fit.p_ik for fit in fits]),
        model_ik=np.concatenate([fit.summary.mean_ik for fit in fits]),
        epistemic_i=np.concatenate([_epistemic(fit) for fit in fits]),
        published_i=all_of("published_i"),
        gold_i=all_of("gold_i"),
        count_i=all_of("count_i"),
    )


def _epistemic(fit: QuestionFit) -> Floats:
    return decompose_entropy(fit).epistemic_i if fit.n_draws else np.full(fit.ballot.n_items, np.nan)
