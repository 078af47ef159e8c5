"""A gate for pipelines: limits on figures of the audit, and whether they hold.

Takes the audit's frame and limits such as `any.fdr=0.2`; returns one `Limit` for each.

A figure's name is `rule.metric` pooled over questions and domains; `care/any.fdr` is one question's, `BLM:care/any.fdr`
one domain's of it, `BLM:any.fdr` a domain's over all questions, `(mean)/any.fdr` the mean over questions. With more
than two labels `tone/any[anger].fdr` is one label's. `@gold` at the end grades against gold, else the consensus.
`any.fdr.low` and `any.fdr.high` are the bounds of its interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from moral_entropy.errors import UsageError
from moral_entropy.names import ALL
from moral_entropy.ties import TIE, tie_key

if TYPE_CHECKING:
    import polars as pl

Kind = Literal["max", "min"]


@dataclass(frozen=True)
class Limit:
    """One limit, the figure it is about, and whether it holds.

    Parameters
    ----------
    figure, kind, limit
        What was asked, such as "any.fdr", "max", 0.2.
    value, low, high, n
        The figure, its interval and its items; value is None where its denominator is empty.
    held
        Whether it holds. A figure without a value never does.
    """

    figure: str
    kind: Kind
    limit: float
    value: float | None
    low: float | None
    high: float | None
    n: int
    held: bool

    def __str__(self) -> str:
        """Describe it in one line."""
        sign, verdict = ("<=" if self.kind == "max" else ">="), ("holds" if self.held else "FALLS SHORT")
        value = "no value" if self.value is None else f"{tie_key(self.value):.4g}"
        return f"{verdict}: {self.figure} {sign} {self.limit:g} (is {value}, n = {self.n:,})"


def check_limits(
    frame: pl.DataFrame,
    *,
    maxima: Sequence[str] = (),
    minima: Sequence[str] = (),
    more: Mapping[str, dict[str, Any]] | None = None,
) -> list[Limit]:
    """Check figures of an audit against limits.

    Parameters
    ----------
    frame
        The frame of an `AuditTable`, or `audit.parquet` as read.
    maxima, minima
        Limits such as "any.fdr=0.2", which the figure may reach but not pass.
    more
        Further figures by name: value, low, high, n.

    Examples
    --------
    >>> import polars as pl
    >>> row = {"question": "(all)", "domain": "(all)", "label": "(all)", "rule": "any", "reference": "consensus"}
    >>> frame = pl.DataFrame([{**row, "metric": "fdr", "value": 0.31, "low": 0.3, "high": 0.33, "n": 120}])
    >>> print(*check_limits(frame, maxima=["any.fdr=0.2"]))
    FALLS SHORT: any.fdr <= 0.2 (is 0.31, n = 120)
    """
    figures = _figures(frame) | dict(more or {})
    asked: list[tuple[str, Kind]] = [*((one, "max") for one in maxima), *((one, "min") for one in minima)]
    return [_check(frame, figures, spec, kind) for spec, kind in asked]


def _check(frame: pl.DataFrame, figures: dict[str, dict[str, Any]], spec: str, kind: Kind) -> Limit:
    name, _, number = spec.rpartition("=")
    name = name.strip().removesuffix("@consensus")
    try:
        limit = float(number)
    except ValueError:
        limit = math.nan
    if not name or math.isnan(limit):
        msg = f"{spec!r} is no limit. Write rule.metric=number, such as any.fdr=0.2 or care/majority.fnr=0.3."
        raise UsageError(msg)
    row = _found(figures, name)
    if row is None:
        raise UsageError(_unknown(frame, name))
    value = row["value"]
    held = value is not None and (value <= limit + TIE if kind == "max" else value >= limit - TIE)
    return Limit(name, kind, limit, value, row["low"], row["high"], row["n"], held)


def _found(figures: Mapping[str, dict[str, Any]], name: str) -> dict[str, Any] | None:
    """Return a figure by name; with .low or .high at the end, the bound of its interval in place of it."""
    if name in figures:
        return figures[name]
    bare, _, reference = name.partition("@")
    left, _, bound = bare.rpartition(".")
    row = figures.get(f"{left}@{reference}" if reference else left)
    return {**row, "value": row[bound]} if row is not None and bound in ("low", "high") else None


def _figures(frame: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Return every row by the name of its figure; of a question with two labels the name leaves out the label."""
    several = _questions_with_labels(frame)
    return {_name(row, several): row for row in frame.iter_rows(named=True)}


def _questions_with_labels(frame: pl.DataFrame) -> set[str]:
    import polars as pl

    pooled = frame.filter((pl.col("label") == ALL) & ~pl.col("question").str.starts_with("("))
    return set(pooled["question"].unique())


def _name(row: dict[str, Any], several: set[str]) -> str:
    shown = row["label"] != ALL and row["question"] in several
    name = f"{row['rule']}[{row['label']}]" if shown else row["rule"]
    name += f".{row['metric']}"
    if row["question"] != ALL:
        name = f"{row['question']}/{name}"
    if row["domain"] != ALL:
        name = f"{row['domain']}:{name}"
    return name if row["reference"] == "consensus" else f"{name}@{row['reference']}"


def _unknown(frame: pl.DataFrame, name: str) -> str:
    """Describe which part of a figure's name is not in the audit, and list the possible values."""
    bare, _, reference = name.partition("@")
    references = frame["reference"].unique().sort().to_list()
    if "@" in name and reference not in references:
        return f"there is no reference {reference!r} for {name!r}. References: {', '.join(references)}."
    left, _, metric = bare.rpartition(".")
    metrics = frame["metric"].unique(maintain_order=True).to_list()
    if metric not in metrics or not left:
        return f"there is no metric {metric!r} in {name!r}. Metrics: {', '.join(metrics)}."
    rules = frame["rule"].unique(maintain_order=True).to_list()
    scoped = left.partition("[")[0]
    if not any(scoped == rule or scoped.endswith((f"/{rule}", f":{rule}")) for rule in rules):
        return f"there is no rule in {name!r} that was audited. Rules: {', '.join(rules)}."
    questions = frame["question"].unique(maintain_order=True).to_list()
    domains = frame["domain"].unique(maintain_order=True).to_list()
    return (
        f"there is no figure {name!r}. Write domain:question/rule.metric. Questions: {', '.join(questions)}; "
        f"domains: {', '.join(domains)}."
    )
