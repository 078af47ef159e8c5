"""Figures of a run that `moral-entropy check` can put limits on, besides those of the rules.

`error` is the share of wrong labels by spot check or gold, `uncertain` the share of uncertain labels, `alpha`
Krippendorff's (the lowest question's), `effective_votes` what the votes per item are worth; `care/alpha` is one
question's. Of a figure with an interval, `error.low` and `error.high` are the bounds.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from moral_entropy.names import ALL
from moral_entropy.runs.run import Run
from moral_entropy.ties import DECIMALS
from moral_entropy.verdict.headlines import effective_votes, uncertain_by_kind

ORDER = ("unknown", "not yet", "ship soft", "ship")
"""Verdicts, from worst to best."""


def run_figures(run: Run) -> dict[str, dict[str, Any]]:
    """Return the figures by name: value, low, high, n."""
    items = round(sum(fit["items_counted"] for fit in run.manifest["questions"]))
    uncertain = _row(sum(uncertain_by_kind(run).values()), n=items)
    found = {"uncertain": uncertain, "effective_votes": _row(effective_votes(run)[1], n=items), **_alphas(run)}
    error = run.verdict.error
    # Without checked labels there is no value, and no limit holds.
    found["error"] = _row(None) if error is None else _row(error.value, error.low, error.high, error.checked)
    return found


def _row(value: float | None, low: float | None = None, high: float | None = None, n: int = 0) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "n": n}


def _alphas(run: Run) -> dict[str, dict[str, Any]]:
    rows = run.table("agreement").filter(domain=ALL, statistic="krippendorff_alpha")
    rows = rows.sort(pl.col("value").round(DECIMALS), nulls_last=True, maintain_order=True)
    found = {f"{row['question']}/alpha": _row(row["value"], row["low"], row["high"], row["n"] or 0)
             for row in rows.iter_rows(named=True)}  # fmt: skip
    return {"alpha": next(iter(found.values()), _row(None)), **found}


def is_at_least(answer: str, wanted: str) -> bool:
    """Return whether a verdict is as good as one that is asked for.

    Examples
    --------
    >>> is_at_least("ship", "ship soft"), is_at_least("unknown", "ship soft")
    (True, False)
    """
    return ORDER.index(answer) >= ORDER.index(wanted)
