"""Tables → JSON: small, and unable to break out of the page they are put in.

A table is its columns; a column of texts that repeat is a list of distinct texts and a list of positions in it.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl

DIGITS = 6
"""Significant digits kept: more than any chart can show, fewer than a float prints."""

_UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def packed(frame: pl.DataFrame) -> dict[str, Any]:
    """Give a table as columns that JSON can hold; figures that are not finite become null.

    Examples
    --------
    >>> packed(pl.DataFrame({"rule": ["any", "any"], "value": [0.12345678, float("inf")]}))
    {'rule': {'of': ['any'], 'at': [0, 0]}, 'value': [0.123457, None]}
    """
    return {name: _column(frame[name]) for name in frame.columns}


def _column(column: pl.Series) -> Any:
    if column.dtype.is_float():
        finite = column.is_finite()
        rounded = column.round_sig_figs(DIGITS)
        return pl.select(pl.when(finite).then(rounded)).to_series().to_list()
    if column.dtype != pl.String:
        return column.to_list()
    distinct = column.unique(maintain_order=True)
    codes = pl.DataFrame({"text": column}).join(
        pl.DataFrame({"text": distinct, "at": range(len(distinct))}),
        on="text",
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    return {"of": distinct.to_list(), "at": codes["at"].to_list()}


def script_json(value: Any) -> str:
    r"""Write JSON that is safe inside a script element: no character of it can end the element or begin another.

    Examples
    --------
    >>> print(script_json({"text": "</script>"}))
    {"text":"\u003c/script\u003e"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_UNSAFE)
