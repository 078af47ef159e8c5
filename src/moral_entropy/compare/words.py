"""Figures of a comparison → short text, the same on the screen and in the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moral_entropy.markup import NOTHING


def percent(value: float | None) -> str:
    """Write a share in percent.

    Examples
    --------
    >>> percent(0.1234), percent(None)
    ('12.3', '–')
    """
    return NOTHING if value is None else f"{round(100 * value, 1) + 0.0:.1f}"


def number(value: float | None, *, sign: bool = False) -> str:
    """Write a number to three places, without the 0 before the point.

    Examples
    --------
    >>> number(0.0584, sign=True), number(-0.02), number(1.0), number(None)
    ('+.058', '-.020', '1.000', '–')
    """
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    # Not "-.000": what rounds to nothing has no sign.
    rounded = round(value, 3) + 0.0
    return f"{rounded:{'+' if sign else ''}.3f}".replace("0.", ".", 1) if abs(rounded) < 1 else f"{rounded:.3f}"


def _spread(value: str, low: str, high: str, between: str = ", ") -> str:
    return value if NOTHING in (low, high) else f"{value} ({low}{between}{high})"


def share(row: dict[str, Any]) -> str:
    """Write a share in percent with its interval.

    Examples
    --------
    >>> share({"value": 0.975, "low": 0.969, "high": 0.98})
    '97.5 (96.9–98.0)'
    """
    return _between(percent, row)


def figure(row: dict[str, Any]) -> str:
    """Write a figure with its interval."""
    return _between(number, row)


def _between(as_text: Callable[[float | None], str], row: dict[str, Any]) -> str:
    value, low, high = (row[name] for name in ("value", "low", "high"))
    if value == low == high:
        return as_text(value)
    return _spread(as_text(value), as_text(low), as_text(high), ", " if (low or 0) < 0 else "–")


def change(row: dict[str, Any]) -> str:
    """Write a change with its sign and interval.

    Examples
    --------
    >>> change({"change": -0.0512, "low": -0.07, "high": -0.03}), change({"change": 0.0, "low": 0.0, "high": 0.0})
    ('-.051 (-.070, -.030)', '0')
    """
    if row["change"] == row["low"] == row["high"] == 0:
        return "0"
    return _spread(number(row["change"], sign=True), number(row["low"]), number(row["high"]))


def change_in_percent(row: dict[str, Any]) -> str:
    """Write a change of a share, in percentage points, with its sign and interval.

    Examples
    --------
    >>> change_in_percent({"change": 0.0512, "low": -0.01, "high": 0.07})
    '+5.1 (-1.0, 7.0)'
    """
    if row["change"] == row["low"] == row["high"] == 0:
        return "0"
    value = percent(row["change"])
    return _spread(
        value if value.startswith(("-", NOTHING)) else f"+{value}", percent(row["low"]), percent(row["high"])
    )


def chance(row: dict[str, Any], side: str) -> str:
    """Write an item's label and p in one run, with its interval."""
    p, low, high = (row[f"{name}_{side}"] for name in ("p", "p_low", "p_high"))
    between = "" if low is None or high is None else f" ({low:.2f}–{high:.2f})"
    return f"{row[f'label_{side}']}, {p:.2f}{between}"


def item_counts(row: dict[str, Any]) -> str:
    """Say how many items the runs share."""
    shared, only_a, only_b = row["shared"], row["only_a"], row["only_b"]
    return f"{shared:,} in both, {only_a:,} only in a, {only_b:,} only in b"
