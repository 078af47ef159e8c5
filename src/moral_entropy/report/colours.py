"""Colours and shapes of the names that charts tell apart: questions, or labels of a question with more than two.

A question about a moral foundation has the foundation's colour in the paper. All others have the next of fourteen
colours. No colour comes twice before all have been used, and then with another shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moral_entropy.report.foundations import FOUNDATIONS, foundation_of

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
