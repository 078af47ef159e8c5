"""Measurements → a table on the screen, `results.json`, and the tables in docs/evidence/benchmarks.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from measure import ROOT, Measurement, commit, machine

RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "evidence" / "benchmarks.md"


def table(rows: list[Measurement]) -> str:
    """Give a Markdown table."""
    head = "| what | measured | bar | met | how |\n| --- | ---: | ---: | --- | --- |"
    return "\n".join([head, *(_line(row) for row in rows)])


def _line(row: Measurement) -> str:
    value = "–" if row.value is None else f"{_number(row.value)} {row.unit}"
    met = {True: "yes", False: "**no**", None: "–"}[row.met]
    return f"| {row.what} | {value} | {_bar(row)} | {met} | {row.how} |"


def _bar(row: Measurement) -> str:
    if row.at_least is not None:
        return f"≥ {row.at_least:g} {row.unit}"
    return "–" if row.at_most is None else f"≤ {row.at_most:g} {row.unit}"


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def record(section: str, rows: list[Measurement]) -> None:
    """Write a section of the results, with the machine and the commit, and its table in the page."""
    _record(section, [row.as_dict() for row in rows], table(rows))


def record_peers(rows: list[dict[str, Any]], text: str) -> None:
    """Write what was measured of the peers, likewise."""
    _record("peers", rows, text)


def _record(section: str, rows: list[dict[str, Any]], text: str) -> None:
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    results[section] = {"commit": commit(), "machine": machine(), "measurements": rows}
    RESULTS.write_text(json.dumps(results, indent=2, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_with_table(page, section, f"{_machine_line()}\n\n{text}"), encoding="utf-8")


def _machine_line() -> str:
    facts = machine()
    return (
        f"Commit {commit()}; {facts['processor']}, {facts['cores']} cores, {facts['memory_gb']:g} GB, "
        f"Python {facts['python']}, NumPy {facts['numpy']}, Numba {facts['numba']}, PyTorch {facts['torch']}."
    )


def _with_table(page: str, section: str, text: str) -> str:
    begin, end = f"<!-- {section}: written by benchmarks/run.py -->", f"<!-- end of {section} -->"
    between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not between.search(page):
        raise ValueError(f"docs/evidence/benchmarks.md has no place for {section!r}: {begin} … {end}")
    return between.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", page)
