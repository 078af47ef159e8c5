"""Comparisons of two → a ranking of what was compared, with intervals, and what each judge makes of the order.

Votes must have kept the columns `first` and `second`, what was compared, and may have `position`, which of them was
shown first; without it the first was. The model is Bradley and Terry's with Davidson's ties (1970): the log-odds of the
first against the second are d = a_j (b_first - b_second) ± c_j, with a discrimination a_j and an order effect c_j for
every judge; a tie has the weight exp(t) beside exp(±d/2). Fitted at the mode, intervals from the curvature there.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import ndtri, softmax

from moral_entropy.findings import many
from moral_entropy.items.states import positions
from moral_entropy.judges.known import CLUSTERS, MOST_JUDGES
from moral_entropy.judges.values import SECOND, TIES, bounded, schema, sides
from moral_entropy.names import ALL
from moral_entropy.runs.run import Question, Run
from moral_entropy.votes.table import Floats, Ints

MOST_DENSE = 3_000
"""Parameters up to which the whole curvature is inverted; of more, its diagonal."""

DISCRIMINATION_SD, ORDER_SD = 0.5, 1.0
"""Priors: of a judge's log discrimination around 0, and of order effects."""

RANK_DRAWS = 200
SHOWN_SECOND = {*SECOND, "2", "ba", "swap", "swapped", "reversed", "true"}
"""What a column position says where the second was shown first."""

RANKING = schema("text question name", "int n", "float win_rate strength low high", "int rank rank_low rank_high")
POSITIONS = schema("text question judge", "int n", bounded("bias", "discrimination"), "int n_both", "float flips")


class Comparisons(NamedTuple):
    """Votes on pairs, one per row. Axis: **v** vote.

    Parameters
    ----------
    first_v, second_v, judge_v
        Numbers of what was compared, and of the judge.
    shown_v
        1 where the first was shown first, else -1.
    outcome_v
        0 where the first won, 1 where the second did, 2 for a tie.
    """

    first_v: Ints
    second_v: Ints
    judge_v: Ints
    shown_v: Floats
    outcome_v: Ints


class Strengths(NamedTuple):
    """A fit. Axes: **n** what was compared, **j** judge.

    Parameters
    ----------
    strength_n, discrimination_j, order_j, tie
        The parameters; `order_j` has one entry if all judges share it.
    covariance
        Of strengths, order effects and log discriminations, in this order; a diagonal where there are many.
    """

    strength_n: Floats
    discrimination_j: Floats
    order_j: Floats
    tie: float
    covariance: Floats

    def outcomes(self, votes: Comparisons) -> Floats:
        """Return the probability of every outcome: `p_vo`."""
        order_v = self.order_j[votes.judge_v] if len(self.order_j) > 1 else self.order_j[0]
        gap_v = self.strength_n[votes.first_v] - self.strength_n[votes.second_v]
        return _outcomes(self.discrimination_j[votes.judge_v] * gap_v + order_v * votes.shown_v, self.tie)


def _outcomes(odds_v: Floats, tie: float) -> Floats:
    return np.asarray(softmax(np.stack([odds_v / 2, -odds_v / 2, np.full_like(odds_v, tie)], axis=1), axis=1))


def is_pairwise(run: Run, question: Question) -> bool:
    """Return whether the votes on a question compare two: columns first and second, and labels that name one."""
    names = set(run.scan("votes").collect_schema().names())
    return {"first", "second"} <= names and (
        sides(question.labels, codes=True) is not None or not _compared(run, question).is_empty()
    )


