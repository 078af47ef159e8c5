"""A figure lies in its own interval, also where draws are far noisier than their mean: few votes per row of errors."""

from __future__ import annotations

import polars as pl
import pytest

from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.options import AuditOptions, FitOptions
from moral_entropy.pipeline import audit

DESIGNS = {
    "many annotators of few votes": {"n_items": 500, "n_annotators": 150, "votes_per_item": 4, "n_labels": 2},
    "eight labels": {"n_items": 300, "n_annotators": 20, "votes_per_item": 3, "n_labels": 8},
}
FIGURES = {
    "annotators": ["probability low high"],
    "annotator_summary": [f"{name} {name}_low {name}_high" for name in ("sensitivity", "specificity", "youden")],
    "items": ["p p_low p_high"],
}


@pytest.fixture(scope="module", params=DESIGNS)
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    votes = simulate_votes(**DESIGNS[request.param], seed=1).votes
    audit(votes, folder, AuditOptions(fit=FitOptions(draws=200), report=False))
    return folder


@pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")
@pytest.mark.parametrize("table", FIGURES)
def test_every_figure_lies_in_its_interval(run, table):
    frame, n_told = pl.read_parquet(run / f"{table}.parquet"), 0
    for columns in FIGURES[table]:
        value, low, high = (pl.col(name) for name in columns.split())
        told = frame.filter(value.is_finite() & low.is_not_null())
        outside = told.filter((value < low - 1e-9) | (value > high + 1e-9))
        assert outside.is_empty(), outside.head(3)
        n_told += len(told)
    assert n_told > 0
