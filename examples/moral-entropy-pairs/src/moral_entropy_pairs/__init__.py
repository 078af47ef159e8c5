"""A format and a rule for moral-entropy, found by the entry points in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from moral_entropy import Rule


def read_pairs(path: Path) -> pl.DataFrame:
    """Read lines such as `t1: ann=yes bob=no` into one row per vote."""
    rows = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        item, _, votes = line.partition(":")
        for vote in votes.split():
            annotator, _, label = vote.partition("=")
            rows.append({"item": item.strip(), "annotator": annotator, "label": label})
    return pl.DataFrame(rows, schema={"item": pl.String, "annotator": pl.String, "label": pl.String})


ALL_BUT_ONE = Rule(
    "all-but-one",
    "at most one vote negative",
    lambda counts_ip: counts_ip[:, 0] <= 1,  # columns: votes for other labels, votes for the positive one
    pointwise=True,
)
