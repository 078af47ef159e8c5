"""Can these labels be shipped? The verdict in plain words, and the few figures it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from statistics import NormalDist
from typing import Any, Literal

import polars as pl

from moral_entropy.findings import many
from moral_entropy.markup import html_table
from moral_entropy.names import ALL
from moral_entropy.runs.findings import Caution, cautions
from moral_entropy.runs.item_sums import item_sums
from moral_entropy.runs.run import Run
from moral_entropy.ties import DECIMALS

Status = Literal["ready", "care", "stop"]

ONE_LABEL = ("consensus", "plurality", "published")
"""Rules that give every item just one label of several."""

DOUBTFUL, HARDLY = 0.2, 0.01
"""Shares of uncertain labels from which hard labels mislead, and below which they are not worth a word."""


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


@dataclass(frozen=True)
class Verdict:
    """The answer to "can I ship these labels?".

    Parameters
    ----------
    status
        "ready", "care" or "stop".
    answer
        In a few words.
    text
        In a few sentences.
    """

    status: Status
    answer: str
    text: str


def give_verdict(run: Run, sums: pl.DataFrame, found: Sequence[Caution]) -> Verdict:
    """Say whether the labels can be shipped, and how.

    Parameters
    ----------
    run
        The run.
    sums
        Of its items.
    found
        Warnings, worst first.
    """
    n_high = sum(caution.severity == "high" for caution in found)
    n_medium = sum(caution.severity == "medium" for caution in found)
    doubtful = _mean(sums, sums["doubtful"])
    facts = " ".join(_facts(run, doubtful))
    if n_high:
        first = f"{many(n_high, 'warning')} below must be settled first: the consensus itself may be wrong."
        return Verdict("stop", "Not yet.", f"{first} {facts}")
    held = "The consensus holds" + (f", with {many(n_medium, 'doubt')} to state." if n_medium else ".")
    if doubtful >= DOUBTFUL:
        return Verdict("care", "As probabilities, yes; as hard labels, no.", f"{held} {facts}")
    if n_medium:
        return Verdict("care", "Yes, with care.", f"{held} {facts}")
    return Verdict("ready", "Yes.", f"{held} {facts}")


def verdict_of(run: Run) -> Verdict:
    """Say whether the labels of a run can be shipped, and how."""
    return give_verdict(run, item_sums(run), cautions(run))


def run_html(run: Run) -> str:
    """Show a run in a notebook: what was read, the verdict, the headline figures, the warnings with what to do."""
    sums, found = item_sums(run), cautions(run)
    verdict = give_verdict(run, sums, found)
    figures = [(one.name, _with_interval(one), one.note) for one in headlines(run, sums)]
    doubts = [(one.title, one.meaning, one.action) for one in found]
    parts = [
        f"<p>{escape(repr(run))}</p>",
        f"<p><b>Can I ship these labels? {escape(verdict.answer)}</b> {escape(verdict.text)}</p>",
        html_table(("figure", "value", "meaning"), figures),
        html_table(("warning", "what it means", "what to do"), doubts) if doubts else "<p>No warnings.</p>",
    ]
    return "\n".join(parts)


def _with_interval(one: Headline) -> str:
    return f"{one.value} ({one.low} to {one.high})" if one.low and one.high else one.value


def headlines(run: Run, sums: pl.DataFrame) -> list[Headline]:
    """Return the three or four figures a reader asks for first."""
    found = [
        _against_gold(run),
        _rate(run, main_rule(run), "disagreement", f"{main_rule(run)} differs from the consensus",
              "share of items that the rule labels the other way"),
        _rate(run, "any", "fdr", "flagged by one vote, unsupported",
              "of the items any single vote flags, the share the consensus says no to"),
        _own_error(run, sums),
        _agreement(run),
    ]  # fmt: skip
    return [headline for headline in found if headline is not None][:4]


def main_rule(run: Run) -> str:
    """Name the rule most readers would have used: published labels, plurality, majority, or the first audited."""
    audited: list[str] = run.table("audit_rules")["rule"].unique(maintain_order=True).to_list()
    several = any(question.positive is None for question in run.questions)
    wanted = ["published", "plurality" if several else "majority", "majority", "any", *audited]
    return next(rule for rule in wanted if rule in audited or not audited)


def pooled_rate(run: Run, rule: str, metric: str, reference: str = "consensus") -> dict[str, Any] | None:
    """Return a figure pooled over questions and domains, None where there is none.

    Of a single question with more than two labels, `disagreement` is about the label itself: an item labelled wrong
    differs on two of its labels when each is graded against the rest.
    """
    rows = run.table("audit").filter(question=ALL, domain=ALL, label=ALL, rule=rule, metric=metric, reference=reference)
    found = rows.drop_nulls("value")
    if found.is_empty():
        return None
    row = found.row(0, named=True)
    question = run.questions[0]
    if metric != "disagreement" or len(run.questions) > 1 or question.positive is not None or rule not in ONE_LABEL:
        return row
    n_labels = len(question.labels)
    bounds = {name: row[name] and row[name] * n_labels / 2 for name in ("value", "low", "high")}
    return {**row, **bounds, "n": row["n"] // n_labels}


def _facts(run: Run, doubtful: float) -> Iterator[str]:
    rule = main_rule(run)
    differs, false = pooled_rate(run, rule, "disagreement"), pooled_rate(run, "any", "fdr")
    if differs:
        yield f"{rule.capitalize()} labels differ from the consensus on {differs['value']:.1%} of the items."
    if false and rule != "any":
        yield f"If one yes were enough, about {false['value']:.0%} of the yes labels would be wrong."
    best = run.table("audit_advice").filter(question=ALL)["rule"].to_list()
    if best and best[0] != rule:
        yield f"Of all thresholds on votes, {best[0]} comes closest to the consensus."
    if doubtful >= HARDLY:
        yield f"{doubtful:.0%} of the labels are uncertain: publish p beside the label."
    else:
        yield "Hardly any label is uncertain."


def _rate(run: Run, rule: str, metric: str, name: str, note: str) -> Headline | None:
    row = pooled_rate(run, rule, metric)
    return None if row is None else _share(name, row["value"], row["low"], row["high"], note)


def _against_gold(run: Run) -> Headline | None:
    row = pooled_rate(run, "consensus", "disagreement", "gold")
    if row is None:
        return None
    note = f"share of {row['n']:,} gold labels on which the consensus is wrong"
    return _share("consensus misses gold", row["value"], row["low"], row["high"], note)


def _own_error(run: Run, sums: pl.DataFrame) -> Headline | None:
    """Chance that a consensus label is wrong, by the model's own account; the interval is over which items came."""
    n = float(sums["items"].sum())
    if not n:
        return None
    mean = _mean(sums, sums["wrong"])
    square = _mean(sums, sums["wrong_sd"] ** 2 + sums["wrong"] ** 2)
    half = NormalDist().inv_cdf(0.5 + run.interval / 2) * math.sqrt(max(square - mean**2, 0.0) / n)
    note = "chance that a consensus label is wrong, by the model's own account; interval over items"
    return _share("consensus labels expected wrong", mean, max(mean - half, 0.0), mean + half, note)


