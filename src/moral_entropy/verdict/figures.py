"""Figures of a run that `moral-entropy check` can put limits on, besides those on rules.

`error` is the share of wrong labels by spot check or gold and `accuracy` the rest; `uncertain` the share of uncertain
labels, `votes_per_item` their mean, `alpha` Krippendorff's (the lowest question's): with
`care/` before it, one question's. `annotators.below_chance` is the share of annotators whose votes are surely
worse than guessing.

Of one annotator there are `annotator:ann.accuracy` (share of the votes that are the consensus label, of all questions;
with `@gold` those that are gold's), `annotator:ann.youden`, `.sensitivity`, `.specificity` and `.below_chance` (the
worst question's); with `care/` before it, one question's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from moral_entropy.model.consensus import surely_below_chance
from moral_entropy.model.entropy import MOST_WRONG
from moral_entropy.names import ALL
from moral_entropy.rules.intervals import exact_interval
from moral_entropy.runs.run import Run
from moral_entropy.ties import DECIMALS, TIE
from moral_entropy.verdict.rates import mean_over_items, wrong_by

ORDER = ("unknown", "not yet", "ship soft", "ship")
"""Verdicts, from worst to best."""

ANNOTATOR = "annotator:"

Row = dict[str, Any]


def uncertain_share(run: Run) -> float:
    """Return the share of labels that are uncertain: the chance of error is above ¼."""
    return mean_over_items(run, wrong_by(run, "p") > MOST_WRONG + TIE)


def run_figures(run: Run, *, annotators: bool = True) -> dict[str, Row]:
    """Return the figures by name: value, low, high, n.

    Parameters
    ----------
    run
        The run.
    annotators
        Whether to return those of single annotators, of whom there may be many.
    """
    fits = run.manifest["questions"]
    items = round(sum(fit["items_counted"] for fit in fits))
    figures = {"uncertain": _row(uncertain_share(run), n=items)}
    for name in dict.fromkeys(fit["question"] for fit in fits):
        parts = [(fit["uncertain"], fit["items_counted"]) for fit in fits if fit["question"] == name]
        n = sum(count for _, count in parts)
        figures[f"{name}/uncertain"] = _row(sum(share * count for share, count in parts) / max(n, 1.0), n=round(n))
    figures |= {"votes_per_item": _row(mean_over_items(run, pl.col("n_votes")), n=items), **_alphas(run)}
    error = run.verdict.error
    # Without checked labels there is no value, and no limit holds.
    figures |= {"error": _row(None), "accuracy": _row(None)}
    if error is not None:
        figures["error"] = _row(error.value, error.low, error.high, error.checked)
        figures["accuracy"] = _row(1.0 - error.value, 1.0 - error.high, 1.0 - error.low, error.checked)
    figures["annotators.below_chance"] = _below_chance(run)
    return figures | (dict(_annotators(run)) if annotators else {})


def _row(value: float | None, low: float | None = None, high: float | None = None, n: int = 0) -> Row:
    return {"value": value, "low": low, "high": high, "n": n}


def _alphas(run: Run) -> dict[str, Row]:
    rows = run.table("agreement").filter(domain=ALL, statistic="krippendorff_alpha")
    rows = rows.sort(pl.col("value").round(DECIMALS), nulls_last=True, maintain_order=True)
    figures = {f"{row['question']}/alpha": _row(row["value"], row["low"], row["high"], row["n"] or 0)
             for row in rows.iter_rows(named=True)}  # fmt: skip
    return {"alpha": next(iter(figures.values()), _row(None)), **figures}


# --- Annotators ---------------------------------------------------------------------------------------------------


def _below_chance(run: Run) -> Row:
    rows = run.annotators.select("annotator", "below_chance", "n_votes").drop_nulls("below_chance")
    if rows.is_empty():
        return _row(None)
    surely = surely_below_chance(rows["below_chance"].to_numpy(), rows["n_votes"].to_numpy())
    doubtful = rows.with_columns(surely=pl.Series(surely)).group_by("annotator").agg(pl.col("surely").any())
    return _row(float(doubtful["surely"].sum()) / doubtful.height, n=doubtful.height)


def _annotators(run: Run) -> Iterator[tuple[str, Row]]:
    """Yield the figures of every annotator: of each question, and of all."""
    summary = run.annotators.with_columns(pl.col("annotator").cast(pl.String))
    yield from _worst(summary)
    yield from _shares(_like_consensus(run), "", run.interval)
    gold = summary.filter(pl.col("gold_votes") > 0).select(
        "question", "annotator", right=pl.col("gold_accuracy") * pl.col("gold_votes"), n="gold_votes"
    )
    yield from _shares(gold, "@gold", run.interval)


def _worst(summary: pl.DataFrame) -> Iterator[tuple[str, Row]]:
    """Yield figures of the model: of each question, and the worst of an annotator's questions without one."""
    for figure, worst_first in (("youden", 1), ("sensitivity", 1), ("specificity", 1), ("below_chance", -1)):
        bounds = [f"{figure}_low", f"{figure}_high"] if f"{figure}_low" in summary.columns else []
        rows = summary.drop_nulls(figure).select("question", "annotator", "n_votes", figure, *bounds)
        rows = rows.sort((pl.col(figure) * worst_first).round(DECIMALS), maintain_order=True)
        worst_by_name: dict[str, Row] = {}
        for question, annotator, n, value, *interval in rows.iter_rows():
            low, high = interval or (None, None)
            row = _row(value, low, high, n)
            yield f"{question}/{ANNOTATOR}{annotator}.{figure}", row
            worst_by_name.setdefault(f"{ANNOTATOR}{annotator}.{figure}", row)
        yield from worst_by_name.items()


