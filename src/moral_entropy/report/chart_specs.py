"""The charts' Vega-Lite specifications, with the names and colours of a run filled in.

The files in `charts/` are made by `tools/make_charts.py`. They hold no rows: the page puts in what is chosen there,
`figures.py` puts in what the run holds. Both therefore draw the same charts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from moral_entropy.report.colours import Look

FOLDER = Path(__file__).parent / "charts"
SUFFIX = ".vl.json"

CHARTS = ("rules", "by_domain", "heat", "explorer", "entropy", "by_votes", "reliability", "annotators",
          "annotators_many", "panels")  # fmt: skip

TARGETS, TARGET_COLOURS, TARGET_SHAPES = "[targets]", "[colours of targets]", "[shapes of targets]"
QUESTIONS, QUESTION_COLOURS, QUESTION_SHAPES = "[questions]", "[colours of questions]", "[shapes of questions]"
"""Placeholders in the files: a list that holds nothing else is replaced as a whole."""

JAVASCRIPT_NAMES = frozenset(
    ("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
     "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__")
)  # fmt: skip
"""Names that every object of JavaScript has; Vega takes a value of such a name for something it has seen before."""

INVISIBLE = "\u2060"

Spec = dict[str, Any]
Rows = list[dict[str, Any]]


def chart_specs(targets: Mapping[str, Look], questions: Mapping[str, Look], *, domains: bool) -> dict[str, Spec]:
    """Return every chart by name.

    Parameters
    ----------
    targets, questions
        What is told apart, and how it is drawn: in charts of rates, and in charts of entropies.
    domains
        Whether the run has any.

    Examples
    --------
    >>> care = {"care": Look("#00B4A6", "circle")}
    >>> chart_specs(care, care, domains=True)["reliability"]["description"]
    'Reliability of p against gold'
    """
    filling = {
        TARGETS: [chart_name(name) for name in targets],
        TARGET_COLOURS: [look.colour for look in targets.values()],
        TARGET_SHAPES: [look.shape for look in targets.values()],
        QUESTIONS: [chart_name(name) for name in questions],
        QUESTION_COLOURS: [look.colour for look in questions.values()],
        QUESTION_SHAPES: [look.shape for look in questions.values()],
    }
    files = {name: name for name in CHARTS} | ({"heat": "heat_by_domain"} if domains else {})
    specs = {name: _filled(_read(file), filling) for name, file in files.items()}
    for name in ("rules", "by_domain"):
        # Pixels per dot; dots of many targets stand closer together.
        specs[name]["spec"]["height"] = {"step": max(7, 20 // len(targets))}
    return specs


def with_rows(spec: Spec, tables: Mapping[str, Rows]) -> Spec:
    """Return a chart with its rows, whose legends name what is in them: nothing where that is a single thing.

    The page does the same, in templates/charts.js.

    Parameters
    ----------
    spec
        A chart of `chart_specs`.
    tables
        The rows by name of the table.
    """
    datasets = {name: [_safe_row(row) for row in rows] for name, rows in tables.items()}
    filled: Spec = {**_filled(spec, {}), "datasets": datasets}
    for encoding in _encodings(filled):
        for channel in ("color", "shape"):
            if encoding.get(channel, {}).get("legend"):
                _name_what_is_there(encoding[channel], [row for rows in datasets.values() for row in rows])
    return filled


def _name_what_is_there(channel: dict[str, Any], rows: Iterable[dict[str, Any]]) -> None:
    there = {row.get(channel["field"]) for row in rows}
    if channel["type"] == "nominal":
        names = [name for name in channel["scale"]["domain"] if name in there]
        channel["legend"] = {**channel["legend"], "values": names} if len(names) > 1 else None


def chart_name(name: str) -> str:
    """Return a name as charts hold it: it looks the same, and Vega knows none of its own by it.

    Examples
    --------
    >>> chart_name("care"), chart_name("constructor") == "constructor"
    ('care', False)
    """
    return INVISIBLE + name if name in JAVASCRIPT_NAMES else name


def _safe_row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: chart_name(value) if isinstance(value, str) else value for name, value in row.items()}


def _encodings(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        if isinstance(part.get("encoding"), dict):
            yield part["encoding"]
        for name in ("layer", "spec"):
            yield from _encodings(part.get(name))
    elif isinstance(part, list):
        for one in part:
            yield from _encodings(one)


def _read(name: str) -> Spec:
    spec: Spec = json.loads((FOLDER / f"{name}{SUFFIX}").read_text(encoding="utf-8"))
    return spec


def _filled(part: Any, filling: Mapping[str, list[str]]) -> Any:
    """Copy a part of a specification, its placeholders replaced."""
    if isinstance(part, dict):
        return {key: _filled(value, filling) for key, value in part.items()}
    if isinstance(part, list):
        is_placeholder = len(part) == 1 and isinstance(part[0], str) and part[0] in filling
        return filling[part[0]] if is_placeholder else [_filled(value, filling) for value in part]
    return part
