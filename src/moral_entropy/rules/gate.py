"""A gate for pipelines: limits on figures of an audit, and whether they hold.

Takes the audit's frame and limits such as `any.fdr=0.2`; returns one `Limit` for each.

A figure's name is `rule.metric` pooled over questions and domains; `care/any.fdr` is one question's, `BLM:care/any.fdr`
one domain's of it, `BLM:any.fdr` a domain's over all questions, `(mean)/any.fdr` the mean over questions. With more
than two labels `tone/any[anger].fdr` is one label's. `@gold` at the end grades against gold, else the consensus.
`any.fdr.low` and `any.fdr.high` are the bounds of its interval. Figures that no rule has are named by whoever calls:
see `moral_entropy.verdict.figures`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

import polars as pl

from moral_entropy.errors import UsageError
from moral_entropy.findings import listed
from moral_entropy.names import ALL
from moral_entropy.rules.advice import accuracy_rows, questions_with_many_labels
from moral_entropy.ties import TIE, tie_key

Kind = Literal["max", "min"]
Outcome = Literal["holds", "failed", "undecided"]

BOUNDS = ("low", "high")
PARTS = ("rule", "metric", "question", "domain", "reference")
MOST_NAMES, NEAR_NAMES = 9, 3
"""The parts of a figure's name; how many names of each an error lists, and how many near figures it suggests."""


@dataclass(frozen=True)
class Limit:
    """One limit, the figure it is about, and whether it holds.

    Parameters
    ----------
    figure, kind, limit
        What was asked, such as "any.fdr", "max", 0.2.
    value, low, high, n
        The figure, its interval and its items; value is None where its denominator is empty.
    outcome
        "holds", "failed", or "undecided": strictly, where the interval lies on both sides of the limit or where there
        is no value.
    """

    figure: str
    kind: Kind
    limit: float
    value: float | None
    low: float | None
    high: float | None
    n: int
    outcome: Outcome

    @property
    def held(self) -> bool:
        """Whether it holds. A figure without a value never does."""
        return self.outcome == "holds"

    def __str__(self) -> str:
        """Describe it in one line."""
        word = {"holds": "holds", "failed": "FAILED", "undecided": "UNDECIDED"}[self.outcome]
        limit = f"limit {self.limit:g}" if self.kind == "max" else f"must be at least {self.limit:g}"
        if self.value is None:
            return f"{word}: {self.figure} has no value, {limit}"
        facts = [f"n = {self.n:,}"] if self.n else []
        if self.low is not None and self.high is not None and self.high - self.low > TIE:
            facts.insert(0, f"interval {tie_key(self.low):.3g} to {tie_key(self.high):.3g}")
        about = f" ({'; '.join(facts)})" if facts else ""
        value = f"{tie_key(self.value):.4g}"
        if value == f"{self.limit:.4g}" and abs(self.value - self.limit) > TIE:
            # As many digits as tell it from its limit.
            value = f"{tie_key(self.value):.9g}"
        return f"{word}: {self.figure} is {value}, {limit}{about}"


def check_limits(
    frame: pl.DataFrame,
    *,
    maxima: Sequence[str] = (),
    minima: Sequence[str] = (),
    extra: Mapping[str, dict[str, Any]] | None = None,
    strict: bool = False,
) -> list[Limit]:
    """Check figures of an audit against limits.

    Parameters
    ----------
    frame
        The frame of an `AuditTable`, or `audit.parquet` as read.
    maxima, minima
        Limits such as "any.fdr=0.2", which the figure may reach but not pass.
    extra
        Further figures by name: value, low, high, n.
    strict
        Whether the whole interval must lie on the right side of the limit.

    Examples
    --------
    >>> import polars as pl
    >>> row = {"question": "(all)", "domain": "(all)", "label": "(all)", "rule": "any", "reference": "consensus"}
    >>> frame = pl.DataFrame([{**row, "metric": "fdr", "value": 0.23, "low": 0.19, "high": 0.28, "n": 120}])
    >>> print(*check_limits(frame, maxima=["any.fdr=0.1"]))
    FAILED: any.fdr is 0.23, limit 0.1 (interval 0.19 to 0.28; n = 120)
    >>> print(*check_limits(frame, maxima=["any.fdr=0.25"], strict=True))
    UNDECIDED: any.fdr is 0.23, limit 0.25 (interval 0.19 to 0.28; n = 120)
    """
    figures = _figures(frame) | dict(extra or {})
    specs: list[tuple[str, Kind]] = [*((spec, "max") for spec in maxima), *((spec, "min") for spec in minima)]
    return [_check(frame, figures, spec, kind, strict=strict) for spec, kind in specs]


