"""Two batches of items, mostly by the same annotators → which is worse, in which figures, and who changed.

Takes two runs whose items may differ, returns tables; every change is b minus a. Intervals of changes are put together
from those of the two runs as if these were independent (square and add: Zou and Donner 2008). An annotator's accuracy
is the model's: the chance to be right, over labels as frequent as in batch b. Of those who are said to have changed at
most three in a hundred have not (Benjamini and Hochberg 1995).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtr, ndtri

from moral_entropy.errors import RunFolderError
from moral_entropy.findings import listed
from moral_entropy.names import ALL
from moral_entropy.rules.intervals import exact_interval
from moral_entropy.runs.run import Run, as_run

SURE = 0.03
"""Share of those said to have changed who have not."""

LEAST_VOTES = 30
"""Votes in either batch from which on an annotator is looked at."""

WORSE_IF = {"alpha": -1, "uncertain": 1}
"""Figures that say which batch is worse, and in which direction."""


def compare_batches(run_a: Run | str | Path, run_b: Run | str | Path) -> dict[str, Any]:
    """Compare two batches of items.

    Returns
    -------
    dict
        `sentence` says which batch is worse and why; `figures` has one row per question and figure (alpha, uncertain,
        share of each label, rates of any and majority) with value, low and high of either run (`_a`, `_b`) and the
        change with its interval; `annotators` one row per question and annotator of both, with accuracy likewise, and
        whether that changed.

    Examples
    --------
    >>> import moral_entropy as me
    >>> first, second = (me.simulate_votes(n_items=80, n_annotators=5, votes_per_item=4, seed=s).votes for s in (1, 2))
    >>> sorted(compare_batches(me.audit(first, draws=50), me.audit(second, draws=50)))
    ['annotators', 'figures', 'sentence']
    """
    a, b = as_run(run_a), as_run(run_b)
    names_a, names_b = ([question.name for question in run.questions] for run in (a, b))
    if not set(names_a) & set(names_b):
        msg = (
            f"the runs share no question: {a.where} has {counted(names_a)}, {b.where} has {counted(names_b)}. "
            "A single question is called like its label column; name it alike in both inputs."
        )
        raise RunFolderError(msg)
    keys = ["question", "figure"]
    figures = changes(batch_figures(a).join(batch_figures(b), on=keys, suffix="_b", maintain_order="left"))
    annotators = _annotators(a, b)
    sentence = _sentence(a, b, figures, annotators)
    return {"sentence": sentence, "figures": figures, "annotators": annotators}


def counted(questions: Sequence[str]) -> str:
    """Count questions and name the first."""
    return f"{len(questions)} question{'s' * (len(questions) != 1)} (first: {questions[0]!r})"


def share_items(a: Run, b: Run) -> bool:
    """Return whether two runs share a question and item, by name."""
    sides = [run.scan("items").select("question", pl.col("item").cast(pl.String)).unique() for run in (a, b)]
    return bool(sides[0].join(sides[1], on=["question", "item"]).select(pl.len()).collect().item())


def batch_figures(run: Run) -> pl.DataFrame:
    """Return what tells batches apart: question, figure, value, low, high, n."""
    schema = {"question": pl.String, "figure": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64,
              "n": pl.Int64}  # fmt: skip
    rows = sorted(_figures(run), key=lambda row: [question.name for question in run.questions].index(row[0]))
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.unique(["question", "figure"], keep="first", maintain_order=True)


def _figures(run: Run) -> Iterator[tuple[Any, ...]]:
    alphas = run.table("agreement").filter(domain=ALL, statistic="krippendorff_alpha")
    yield from alphas.select("question", pl.lit("alpha"), "value", "low", "high", "n").iter_rows()
    for fit in run.manifest["questions"]:
        n = round(fit["items_counted"])
        shares = {"uncertain": fit["uncertain"]} | {f"share of {name}": p for name, p in fit["prevalence"].items()}
        for name, share in shares.items():
            low, high = exact_interval(np.array([share * n]), np.array([float(n)]), run.interval)
            yield fit["question"], name, share, float(low[0]), float(high[0]), n
    rates = run.rules.filter(pl.col("rule").is_in(["any", "majority"]), pl.col("metric").is_in(["fpr", "fnr"]),
                             domain=ALL, reference="consensus")  # fmt: skip
    binary = [question.name for question in run.questions if question.positive is not None]
    rates = rates.filter(pl.col("question").is_in(binary))
    yield from rates.select("question", pl.format("{}.{}", "rule", "metric"), "value", "low", "high", "n").iter_rows()


def changes(joined: pl.DataFrame) -> pl.DataFrame:
    """Name the columns of either run, and add the change with its interval, put together as if they were independent.

    An interval reaches from its figure to its ends, and not at all where the figure lies outside.
    """
    frame = joined.rename({name: f"{name}_a" for name in ("value", "low", "high", "n")})
    reach = {
        end + run: (sign * (pl.col(f"{end}_{run}") - pl.col(f"value_{run}"))).clip(lower_bound=0.0) ** 2
        for end, sign in (("low", -1), ("high", 1)) for run in "ab"
    }  # fmt: skip
    change = pl.col("value_b") - pl.col("value_a")
    below, above = (reach["lowb"] + reach["higha"]).sqrt(), (reach["highb"] + reach["lowa"]).sqrt()
    return frame.with_columns(change=change, low=change - below, high=change + above)


def _annotators(a: Run, b: Run) -> pl.DataFrame:
    """Return accuracies of annotators of both batches, and whose changed."""
    shares = {fit["question"]: fit["prevalence"] for run in (a, b) for fit in run.manifest["questions"]}
    keys = ["question", "annotator"]
    joined = _accuracies(a, shares).join(_accuracies(b, shares), on=keys, suffix="_b", maintain_order="left")
    frame = changes(joined).filter(pl.min_horizontal("n_a", "n_b") >= LEAST_VOTES)
    # An interval of 90% reaches 1.645 standard errors to either side; without draws there is none.
    width = (frame["high"] - frame["low"]).cast(pl.Float64).fill_null(np.inf).to_numpy()
    error_m = width / (2 * float(ndtri(0.5 + a.interval / 2)))
    p_m = 2 * ndtr(-np.abs(frame["change"].to_numpy()) / np.maximum(error_m, 1e-12))
    low_m = np.sort(p_m) <= SURE * np.arange(1, len(p_m) + 1) / max(len(p_m), 1)
    bar = np.sort(p_m)[np.flatnonzero(low_m)[-1]] if low_m.any() else -1.0
    return frame.with_columns(changed=pl.Series(p_m <= bar, dtype=pl.Boolean)).sort("change", maintain_order=True)


def _accuracies(run: Run, shares: dict[str, dict[str, float]]) -> pl.DataFrame:
    """Return every annotator's chance to be right, from the diagonal of the confusion matrix, with its interval."""
    cells = run.table("annotators").filter(pl.col("true") == pl.col("voted"), pl.col("question").is_in(list(shares)))
    weight = [shares[question].get(label, 0.0) for question, label in cells.select("question", "true").iter_rows()]
    cells = cells.with_columns(pl.col("annotator").cast(pl.String), weight=pl.Series(weight, dtype=pl.Float64))
    value = (pl.col("probability") * pl.col("weight")).sum() / pl.col("weight").sum()
    half = (((pl.col("high") - pl.col("low")) / 2 * pl.col("weight")) ** 2).sum().sqrt() / pl.col("weight").sum()
    half = pl.when(pl.col("low").null_count() == 0).then(half)
    people = cells.group_by("question", "annotator", maintain_order=True)
    return people.agg(value=value, low=value - half, high=value + half, n=pl.col("n_votes").first())