def _agreement(run: Run) -> Headline | None:
    rows = run.table("agreement").filter(domain=ALL, statistic="krippendorff_alpha").drop_nulls("value")
    rows = rows.sort(pl.col("value").round(DECIMALS), maintain_order=True)
    if rows.is_empty():
        return None
    row = rows.row(0, named=True)
    name = "agreement, Krippendorff's α" + (", lowest question" if rows.height > 1 else "")
    note = f"{row['question']}: 1 is perfect, 0 is what chance gives"
    low, high = (f"{row[bound]:z.2f}" if row[bound] is not None else "" for bound in ("low", "high"))
    return Headline(name, f"{row['value']:z.2f}", low, high, note)


def _share(name: str, value: float, low: float | None, high: float | None, note: str) -> Headline:
    low_text, high_text = ("" if bound is None else f"{bound:z.1%}" for bound in (low, high))
    if low is not None and high is not None and not low - 5e-4 <= value <= high + 5e-4:
        note += "; outside its range, as on thin votes the label of the mean p is not the one most draws give"
    return Headline(name, f"{value:z.1%}", low_text, high_text, note)


def _mean(sums: pl.DataFrame, figure: pl.Series) -> float:
    """Average a figure of the questions, each as often as it has items."""
    return float((figure * sums["items"]).sum()) / max(float(sums["items"].sum()), 1.0)
