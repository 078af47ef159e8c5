"""How far annotators agree: Krippendorff's alpha, Fleiss' kappa, PABAK, and plain agreement of pairs.

Takes vote counts by item and label, returns each figure with an interval over resampled items. All four depend on an
item's counts alone, so items of equal counts are one row with a weight, and a resample is one multinomial draw.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from moral_entropy.rules.cells import number_rows
from moral_entropy.rules.grade import share_of
from moral_entropy.rules.intervals import central_interval
from moral_entropy.votes.table import Floats, Ints

STATISTICS = ("krippendorff_alpha", "fleiss_kappa", "pabak", "percent_agreement")

RESAMPLES = 1_000
CELLS_DRAWN = 20_000_000
"""Upper limit of resamples × distinct counts; where counts hardly repeat there are fewer resamples, at least 100."""


def measure_agreement(
    counts_ik: Ints, weight_i: Floats | None = None, *, interval: float = 0.9, seed: int = 0, resamples: int = RESAMPLES
) -> pl.DataFrame:
    """Measure how far the annotators of some items agree.

    Krippendorff's alpha is nominal, with missing votes (Krippendorff 2004, chapter 11). Fleiss' kappa is Gwet's
    generalisation to varying numbers of votes (Handbook of Inter-Rater Reliability, 2014): the mean agreement of pairs
    over items with two votes or more, against the mean label shares over items with a vote. PABAK is
    (K · agreement - 1) / (K - 1) (Byrt, Bishop and Carlin 1993, for K labels).

    Parameters
    ----------
    counts_ik
        Votes by item and label.
    weight_i
        How many items each row stands for.
    interval, seed, resamples
        Mass of the interval, seed of the resampling, and how often.

    Returns
    -------
    pl.DataFrame
        A row for each of `STATISTICS`: statistic, value, low, high (NaN where it does not exist), and n, the number of
        items with two votes or more.

    Examples
    --------
    >>> measure_agreement(np.array([[3, 0], [0, 3], [2, 1]]), seed=1)["value"].round(3).to_list()
    [0.6, 0.55, 0.556, 0.778]
    """
    cell_ck, weight_c = _collapsed(np.asarray(counts_ik), weight_i)
    size, n_cells = round(weight_c.sum()), len(weight_c)
    n_draws = int(np.clip(CELLS_DRAWN // max(n_cells, 1), 100, resamples)) if resamples and n_cells else 0
    value_fs = agreement_statistics(cell_ck, weight_c[None])
    low_f, high_f = np.full((2, len(STATISTICS)), np.nan)
    if n_draws and size:
        rng = np.random.default_rng(seed)
        draws_sc = rng.multinomial(size, weight_c / weight_c.sum(), size=n_draws).astype(np.float64)
        low_f, high_f = central_interval(agreement_statistics(cell_ck, draws_sc), interval)
    n_paired = round(weight_c[cell_ck.sum(axis=1) >= 2].sum())
    figures = {"statistic": STATISTICS, "value": value_fs[:, 0], "low": low_f, "high": high_f}
    return pl.DataFrame({**figures, "n": [n_paired] * len(STATISTICS)})


def _collapsed(counts_ik: Ints, weight_i: Floats | None) -> tuple[Floats, Floats]:
    """Put items of equal counts together; items without a vote are left out."""
    weight_i = np.ones(len(counts_ik)) if weight_i is None else weight_i
    voted_i = counts_ik.sum(axis=1) > 0
    counts_ik, weight_i = counts_ik[voted_i], weight_i[voted_i]
    cell_i, first_c = number_rows(counts_ik.T)
    weight_c = np.bincount(cell_i, weights=weight_i, minlength=len(first_c))
    return counts_ik[first_c].astype(np.float64), weight_c.astype(np.float64)


def agreement_statistics(counts_ik: Ints | Floats, weight_si: Floats | None = None) -> Floats:
    """Compute `STATISTICS` of the items, weighted in as many ways as there are rows of `weight_si`: `statistic_fs`.

    Examples
    --------
    >>> agreement_statistics(np.array([[3, 0], [0, 3], [2, 1]])).round(3).tolist()
    [[0.6], [0.55], [0.556], [0.778]]
    """
    n_labels, cell_ck = counts_ik.shape[1], np.asarray(counts_ik, dtype=np.float64)
    weight_sc = np.ones((1, len(cell_ck))) if weight_si is None else weight_si
    votes_c = cell_ck.sum(axis=1)
    paired_c = votes_c >= 2
    pairs_c = (cell_ck * (cell_ck - 1.0)).sum(axis=1)
    agreeing_c = np.where(paired_c, pairs_c / np.maximum(votes_c * (votes_c - 1.0), 1.0), 0.0)
    observed_s = share_of(weight_sc @ agreeing_c, weight_sc @ paired_c.astype(np.float64))
    share_sk = share_of(weight_sc @ (cell_ck / np.maximum(votes_c, 1.0)[:, None]), (weight_sc @ (votes_c > 0))[:, None])
    chance_s = (share_sk**2).sum(axis=1)
    kappa_s = _above_chance(observed_s, chance_s)
    pabak_s = (n_labels * observed_s - 1.0) / (n_labels - 1.0)
    return np.stack([krippendorff_alpha(cell_ck, weight_sc), kappa_s, pabak_s, observed_s])


def krippendorff_alpha(counts_ik: Floats, weight_si: Floats) -> Floats:
    """Compute Krippendorff's alpha, nominal: each of an item's m votes is paired with the m - 1 others.

    Parameters
    ----------
    counts_ik
        Votes by item and label.
    weight_si
        How often each item counts, in every resample.

    Examples
    --------
    >>> krippendorff_alpha(np.array([[3.0, 0.0], [0.0, 3.0], [2.0, 1.0]]), np.ones((1, 3))).round(3)
    array([0.6])
    """
    votes_i = counts_ik.sum(axis=1)
    alike_i = (counts_ik * (counts_ik - 1.0)).sum(axis=1) / np.maximum(votes_i - 1.0, 1.0)
    pairable_si = weight_si * (votes_i >= 2)
    total_s, label_sk = pairable_si @ votes_i, pairable_si @ counts_ik
    expected_s = share_of((label_sk * (label_sk - 1.0)).sum(axis=1), total_s * (total_s - 1.0))
    return _above_chance(share_of(pairable_si @ alike_i, total_s), expected_s)


def _above_chance(observed_s: Floats, chance_s: Floats) -> Floats:
    # With a single label, agreement by chance is certain: the statistic does not exist.
    return share_of(observed_s - chance_s, np.where(chance_s > 1.0 - 1e-12, 0.0, 1.0 - chance_s))