def _compared(run: Run, question: Question) -> pl.DataFrame:
    """Return first, second, judge, shown and outcome of every vote that names one of the two, or a tie."""
    votes = run.table("votes", where=pl.col("question") == question.name).drop_nulls(["first", "second", "annotator"])
    position = pl.col("position").cast(pl.String).str.strip_chars().str.to_lowercase()
    second_first = pl.when(
        position.is_in(sorted(SHOWN_SECOND)) | (position == pl.col("second").cast(pl.String).str.to_lowercase())
    )
    value_by_label = sides(question.labels, codes=True)
    label = pl.col("label").cast(pl.String)
    if value_by_label is not None:
        outcome_of = {name: {1.0: 0, 0.0: 1, 0.5: 2}[float(value)]
                      for name, value in zip(question.labels, value_by_label[1], strict=True)}  # fmt: skip
        outcome = label.replace_strict(outcome_of, default=None, return_dtype=pl.Int64)
    else:
        tie = label.str.to_lowercase().is_in(TIES)
        outcome = pl.when(label == pl.col("first")).then(0).when(label == pl.col("second")).then(1).when(tie).then(2)
    key = next((name for name in CLUSTERS if name in votes.columns), "item")
    return votes.select(
        key=pl.col(key), first=pl.col("first").cast(pl.String), second=pl.col("second").cast(pl.String),
        judge=pl.col("annotator").cast(pl.String), outcome=outcome,
        shown=second_first.then(-1.0).otherwise(1.0) if "position" in votes.columns else pl.lit(1.0),
    ).drop_nulls("outcome")  # fmt: skip


