"""The findings of a run in its report: the section "Can the consensus be trusted?".

Takes a run, returns texts only. Finds nothing new: everything is in findings.parquet. An audit writes the cheap sides,
`moral-entropy validate` the rest; what is missing is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from moral_entropy.checks.run import CHECKS, is_thorough, title_of, verdict
from moral_entropy.findings import RANK, Finding, worst_level
from moral_entropy.runs.findings import read_findings
from moral_entropy.runs.run import Run
from moral_entropy.ties import tie_key

MOST_ROWS = 1_000
"""Findings shown of one side; the rest is counted."""

STATUS = {"bad": "stop", "doubt": "care"}


def findings_section(run: Run) -> dict[str, Any]:
    """Return the texts of the section "Can the consensus be trusted?": every finding, worst first.

    Returns
    -------
    dict
        `verdict` in words, `status` ("ready", "care", "stop" or "none"), `more` (what to run, or nothing), and `sides`:
        each with `title`, `meaning`, `level`, `rows` (level, about, figure, value, text) and `left_out`, a count.
    """
    found = read_findings(run)
    status = STATUS.get(worst_level(found), "ready") if found else "none"
    more = "" if is_thorough(found) else "For the full examination run: moral-entropy validate, with this run's folder."
    order = [*CHECKS, *sorted({finding.side for finding in found} - set(CHECKS))]
    sides = [_side(side, [finding for finding in found if finding.side == side]) for side in order]
    return {
        "verdict": verdict(found),
        "status": status,
        "more": more,
        "sides": [side for side in sides if side["rows"]],
    }


def _side(side: str, found: Sequence[Finding]) -> dict[str, Any]:
    ordered = sorted(found, key=lambda finding: RANK[finding.level])
    return {
        "title": title_of(side),
        "meaning": CHECKS[side].meaning if side in CHECKS else "",
        "level": worst_level(found),
        "rows": [_row(finding) for finding in ordered[:MOST_ROWS]],
        "left_out": max(len(ordered) - MOST_ROWS, 0),
    }


def _row(finding: Finding) -> dict[str, str]:
    return {
        "level": finding.level,
        "about": finding.about,
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
