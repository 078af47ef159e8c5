"""The paper's figures, as printed there (`data/published.csv`), and ours beside them.

One row per figure and reading of it; shares are fractions there and percentages in the paper. The tolerance says how
far ours may be from the printed figure and still be called the same: sizes must be equal, shares of the corpora must
round to the same digits, rates may differ by half a percentage point and entropies by a little more than their last
digit, since the paper's search stopped after 200 steps and its draws are other draws. Also defines how a figure is
written. Does not depend on votes.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import polars as pl

from moral_entropy.names import ALL

LARGEST = "(largest)"
ANY_FOUNDATION = "any foundation"

CORPORA = {"mftc": "MFTC", "mfrc": "MFRC", "emfd": "eMFD"}
"""Short names of the corpora, and how the paper writes them."""

READINGS = {
    "any foundation": 'the question "does the text carry any foundation at all", fitted on its own',
    "pooled": "every pair of text and foundation counts once, domains pooled",
    "mean": "the mean of the five foundations' figures, domains pooled",
    "cells": "the mean over domain × foundation, every cell counting once",
}
"""Possible meanings of a figure in the running text, where the paper does not say which."""

COUNTS = {"texts", "annotations", "annotators", "domains_fpr_above_fnr", "equal_fnr_cells"}
DIGITS = {"annotations_per_text": 2, "auc": 3, "aleatoric": 4, "epistemic": 4, "total": 4}

PLACE = ("corpus", "domain", "foundation", "rule", "reference", "metric")
"""Columns under which a published figure and ours meet."""


@dataclass(frozen=True)
class Published:
    """One figure of the paper, in one reading of it.

    Parameters
    ----------
    section
        Where in the paper: corpora, audit, domains, entropy, entropy shares, soft labels or annotators.
    corpus, domain, foundation
        What it is about; "(all)" pools, "(mean)" averages, "(largest)" is the largest.
    rule, reference
        The consensus rule and what it is graded against; empty where there is none.
    metric, value
        The figure; shares as fractions.
    printed
        The figure as printed in the paper.
    tolerance
        Largest difference at which ours still counts as the same.
    bound
        "at most" or "at least" where `value` is only a bound.
    reading
        One of `READINGS`, where the paper leaves it open.
    note
        A remark for the reader.
    """

    section: str
    corpus: str
    metric: str
    value: float
    tolerance: float = 0.0
    printed: str = ""
    domain: str = ALL
    foundation: str = ALL
    rule: str = ""
    reference: str = ""
    bound: str = ""
    reading: str = ""
    note: str = ""

    @property
    def place(self) -> tuple[str, ...]:
        """The key under which our figure is found: its values of `PLACE`."""
        return tuple(getattr(self, name) for name in PLACE)

    def holds(self, ours: float) -> bool:
        """Return whether our figure is the same, within the tolerance.

        Examples
        --------
        >>> Published("audit", "mftc", "fpr", 0.199, tolerance=0.005).holds(0.2037)
        True
        >>> Published("audit", "mfrc", "fpr", 0.01, bound="at most").holds(0.012)
        False
        """
        # Printed figures have few digits: their binary rounding must not decide.
        gap, slack = ours - self.value, self.tolerance + 1e-12
        if self.bound:
            return gap <= slack if self.bound == "at most" else -gap <= slack
        return abs(gap) <= slack


def spell_gap(metric: str, gap: float) -> str:
    """Write a difference with its sign; shares in percentage points.

    Examples
    --------
    >>> spell_gap("fpr", -0.012), spell_gap("texts", 0.0), spell_gap("aleatoric", 0.00001)
    ('−1.2 pp', '0', '0.0000')
    """
    text = spell(metric, abs(gap)).replace("%", " pp")
    sign = "−" if gap < 0 else "+"
    return sign + text if any(digit in text for digit in "123456789") else text


def spell(metric: str, value: float) -> str:
    """Write a figure as the paper does: shares in per cent, entropies with four digits, counts whole.

    Examples
    --------
    >>> spell("fpr", 0.306), spell("aleatoric", 0.067), spell("texts", 5366)
    ('30.6%', '0.0670', '5,366')
    """
    if metric in COUNTS:
        return f"{value:,.0f}"
    if metric in DIGITS:
        return f"{value:.{DIGITS[metric]}f}"
    return f"{100 * value:.1f}%"


@cache
def read_published() -> tuple[Published, ...]:
    """Return every figure of the paper; those with several readings once per reading.

    Examples
    --------
    >>> sum(figure.section == "entropy" for figure in read_published())
    150
    """
    source = files("moral_entropy.corpora") / "data" / "published.csv"
    rows: list[dict[str, Any]] = list(csv.DictReader(source.read_text(encoding="utf-8").splitlines()))
    numbers = ("value", "tolerance")
    return tuple(Published(**row | {name: float(row[name]) for name in numbers}) for row in rows)


def foundations() -> tuple[str, ...]:
    """Return the five foundations, in the order of the paper's tables."""
    return tuple(dict.fromkeys(figure.foundation for figure in read_published() if figure.metric == "aleatoric"))


