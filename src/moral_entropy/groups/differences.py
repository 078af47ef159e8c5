"""How far one group of annotators says yes more often than another on the same items, and how far each agrees.

The difference is paired: on every item that both sides voted on, the share of yes (or the mean rating) of one less
that of the other, items weighted by n₁n₂ / (n₁ + n₂). That is the least-squares estimate with an effect for every
item.

Its interval holds the sampling of annotators and of items. Each is left out in turn (the jackknife); the variances are
added and that of single votes, which both hold, is taken off (Cameron, Gelbach and Miller 2011, two-way clustering).
With a few annotators a normal interval would be far too narrow: quantiles are those of Student's t, with as many
degrees of freedom as annotators allow, fewer where some of them gave most of the votes.

Agreement within a group is Krippendorff's alpha of its votes; across, the same comparison for pairs of which one votes
in the group and one outside it (cross-replication reliability, Wong, Paritosh and Aroyo 2021). Their ratio is above 1
where members agree with each other more than with the others (GRASP, Prabhakaran et al. 2024, arXiv 2311.05074).
Axes: **v** vote, **i** item, **a** annotator, **k** label, **s** side (0, 1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from moral_entropy.items.agreement import agreement_statistics
from moral_entropy.votes.table import Floats, Ints


def paired_difference(
    item_v: Ints, annotator_v: Ints, side_v: Ints, y_v: Floats, *, interval: float = 0.9
) -> dict[str, float]:
    """Compare two sides on the items that both voted on: difference, low, high, p_value, df and n_items.

    The difference is side 1 less side 0, p is of no difference, two-sided, and df are the degrees of freedom of the
    interval; NaN where a figure does not exist.

    Parameters
    ----------
    item_v, annotator_v
        Whose vote on what.
    side_v
        Which side the annotator is on, 0 or 1; votes of others are left out.
    y_v
        The vote: 1 for yes and 0 for no, or a rating.
    interval
        Mass of the interval.

    Examples
    --------
    >>> found = paired_difference(np.repeat([0, 1, 2], 4), np.tile([0, 1, 2, 3], 3), np.tile([0, 0, 1, 1], 3),
    ...                           np.array([0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1.0]))
    >>> round(found["difference"], 3), found["n_items"]
    (0.667, 3)
    """
    kept_v = side_v >= 0
    pairs = _Pairs(item_v[kept_v], annotator_v[kept_v], side_v[kept_v], y_v[kept_v])
    n_paired = int((pairs.weight_i > 0.0).sum())
    cells = {"n_items": n_paired, "difference": pairs.value} | dict.fromkeys(("low", "high", "p_value", "df"), np.nan)
    variance, df = _variance(pairs) if n_paired else (np.nan, np.nan)
    if not np.isfinite(variance) or variance <= 0.0 or n_paired < 2:
        return cells
    error = np.sqrt(variance)
    reach = error * float(stats.t.ppf(0.5 + interval / 2.0, df))
    p_value = 2.0 * float(stats.t.sf(abs(pairs.value) / error, df))
    return cells | {"low": pairs.value - reach, "high": pairs.value + reach, "p_value": p_value, "df": df}


class _Pairs:
    """Votes of two sides, their difference, and the difference without some of them."""

    def __init__(self, item_v: Ints, annotator_v: Ints, side_v: Ints, y_v: Floats) -> None:
        self.item_v, self.annotator_v, self.side_v = item_v, annotator_v, side_v
        n_items = int(item_v.max(initial=-1)) + 1
        n_is, sum_is = _cells(item_v, side_v, np.ones(len(y_v)), n_items), _cells(item_v, side_v, y_v, n_items)
        self.weight_i, self.gap_i = _gaps(n_is, sum_is)
        self.total, self.sum = float(self.weight_i.sum()), float((self.weight_i * self.gap_i).sum())
        self.value = self.sum / self.total if self.total > 0.0 else np.nan
        # How much of the difference rests on a vote.
        self.load_v = self.weight_i[item_v] / np.maximum(n_is[item_v, side_v], 1.0)
        # What the sums lose with each vote: the item's gap is computed anew without it.
        at_v, without_n, without_sum = np.arange(len(y_v)), n_is[item_v], sum_is[item_v]
        without_n[at_v, side_v] -= 1.0
        without_sum[at_v, side_v] -= y_v
        weight_v, gap_v = _gaps(without_n, without_sum)
        self.lost_weight_v = weight_v - self.weight_i[item_v]
        self.lost_sum_v = weight_v * gap_v - (self.weight_i * self.gap_i)[item_v]

    def without(self, of_v: Ints) -> Floats:
        """Return the difference without each annotator, or each vote, that the votes belong to."""
        below = self.total + np.bincount(of_v, weights=self.lost_weight_v)
        above = self.sum + np.bincount(of_v, weights=self.lost_sum_v)
        return np.where(below > 0.0, above / np.where(below > 0.0, below, 1.0), self.value)

    def without_item(self) -> tuple[Floats, Floats]:
        """Return the difference without each item that both sides voted on, and the weights of these items."""
        weight_i, gap_i = self.weight_i[self.weight_i > 0.0], self.gap_i[self.weight_i > 0.0]
        rest_i = np.maximum(self.total - weight_i, 1e-12)
        return (self.sum - weight_i * gap_i) / rest_i, weight_i


def _variance(pairs: _Pairs) -> tuple[float, float]:
    """Return the variance of a difference over annotators and items, and its degrees of freedom (Satterthwaite)."""
    by_annotator = pairs.without(pairs.annotator_v)
    load_a = np.bincount(pairs.annotator_v, weights=pairs.load_v).astype(np.float64)
    side_a = np.full(len(load_a), -1)
    side_a[pairs.annotator_v] = pairs.side_v
    sides = [np.flatnonzero((side_a == s) & (load_a > 0.0)) for s in (0, 1)]
    by_side = [_jackknife(by_annotator[side], load_a[side]) for side in sides]
    of_items, items_df = _jackknife(*pairs.without_item())
    by_vote = pairs.without(np.arange(len(pairs.load_v)))[pairs.load_v > 0.0]
    of_votes = float(((by_vote - pairs.value) ** 2).sum())
    of_annotators = max(sum(variance for variance, _ in by_side), _pooled(by_side))
    variance = max(of_annotators, of_items, of_annotators + of_items - of_votes)
    if not 0.0 < variance < np.inf:
        return variance, 1.0
    uncertain = sum(part**2 / df for part, df in by_side) + of_items**2 / items_df
    # Never more than so many annotators allow: where the few happen to be alike, their variance is no surer for it.
    return variance, min(max(variance**2 / uncertain, 1.0), _allowed([df for _, df in by_side]))


def _pooled(by_side: Sequence[tuple[float, float]]) -> float:
    """Return the variance if annotators of both sides vary alike: a few who agree by chance do not make a side sure."""
    each = sum(variance * (df + 1.0) * df for variance, df in by_side) / sum(df for _, df in by_side)
    return float(sum(each / (df + 1.0) for _, df in by_side))


def _allowed(dfs: Sequence[float]) -> float:
    """Return Welch's degrees of freedom if annotators of both sides vary alike."""
    shares = [1.0 / (df + 1.0) for df in dfs]
    return float(sum(shares) ** 2 / sum(share**2 / df for share, df in zip(shares, dfs, strict=True)))


