"""How far annotators agree: alpha, kappas, Gwet's coefficients and plain agreement, each with an interval.

`agreement` is the door for votes of any layout; the audit measures the same from vote counts by item and label. Nominal
coefficients take labels as names; weighted ones as numbers or ranks. All but Cohen's kappa depend on an item's counts
alone, so items of equal counts are one row with a weight, and a resample is one multinomial draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from moral_entropy.errors import UsageError
from moral_entropy.rules.cells import number_rows
from moral_entropy.rules.grade import share_of
from moral_entropy.rules.intervals import central_interval
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import Ballot, Floats, Ints, Votes

STATISTICS = ("krippendorff_alpha", "fleiss_kappa", "pabak", "percent_agreement", "gwet_ac1")
"""Coefficients that take labels as names."""

WEIGHTED = ("krippendorff_alpha_ordinal", "krippendorff_alpha_interval", "weighted_fleiss_kappa", "gwet_ac2",
            "weighted_percent_agreement", "icc")  # fmt: skip
"""Coefficients that take labels as numbers; all but the first weigh a pair by the square of its distance. The last is
the share of the variance of single ratings that lies between items, of one-way random effects (Shrout and Fleiss)."""

OF_PAIRS = ("cohen_kappa", "weighted_kappa")

RESAMPLES = 1_000
CELLS_DRAWN = 20_000_000
"""Upper limit of resamples × distinct counts; where counts hardly repeat there are fewer resamples, at least 100."""

MOST_NUMBERS, MOST_PAIRS, FEW_SHARED = 20, 500, 2
"""Labels up to which weighted coefficients are computed; pairs of annotators, those with most shared items first, and
shared items that a pair needs."""

Scale = Literal["auto", "nominal", "ordered"]

Row = tuple[str, float, float, float, int]
"""A coefficient's name, its value and interval (NaN where it does not exist), and the items with two votes or more."""

