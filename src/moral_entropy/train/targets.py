"""Targets: what a classifier is to learn about each text, from a consensus or from its votes by some rule.

Takes a `Consensus`, returns `Targets`; `run_targets` does the same from a run folder. The kinds of target are those of
`answers`. Touches no files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy.special import entr

from moral_entropy.consensus.entropy import decompose_entropy
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.errors import TrainError
from moral_entropy.train.answers import Answers, check_kind, label_targets
from moral_entropy.train.group_targets import (
    ANNOTATORS,
    asks_voters,
    group_cast,
    group_p,
    is_group_kind,
    rows_of_kind,
)
from moral_entropy.train.head import Block, Head
from moral_entropy.train.options import Weight
from moral_entropy.train.voters import Voters, voters_of
from moral_entropy.votes.table import Floats, Ints


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
    voters
        What each annotator said, where a classifier has one output for each of them; the targets are the share of the
        votes then.
    """

    items: pl.Series
    texts: tuple[str, ...]
    domains: tuple[str, ...]
    head: Head
    target_io: Floats
    weight_iq: Floats
    kind: str
    notes: tuple[str, ...] = ()
    voters: Voters | None = None

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
            voters=None if self.voters is None else self.voters.take(at),
        )


def targets_from_consensus(
    consensus: Consensus,
    kind: str = "soft",
    *,
    weight: Weight | None = None,
    texts: Sequence[str | None] | None = None,
    groups: pl.DataFrame | None = None,
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
    groups
        Table `group_items` of a run of the same votes, for the kinds that are about groups of annotators.

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
    check_kind(kind, weight)
    answers = [_answers_of(consensus, question) for question in votes.questions]
    if kind == ANNOTATORS:
        casts = [_cast(consensus, one.block) for one in answers]
        return targets_of(answers, votes.items, given, domains, kind, weight=weight, casts=casts)
    return with_groups(answers, votes.items, given, domains, kind, weight=weight, groups=groups)


def with_groups(
    answers: Sequence[Answers],
    items: pl.Series,
    texts: Sequence[str | None],
    domains: Sequence[str],
    kind: str,
    *,
    weight: Weight | None,
    groups: pl.DataFrame | None,
) -> Targets:
    """Make targets as `targets_of` does, from what the run says of groups where the kind is about them."""
    if not is_group_kind(kind):
        return targets_of(answers, items, texts, domains, kind, weight=weight)
    rows, casts = rows_of_kind(groups, kind), None
    if asks_voters(kind):
        casts = [group_cast(rows, one.block, items) for one in answers]
    else:
        asked = [items.gather(one.item_i) for one in answers]
        answers = [replace(one, group_ik=group_p(rows, one.block, of)) for one, of in zip(answers, asked, strict=True)]
    return targets_of(answers, items, texts, domains, kind, weight=weight, casts=casts)


def targets_of(
    answers: Sequence[Answers],
    items: pl.Series,
    texts: Sequence[str | None],
    domains: Sequence[str],
    kind: str,
    *,
    weight: Weight | None = None,
    casts: Sequence[pl.DataFrame] | None = None,
) -> Targets:
    """Make targets of one kind from the answers to each question, for the items that have a text and a target.

    The votes of each voter (`casts`, as `voters_of` takes them) are needed by the kinds that ask for voters.
    """
    check_kind(kind, weight)
    if casts is not None and weight == "votes":
        weight = None  # Every vote counts as one already.
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
    voters = None if casts is None else voters_of(head, casts, len(items))
    whole = Targets(items, full, tuple(domains), head, target_io, weight_iq, kind, voters=voters)
    return _with_text(whole)


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


def _cast(consensus: Consensus, block: Block) -> pl.DataFrame:
    """Return the votes on a question as `voters_of` takes them."""
    votes = consensus.votes
    if votes.anonymous:
        raise anonymous_votes()
    parts = []
    for ballot in (fit.ballot for fit in consensus.fits if fit.question == block.question):
        annotator_v, label_v = np.divmod(ballot.code_v, ballot.n_labels)
        voter = votes.annotators.gather(ballot.annotator_a[annotator_v]).cast(pl.String)
        item_v = np.repeat(ballot.item_i, ballot.votes_i).astype(np.int64)
        parts.append(pl.DataFrame({"item": item_v, "voter": voter, "label": label_v.astype(np.int64), "n": 1.0}))
    return pl.concat(parts)


def anonymous_votes() -> TrainError:
    """Return the error for votes that do not say who cast them."""
    msg = f"targets {ANNOTATORS!r} need to know who voted, and these votes are anonymous. Choose {'share'!r} instead."
    return TrainError(msg)


def _epistemic(fit: QuestionFit) -> Floats:
    return decompose_entropy(fit).epistemic_i if fit.n_draws else np.full(fit.ballot.n_items, np.nan)
