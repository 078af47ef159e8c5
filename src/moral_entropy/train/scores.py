"""How good a classifier's answers to one question are, scored against some standard, as is and over resampled items.

- accuracy: share of right answers, yes where p is ½ or more
- log_loss: mean of −log p of what the standard says, in nats
- brier: mean squared distance of p from what the standard says; with more than two labels, half the sum over them
- ece: expected calibration error, in bins of equal width; with more than two labels, their mean
- auc: area under the ROC curve; with more than two labels, the mean of each against the rest

Where the standard is itself a probability, or several votes, scores are those expected of a label drawn from it. Knows
nothing of texts, targets or models.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moral_entropy.errors import ScoreError
from moral_entropy.rules.grade import BINS, width_bins
from moral_entropy.rules.intervals import central_interval
from moral_entropy.train.head import Head
from moral_entropy.votes.table import Floats, Ints

HIGHER_IS_BETTER = frozenset({"accuracy", "auc"})

FLOOR = 1e-6
"""A probability of 0 counts as one in a million: a single wrong "never" must not decide a mean."""

CELLS_AT_ONCE = 2_000_000


@dataclass(frozen=True, eq=False)
class Standard:
    """What answers to one question are scored against. Axes: **i** item, **k** label.

    Of two labels the second column is the positive one.

    Parameters
    ----------
    share_ik
        Probability or share of votes of each label; log loss, Brier score and calibration are against it.
    label_ik
        Accuracy and AUC are against this: the label as 0 and 1, or the share again where there is no one label.
    weight_i
        How much each item counts, such as its number of votes; 0 where there is nothing to score against.
    """

    share_ik: Floats
    label_ik: Floats
    weight_i: Floats

    @property
    def n_items(self) -> int:
        """How many items count."""
        return int(np.count_nonzero(self.weight_i))


def by_question(head: Head, p_io: Floats) -> list[Floats]:
    """Return one table per question with one column per label: `p_ik`; of two labels the second is the positive one.

    Examples
    --------
    >>> from moral_entropy.train.head import Block
    >>> by_question(Head((Block("care", ("no", "yes"), "yes"),)), np.array([[0.25]]))[0].tolist()
    [[0.75, 0.25]]
    """
    found = []
    for columns in head.columns:
        p_ik = np.asarray(p_io[:, columns], dtype=float)
        found.append(np.column_stack([1.0 - p_ik, p_ik]) if p_ik.shape[1] == 1 else p_ik)
    return found


def score(p_ik: Floats, standard: Standard, times_si: Floats | None = None) -> dict[str, Floats]:
    """Score probabilities, once for every way of counting the items.

    Parameters
    ----------
    p_ik
        What the classifier says.
    standard
        What it is scored against.
    times_si
        How often each item counts, one row per resampling; by default once.

    Returns
    -------
    dict
        By metric, one value per row of `times_si`; NaN where there is none (no item counts; for AUC, one class only).

    Examples
    --------
    >>> truth = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> found = score(np.array([[0.9, 0.1], [0.2, 0.8]]), Standard(truth, truth, np.ones(2)))
    >>> {name: round(float(value_s[0]), 3) for name, value_s in found.items()}
    {'accuracy': 1.0, 'log_loss': 0.164, 'brier': 0.025, 'ece': 0.15, 'auc': 1.0}
    """
    _check(p_ik, standard)
    kept_i = standard.weight_i > 0
    p_ik, share_ik, label_ik = p_ik[kept_i], standard.share_ik[kept_i], standard.label_ik[kept_i]
    times_si = np.ones((1, len(kept_i))) if times_si is None else times_si
    parts = []
    # A few rows at a time, so that memory stays small whatever the number of items.
    for some in np.array_split(np.arange(len(times_si)), 1 + times_si.size // CELLS_AT_ONCE):
        weight_si = times_si[some][:, kept_i] * standard.weight_i[kept_i]
        parts.append(_scores(p_ik, share_ik, label_ik, weight_si))
    return {metric: np.concatenate([part[metric] for part in parts]) for metric in parts[0]}


def _scores(p_ik: Floats, share_ik: Floats, label_ik: Floats, weight_si: Floats) -> dict[str, Floats]:
    total_s = np.asarray(weight_si.sum(axis=1))
    graded = range(1, 2) if p_ik.shape[1] == 2 else range(p_ik.shape[1])
    right_i = (_answer(p_ik) * label_ik).sum(axis=1)
    loss_i = -(share_ik * np.log(p_ik.clip(FLOOR))).sum(axis=1)
    brier_i = _expected_brier(p_ik, share_ik)
    means_sm = _per(weight_si @ np.column_stack([right_i, loss_i, brier_i]), total_s[:, None])
    ece_sk = [_per(_gaps(p_ik[:, k], share_ik[:, k], weight_si), total_s) for k in graded]
    auc_sk = [area_under_roc(p_ik[:, k], label_ik[:, k], weight_si) for k in graded]
    means = dict(zip(("accuracy", "log_loss", "brier"), means_sm.T, strict=True))
    return {**means, "ece": np.mean(ece_sk, axis=0), "auc": np.mean(auc_sk, axis=0)}


def _check(p_ik: Floats, standard: Standard) -> None:
    if p_ik.shape != standard.share_ik.shape or p_ik.shape != standard.label_ik.shape:
        msg = f"answers of shape {p_ik.shape} cannot be scored against a standard of shape {standard.share_ik.shape}."
        raise ScoreError(msg)
    bad = np.flatnonzero(~(np.isfinite(p_ik) & (p_ik >= 0) & (p_ik <= 1)).all(axis=1))
    if len(bad):
        msg = (
            f"{len(bad):,} of {len(p_ik):,} answers are no probabilities. First: item {bad[0]}, "
            f"{p_ik[bad[0]].tolist()}. The training has diverged; lower the learning rate."
        )
        raise ScoreError(msg)


def _answer(p_ik: Floats) -> Floats:
    if p_ik.shape[1] == 2:
        yes_i = p_ik[:, 1] >= 0.5
        return np.column_stack([~yes_i, yes_i]).astype(float)
    return np.asarray(np.eye(p_ik.shape[1])[p_ik.argmax(axis=1)])


def _expected_brier(p_ik: Floats, share_ik: Floats) -> Floats:
    """Expect ½ Σ_k (p_k − y_k)² over labels y drawn from the share: with two labels, the usual (p − y)²."""
    spread_i = (share_ik * (1.0 - share_ik)).sum(axis=1)
    found: Floats = (((p_ik - share_ik) ** 2).sum(axis=1) + spread_i) / 2.0
    return found


def _gaps(p_i: Floats, share_i: Floats, weight_si: Floats) -> Floats:
    member_ib = width_bins(p_i)[:, None] == np.arange(BINS)
    found: Floats = np.abs(weight_si @ ((p_i - share_i)[:, None] * member_ib)).sum(axis=1)
    return found


def _per(sum_s: Floats, total_s: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total_s > 0, sum_s / np.where(total_s > 0, total_s, 1.0), np.nan)


def area_under_roc(p_i: Floats, label_i: Floats, weight_si: Floats) -> Floats:
    """Compute the probability that a positive item has a higher p than a negative one, ties counting half.

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
    label_i, sorted_si = label_i[order_i], weight_si[:, order_i]
    start_g = np.flatnonzero(np.diff(p_i[order_i], prepend=-np.inf))
    yes_sg, no_sg = (np.add.reduceat(sorted_si * part_i, start_g, axis=1) for part_i in (label_i, 1.0 - label_i))
    below_sg = np.cumsum(no_sg, axis=1) - no_sg
    won_s = (yes_sg * (below_sg + no_sg / 2.0)).sum(axis=1)
    pairs_s = yes_sg.sum(axis=1) * no_sg.sum(axis=1)
    return _per(won_s, pairs_s)


