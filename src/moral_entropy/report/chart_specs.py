"""The charts' Vega-Lite specifications, with the names and colours of a run filled in.

The files in `charts/` are made by `tools/make_charts.py`. They hold no rows: the page puts in what is chosen there,
`figures.py` puts in what the run holds. Both therefore draw the same charts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "charts"
SUFFIX = ".vl.json"

CHARTS = ("rules", "by_domain", "heat", "explorer", "entropy", "by_votes", "reliability", "annotators",
          "annotators_many")  # fmt: skip

TARGETS, TARGET_COLOURS = "[targets]", "[colours of targets]"
QUESTIONS, QUESTION_COLOURS = "[questions]", "[colours of questions]"
"""Placeholders in the files: a list that holds nothing else is replaced as a whole."""

Spec = dict[str, Any]


@dataclass(frozen=True)
class Palette:
    """Names that charts colour by, and their colours."""

    names: Sequence[str]
    colours: Sequence[str]


def chart_specs(targets: Palette, questions: Palette, *, domains: bool) -> dict[str, Spec]:
    """Return every chart by name.

    Parameters
    ----------
    targets, questions
        What is coloured: in charts of rates, and in charts of entropies.
    domains
        Whether the run has any.

    Examples
    --------
    >>> care = Palette(["care"], ["#00B4A6"])
    >>> chart_specs(care, care, domains=True)["reliability"]["description"]
    'Reliability of p against gold'
    """
    filling = {
        TARGETS: list(targets.names),
        TARGET_COLOURS: list(targets.colours),
        QUESTIONS: list(questions.names),
        QUESTION_COLOURS: list(questions.colours),
    }
    files = {name: name for name in CHARTS} | ({"heat": "heat_by_domain"} if domains else {})
    specs = {name: _filled(_read(file), filling) for name, file in files.items()}
    for name in ("rules", "by_domain"):
        # Pixels per dot; dots of many targets stand closer together.
        specs[name]["spec"]["height"] = {"step": max(7, 20 // len(targets.names))}
    return specs


def _read(name: str) -> Spec:
    spec: Spec = json.loads((FOLDER / f"{name}{SUFFIX}").read_text(encoding="utf-8"))
    return spec


def _filled(part: Any, filling: Mapping[str, list[str]]) -> Any:
    if isinstance(part, dict):
        return {key: _filled(value, filling) for key, value in part.items()}
    if isinstance(part, list):
        is_placeholder = len(part) == 1 and isinstance(part[0], str) and part[0] in filling
        return filling[part[0]] if is_placeholder else [_filled(value, filling) for value in part]
    return part
