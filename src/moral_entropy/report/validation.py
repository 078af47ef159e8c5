"""Is the yardstick straight? What validation.parquet says, as a section of the report.

Takes a run, gives texts only: the verdict in words, then side by side the findings, worst first. An audit writes the
cheap sides, `moral-entropy validate` the rest; what is missing is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from moral_entropy.runs.run import Run
from moral_entropy.ties import tie_key
from moral_entropy.validate.finding import RANK, Finding
from moral_entropy.validate.verdict import SIDES, about, is_thorough, titled, verdict, worst_level

MOST_ROWS = 40
"""Findings shown of one side; the rest is counted."""

STATUS = {"bad": "stop", "doubt": "care"}

SAID_ELSEWHERE = ("below_chance", "youden", "unanimous_against", "votes_per_item")
"""Figures whose alarms the report's other warnings say already, from the same numbers."""

MEANINGS = {
    "identifiability": "Where votes cannot tell, the prior does, and p may be sure of it nonetheless.",
    "laplace": "Intervals and the split of the entropy come from a Gaussian around the mode; it must fit.",
    "nuts": "Samples of the posterior itself, to hold the Gaussian against.",
    "ensemble": "Other starts, and other samples of items and annotators, should lead to the same answer.",
    "prior-power": "A prior a little stronger or weaker: what moves with it is the prior's answer, not the votes'.",
    "priors": "Another prior that looks as reasonable should not change the answer.",
    "heldout": "Votes left out and predicted: the only test of p that needs no gold.",
    "dependence": "The model takes votes to be independent given the label; where they are not, p is too sure.",
    "temper": "The power at which each item's votes predict other votes best; below 1, p is too sure.",
    "gold": "Of the items with p near 0.7, seven in ten should be positive in gold.",
}


def validation_section(run: Run) -> dict[str, Any]:
    """Return the section's texts.

    Returns
    -------
    dict
        `verdict` in words, `status` ("ready", "care", "stop" or "none"), `more` (what to run, or nothing), and `sides`:
        each with `title`, `meaning`, `level`, `rows` (level, about, figure, value, text) and `left_out`, a count.
    """
    found = findings_in(run)
    status = STATUS.get(worst_level(found), "ready") if found else "none"
    more = "" if is_thorough(found) else "For the full examination run: moral-entropy validate, with this run's folder."
    order = [*SIDES, *sorted({finding.side for finding in found} - set(SIDES))]
    sides = [_side(side, [finding for finding in found if finding.side == side]) for side in order]
    return {
        "verdict": verdict(found),
        "status": status,
        "more": more,
        "sides": [side for side in sides if side["rows"]],
    }


def findings_in(run: Run) -> list[Finding]:
    """Read the findings of a run; none where it has no such table."""
    return [Finding(**_without_nulls(row)) for row in run.table("validation").iter_rows(named=True)]


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    optional = ("low", "high", "n")
    texts = {name: value or "" for name, value in row.items() if name not in (*optional, "value", "level")}
    numbers = {name: row[name] for name in optional}
    value = float("nan") if row["value"] is None else row["value"]
    level = row["level"] if row["level"] in RANK else "info"
    return {**texts, **numbers, "value": value, "level": level}


def unsaid_alarms(found: Sequence[Finding]) -> dict[str, list[Finding]]:
    """Group by side the alarms that no other warning of the report says, worst first."""
    alarms = [finding for finding in found if finding.alarms and finding.figure not in SAID_ELSEWHERE]
    alarms.sort(key=lambda finding: RANK[finding.level])
    sides = dict.fromkeys(finding.side for finding in alarms)
    return {side: [finding for finding in alarms if finding.side == side] for side in sides}


def _side(side: str, found: Sequence[Finding]) -> dict[str, Any]:
    ordered = sorted(found, key=lambda finding: RANK[finding.level])
    return {
        "title": titled(side),
        "meaning": MEANINGS.get(side, ""),
        "level": worst_level(found),
        "rows": [_row(finding) for finding in ordered[:MOST_ROWS]],
        "left_out": max(len(ordered) - MOST_ROWS, 0),
    }


def _row(finding: Finding) -> dict[str, str]:
    return {
        "level": finding.level,
        "about": about(finding),
        "figure": finding.figure.replace("_", " "),
        "value": _shown(finding),
        "text": finding.text,
    }


def _shown(finding: Finding) -> str:
    interval = ""
    if finding.low is not None and finding.high is not None:
        interval = f" ({_number(finding.low)} – {_number(finding.high)})"
    return _number(finding.value) + interval


def _number(value: float) -> str:
    """Show a figure in three digits.

    Examples
    --------
    >>> _number(0.12345), _number(12_345.0), _number(-1e-17), _number(float("nan"))
    ('0.123', '12,345', '0', '–')
    """
    if not math.isfinite(value):
        return "–"
    value = tie_key(value)
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1_000 else f"{value:.3g}"