def _check(frame: pl.DataFrame, figures: dict[str, dict[str, Any]], spec: str, kind: Kind, *, strict: bool) -> Limit:
    name, _, number = spec.rpartition("=")
    name = name.strip().removesuffix("@consensus")
    try:
        limit = float(number)
    except ValueError:
        limit = math.nan
    if not name or math.isnan(limit):
        msg = f"{spec!r} is no limit. Write rule.metric=number, such as any.fdr=0.2 or care/majority.fnr=0.3."
        raise UsageError(msg)
    row = figures.get(name)
    if row is None:
        # With .low or .high at the end, the bound of an interval, which has none of its own.
        bare, _, reference = name.partition("@")
        stem, _, bound = bare.rpartition(".")
        row = figures.get(f"{stem}@{reference}" if reference else stem)
        if row is None or bound not in BOUNDS:
            raise UsageError(_unknown(frame, figures, name))
        row = {**row, "value": row[bound], "low": None, "high": None}
    facts = {key: row[key] for key in ("value", *BOUNDS, "n")}
    return Limit(name, kind, limit, **facts, outcome=_outcome(facts, kind, limit, strict=strict))


def _outcome(row: Mapping[str, Any], kind: Kind, limit: float, *, strict: bool) -> Outcome:
    if row["value"] is None:
        return "undecided" if strict else "failed"
    bounded = strict and row["low"] is not None and row["high"] is not None
    least, greatest = (row["low"], row["high"]) if bounded else (row["value"], row["value"])
    if kind == "max":
        holds, failed = greatest <= limit + TIE, least > limit + TIE
    else:
        holds, failed = least >= limit - TIE, greatest < limit - TIE
    return "holds" if holds else "failed" if failed else "undecided"


def _figures(frame: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Return every row by the name of its figure; of a question with two labels the name leaves out the label."""
    questions = questions_with_many_labels(frame)
    rows = (*frame.iter_rows(named=True), *accuracy_rows(frame))
    return {_name(row, questions): row for row in rows}


def _name(row: dict[str, Any], questions: set[str]) -> str:
    with_label = row["label"] != ALL and row["question"] in questions
    name = f"{row['rule']}[{row['label']}]" if with_label else row["rule"]
    name += f".{row['metric']}"
    if row["question"] != ALL:
        name = f"{row['question']}/{name}"
    if row["domain"] != ALL:
        name = f"{row['domain']}:{name}"
    return name if row["reference"] == "consensus" else f"{name}@{row['reference']}"


def _unknown(frame: pl.DataFrame, figures: Mapping[str, Any], name: str) -> str:
    """Say how figures are named and what there is of each part, and suggest near names."""
    if "annotator:" in name and any("annotator:" in figure for figure in figures):
        parts = (
            "Of an annotator there are annotator:NAME.accuracy, .youden, .sensitivity, .specificity and .below_chance, "
            "with two labels and draws; with gold annotator:NAME.accuracy@gold"
        )
    else:
        values = {column: frame[column].unique(maintain_order=True).to_list() for column in PARTS}
        values["metric"] = ["accuracy", *(metric for metric in values["metric"] if "thresholded_" not in metric)]
        plain = ", ".join(figure for figure in figures if not set("/:.") & set(figure))
        known_parts = (f"{column}s: {listed(values[column], most=MOST_NAMES)}" for column in PARTS)
        lead = f"Figures: {plain}, and domain" if plain else "Write domain"
        parts = f"{lead}:question/rule.metric@reference, of which there are {'; '.join(known_parts)}"
    near = " or ".join(get_close_matches(name, list(figures), n=NEAR_NAMES, cutoff=0.6))
    return f"there is no figure {name!r}.{f' Did you mean {near}?' if near else ''} {parts}."
