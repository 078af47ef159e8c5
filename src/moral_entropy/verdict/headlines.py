"""The four headline figures of a run.

What was found by checking, what share of the labels is uncertain and of which kind, what the votes are worth, and
what the rule that most would use changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from moral_entropy.consensus.entropy import ENOUGH_VOTES
from moral_entropy.runs.run import Run
from moral_entropy.schemas import BETWEEN, PARTS
from moral_entropy.ties import DECIMALS, TIE, tie_key
from moral_entropy.verdict.rates import ends_in_percent, is_outside, main_rule, pooled_rate
from moral_entropy.verdict.verdict import Verdict

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
    found = [_checked(verdict), _uncertain(run), _worth(run), _changes(run)]
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
    """Return the share of labels that are uncertain (entropy above half its maximum), by the largest part of it."""
    maximum = pl.col("question").replace_strict(
        {question.name: len(question.labels) for question in run.questions}, return_dtype=pl.Float64
    ).log()  # fmt: skip
    weight = pl.col("count")
    # Ties go to the first: parts are compared to nine decimals.
    names = (*PARTS, BETWEEN) if run.between_groups else PARTS
    parts = {name: pl.col(name).fill_null(0.0).round(DECIMALS) for name in names}
    largest = pl.max_horizontal(parts.values())
    is_largest = [pl.when((part == largest) & (largest > 0)).then(pl.lit(name)) for name, part in parts.items()]
    kind = pl.coalesce(*is_largest, pl.lit(""))
    rows = run.scan("items").select(weight, doubtful=pl.col("entropy") > maximum / 2 + TIE, kind=kind)
    sums = rows.group_by("kind").agg(weight.filter(pl.col("doubtful")).sum(), all=weight.sum())
    found = sums.collect(engine="streaming")
    total = max(float(found["all"].sum()), 1.0)
    shares = dict(zip(found["kind"].to_list(), (found["count"] / total).to_list(), strict=True))
    return {kind: shares.get(kind, 0.0) for kind in (*names, "")}


def _uncertain(run: Run) -> Headline:
    shares = uncertain_by_kind(run)
    told = [f"{share:.1%} {KINDS[kind]}" for kind, share in shares.items() if kind and share >= 5e-4]
    note = "; ".join(told) if told else "entropy above half its maximum"
    if shares[PARTS[0]] >= 5e-4 and effective_votes(run)[0] < ENOUGH_VOTES:
        note += f" (below {ENOUGH_VOTES} votes per item, ambiguity and too few votes look alike)"
    return Headline("labels uncertain", f"{sum(shares.values()):.1%}", "", "", note)


def effective_votes(run: Run) -> tuple[float, float | None]:
    """Return the votes per item, and how many independent ones they are worth; None where nobody looked."""
    weight = pl.col("count")
    sums = run.scan("items").select(
        votes=(pl.col("n_votes") * weight).sum() / weight.sum(),
        worth=(pl.col("effective_votes") * weight).sum() / weight.filter(pl.col("effective_votes").is_not_null()).sum(),
    )
    row = sums.collect(engine="streaming").row(0, named=True)
    worth = row["worth"]
    return row["votes"] or 0.0, None if worth is None or worth != worth else worth


def _worth(run: Run) -> Headline:
    votes, worth = effective_votes(run)
    if worth is None:
        why = "votes without names cannot tell" if run.manifest["anonymous"] else "nobody looked"
        return Headline("votes per item", f"{votes:.1f}", "", "", f"{why} whether annotators copy each other")
    note = f"what the {votes:.1f} votes per item are worth, as annotators who err together tell less"
    return Headline("effective votes per item", f"{worth:.1f}", "", "", note)


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