def _like_consensus(run: Run) -> pl.DataFrame:
    """Count every annotator's votes that are the consensus label, by question."""
    if not run.has("votes"):
        return pl.DataFrame(schema={"question": pl.String, "annotator": pl.String, "right": pl.Float64, "n": pl.Int64})
    labels = run.scan("items").select("question", "item", consensus="label", weight="count")
    votes = run.scan("votes").drop_nulls("annotator").join(labels, on=["question", "item"], how="inner")
    matching = pl.col("weight") * (pl.col("label") == pl.col("consensus"))
    by_annotator = votes.group_by("question", pl.col("annotator").cast(pl.String)).agg(
        right=matching.sum(), n=pl.col("weight").sum().round().cast(pl.Int64)
    )
    return by_annotator.sort("question", "annotator").collect(engine="streaming")


def _shares(counts: pl.DataFrame, reference: str, mass: float) -> Iterator[tuple[str, Row]]:
    """Yield the accuracy of every annotator, with its exact interval: by question, and over all."""
    everything = counts.group_by("annotator", maintain_order=True).agg(pl.col("right", "n").sum())
    pooled = everything.with_columns(question=pl.lit("")).select("question", "annotator", "right", "n")
    for frame in (counts.select("question", "annotator", "right", "n"), pooled):
        low, high = exact_interval(frame["right"].to_numpy(), frame["n"].cast(pl.Float64).to_numpy(), mass)
        for (question, annotator, right, n), lower, upper in zip(frame.iter_rows(), low, high, strict=True):
            scope = f"{question}/" if question else ""
            yield f"{scope}{ANNOTATOR}{annotator}.accuracy{reference}", _row(right / n, float(lower), float(upper), n)


def is_at_least(answer: str, least: str) -> bool:
    """Return whether a verdict is as good as one that is asked for.

    Examples
    --------
    >>> is_at_least("ship", "ship soft"), is_at_least("unknown", "ship soft")
    (True, False)
    """
    return ORDER.index(answer) >= ORDER.index(least)