SCHEMA = {"question": pl.String, "statistic": pl.String, "annotators": pl.String,
          "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64}  # fmt: skip


def agreement(
    source: Any,
    second: Any = None,
    *,
    scale: Scale = "auto",
    pairs: bool = True,
    interval: float = 0.9,
    seed: int = 0,
    **read: Any,
) -> pl.DataFrame:
    """Measure how far annotators agree, question by question.

    Parameters
    ----------
    source
        Votes: whatever `read_votes` takes or returns.
    second
        Other votes. Then the figures are differences, `source` less `second`, of the questions that both have. Where
        both have the same items these are resampled together.
    scale
        "nominal": labels are names; "ordered": they are numbers, or ranks in the order of the labels, and there are
        weighted coefficients too; "auto": ordered where there are three labels or more and all are numbers.
    pairs
        Whether to return Cohen's kappa of every pair of annotators.
    interval, seed
        Mass of the intervals over resampled items, and seed of the resampling.
    **read
        Options of `read_votes`.

    Returns
    -------
    pl.DataFrame
        question, statistic, annotators ("ann · ben" for a pair, else empty), value, low, high, and n: the items with
        two votes or more.

    Examples
    --------
    >>> import moral_entropy as me
    >>> labels = pl.Series(list("112221111222"))
    >>> votes = pl.DataFrame({"item": list("wwwxxxyyyzzz"), "annotator": list("abc") * 4, "label": labels})
    >>> table = me.agreement(votes, pairs=False)
    >>> dict(table.select("statistic", pl.col("value").round(3)).iter_rows())["krippendorff_alpha"]
    0.389
    """
    first = source if isinstance(source, Votes) else read_votes(source, **read)
    if second is None:
        rows = [row for ballot in first.ballots for row in _of_ballot(first, ballot, scale, pairs, interval, seed)]
        return pl.DataFrame(rows, SCHEMA, orient="row").fill_nan(None)
    later = second if isinstance(second, Votes) else read_votes(second, **read)
    by_name = {ballot.question: ballot for ballot in later.ballots}
    ballots = [(ballot, by_name[ballot.question]) for ballot in first.ballots if ballot.question in by_name]
    if not ballots:
        names = ", ".join(ballot.question for ballot in first.ballots)
        msg = f"the two sets of votes have no question in common. Questions: {names}; {', '.join(by_name)}."
        raise UsageError(msg)
    rows = [
        (a.question, statistic, "", *figures)
        for a, b in ballots
        for statistic, *figures in _difference(first, a, later, b, scale, interval, seed)
    ]
    return pl.DataFrame(rows, SCHEMA, orient="row").fill_nan(None)


def _of_ballot(
    votes: Votes, ballot: Ballot, scale: Scale, pairs: bool, interval: float, seed: int
) -> Iterator[tuple[str | float, ...]]:
    value_k = ballot_values(ballot, scale)
    figures = measure_agreement(ballot.counts_ik, ballot.count_i, value_k=value_k, interval=interval, seed=seed)
    groups = [("", figures), *(_pair_figures(votes, ballot, value_k, interval, seed) if pairs else ())]
    for annotators, rows in groups:
        yield from ((ballot.question, statistic, annotators, *row) for statistic, *row in rows)


def ballot_values(ballot: Ballot, scale: Scale = "auto") -> Floats | None:
    """Return what the labels of a ballot count: the values of its scale, else as `label_values` says."""
    return label_values(ballot.labels, scale) if ballot.levels is None or scale != "auto" else np.array(ballot.levels)


def label_values(labels: Sequence[str], scale: Scale = "auto") -> Floats | None:
    """Return what labels count where they are ordered: their numbers, else their ranks; None where they are names.

    Examples
    --------
    >>> label_values(("1", "2", "4")), label_values(("no", "yes")), label_values(("low", "mid", "high"), "ordered")
    (array([1., 2., 4.]), None, array([0., 1., 2.]))
    """
    if scale == "nominal" or len(labels) > MOST_NUMBERS:
        return None
    try:
        value_k = np.array([float(label) for label in labels])
        numbers = bool(np.isfinite(value_k).all())
    except ValueError:
        numbers = False
    if scale == "auto" and (not numbers or len(labels) < 3):
        return None
    return value_k if numbers else np.arange(len(labels), dtype=np.float64)


def measure_agreement(
    counts_ik: Ints,
    weight_i: Floats | None = None,
    *,
    value_k: Floats | None = None,
    interval: float = 0.9,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> list[Row]:
    """Measure how far the annotators of some items agree: a row for each coefficient.

    Krippendorff's alpha allows for missing votes (Krippendorff 2004, chapter 11). The others are Gwet's generalisations
    to varying numbers of votes (Handbook of Inter-Rater Reliability, 2014): the mean agreement of pairs over items with
    two votes or more, against chance: from mean label shares (Fleiss' kappa), from how even these are (AC1), or 1/K
    (PABAK; Byrt, Bishop and Carlin 1993).

    Parameters
    ----------
    counts_ik
        Votes by item and label.
    weight_i
        How many items each row stands for.
    value_k
        What labels count, where they are ordered; then there are `WEIGHTED` coefficients too.
    interval, seed, resamples
        Mass of the interval, seed of the resampling, and how often.

    Examples
    --------
    >>> [round(value, 3) for _, value, *_ in measure_agreement(np.array([[3, 0], [0, 3], [2, 1]]), seed=1)]
    [0.6, 0.55, 0.556, 0.778, 0.561]
    """
    # Items of equal counts are put together; those without a vote are left out.
    voted_i = counts_ik.sum(axis=1) > 0
    weight_i = (np.ones(len(counts_ik)) if weight_i is None else weight_i)[voted_i]
    cell_i, first_c = number_rows(counts_ik[voted_i].T)
    cell_ck = counts_ik[voted_i][first_c].astype(np.float64)
    weight_c = np.bincount(cell_i, weights=weight_i, minlength=len(first_c)).astype(np.float64)
    names = STATISTICS if value_k is None else (*STATISTICS, *WEIGHTED)
    draws_sc = np.concatenate([weight_c[None], _resampled(weight_c, resamples, seed)])
    n_paired = weight_c[cell_ck.sum(axis=1) >= 2].sum()
    return _rows(names, agreement_statistics(cell_ck, draws_sc, value_k), interval, n_paired)


def _rows(names: Sequence[str], value_fs: Floats, interval: float, n: float) -> list[Row]:
    """Return coefficients as rows; their intervals are over all columns but the first, which is the votes'."""
    ends = (end_f.tolist() for end_f in central_interval(value_fs[:, 1:], interval))
    return list(zip(names, value_fs[:, 0].tolist(), *ends, [round(n)] * len(names), strict=True))


def _resampled(weight_c: Floats, resamples: int, seed: int) -> Floats:
    """Draw how often each cell is in every resample of the items: `draws_sc`."""
    size, n_cells = round(weight_c.sum()), len(weight_c)
    if not resamples or not n_cells or not size:
        return np.empty((0, n_cells))
    n_draws = int(np.clip(CELLS_DRAWN // n_cells, 100, resamples))
    return np.random.default_rng(seed).multinomial(size, weight_c / weight_c.sum(), size=n_draws).astype(np.float64)


def agreement_statistics(
    counts_ik: Ints | Floats, weight_si: Floats | None = None, value_k: Floats | None = None
) -> Floats:
    """Compute the coefficients of items that are weighted in as many ways as `weight_si` has rows: `statistic_fs`.

    Examples
    --------
    >>> agreement_statistics(np.array([[3, 0], [0, 3], [2, 1]])).round(3).ravel().tolist()
    [0.6, 0.55, 0.556, 0.778, 0.561]
    """
    n_labels, cell_ck = counts_ik.shape[1], np.asarray(counts_ik, dtype=np.float64)
    weight_sc = np.ones((1, len(cell_ck))) if weight_si is None else weight_si
    votes_c = cell_ck.sum(axis=1)
    paired_c = votes_c >= 2
    pairs_c = (cell_ck * (cell_ck - 1.0)).sum(axis=1)
    agreeing_c = np.where(paired_c, pairs_c / np.maximum(votes_c * (votes_c - 1.0), 1.0), 0.0)
    paired_s = weight_sc @ paired_c.astype(np.float64)
    observed_s = share_of(weight_sc @ agreeing_c, paired_s)
    share_sk = share_of(weight_sc @ (cell_ck / np.maximum(votes_c, 1.0)[:, None]), (weight_sc @ (votes_c > 0))[:, None])
    uneven_s = (share_sk**2).sum(axis=1)
    kappa_s = _above_chance(observed_s, uneven_s)
    pabak_s = (n_labels * observed_s - 1.0) / (n_labels - 1.0)
    ac1_s = _above_chance(observed_s, (1.0 - uneven_s) / (n_labels - 1.0))
    # Krippendorff's alpha pairs each of an item's m votes with the m - 1 others: items count by their votes.
    alike_c, pairable_sc = pairs_c / np.maximum(votes_c - 1.0, 1.0), weight_sc * paired_c
    total_s, label_sk = pairable_sc @ votes_c, pairable_sc @ cell_ck
    expected_s = share_of((label_sk * (label_sk - 1.0)).sum(axis=1), total_s * (total_s - 1.0))
    alpha_s = _above_chance(share_of(pairable_sc @ alike_c, total_s), expected_s)
    nominal = [alpha_s, kappa_s, pabak_s, observed_s, ac1_s]
    weighted = [] if value_k is None else _weighted(cell_ck, weight_sc, share_sk, paired_s, value_k)
    return np.stack([*nominal, *weighted])


def _weighted(cell_ck: Floats, weight_sc: Floats, share_sk: Floats, paired_s: Floats, value_k: Floats) -> list[Floats]:
    """Compute `WEIGHTED` from the pairs of votes by label and label."""
    n_labels, votes_c = cell_ck.shape[1], cell_ck.sum(axis=1)
    pair_ckl = cell_ck[:, :, None] * cell_ck[:, None, :] - cell_ck[:, :, None] * np.eye(n_labels)
    pair_ckl /= np.maximum(votes_c * (votes_c - 1.0), 1.0)[:, None, None]
    pair_cx = pair_ckl.reshape(len(cell_ck), -1)
    # Every vote of an item is paired with the others: items count by their votes in alpha, once in the other figures.
    coincidence_skl = (weight_sc @ (pair_cx * votes_c[:, None])).reshape(-1, n_labels, n_labels)
    mean_skl = share_of((weight_sc @ pair_cx).reshape(-1, n_labels, n_labels), paired_s[:, None, None])
    distance_kl = np.subtract.outer(value_k, value_k) ** 2
    label_sk = coincidence_skl.sum(axis=2)
    below_sk = np.cumsum(label_sk, axis=1) - label_sk / 2.0
    ranks_skl = (below_sk[:, :, None] - below_sk[:, None, :]) ** 2
    ordinal_s = _alpha_of(coincidence_skl, label_sk, ranks_skl)
    interval_s = _alpha_of(coincidence_skl, label_sk, np.broadcast_to(distance_kl, coincidence_skl.shape))
    close_kl = 1.0 - distance_kl / max(float(distance_kl.max()), 1e-300)
    observed_s = (mean_skl * close_kl).sum(axis=(1, 2))
    kappa_s = _above_chance(observed_s, np.einsum("sk,kl,sl->s", share_sk, close_kl, share_sk))
    chance_s = close_kl.sum() * (share_sk * (1.0 - share_sk)).sum(axis=1) / (n_labels * (n_labels - 1.0))
    icc_s = _icc(cell_ck, weight_sc, value_k)
    return [ordinal_s, interval_s, kappa_s, _above_chance(observed_s, chance_s), observed_s, icc_s]


def _icc(cell_ck: Floats, weight_sc: Floats, value_k: Floats) -> Floats:
    """Compute ICC(1) from the mean squares between and within items, which may have several numbers of votes."""
    votes_c, sum_c = cell_ck.sum(axis=1), cell_ck @ value_k
    within_c = cell_ck @ value_k**2 - sum_c**2 / np.maximum(votes_c, 1.0)
    items_s, total_s = weight_sc @ (votes_c > 0), weight_sc @ votes_c
    between_s = weight_sc @ (sum_c**2 / np.maximum(votes_c, 1.0)) - share_of((weight_sc @ sum_c) ** 2, total_s)
    usual_s = share_of(total_s - share_of(weight_sc @ votes_c**2, total_s), items_s - 1.0)
    between_s, within_s = share_of(between_s, items_s - 1.0), share_of(weight_sc @ within_c, total_s - items_s)
    return np.asarray(share_of(between_s - within_s, between_s + (usual_s - 1.0) * within_s))


def _alpha_of(coincidence_skl: Floats, label_sk: Floats, distance_skl: Floats) -> Floats:
    """Compute alpha from coincidences and squared distances (Krippendorff 2011, step D)."""
    total_s = label_sk.sum(axis=1)
    expected_s = np.einsum("sk,skl,sl->s", label_sk, distance_skl, label_sk)
    observed_s = (coincidence_skl * distance_skl).sum(axis=(1, 2)) * (total_s - 1.0)
    return np.asarray(1.0 - share_of(observed_s, np.where(expected_s < 1e-12, 0.0, expected_s)))


def _above_chance(observed_s: Floats, chance_s: Floats) -> Floats:
    # With a single label, agreement by chance is certain: the statistic does not exist.
    return share_of(observed_s - chance_s, np.where(chance_s > 1.0 - 1e-12, 0.0, 1.0 - chance_s))


# --- Two sets of votes ----------------------------------------------------------------------------------------------


def _difference(
    first: Votes, a: Ballot, second: Votes, b: Ballot, scale: Scale, interval: float, seed: int
) -> list[Row]:
    """Return the difference of every coefficient of two ballots, with an interval."""
    labels = sorted({*a.labels, *b.labels}, key=lambda label: (len(label), label))
    labels = list(a.labels) if set(a.labels) == set(labels) else labels
    value_k = label_values(labels, scale)
    names = STATISTICS if value_k is None else (*STATISTICS, *WEIGHTED)
    counts = [np.zeros((ballot.n_items, len(labels)), dtype=np.int64) for ballot in (a, b)]
    for ballot, counts_ik in zip((a, b), counts, strict=True):
        counts_ik[:, [labels.index(label) for label in ballot.labels]] = ballot.counts_ik
    items = [votes.items.gather(ballot.item_i) for votes, ballot in ((first, a), (second, b))]
    weights = [np.asarray(a.count_i, dtype=np.float64), np.asarray(b.count_i, dtype=np.float64)]
    draws = [_resampled(weights[0], RESAMPLES, seed), _resampled(weights[1], RESAMPLES, seed + 1)]
    if items[0].dtype == items[1].dtype and items[0].equals(items[1]):
        draws[1] = draws[0]
    n_draws = min(map(len, draws))
    first_fs, second_fs = (
        agreement_statistics(counts_ik, np.concatenate([weight_i[None], draws_si[:n_draws]]), value_k)
        for counts_ik, weight_i, draws_si in zip(counts, weights, draws, strict=True)
    )
    n = min(float(weight_i[ballot.votes_i >= 2].sum()) for weight_i, ballot in zip(weights, (a, b), strict=True))
    return _rows(names, first_fs - second_fs, interval, n)


# --- Pairs of annotators --------------------------------------------------------------------------------------------


def _pair_figures(
    votes: Votes, ballot: Ballot, value_k: Floats | None, interval: float, seed: int
) -> Iterator[tuple[str, list[Row]]]:
    """Yield the names of every pair of annotators with enough shared items, and Cohen's kappa of the two."""
    if votes.anonymous:
        return
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    annotator_v, label_v = np.divmod(ballot.code_v, ballot.n_labels)
    shape = ballot.n_items, ballot.n_annotators
    voted_ia = csr_array((np.ones(len(item_v)), (item_v, annotator_v)), shape=shape)
    voted_ia.data[:] = 1.0
    shared_ab = np.triu((voted_ia.T @ voted_ia).toarray(), k=1)
    order = np.argsort(-shared_ab, axis=None, kind="stable")[:MOST_PAIRS]
    label_ia = csr_array((label_v + 1.0, (item_v, annotator_v)), shape=shape).tocsc()
    names = votes.annotators.gather(ballot.annotator_a).cast(pl.String).to_list()
    kinds = [None] if value_k is None else [None, value_k]
    for a, b in zip(*np.unravel_index(order, shared_ab.shape), strict=True):
        if shared_ab[a, b] >= FEW_SHARED:
            one_i, two_i = (label_ia[:, [x]].toarray().ravel() for x in (a, b))
            both_i = (one_i > 0) & (two_i > 0)
            one_i, two_i = (np.clip(cells[both_i], 1, ballot.n_labels).astype(np.int64) - 1 for cells in (one_i, two_i))
            cells_x = np.bincount(one_i * ballot.n_labels + two_i, minlength=ballot.n_labels**2).astype(np.float64)
            tables_sx = np.concatenate([cells_x[None], _resampled(cells_x, RESAMPLES, seed)])
            table_skl = tables_sx.reshape(-1, ballot.n_labels, ballot.n_labels)
            kappa_fs = np.stack([cohen_kappa(table_skl, values_k) for values_k in kinds])
            yield f"{names[a]} · {names[b]}", _rows(OF_PAIRS[: len(kinds)], kappa_fs, interval, float(cells_x.sum()))


def cohen_kappa(table_skl: Floats, value_k: Floats | None = None) -> Floats:
    """Compute Cohen's kappa of tables of two annotators' votes; with values of the labels, weighted by squares.

    Examples
    --------
    >>> cohen_kappa(np.array([[[13.0, 0, 0], [0, 20, 7], [0, 4, 56]]])).round(4)
    array([0.7964])
    """
    n_labels = table_skl.shape[-1]
    close_kl = np.eye(n_labels)
    if value_k is not None:
        distance_kl = np.subtract.outer(value_k, value_k) ** 2
        close_kl = 1.0 - distance_kl / max(float(distance_kl.max()), 1e-300)
    share_skl = share_of(table_skl, table_skl.sum(axis=(1, 2))[:, None, None])
    chance_s = np.einsum("sk,kl,sl->s", share_skl.sum(axis=2), close_kl, share_skl.sum(axis=1))
    return _above_chance((share_skl * close_kl).sum(axis=(1, 2)), chance_s)
