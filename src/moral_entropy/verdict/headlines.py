"""Figures of a run: the four headlines, and those that `moral-entropy check` can put limits on.

The headlines: what was found by checking, what share of the labels is uncertain and of which kind, what the votes are
worth, and what the rule that most would use changes.

Limits, besides those on rules:
`error` is the share of wrong labels by spot check or gold and `accuracy` the rest; `uncertain` the share of uncertain
labels, `votes_per_item` their mean, `alpha` Krippendorff's (the lowest question's): with
`care/` before it, one question's. `annotators.below_chance` is the share of annotators whose votes are surely
worse than guessing.

Of one annotator there are `annotator:ann.accuracy` (share of the votes that are the consensus label, of all questions;
with `@gold` those that are gold's), `annotator:ann.youden`, `.sensitivity`, `.specificity` and `.below_chance` (the
worst question's); with `care/` before it, one question's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from moral_entropy.model.consensus import surely_below_chance
from moral_entropy.model.entropy import ENOUGH_VOTES, MOST_WRONG
from moral_entropy.names import ALL
from moral_entropy.rules.intervals import exact_interval
from moral_entropy.runs.run import Run
from moral_entropy.schemas import BETWEEN, PARTS
from moral_entropy.ties import DECIMALS, TIE, tie_key
from moral_entropy.verdict.rates import ends_in_percent, is_outside, main_rule, pooled_rate
from moral_entropy.verdict.verdict import Verdict

ORDER = ("unknown", "not yet", "ship soft", "ship")
"""Verdicts, from worst to best."""

ANNOTATOR = "annotator:"

Row = dict[str, Any]

KINDS = {
    "ambiguity": "ambiguous: no vote settles them",
    "doubt_votes": "too few votes",
    "doubt_annotators": "annotators too little known",
    BETWEEN: "groups have a label each: no vote settles them",
}
"""Why a label is uncertain, by the largest part of its entropy."""


@dataclass(frozen=True)
class Headline:
    """One figure of the first screen.

    Parameters
    ----------
    name
        What it is.
    value, low, high
        As text, with its unit; the last two are empty without an interval.
    note
        What it says.
    """

    name: str
    value: str
    low: str
    high: str
    note: str


def headlines(run: Run, verdict: Verdict) -> list[Headline]:
    """Return the four figures a reader asks for first."""
    found = [_checked(verdict), _uncertain(run), _votes(run), _changes(run)]
    return [headline for headline in found if headline is not None]


def _checked(verdict: Verdict) -> Headline:
    error = verdict.error
    if error is None:
        return Headline("labels found wrong", "not checked", "", "", "no spot check was made and there is no gold")
    by = "a spot check" if verdict.checked_by == "spot check" else "gold"
    note = f"{error.wrong:,.0f} of {error.checked:,}, by {by}"
    if error.low == error.high:
        return Headline("labels found wrong", f"{error.value:.1%}", "", "", f"{note}: all of them were checked")
    return _share("labels found wrong", error.value, error.low, error.high, note)


def uncertain_by_kind(run: Run) -> dict[str, float]:
    """Return the share of labels that are uncertain (chance of error above ¼), by the largest part of the entropy."""
    two = [question.name for question in run.questions if len(question.labels) == 2]
    top = pl.when(pl.col("question").is_in(two)).then(pl.max_horizontal("p", 1.0 - pl.col("p"))).otherwise("p")
    weight = pl.col("count")
    # Ties go to the first: parts are compared to nine decimals.
    names = (*PARTS, BETWEEN) if run.between_groups else PARTS
    parts = {name: pl.col(name).fill_null(0.0).round(DECIMALS) for name in names}
    largest = pl.max_horizontal(parts.values())
    is_largest = [pl.when((part == largest) & (largest > 0)).then(pl.lit(name)) for name, part in parts.items()]
    kind = pl.coalesce(*is_largest, pl.lit(""))
    rows = run.scan("items").select(weight, doubtful=top < 1.0 - MOST_WRONG - TIE, kind=kind)
    sums = rows.group_by("kind").agg(weight.filter(pl.col("doubtful")).sum(), all=weight.sum())
    frame = sums.collect(engine="streaming")
    total = max(float(frame["all"].sum()), 1.0)
    shares = dict(zip(frame["kind"].to_list(), (frame["count"] / total).to_list(), strict=True))
    return {kind: shares.get(kind, 0.0) for kind in (*names, "")}


def _uncertain(run: Run) -> Headline:
    shares = uncertain_by_kind(run)
    kinds = [f"{share:.1%} {KINDS[kind]}" for kind, share in shares.items() if kind and share >= 5e-4]
    note = f"the chance that the label is wrong is above {MOST_WRONG:.0%}"
    if kinds and (votes_per_item(run) >= ENOUGH_VOTES or run.between_groups):
        note = "; ".join(kinds)
    return Headline("labels uncertain", f"{sum(shares.values()):.1%}", "", "", note)


def votes_per_item(run: Run) -> float:
    """Return the mean number of votes per item."""
    weight = pl.col("count")
    mean = run.scan("items").select((pl.col("n_votes") * weight).sum() / weight.sum())
    return float(mean.collect(engine="streaming").item() or 0.0)


def _votes(run: Run) -> Headline:
    return Headline("votes per item", f"{votes_per_item(run):.1f}", "", "", "mean over all items and questions")


def _changes(run: Run) -> Headline | None:
    rule = main_rule(run)
    row = pooled_rate(run, rule, "disagreement")
    if row is None:
        return None
    note = "share of items that the rule labels otherwise than the consensus does"
    return _share(f"changed by {rule}", row["value"], row["low"], row["high"], note)


def _share(name: str, value: float, low: float | None, high: float | None, note: str) -> Headline:
    shown = f"{tie_key(value):z.1%}"
    if low is None or high is None or tie_key(high - low) == 0 == tie_key(value - low):
        return Headline(name, shown, "", "", note)
    if is_outside(value, low, high):
        note += "; outside its range, as on thin votes the label of the mean p is not the one most draws give"
    low_text, high_text = (f"{end}%" for end in ends_in_percent(low, high))
    return Headline(name, shown, low_text, high_text, note)


def with_interval(one: Headline) -> str:
    """Show a figure with its interval."""
    return f"{one.value} ({one.low} to {one.high})" if one.low and one.high else one.value


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
    found = {"uncertain": _row(sum(uncertain_by_kind(run).values()), n=items), **_uncertain_by_question(fits)}
    found |= {"votes_per_item": _row(votes_per_item(run), n=items), **_alphas(run)}
    error = run.verdict.error
    # Without checked labels there is no value, and no limit holds.
    found["error"] = _row(None) if error is None else _row(error.value, error.low, error.high, error.checked)
    found["accuracy"] = (
        _row(None) if error is None else _row(1.0 - error.value, 1.0 - error.high, 1.0 - error.low, error.checked)
    )
    found["annotators.below_chance"] = _below_chance(run)
    return found | (dict(_annotators(run)) if annotators else {})


def _row(value: float | None, low: float | None = None, high: float | None = None, n: int = 0) -> Row:
    return {"value": value, "low": low, "high": high, "n": n}


def _uncertain_by_question(fits: Iterable[Row]) -> dict[str, Row]:
    sums: dict[str, list[float]] = {}
    for fit in fits:
        one = sums.setdefault(fit["question"], [0.0, 0.0])
        one[0] += fit["uncertain"] * fit["items_counted"]
        one[1] += fit["items_counted"]
    return {f"{name}/uncertain": _row(some / max(all_, 1.0), n=round(all_)) for name, (some, all_) in sums.items()}


def _alphas(run: Run) -> dict[str, Row]:
    rows = run.table("agreement").filter(domain=ALL, statistic="krippendorff_alpha")
    rows = rows.sort(pl.col("value").round(DECIMALS), nulls_last=True, maintain_order=True)
    found = {f"{row['question']}/alpha": _row(row["value"], row["low"], row["high"], row["n"] or 0)
             for row in rows.iter_rows(named=True)}  # fmt: skip
    return {"alpha": next(iter(found.values()), _row(None)), **found}


# --- Annotators ---------------------------------------------------------------------------------------------------


def _below_chance(run: Run) -> Row:
    rows = run.annotators.select("annotator", "below_chance", "n_votes").drop_nulls("below_chance")
    if rows.is_empty():
        return _row(None)
    surely = surely_below_chance(rows["below_chance"].to_numpy(), rows["n_votes"].to_numpy())
    some = rows.with_columns(surely=pl.Series(surely)).group_by("annotator").agg(pl.col("surely").any())
    return _row(float(some["surely"].sum()) / some.height, n=some.height)


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
        several: dict[str, Row] = {}
        for question, annotator, n, value, *interval in rows.iter_rows():
            low, high = interval or (None, None)
            row = _row(value, low, high, n)
            yield f"{question}/{ANNOTATOR}{annotator}.{figure}", row
            several.setdefault(f"{ANNOTATOR}{annotator}.{figure}", row)
        yield from several.items()


def _like_consensus(run: Run) -> pl.DataFrame:
    """Count every annotator's votes that are the consensus label, by question."""
    if not run.has("votes"):
        return pl.DataFrame(schema={"question": pl.String, "annotator": pl.String, "right": pl.Float64, "n": pl.Int64})
    labels = run.scan("items").select("question", "item", consensus="label", weight="count")
    votes = run.scan("votes").drop_nulls("annotator").join(labels, on=["question", "item"], how="inner")
    same = pl.col("weight") * (pl.col("label") == pl.col("consensus"))
    counted = votes.group_by("question", pl.col("annotator").cast(pl.String)).agg(
        right=same.sum(), n=pl.col("weight").sum()
    )
    counted = counted.with_columns(pl.col("n").round().cast(pl.Int64))
    return counted.sort("question", "annotator").collect(engine="streaming")


def _shares(counted: pl.DataFrame, reference: str, mass: float) -> Iterator[tuple[str, Row]]:
    """Yield the accuracy of every annotator, with its exact interval: by question, and over all."""
    everything = counted.group_by("annotator", maintain_order=True).agg(pl.col("right", "n").sum())
    pooled = everything.with_columns(question=pl.lit("")).select("question", "annotator", "right", "n")
    for frame in (counted.select("question", "annotator", "right", "n"), pooled):
        low, high = exact_interval(frame["right"].to_numpy(), frame["n"].cast(pl.Float64).to_numpy(), mass)
        for (question, annotator, right, n), least, most in zip(frame.iter_rows(), low, high, strict=True):
            scope = f"{question}/" if question else ""
            yield f"{scope}{ANNOTATOR}{annotator}.accuracy{reference}", _row(right / n, float(least), float(most), n)


def is_at_least(answer: str, wanted: str) -> bool:
    """Return whether a verdict is as good as one that is asked for.

    Examples
    --------
    >>> is_at_least("ship", "ship soft"), is_at_least("unknown", "ship soft")
    (True, False)
    """
    return ORDER.index(answer) >= ORDER.index(wanted)
