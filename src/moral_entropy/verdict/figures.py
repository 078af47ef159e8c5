"""Figures of a run that `moral-entropy check` can put limits on, besides those on rules.

`error` is the share of wrong labels by spot check or gold and `accuracy` the rest; `uncertain` the share of uncertain
labels, `votes_per_item` their mean, `alpha` Krippendorff's (the lowest question's). With `care/` before `uncertain` and
`alpha` they are one question's, with `BLM:` before that one domain's. `annotators.below_chance` is the share of
annotators whose votes are surely worse than guessing.

Of one annotator there is `annotator:ann.accuracy`: the share of the votes that are the consensus label, of all
questions, with `@gold` those that are gold's; with `care/` before it, one question's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from moral_entropy.model.consensus import surely_below_chance
from moral_entropy.model.entropy import MOST_WRONG
from moral_entropy.names import ALL
from moral_entropy.rules.intervals import exact_interval
from moral_entropy.runs.run import Run
from moral_entropy.schemas import SCHEMAS
from moral_entropy.ties import DECIMALS, TIE
from moral_entropy.verdict.rates import mean_over_items, wrong_by
from moral_entropy.verdict.sheet import KEYS

ORDER = ("unknown", "not yet", "ship soft", "ship")
"""Verdicts, from worst to best."""

ANNOTATOR = "annotator:"

Row = dict[str, Any]


def run_figures(run: Run, *, annotators: bool = True, domains: bool = True) -> dict[str, Row]:
    """Return the figures by name: value, low, high, n.

    Parameters
    ----------
    run
        The run.
    annotators, domains
        Whether to return those of single annotators and of single domains, of which there may be many.
    """
    figures = dict(_uncertain(run, ((), ("question",), *((("domain",), ("domain", "question")) * domains))))
    figures["votes_per_item"] = _row(mean_over_items(run, pl.col("n_votes")), n=figures["uncertain"]["n"])
    alphas = run.table("agreement").filter((pl.col("domain") == ALL) | domains, statistic="krippendorff_alpha")
    lowest_first = pl.col("domain") != ALL, pl.col("value").round(DECIMALS)
    alphas = alphas.sort(*lowest_first, nulls_last=True, maintain_order=True)
    rows = {
        _name("alpha", row): _row(row["value"], row["low"], row["high"], row["n"] or 0) for row in alphas.to_dicts()
    }
    figures |= {"alpha": next(iter(rows.values()), _row(None)), **rows}
    # Without checked labels there is no value, and no limit holds.
    figures |= {"error": _row(None), "accuracy": _row(None)}
    if (error := run.verdict.error) is not None:
        figures["error"] = _row(error.value, error.low, error.high, error.checked)
        figures["accuracy"] = _row(1.0 - error.value, 1.0 - error.high, 1.0 - error.low, error.checked)
    figures["annotators.below_chance"] = _below_chance(run)
    return figures | (dict(_annotators(run)) if annotators else {})


def _row(value: float | None, low: float | None = None, high: float | None = None, n: int = 0) -> Row:
    return {"value": value, "low": low, "high": high, "n": n}


def _name(figure: str, place: Row) -> str:
    """Name a figure of a place: `BLM:care/alpha`, where BLM is a domain and care a question."""
    domain, question = place.get("domain", ALL), place.get("question", "")
    return "".join([f"{domain}:" * (domain != ALL), f"{question}/" * bool(question), figure])


def _uncertain(run: Run, scopes: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, Row]]:
    """Yield the share of labels whose chance of error is above ¼: of all, and by each of the scopes."""
    count, is_uncertain = pl.col("count"), wrong_by(run, "p") > MOST_WRONG + TIE
    cells = run.scan("items").group_by("domain", "question").agg(count.sum(), value=(count * is_uncertain).sum())
    sums = cells.sort("domain", "question").collect(engine="streaming")
    for scope in scopes:
        total = pl.col("value", "count").sum()
        rows = sums.drop_nulls(scope).group_by(scope, maintain_order=True).agg(total) if scope else sums.select(total)
        for row in rows.iter_rows(named=True):
            yield _name("uncertain", row), _row(row["value"] / max(row["count"], 1.0), n=round(row["count"]))


# --- Annotators ---------------------------------------------------------------------------------------------------


def _below_chance(run: Run) -> Row:
    rows = run.annotators.select("annotator", "below_chance", "n_votes").drop_nulls("below_chance")
    if rows.is_empty():
        return _row(None)
    surely = surely_below_chance(rows["below_chance"].to_numpy(), rows["n_votes"].to_numpy())
    doubtful = rows.with_columns(surely=pl.Series(surely)).group_by("annotator").agg(pl.col("surely").any())
    return _row(float(doubtful["surely"].sum()) / doubtful.height, n=doubtful.height)


def _annotators(run: Run) -> Iterator[tuple[str, Row]]:
    """Yield the accuracy of every annotator: on each question, and on all."""
    consensus = run.scan("items").select(*KEYS, "count", truth="label")
    for suffix, labels in {"": consensus, "@gold": None}.items():
        for question, annotator, right, n, low, high in annotator_shares(run, labels).iter_rows():
            name = _name(f"{ANNOTATOR}{annotator}.accuracy{suffix}", {"question": question})
            yield name, _row(right / n, low, high, n)


def annotator_shares(run: Run, labels: pl.LazyFrame | None) -> pl.DataFrame:
    """Count every annotator's votes that are right, by question, and over all (question "").

    Parameters
    ----------
    run
        The run.
    labels
        What is right: question, item, truth, and count, for how many items each stands. None for gold, by which the
        table of annotators has counted.

    Returns
    -------
    pl.DataFrame
        question, annotator, right, n, and the exact interval of the share of right ones: low, high.
    """
    annotator = pl.col("annotator").cast(pl.String)
    if labels is None:
        right = pl.col("gold_accuracy") * pl.col("gold_votes")
        counts = run.annotators.lazy().select("question", annotator, right=right, n="gold_votes")
    else:
        votes = run.scan("votes") if run.has("votes") else pl.LazyFrame(schema=SCHEMAS["votes"])
        right = pl.col("count") * (pl.col("label") == pl.col("truth"))
        people = votes.join(labels, on=KEYS, how="inner").group_by("question", annotator)
        counts = people.agg(right=right.sum(), n=pl.col("count").sum()).sort("question", "annotator")
    counts = counts.drop_nulls().filter(pl.col("n") > 0).with_columns(pl.col("n").round().cast(pl.Int64))
    by_question = counts.collect(engine="streaming")
    pooled = by_question.group_by("annotator", maintain_order=True).agg(pl.col("right", "n").sum(), question=pl.lit(""))
    frame = pl.concat([by_question, pooled.select(by_question.columns)])
    low, high = exact_interval(frame["right"].to_numpy(), frame["n"].cast(pl.Float64).to_numpy(), run.interval)
    return frame.with_columns(low=low, high=high)
