"""Checked labels → the share of all labels that is wrong, and of the votes of every annotator.

Labels are checked by a spot check or, where none was made, by gold. Sheets of several spot checks add up; those made to
repair labels measure nothing. The interval is Jeffreys'. Whether labels are shown to be good enough rests on the exact
bounds of Clopper and Pearson.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from moral_entropy.rules.intervals import exact_interval, jeffreys_interval
from moral_entropy.runs.run import Run
from moral_entropy.ties import DECIMALS
from moral_entropy.verdict.figures import annotator_shares
from moral_entropy.verdict.rates import pooled_rates
from moral_entropy.verdict.sheet import KEYS, spot_checks
from moral_entropy.votes.table import Floats

MOST_CHECKS = 100_000
"""Largest number of checks that anybody is told to make."""

FIGURES = ("checked", "wrong", "value", "low", "high")
CHECKED = pl.Schema(dict.fromkeys(("kind", "name"), pl.String()) | dict.fromkeys(FIGURES, pl.Float64()))
CHECKED["checked"] = pl.Int64()


@dataclass(frozen=True)
class ErrorRate:
    """The share of all labels that is wrong.

    Parameters
    ----------
    checked, wrong
        How many labels were checked, and how many of them are wrong; a tie that is broken at random counts as a part.
    value, low, high
        The share, and its interval.
    at_least, bound
        Exact bounds of the share (Clopper and Pearson): each is missed in at most one sheet of twenty (for an interval
        of 90%), whatever the share.
    """

    checked: int
    wrong: float
    value: float
    low: float
    high: float
    at_least: float
    bound: float


def error_rate(
    wrong_j: Floats | Sequence[float], population: float, *, weight_j: Floats | Sequence[float] | None = None,
    mass: float = 0.9,
) -> ErrorRate:  # fmt: skip
    """Estimate the share of wrong labels from checked ones.

    Parameters
    ----------
    wrong_j
        Whether each checked label is wrong.
    population
        How many labels there are. What is checked is known: where most of them were, the interval is narrow.
    weight_j
        For how many labels each stands.
    mass
        Mass of the interval.

    Examples
    --------
    >>> rate = error_rate([1] * 8 + [0] * 42, 10_000)
    >>> round(rate.low, 2), rate.value, round(rate.high, 2)
    (0.09, 0.16, 0.26)
    """
    wrong = np.asarray(wrong_j, dtype=float)
    weight = np.ones(len(wrong)) if weight_j is None else np.asarray(weight_j, dtype=float)
    total = float(weight.sum())
    if not total:
        return ErrorRate(0, 0.0, float("nan"), 0.0, 1.0, 0.0, 1.0)
    share, worth = float(wrong @ weight) / total, total**2 / float(weight @ weight)
    return _rate(len(wrong), float(wrong.sum()), share, worth, population, mass)


def _rate(checked: int, wrong: float, share: float, worth: float, population: float, mass: float) -> ErrorRate:
    """Return the share with its interval; `worth` is how many equally weighted checks there are (Kish 1965)."""
    unseen = max(1.0 - checked / population, 0.0)
    if unseen < 1e-9:
        return ErrorRate(checked, wrong, share, share, share, share, share)
    # Sampling without replacement is worth that many draws with it.
    n = np.asarray(worth / unseen)
    low, high, at_least, bound = (float(end) for interval in (jeffreys_interval, exact_interval)
                                  for end in interval(share * n, n, mass))  # fmt: skip
    low, high = 0.0 if share == 0.0 else low, 1.0 if share == 1.0 else high
    return ErrorRate(checked, wrong, share, low, high, at_least, bound)


def checks_needed(share: float, tolerance: float, *, mass: float = 0.9) -> int | None:
    """Return how many random checks would show that no more than `tolerance` is wrong, if `share` is.

    None where the share is not below the tolerance, or where it would take more than anybody checks.

    Examples
    --------
    >>> checks_needed(0.05, 0.10)
    107
    >>> checks_needed(0.12, 0.10) is None
    True
    """
    if share >= tolerance:
        return None

    def shown(n: int) -> bool:
        return bool(exact_interval(np.asarray(share * n), np.asarray(n), mass)[1] <= tolerance)

    n = 1 + bisect_left(range(1, MOST_CHECKS + 1), True, key=shown)
    return n if n <= MOST_CHECKS else None


class Checks(NamedTuple):
    """The checked labels of a run.

    Parameters
    ----------
    by
        "spot check" or "gold".
    error
        The share of the consensus' labels that is wrong.
    worst
        The same if every label on a row left blank is wrong.
    population
        How many labels there are of which the checked ones are a part.
    blank
        Rows of the sheets that have no answer.
    rows
        The checked items of a spot check: question, item, truth, label, weight. None where gold was used.
    """

    by: Literal["spot check", "gold"]
    error: ErrorRate
    worst: ErrorRate
    population: float
    blank: int = 0
    rows: pl.DataFrame | None = None


def checks_of(run: Run) -> Checks | None:
    """Return the checked labels of a run: by spot checks, else by gold; None where nothing was checked."""
    return spot_checks_of(run) or gold_checks_of(run)


def gold_sums(run: Run) -> pl.DataFrame:
    """Count, by question and part, all labels, those with gold (`n`; `squares` of their weights) and the wrong ones."""
    has_gold, weight = pl.col("gold").is_not_null(), pl.col("count")
    sums = run.scan("items").group_by("question", "part").agg(
        items=weight.sum(),
        n=weight.filter(has_gold).sum(),
        squares=weight.filter(has_gold).pow(2).sum(),
        wrong=weight.filter(has_gold & (pl.col("gold") != pl.col("label"))).sum(),
    )  # fmt: skip
    return sums.sort("question", "part").collect(engine="streaming")


def gold_checks_of(run: Run) -> Checks | None:
    """Count the labels that gold says are wrong.

    None where there is no gold, where it was used as evidence, and where a column was only guessed to be gold: nobody
    said that its answers are right.
    """
    if run.manifest.get("use_gold") or "gold" in run.manifest["guessed"]:
        return None
    n_all, n_gold, squares, wrong = gold_sums(run).select(pl.col("items", "n", "squares", "wrong").sum()).row(0)
    if not n_gold:
        return None
    error = _rate(round(n_gold), wrong, wrong / n_gold, n_gold**2 / squares, n_all, run.interval)
    return Checks("gold", error, error, n_all)


def how_wrong(run: Run) -> pl.Expr:
    """Return whether a label is wrong by its `truth`: 0 or 1, and of the levels of a scale ½ within one level."""
    wrong = (pl.col("truth") != pl.col("label")).cast(pl.Float64)
    for question in run.questions:
        if question.levels:
            rank_of = {label: rank for rank, label in enumerate(question.labels)}
            rank, truth = (pl.col(name).replace_strict(rank_of, default=None, return_dtype=pl.Int64)
                           for name in ("label", "truth"))  # fmt: skip
            here = pl.col("question") == question.name
            wrong = pl.when(here).then((rank - truth).abs().clip(0, 2) / 2.0).otherwise(wrong)
    return wrong


def spot_checks_of(run: Run) -> Checks | None:
    """Return the answers of the sheets that measure, with the weights of all of them together; None without any."""
    rows = spot_checks(run).filter(pl.col("purpose") == "measure")
    rows = rows.filter(pl.col("answer").is_not_null().any().over("sheet"))
    if rows.is_empty():
        return None
    items = run.table("items", where=pl.col("item").is_in(rows["item"].unique().implode())).select(*KEYS, now="label")
    rows = rows.rename({"answer": "truth"}).join(items, on=KEYS, how="inner", maintain_order="left")
    # Of a run whose labels are the answers, what was wrong before.
    rows = rows.with_columns(label=pl.coalesce("label", "now"))
    # A sheet counts as often as it has rows, and within it each row by its block.
    weight = pl.col("weight") / pl.col("weight").mean().over("sheet")
    answered, every = rows.drop_nulls("truth").with_columns(weight), rows.with_columns(weight)
    population = float(sum(fit["items_counted"] for fit in run.manifest["questions"]))
    # A row is left blank where the answer is hard: nobody knows that its label is right.
    error, worst = (
        error_rate(sheet.select(wrong).to_series().to_numpy(), population, weight_j=sheet["weight"].to_numpy(),
                   mass=run.interval)
        for sheet, wrong in ((answered, how_wrong(run)), (every, pl.col("truth").ne_missing(pl.col("label"))))
    )  # fmt: skip
    return Checks("spot check", error, worst, population, every.height - answered.height, answered)


def checked_frame(run: Run) -> pl.DataFrame:
    """Return what the checks found of the consensus, of each annotator and, where gold checks, each rule: `CHECKED`.

    Annotators come worst first, those who are surely wrong most often; their intervals are exact.
    """
    checks = checks_of(run)
    if checks is None:
        return pl.DataFrame(schema=CHECKED)
    error, labels = checks.error, None
    rows = [("consensus", "consensus", error.checked, error.wrong, error.value, error.low, error.high)]
    if checks.rows is None:
        rates = pooled_rates(run, "gold")
        for name in run.table("audit_rules")["rule"].unique(maintain_order=True).to_list():
            if (row := rates.get((name, "disagreement"))) is not None:
                # Where gold knows all labels, there is no interval.
                no_ends = error.checked >= checks.population or row["low"] is None
                low, high = (row["value"],) * 2 if no_ends else (row["low"], row["high"])
                rows.append(("rule", name, row["n"], row["value"] * row["n"], row["value"], low, high))
    else:
        labels = checks.rows.lazy().select(*KEYS, "truth", count=pl.lit(1.0))
    wrong = (pl.col("n") - pl.col("right")).round(DECIMALS)
    people = annotator_shares(run, labels).filter(question="").select(
        kind=pl.lit("annotator"), name="annotator", checked="n", wrong=wrong, value=1.0 - pl.col("right") / pl.col("n"),
        low=1.0 - pl.col("high"), high=1.0 - pl.col("low"),
    )  # fmt: skip
    worst_first = people.sort(-pl.col("low").round(DECIMALS), maintain_order=True)
    return pl.concat([pl.DataFrame(rows, schema=CHECKED, orient="row"), worst_first])
