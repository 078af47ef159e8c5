"""Changes of grades against the formula written out with loops."""

from __future__ import annotations

import math

import polars as pl
import pytest

from moral_entropy.comparison import grade_changes
from moral_entropy.schemas import SCHEMAS


def audit(*rows):
    """Rows of an audit: rule, metric, value, low, high, n."""
    full = [("q", "(all)", "yes", rule, "consensus", metric, *figures) for rule, metric, *figures in rows]
    return pl.DataFrame(full, schema=SCHEMAS["audit"], orient="row")


A = audit(
    ("any", "fpr", 0.30, 0.25, 0.36, 100),
    ("any", "fnr", 0.00, 0.00, 0.00, 40),
    ("any", "fdr", 0.50, 0.52, 0.60, 70),
    ("any", "brier", 0.2, 0.1, 0.3, 140),
    ("majority", "fpr", None, None, None, 0),
    ("two-vote", "fpr", 0.1, 0.05, 0.2, 100),
)
B = audit(
    ("majority", "fpr", 0.1, 0.05, 0.2, 100),
    ("any", "fdr", 0.40, 0.30, 0.45, 70),
    ("any", "fnr", 0.00, 0.00, 0.00, 40),
    ("any", "fpr", 0.20, 0.18, 0.21, 90),
)


def test_only_what_both_have_and_only_the_rates():
    found = grade_changes(A, B)
    assert found.select("rule", "metric").rows() == [
        ("any", "fpr"),
        ("any", "fnr"),
        ("any", "fdr"),
        ("majority", "fpr"),
    ]
    assert found.select("n_a", "n_b").row(0) == (100, 90)


def test_intervals_are_squared_and_added():
    row = grade_changes(A, B).row(0, named=True)
    assert row["change"] == pytest.approx(-0.10)
    assert row["low"] == pytest.approx(-0.10 - math.hypot(0.20 - 0.18, 0.36 - 0.30))
    assert row["high"] == pytest.approx(-0.10 + math.hypot(0.21 - 0.20, 0.30 - 0.25))


def test_two_certain_figures_differ_for_certain():
    assert grade_changes(A, B).row(1, named=True)["low"] == 0.0


def test_a_figure_outside_its_interval_adds_nothing_on_that_side():
    row = grade_changes(A, B).row(2, named=True)
    # 0.50 lies below 0.52–0.60: upwards b reaches 0.05 and a, downwards, nothing.
    assert row["high"] == pytest.approx(-0.10 + 0.05)
    assert row["low"] == pytest.approx(-0.10 - math.hypot(0.10, 0.10))


def test_no_figure_no_change():
    row = grade_changes(A, B).row(3, named=True)
    assert (row["change"], row["low"], row["high"]) == (None, None, None)