def rank_pairs(run: Run, question: Question, mass: float = 0.9) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Rank what was compared and describe what judges make of the order: `RANKING`, `POSITIONS` and notes."""
    rows = _compared(run, question)
    names = pl.concat([rows["first"], rows["second"]]).unique().sort().to_list()
    judges = rows["judge"].unique().sort().to_list()
    codes = {"first": names, "second": names, "judge": judges}
    code_v = [positions(rows[column], keys, default=0) for column, keys in codes.items()]
    votes = Comparisons(code_v[0], code_v[1], code_v[2], rows["shown"].to_numpy(), rows["outcome"].to_numpy())
    fitted = fit_strengths(votes, len(names), len(judges))
    by_judge = _positions(question.name, votes, judges, fitted, mass).join(_flips(rows), on="judge", how="left")
    notes = [
        f"{question.name}: {'the order counts' if row['judge'] == ALL else row['judge'] + ' minds the order'}: what is "
        f"shown {'first' if row['bias'] > 0 else 'last'} wins by {100 * abs(row['bias']):.0f} points more often "
        f"({100 * row['bias_low']:z.0f} to {100 * row['bias_high']:z.0f}). The ranking allows for it."
        for row in by_judge.filter((pl.col("bias_low") > 0) | (pl.col("bias_high") < 0)).iter_rows(named=True)
    ]
    notes += [
        f"{question.name}: {row['judge']} turns round in {row['flips']:.0%} of {row['n_both']:,} pairs when the order "
        "is swapped."
        for row in by_judge.drop_nulls("flips").iter_rows(named=True)
    ]
    ties = float((votes.outcome_v == 2).mean())
    notes.append(f"{question.name}: {many(len(votes.outcome_v), 'comparison')} of {len(names):,}, {ties:.0%} ties.")
    return _ranking(question.name, votes, names, fitted, mass), by_judge, notes


def _flips(rows: pl.DataFrame) -> pl.DataFrame:
    """Return how many pairs each judge saw in both orders, and in which share of them another one won."""
    names = pl.concat_list("first", "second")
    shown_first = names.list.get(pl.when(pl.col("shown") > 0).then(0).otherwise(1))
    winner = names.list.get(pl.col("outcome"), null_on_oob=True).fill_null("tie")
    pairs = rows.group_by("judge", "key", pair=names.list.sort()).agg(
        n_orders=shown_first.n_unique(), n_winners=winner.n_unique()
    )
    share = (pl.col("n_winners") > 1).mean()
    swapped = pairs.filter(pl.col("n_orders") == 2)
    return swapped.group_by("judge").agg(pl.len().cast(pl.Int64).alias("n_both"), flips=share)


def fit_strengths(votes: Comparisons, n_names: int, n_judges: int) -> Strengths:
    """Fit strengths, discriminations, order effects and the weight of ties at their mode.

    The spread of strengths is estimated with them, in three rounds. Of more than 200 judges all share one order effect.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.integers(0, 3, (600, 2))
    >>> first, second = pairs[pairs[:, 0] != pairs[:, 1]].T
    >>> won = rng.random(len(first)) < 1 / (1 + np.exp(second - first))
    >>> votes = Comparisons(first, second, 0 * first, np.ones(len(first)), np.where(won, 0, 1))
    >>> fit_strengths(votes, 3, 1).strength_n.argsort().tolist()
    [0, 1, 2]
    """
    from scipy.optimize import minimize
    from scipy.sparse import coo_array

    n_orders = n_judges if n_judges <= MOST_JUDGES else 1
    order_v = votes.judge_v if n_orders > 1 or n_judges == 1 else np.zeros(len(votes.judge_v), dtype=np.int64)
    cuts = np.cumsum([n_names, n_orders, n_judges])
    won_vo = np.eye(3)[votes.outcome_v]
    scale = 1.0

    row_v = np.tile(np.arange(len(won_vo)), 4)
    columns = np.concatenate([votes.first_v, votes.second_v, cuts[0] + order_v, cuts[1] + votes.judge_v])

    def linear(at: Floats) -> tuple[Any, Floats]:
        """Return the slopes of the log-odds of every vote, votes by parameters, and the probability of outcomes."""
        strength_n, order_j, log_j, tie = np.split(at, cuts)
        gap_v = strength_n[votes.first_v] - strength_n[votes.second_v]
        slope_v = np.exp(log_j)[votes.judge_v]
        entries = np.concatenate([slope_v, -slope_v, votes.shown_v, slope_v * gap_v])
        design = coo_array((entries, (row_v, columns)), shape=(len(won_vo), cuts[-1])).tocsr()
        return design, _outcomes(slope_v * gap_v + order_j[order_v] * votes.shown_v, tie[0])

    def penalised(at: Floats) -> tuple[float, Floats]:
        design, p_vo = linear(at)
        off_vo = p_vo - won_vo
        slope = np.append(design.T @ (off_vo[:, 0] - off_vo[:, 1]) / 2, off_vo[:, 2].sum())
        loss = -float(np.log(np.maximum((p_vo * won_vo).sum(axis=1), 1e-300)).sum())
        return loss + float((precision * at) @ at) / 2, slope + precision * at

    at = np.zeros(cuts[-1] + 1)
    for _ in range(3):
        precision = 1.0 / np.repeat([scale, ORDER_SD, DISCRIMINATION_SD, 3.0], [n_names, n_orders, n_judges, 1]) ** 2
        at = minimize(penalised, at, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
        covariance = _covariance(*linear(at), precision[:-1])
        spread_n = covariance[:n_names] if covariance.ndim == 1 else np.diag(covariance)[:n_names]
        scale = max(math.sqrt(float(np.mean(at[:n_names] ** 2 + spread_n))), 0.1)
    strength_n, order_j, log_j, tie = np.split(at, cuts)
    return Strengths(strength_n, np.exp(log_j), order_j, float(tie[0]), covariance)


def _covariance(design: Any, p_vo: Floats, precision: Floats) -> Floats:
    """Return the inverse of the curvature, without that of ties, which moves all outcomes of a pair alike."""
    weight_v = (p_vo[:, 0] + p_vo[:, 1] - (p_vo[:, 0] - p_vo[:, 1]) ** 2) / 4
    if len(precision) > MOST_DENSE:
        return np.asarray(1.0 / (design.multiply(design).T @ weight_v + precision))
    curvature = (design.T @ design.multiply(weight_v[:, None]).tocsr()).toarray() + np.diag(precision)
    return np.asarray(np.linalg.inv(curvature))


def _spread(fitted: Strengths) -> Floats:
    return np.sqrt(fitted.covariance if fitted.covariance.ndim == 1 else np.diag(fitted.covariance))


def _ranking(question: str, votes: Comparisons, names: list[str], fitted: Strengths, mass: float) -> pl.DataFrame:
    n_names, spread_n, rng = len(names), _spread(fitted)[: len(names)], np.random.default_rng(0)
    # Only differences of strengths mean something: intervals are of the distance from the mean of all.
    covariance = fitted.covariance[:n_names, :n_names] if fitted.covariance.ndim == 2 else None
    if covariance is not None:
        centred = covariance - covariance.mean(axis=0) - covariance.mean(axis=1)[:, None] + covariance.mean()
        spread_n = np.sqrt(np.maximum(np.diag(centred), 0.0))
        draws = rng.multivariate_normal(fitted.strength_n, covariance, RANK_DRAWS, method="cholesky")
    else:
        draws = fitted.strength_n + spread_n * rng.standard_normal((RANK_DRAWS, n_names))
    rank_sn, tail = (-draws).argsort(axis=1).argsort(axis=1) + 1, (1.0 - mass) / 2
    ranks = np.quantile(rank_sn, [tail, 1.0 - tail], axis=0, method="nearest").astype(int)
    score_v = np.array([1.0, 0.0, 0.5])[votes.outcome_v]
    n_votes = np.bincount(votes.first_v, minlength=n_names) + np.bincount(votes.second_v, minlength=n_names)
    won = np.bincount(votes.first_v, score_v, n_names) + np.bincount(votes.second_v, 1.0 - score_v, n_names)
    strength_n, half = fitted.strength_n - fitted.strength_n.mean(), float(ndtri(1.0 - tail)) * spread_n
    order = (-strength_n.round(9)).argsort(kind="stable")
    rows = [
        (question, names[n], int(n_votes[n]), float(won[n] / max(n_votes[n], 1)), float(strength_n[n]),
         float(strength_n[n] - half[n]), float(strength_n[n] + half[n]), place, int(ranks[0, n]), int(ranks[1, n]))
        for place, n in enumerate(order.tolist(), 1)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=RANKING, orient="row")


def _positions(question: str, votes: Comparisons, judges: list[str], fitted: Strengths, mass: float) -> pl.DataFrame:
    """Say by how many points more the answer wins that is shown first, and how steep judges are."""
    n_names, n_orders = len(fitted.strength_n), len(fitted.order_j)
    spread, half = _spread(fitted), float(ndtri((1.0 + mass) / 2))
    shares = {sign: fitted.outcomes(votes._replace(shown_v=np.full(len(votes.shown_v), sign))) @ [1.0, 0.0, 0.5]
              for sign in (1.0, -1.0)}  # fmt: skip
    rows: list[tuple[Any, ...]] = []
    for j in range(n_orders):
        here = votes.judge_v == j if n_orders > 1 else np.ones(len(votes.judge_v), dtype=bool)
        bias = float((shares[1.0] - shares[-1.0])[here].mean())
        order, order_se = float(fitted.order_j[j]), float(spread[n_names + j])
        # By the delta method: a point of bias for so much order effect, at least half of what it is near 0.
        per = bias / order if abs(order) > 1e-6 else 0.25
        steep, log_half = float(fitted.discrimination_j[j]), half * float(spread[n_names + n_orders + j])
        ends = (steep, steep * math.exp(-log_half), steep * math.exp(log_half))
        steepness = ends if n_orders > 1 else (None,) * 3
        rows.append((question, judges[j] if n_orders > 1 or len(judges) == 1 else ALL, int(here.sum()), bias,
                     bias - half * per * order_se, bias + half * per * order_se, *steepness))  # fmt: skip
    return pl.DataFrame(rows, schema=dict(list(POSITIONS.items())[:-2]), orient="row")
