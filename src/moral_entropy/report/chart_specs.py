"""The charts' Vega-Lite specifications, with the names and colours of a run filled in.

The files in `charts/` are made by `tools/make_charts.py`. They hold no rows: the page puts in what is chosen there,
`figures.py` puts in what the run holds. Both therefore draw the same charts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C8C8C")
"""The colours of Okabe and Ito, which people with colour blindness can tell apart."""

FURTHER = ("#7A3FB0", "#7A4A12", "#94C11F", "#B0003A", "#14575C", "#7C83F7", "#E85FD0")
"""More colours, at least as far from each other and from the first seven as the closest two of these are."""

PALETTE = (*OKABE_ITO, *FURTHER)
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
"""The first two shapes are for the colours when they are first used, the next two when they come again, and so on."""

FAR = 24.0
"""Distance in CIELAB from which on two colours are told apart at a glance."""


@dataclass(frozen=True)
class Look:
    """How a name is drawn."""

    colour: str
    shape: str


def looks_of(names: Sequence[str]) -> list[Look]:
    """Return the look of each name; no two are alike (up to 42 names).

    Examples
    --------
    >>> looks_of(["care", "harm", "toxic"])[0]
    Look(colour='#00B4A6', shape='circle')
    >>> [look.colour for look in looks_of(["care", "harm", "toxic"])]
    ['#00B4A6', '#0072B2', '#E69F00']
    """
    about: dict[str, str] = {}
    for name in names:
        # A second question about the same foundation needs a colour of its own.
        about.setdefault(foundation_of(name) or "", name)
    first = {name: FOUNDATIONS[foundation].colour for foundation, name in about.items() if foundation}
    found = {name: Look(colour, SHAPES[0]) for name, colour in first.items()}
    others = [name for name in names if name not in found]
    return [*map((found | dict(zip(others, _looks(len(others), first.values()), strict=True))).__getitem__, names)]


def _looks(n: int, taken: Iterable[str]) -> list[Look]:
    """Return the looks of n names that are about no foundation, far from the colours taken."""
    used = list(taken)
    free = [at for at, colour in enumerate(PALETTE) if all(distance(colour, one) >= FAR for one in used)]
    again = ((at, 2 * turn) for turn in range(1, n // len(PALETTE) + 2) for at in range(len(PALETTE)))
    order = [*((at, 0) for at in free), *again][:n]
    return [Look(PALETTE[at], SHAPES[(turn + (at >= len(OKABE_ITO))) % len(SHAPES)]) for at, turn in order]


def distance(one: str, other: str) -> float:
    """Return how far two colours are apart: the Euclidean distance in CIELAB (CIE 1976).

    Examples
    --------
    >>> round(distance("#000000", "#FFFFFF"))
    100
    """
    return math.dist(_lab(one), _lab(other))


def _lab(colour: str) -> tuple[float, float, float]:
    """Convert sRGB to CIELAB with the white of D65."""
    red, green, blue = (_linear(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5))
    x = _cube_root((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047)
    y = _cube_root(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    z = _cube_root((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _linear(value: float) -> float:
    return float(value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4)


def _cube_root(value: float) -> float:
    return float(value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116)


@dataclass(frozen=True)
class Foundation:
    """A moral foundation.

    Parameters
    ----------
    colour
        As in the paper's figures.
    names
        Names a question about it goes by, in lower case.
    meaning
        What it is about.
    """

    colour: str
    names: tuple[str, ...]
    meaning: str


FOUNDATIONS = {
    "authority": Foundation(
        "#6A4C93",
        ("authority", "subversion"),
        "Respect for rank, duty and tradition, and anger at those who undermine them.",
    ),
    "care": Foundation(
        "#00B4A6",
        ("care", "harm"),
        "Compassion for those who suffer and the wish to protect them; harm is its violation.",
    ),
    "fairness": Foundation(
        "#3498DB",
        ("fairness", "cheating", "equality", "proportionality"),
        "Justice, equal rights and giving back what one got; cheating is its violation.",
    ),
    "loyalty": Foundation(
        "#E74C3C",
        ("loyalty", "betrayal", "ingroup"),
        "Standing by one's own group, team or country; betrayal is its violation.",
    ),
    "sanctity": Foundation(
        "#F39C12",
        ("sanctity", "purity", "degradation"),
        "Keeping body and spirit clean and what is sacred untouched; degradation is its violation.",
    ),
}


def foundation_of(question: str) -> str | None:
    """Return the foundation that a question is about, by its name; None for any other.

    Examples
    --------
    >>> foundation_of("Care/Harm"), foundation_of("toxic")
    ('care', None)
    """
    words = set(re.split(r"[^a-z]+", question.lower())) - {""}
    found = [name for name, foundation in FOUNDATIONS.items() if words & set(foundation.names)]
    return found[0] if len(found) == 1 and words <= set(FOUNDATIONS[found[0]].names) else None


def definitions_of(names: Sequence[str]) -> dict[str, str]:
    """Return what the questions that are foundations are about, by name."""
    found = {name: foundation_of(name) for name in names}
    return {name: FOUNDATIONS[foundation].meaning for name, foundation in found.items() if foundation}
