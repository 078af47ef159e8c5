"""Answers: all that is known about the labels of one question, and what each kind of target makes of it.

Kinds of target: `soft`, the consensus p as it is published; `p_model`, the model's own, before it is pooled with the
share of the votes; `hard`, 1[p ≥ ½] (the likeliest of more than two labels); `published`, labels that came with the
data; `gold`, true labels; `share`, the raw share of votes; `smoothed`, the majority label with a tenth of its mass
spread evenly over all labels (label smoothing); `any`, `majority` (at least half), `two-vote`, and every other rule of
the audit by its name; `annotators`, the votes of each annotator for an output of their own (`voters`), and with
`annotators:COLUMN` those of each group; `group:NAME`, the p of one group (`group_targets`).

With more than two labels, a rule's yes to several labels is spread evenly over them, `majority` is the plurality, and
an item on which a rule says yes to no label has no target. Neither has an item without votes, so that every kind but
`published` and `gold` learns from the same items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from moral_entropy.errors import RuleError, TrainError
from moral_entropy.rules.rules import rule_named
from moral_entropy.ties import labels_of
from moral_entropy.train.group_targets import ANNOTATORS, BY_GROUP, GROUP, asks_voters, is_group_kind
from moral_entropy.train.head import Block
from moral_entropy.train.options import Weight
from moral_entropy.votes.table import Floats, Ints

KINDS = (
    "soft", "share", "any", "majority", "two-vote", "hard", "published", "p_model", "smoothed", "gold", ANNOTATORS,
)  # fmt: skip
"""The kinds of target people ask for; further rules go by their names."""

SMOOTHING = 0.1
"""Share of a label's mass that `smoothed` spreads over all labels."""

WEIGHTS: tuple[Weight, ...] = get_args(Weight)


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
    group_ik
        The p of the group that is asked for; None where none is.
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
    group_ik: Floats | None = None


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
    if kind.startswith(GROUP) and answers.group_ik is not None:
        return answers.group_ik
    if asks_voters(kind):
        kind = "share"
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
    if kind in KINDS or is_group_kind(kind):
        return
    try:
        rule_named(kind)
    except RuleError as error:
        kinds = ", ".join((*KINDS, f"{BY_GROUP}COLUMN", f"{GROUP}NAME"))
        msg = f"there are no targets {kind!r}. Kinds: {kinds}, or a rule of the audit such as unanimous."
        raise TrainError(msg) from error


def _positive(block: Block) -> int:
    return block.labels.index(str(block.positive))


def _likeliest(answers: Answers) -> Ints:
    return labels_of(answers.p_ik, None if answers.block.positive is None else _positive(answers.block))