def compare_figures(
    published: Sequence[Published], ours: pl.DataFrame, corpora: Sequence[str], *, twins: bool = False
) -> pl.DataFrame:
    """Return one row per published figure, with ours next to it.

    Parameters
    ----------
    published
        The paper's figures.
    ours
        Our figures, from `figures`.
    corpora
        Short names of the corpora that ours were computed from.
    twins
        Whether they are simulated, so that their truth is known.

    Returns
    -------
    pl.DataFrame
        section, corpus, domain, foundation, rule, reference, metric, reading, printed, published; ours, low, high,
        distance (ours less the published), within (whether that is within the tolerance); expected (our rate with items
        weighted by p instead of thresholded), truth (our rate against the truth of twins); bound, tolerance, note.

    Examples
    --------
    >>> figure = Published("audit", "mftc", "fpr", 0.2, 0.005, rule="any", reference="consensus")
    >>> ours = pl.DataFrame([dict(zip(PLACE, figure.place), value=0.25, low=None, high=None)])
    >>> compare_figures((figure,), ours, ("mftc",))["distance"].round(3)[0]
    0.05
    """
    by_place = {tuple(row[name] for name in PLACE): row for row in ours.iter_rows(named=True)}
    rows = []
    for figure in published:
        row = by_place.get(figure.place, {})
        *place, reference, metric = figure.place
        value, at_consensus = row.get("value"), reference == "consensus"
        expected = by_place.get((*place, reference, f"expected_{metric}"), {}).get("value") if at_consensus else None
        truth = by_place.get((*place, "gold", metric), {}).get("value") if at_consensus and twins else None
        rows.append({
            **{name: getattr(figure, name) for name in ("section", *PLACE, "reading", "printed")},
            "published": figure.value, "ours": value, "low": row.get("low"), "high": row.get("high"),
            "distance": None if value is None else value - figure.value,
            "within": None if value is None else figure.holds(value),
            "expected": expected, "truth": truth, "bound": figure.bound, "tolerance": figure.tolerance,
            "note": "; ".join(filter(None, (_absent(figure, value, corpora), figure.note))),
        })  # fmt: skip
    numbers = ("published", "ours", "low", "high", "distance", "expected", "truth", "tolerance")
    return pl.DataFrame(rows, schema_overrides={**dict.fromkeys(numbers, pl.Float64()), "within": pl.Boolean()})


def _absent(figure: Published, value: float | None, corpora: Sequence[str]) -> str:
    """Say why there is no figure of ours, or that it is of fewer corpora."""
    if figure.corpus != ALL and figure.corpus not in corpora:
        return f"{CORPORA[figure.corpus]} was not given"
    if value is None:
        missing = {"gold": "no gold labels", "": "no such figure in these votes"}
        return "no classifier was trained" if figure.section == "soft labels" else missing.get(figure.reference, "")
    partial = figure.corpus == ALL and len(corpora) < len(CORPORA)
    return f"of {' and '.join(CORPORA[name] for name in corpora)} alone" if partial else ""