def holm(p_values: Floats) -> Floats:
    """Correct p-values for how many there are (Holm 1979); NaN stays NaN and is not counted.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, np.nan, 0.03])).round(3).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    adjusted = np.full(len(p_values), np.nan)
    tested = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested], kind="stable")]
    steps = p_values[order] * (len(order) - np.arange(len(order)))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def _cells(item_v: Ints, side_v: Ints, x_v: Floats, n_items: int) -> Floats:
    cells = np.bincount(item_v * 2 + side_v, weights=x_v, minlength=2 * n_items)
    return cells.reshape(n_items, 2).astype(np.float64)


def _gaps(n_xs: Floats, sum_xs: Floats) -> tuple[Floats, Floats]:
    """Return the weight of a pair of cells and the gap of their means; both 0 where one is empty."""
    full_x = n_xs.min(axis=1) > 0.5
    mean_xs = sum_xs / np.where(n_xs > 0.5, n_xs, 1.0)
    weight_x = np.where(full_x, n_xs.prod(axis=1) / np.where(full_x, n_xs.sum(axis=1), 1.0), 0.0)
    return weight_x, np.where(full_x, mean_xs[:, 1] - mean_xs[:, 0], 0.0)


def _jackknife(value_x: Floats, load_x: Floats) -> tuple[float, float]:
    """Return the jackknife's variance, and its degrees of freedom: fewer where some carry most of the load."""
    n = len(value_x)
    if n < 2:
        return np.inf, 1.0
    effective = load_x.sum() ** 2 / (load_x**2).sum()
    variance = (n - 1.0) / n * ((value_x - value_x.mean()) ** 2).sum()
    return float(variance), max(float(effective) - 1.0, 1.0)


def group_agreement(item_v: Ints, annotator_v: Ints, label_v: Ints, n_labels: int, inside_a: Ints) -> dict[str, float]:
    """Compare how far members agree with each other and with the others: within, across and their ratio.

    The ratio exists where both are positive; NaN where a figure does not exist.

    Parameters
    ----------
    item_v, annotator_v, label_v, n_labels
        The votes, as codes.
    inside_a
        1 for members, 0 for others, -1 for annotators who are left out.

    Examples
    --------
    Two members who always agree, two others who never agree with them.

    >>> label_v = np.array([0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1])
    >>> agreement = group_agreement(np.repeat([0, 1, 2], 4), np.tile(range(4), 3), label_v, 2, np.array([1, 1, 0, 0]))
    >>> agreement["within"], agreement["across"] < 0
    (1.0, True)
    """
    n_items, side_v = int(item_v.max(initial=-1)) + 1, inside_a[annotator_v]
    counts = [
        np.bincount((item_v * n_labels + label_v)[side_v == side], minlength=n_items * n_labels).astype(np.float64)
        for side in (1, 0)
    ]
    inside_ik, outside_ik = (count.reshape(n_items, n_labels) for count in counts)
    within = float(agreement_statistics(inside_ik)[0, 0])
    across = agreement_across(inside_ik, outside_ik)
    return {"within": within, "across": across, "ratio": within / across if within > 0.0 and across > 0.0 else np.nan}


def agreement_across(inside_ik: Floats, outside_ik: Floats) -> float:
    """Compute the agreement of pairs with one vote on each side, above chance; NaN where it does not exist."""
    n_i, m_i = inside_ik.sum(axis=1), outside_ik.sum(axis=1)
    weight_i = np.where((n_i > 0.0) & (m_i > 0.0), n_i + m_i, 0.0)
    if not weight_i.any():
        return np.nan
    observed = float((inside_ik * outside_ik).sum(axis=1) / np.maximum(n_i * m_i, 1.0) @ weight_i / weight_i.sum())
    inside_k, outside_k = (side_ik[weight_i > 0.0].sum(axis=0) for side_ik in (inside_ik, outside_ik))
    chance = float((inside_k / inside_k.sum()) @ (outside_k / outside_k.sum()))
    # With a single label, agreement by chance is certain: the figure does not exist.
    return (observed - chance) / (1.0 - chance) if chance <= 1.0 - 1e-12 else np.nan