def draw_times(group_i: Ints, *, replicates: int, seed: int) -> Floats:
    """Resample items: how often each counts, items of one group together; in the first row all count once.

    Parameters
    ----------
    group_i
        Items with the same number are drawn together, as those of one text should be.
    replicates
        How often to resample.
    seed
        Of the resampling.

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


def draw_seeds(n_seeds: int, *, replicates: int, seed: int) -> Floats:
    """Resample seeds: the share of each, one row per resampling; in the first row all are equal.

    One seed fewer is drawn than there are, so that the spread is right on average with few seeds too.
    """
    rng = np.random.default_rng([seed, 67])
    n_drawn = max(n_seeds - 1, 1)
    drawn_sn = rng.multinomial(n_drawn, np.full(n_seeds, 1.0 / n_seeds), size=replicates) / n_drawn
    return np.concatenate([np.full((1, n_seeds), 1.0 / n_seeds), drawn_sn])


def over_seeds(value_ns: Floats, share_sn: Floats, *, interval: float = 0.9) -> tuple[float, float, float]:
    """Compute the mean over seeds, and its interval over resampled seeds and items together.

    The interval has the spread of the resampled means, around the mean itself: resampling makes some figures (the
    calibration error) larger on average, and the interval must not move with that.

    Parameters
    ----------
    value_ns
        One row per seed, one column per resampling of the items; the first column has the items as they are.
    share_sn
        From `draw_seeds`, with as many rows as `value_ns` has columns.
    interval
        Mass of the interval.

    Examples
    --------
    >>> over_seeds(np.array([[1.0, 0.5, 1.5], [3.0, 2.5, 3.5]]), np.full((3, 2), 0.5))[0]
    2.0
    """
    mean_s = (share_sn * value_ns.T).sum(axis=1)
    value, drawn_s = float(mean_s[0]), mean_s[1:]
    if np.isnan(value) or np.isnan(drawn_s).all():
        return value, float("nan"), float("nan")
    low, high = central_interval((drawn_s - np.nanmean(drawn_s))[None], interval)
    return value, value + float(low[0]), value + float(high[0])


def better(metric: str, low: float, high: float) -> int:
    """Tell from a difference's interval which side is better: 1 the first, -1 the second, 0 undecided.

    Examples
    --------
    >>> better("accuracy", 0.01, 0.03), better("log_loss", 0.01, 0.03), better("auc", -0.01, 0.01)
    (1, -1, 0)
    """
    sign = 1 if low > 0 else -1 if high < 0 else 0
    return sign if metric in HIGHER_IS_BETTER else -sign