def flips(a: Run, b: Run) -> pl.DataFrame:
    """Return how often an annotator voted otherwise on the same items: two versions of a judge on an anchor set."""
    keys = ["question", "item", "annotator"]
    texts = pl.col("item", "annotator").cast(pl.String)
    sides = [run.table("votes").with_columns(texts).unique(keys, maintain_order=True) for run in (a, b)]
    pairs = sides[0].join(sides[1].select(*keys, label_b="label"), on=keys)
    rows = pairs.group_by("question", "annotator").agg(
        n=pl.len().cast(pl.Int64), flips=(pl.col("label") != pl.col("label_b")).sum().cast(pl.Int64)
    )
    low, high = exact_interval(rows["flips"].to_numpy(), rows["n"].to_numpy(), a.interval)
    bounds = {"low": pl.Series(low, dtype=pl.Float64), "high": pl.Series(high, dtype=pl.Float64)}
    return rows.with_columns(value=pl.col("flips") / pl.col("n"), **bounds).sort("question", "annotator")


def _sentence(a: Run, b: Run, figures: pl.DataFrame, annotators: pl.DataFrame) -> str:
    """Say in one sentence which batch is worse, and why."""
    clear: dict[int, list[str]] = {1: [], -1: []}
    for row in figures.filter(pl.col("figure").is_in(list(WORSE_IF))).iter_rows(named=True):
        if row["low"] is not None and (row["low"] > 0 or row["high"] < 0):
            worse = WORSE_IF[row["figure"]] * (1 if row["change"] > 0 else -1)
            digits = ".0%" if row["figure"] == "uncertain" else ".2f"
            ends = f"{row['value_a']:{digits}} to {row['value_b']:{digits}}"
            clear[worse].append(f"{row['figure']} of {row['question']} went from {ends}")
    changed = annotators.filter("changed")
    rows = changed.select("annotator", "value_a", "value_b").iter_rows()
    people = [f"{name} ({before:.0%} to {after:.0%})" for name, before, after in rows]
    if annotators.is_empty():
        why = "no annotator has enough votes in both"
    elif not people:
        why = f"none of {annotators['annotator'].n_unique()} shared annotators changed for sure"
    elif changed.height > annotators.height / 2:
        why = f"most shared annotators changed ({listed(people)}), so the items or the instructions may have"
    else:
        why = f"annotators who changed: {listed(people)}"
    if clear[1] and clear[-1]:
        return f"{b.where} is worse in some figures and better in others: {listed(clear[1] + clear[-1])}; {why}."
    if clear[1] or clear[-1]:
        word, facts = ("worse", clear[1]) if clear[1] else ("better", clear[-1])
        return f"{b.where} is {word} than {a.where}: {listed(facts)}; {why}."
    return f"Neither batch is surely worse in agreement or uncertain labels; {why}."


# --- A gate ----------------------------------------------------------------------------------------------------------

TOLERATED = {"alpha": -0.05, "uncertain": 0.05}
"""By how much a figure of a question may be worse than before: alpha lower, the share of uncertain labels higher."""


def limits_against(run: Run, before: Run) -> tuple[list[str], list[str]]:
    """Return the limits of a run that shall not be worse than one before: maxima and minima, as `check` takes them."""
    questions = {question.name for question in run.questions}
    maxima: list[str] = []
    minima: list[str] = []
    for question, figure, value in batch_figures(before).select("question", "figure", "value").iter_rows():
        if question in questions and figure in TOLERATED and value is not None:
            limit = f"{question}/{figure}={value + TOLERATED[figure]:.6g}"
            (maxima if TOLERATED[figure] > 0 else minima).append(limit)
    error, error_before = run.verdict.error, before.verdict.error
    if error is not None and error_before is not None:
        maxima.append(f"error={error_before.value + TOLERATED['uncertain']:.6g}")
    if not maxima and not minima:
        msg = f"{run.where} and {before.where} share no question, so there is nothing to check."
        raise RunFolderError(msg)
    return maxima, minima
