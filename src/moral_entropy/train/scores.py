"""How good a classifier's answers are on texts that it has not learnt from.

Axes: **i** item, **k** label (of two labels the second is the positive one), **s** resampling of the items, the first
of which has every item once. A label may be spread over several: scores are then those expected of one drawn from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from moral_entropy.rules.grade import BINS, width_bins
from moral_entropy.ties import labels_of
from moral_entropy.train.targets import Targets, by_label, columns_of, mean_target
from moral_entropy.votes.table import Floats, Ints

FLOOR = 1e-6
"""A probability of 0 counts as one in a million: a single wrong "never" must not decide a mean."""

FEWEST_GOLD = 40
"""With fewer tested items that have gold, gold is no reference."""

CHANCE = 0.6
"""A mean AUC below is hardly better than chance."""

THRESHOLDS = np.round(np.arange(0.02, 0.981, 0.01), 2)
CELLS_AT_ONCE = 2_000_000


def accuracy(p_ik: Floats, label_ik: Floats, weight_si: Any) -> Floats:
    """Compute the share of right answers, yes where p is ½ or more, in every resampling.

    Examples
    --------
    >>> accuracy(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[1.0, 0.0], [1.0, 0.0]]), np.ones((1, 2)))
    array([0.5])
    """
    answer_i = labels_of(p_ik, 1 if p_ik.shape[1] == 2 else None)
    right_i = label_ik[np.arange(len(p_ik)), answer_i]
    return np.asarray(_per(weight_si @ right_i, weight_si.sum(axis=1)))


def auc(p_ik: Floats, label_ik: Floats, weight_si: Any) -> Floats:
    """Compute the area under the ROC curve in every resampling; NaN where all labels are the same.

    Of more than two labels it is the mean of each against the rest.
    """
    graded = range(1, 2) if p_ik.shape[1] == 2 else range(p_ik.shape[1])
    area_ks = [area_under_roc(p_ik[:, k], label_ik[:, k], weight_si) for k in graded]
    return np.asarray(np.mean(area_ks, axis=0))


def area_under_roc(p_i: Floats, label_i: Floats, weight_si: Any) -> Floats:
    """Compute the chance that a positive item has a higher p than a negative one, ties counting half.

    Parameters
    ----------
    p_i
        What the classifier says.
    label_i
        1 positive, 0 negative; in between, that share of the item's weight is positive.
    weight_si
        Weights of the items, one row per resampling.

    Examples
    --------
    >>> area_under_roc(np.array([0.1, 0.4, 0.4, 0.9]), np.array([0.0, 0.0, 1.0, 1.0]), np.ones((1, 4)))
    array([0.875])
    """
    if not len(p_i):
        return np.full(len(weight_si), np.nan)
    order_i = np.argsort(p_i, kind="stable")
    start_g = np.flatnonzero(np.diff(p_i[order_i], prepend=-np.inf))
    yes_i = label_i[order_i]
    area = []
    # A few rows at a time, so that memory stays small whatever the number of items.
    for rows_s in np.array_split(np.arange(len(weight_si)), 1 + weight_si.size // CELLS_AT_ONCE):
        sorted_si = weight_si[rows_s][:, order_i]
        yes_sg = np.add.reduceat(sorted_si * yes_i, start_g, axis=1)
        no_sg = np.add.reduceat(sorted_si * (1.0 - yes_i), start_g, axis=1)
        below_sg = np.cumsum(no_sg, axis=1) - no_sg
        won_s = (yes_sg * (below_sg + no_sg / 2.0)).sum(axis=1)
        area.append(_per(won_s, yes_sg.sum(axis=1) * no_sg.sum(axis=1)))
    return np.concatenate(area)


def log_loss(p_ik: Floats, share_ik: Floats, count_i: Floats) -> float:
    """Compute the mean of −log p of what is so, in nats per item."""
    loss_i = -(share_ik * np.log(p_ik.clip(FLOOR))).sum(axis=1)
    return float(_per(count_i @ loss_i, count_i.sum()))


def calibration_error(p_ik: Floats, share_ik: Floats, count_i: Floats) -> float:
    """Compute the expected calibration error, in bins of equal width; with more than two labels, their mean."""
    graded = range(1, 2) if p_ik.shape[1] == 2 else range(p_ik.shape[1])
    gaps = []
    for k in graded:
        gap_i = count_i * (p_ik[:, k] - share_ik[:, k])
        gaps.append(np.abs(np.bincount(width_bins(p_ik[:, k]), gap_i, minlength=BINS)).sum())
    return float(_per(np.mean(gaps), count_i.sum()))


def _per(above: Any, below: Any) -> Any:
    """Divide; NaN where there is nothing to divide by."""
    return np.divide(above, below, out=np.full(np.shape(above), np.nan), where=np.asarray(below) > 0)


def draw_times(group_i: Ints, *, replicates: int, seed: int) -> Floats:
    """Resample items: how often each counts, items of one group together; in the first row all count once.

    Examples
    --------
    >>> times_si = draw_times(np.array([0, 0, 1]), replicates=50, seed=0)
    >>> times_si.shape, bool((times_si[:, 0] == times_si[:, 1]).all()), times_si[0].tolist()
    ((51, 3), True, [1.0, 1.0, 1.0])
    """
    n_groups = int(group_i.max(initial=-1)) + 1
    rng = np.random.default_rng([seed, 61])
    drawn_sg = rng.multinomial(n_groups, np.full(n_groups, 1.0 / n_groups), size=replicates)
    return np.concatenate([np.ones((1, len(group_i))), drawn_sg[:, group_i].astype(float)])


# --- What a model is worth ----------------------------------------------------------------------------------------


def find_worth(p_io: Floats, train: Targets, test: Targets, kind: str) -> dict[str, Any]:
    """Measure a classifier on the tested texts, against gold where there is enough of it, else against the consensus.

    Parameters
    ----------
    p_io
        What it says of the tested texts.
    train, test
        Its targets, with those of kind "soft", "hard", "smoothed-share" and perhaps "gold" beside them.
    kind
        What it learnt.

    Returns
    -------
    dict
        `n_items`, `reference`, and `questions` with AUC, log loss, calibration error, the log loss of one constant
        answer and of the share of each text's own votes, and the threshold of the best F1; None where there is none.
    """
    share_of, label_of = "soft", "hard"
    gold_io = test.by_kind.get("gold")
    if gold_io is not None and np.isfinite(gold_io).sum(axis=0).min() >= FEWEST_GOLD:
        share_of = label_of = "gold"
    rows = []
    for question, columns in columns_of(test.questions):
        share_ik, label_ik = (by_label(test.by_kind[name], columns) for name in (share_of, label_of))
        votes_ik = by_label(test.by_kind["smoothed-share"], columns)
        known_i = np.isfinite(share_ik).all(axis=1) & np.isfinite(votes_ik).all(axis=1)
        p_ik, share_ik = by_label(p_io, columns)[known_i], share_ik[known_i]
        label_ik, votes_ik = label_ik[known_i], votes_ik[known_i]
        count_i = test.count_i[known_i]
        constant_k = mean_target(by_label(train.by_kind[kind], columns), train.count_i)
        row = {
            "auc": float(auc(p_ik, label_ik, count_i[None])[0]),
            "log_loss": log_loss(p_ik, share_ik, count_i),
            "ece": calibration_error(p_ik, share_ik, count_i),
            "constant_loss": log_loss(np.tile(constant_k, (len(p_ik), 1)), share_ik, count_i),
            "share_loss": log_loss(votes_ik, share_ik, count_i),
            "threshold": best_threshold(p_ik[:, 1], share_ik[:, 1], count_i) if p_ik.shape[1] == 2 else None,
        }
        plain = {name: None if value is None or math.isnan(value) else value for name, value in row.items()}
        rows.append({"question": question.name, **plain})
    reference = "gold" if share_of == "gold" else "consensus"
    return {"n_items": len(test.texts), "reference": reference, "questions": rows}


def best_threshold(p_i: Floats, share_i: Floats, count_i: Floats) -> float:
    """Find the threshold of the highest expected F1: from which p to say yes; of equals, the nearest to ½.

    Examples
    --------
    >>> best_threshold(np.array([0.1, 0.3, 0.4]), np.array([0.0, 1.0, 1.0]), np.ones(3))
    0.3
    """
    true_i = count_i * share_i
    yes_ti = p_i >= THRESHOLDS[:, None] - 1e-9
    f1_t = 2.0 * (yes_ti @ true_i) / np.maximum(true_i.sum() + yes_ti @ count_i, 1e-12)
    best_t = np.flatnonzero(f1_t >= f1_t.max() - 1e-9)
    return float(THRESHOLDS[best_t[np.argmin(np.abs(THRESHOLDS[best_t] - 0.5))]])


def worth_lines(worth: Mapping[str, Any]) -> Iterator[str]:
    """Say what a classifier is worth: one line of figures, one of what they mean if it is little, one of thresholds."""
    questions: Sequence[Mapping[str, Any]] = worth["questions"]

    def mean(name: str) -> float:
        values = [row[name] for row in questions if row[name] is not None]
        return sum(values) / len(values) if values else math.nan

    area, loss, constant = mean("auc"), mean("log_loss"), mean("constant_loss")
    yield (
        f"worth, on {worth['n_items']:,} texts it has not learnt from, against the {worth['reference']}: AUC "
        f"{area:z.2f}, log loss {loss:z.3f} ({constant:z.3f} for one constant answer, {mean('share_loss'):z.3f} for "
        f"the share of the text's own votes), calibration error {mean('ece'):z.3f}"
    )
    if loss > constant - 5e-4:
        yield "It is worth no more than a constant answer: train on more texts, or with another model."
    elif area < CHANCE:
        yield "It hardly tells texts apart (an AUC of 0.5 is chance): train on more texts, or another model."
    thresholds = [f"{row['question']} {row['threshold']:.2f}" for row in questions if row["threshold"] is not None]
    if thresholds:
        yield (
            f"to find most of what is there (the best F1), say yes from p = {', '.join(thresholds)}; 0.50 makes the "
            "fewest errors"
        )
