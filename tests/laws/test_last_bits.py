"""What another processor would round differently decides nothing: no order, no label, no word.

Votes with every kind of tie are audited twice, the second time with noise in the last bits of every probability, as
sums in another order have it. Tables must agree: words and orders exactly, figures to 1e-9.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_votes import tied_votes
from polars.testing import assert_frame_equal

from moral_entropy.items.rank import first
from moral_entropy.options import AuditOptions, FitOptions
from moral_entropy.pipeline import audit
from moral_entropy.rules.advice import wrong_in_100
from moral_entropy.rules.gate import check_limits
from moral_entropy.runs.folder import read_manifest
from moral_entropy.ties import highest, settle_halves, tie_key

NOISE = 1e-14


def rounded_otherwise(seed):
    """Add noise in the last bits of probabilities, then treat them as the library does."""
    rng = np.random.default_rng(seed)

    def noisy(p_rk):
        p_rk *= 1.0 + NOISE * rng.standard_normal(p_rk.shape)
        return settle_halves(p_rk)

    return noisy


def tables(folder):
    return {file.stem: pl.read_parquet(file) for file in sorted(folder.glob("*.parquet"))}


CASES = {
    "two labels": (tied_votes(), FitOptions(draws=0)),
    "two labels, draws": (tied_votes(), FitOptions(draws=40)),
    "the paper's model": (tied_votes(annotators="abcd"), FitOptions(draws=0, model="paper")),
    "three labels": (tied_votes("xyz"), FitOptions(draws=0)),
    "three labels, draws": (tied_votes("xyz", times=1), FitOptions(draws=40)),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_the_last_bits_decide_nothing(case, seed, tmp_path, monkeypatch):
    votes, options = CASES[case]
    audit(votes, tmp_path / "one", AuditOptions(fit=options, report=False))
    monkeypatch.setattr("moral_entropy.model.fit.settle_halves", rounded_otherwise(seed))
    audit(votes, tmp_path / "two", AuditOptions(fit=options, report=False))
    one, two = tables(tmp_path / "one"), tables(tmp_path / "two")
    assert one.keys() == two.keys()
    for name, table in one.items():
        assert_frame_equal(table, two[name], rel_tol=0.0, abs_tol=1e-9)
    facts = [read_manifest(tmp_path / name) for name in ("one", "two")]
    assert facts[0]["advice"] == facts[1]["advice"]
    assert facts[0]["warnings"] == facts[1]["warnings"]


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_said_to_be_less_than_nothing(case, tmp_path):
    votes, options = CASES[case]
    audit(votes, tmp_path / "run", AuditOptions(fit=options))
    texts = [read_manifest(tmp_path / "run")["advice"], *read_manifest(tmp_path / "run")["warnings"]]
    for table in tables(tmp_path / "run").values():
        texts += [text for column in table.get_columns() if column.dtype == pl.String for text in column.unique()]
    assert [text for text in texts if text and re.search(r"-0(\.0+)?(?![.\d])", text)] == []


@given(
    score=st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.1 + 0.2, 0.7, np.nan]), min_size=1, max_size=30),
    n=st.integers(0, 12),
    seed=st.integers(0, 99),
)
def test_the_first_of_a_ranking_are_the_same_with_noise(score, n, seed):
    score_i = np.array(score)
    noisy_i = score_i + NOISE * np.random.default_rng(seed).standard_normal(len(score_i))
    assert first(noisy_i, n).tolist() == first(score_i, n).tolist()


@given(
    score=st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.1 + 0.2, 1 / 3]), min_size=6, max_size=6),
    seed=st.integers(0, 99),
)
def test_the_highest_column_is_the_same_with_noise(score, seed):
    score_ik = np.array(score).reshape(2, 3)
    noisy_ik = score_ik + NOISE * np.random.default_rng(seed).standard_normal((2, 3))
    assert highest(noisy_ik).tolist() == highest(score_ik).tolist()
    assert tie_key(noisy_ik).tolist() == tie_key(score_ik).tolist()


def test_labels_in_a_hundred_do_not_depend_on_the_last_bits():
    assert wrong_in_100(0.125 + 1e-16) == wrong_in_100(0.125 - 1e-16) == "About 12 wrong labels in 100"
    assert wrong_in_100(1e-17) == wrong_in_100(-1e-17) == "No wrong label"


def test_a_limit_is_reached_but_not_passed_by_rounding():
    row = {"question": "(all)", "domain": "(all)", "label": "(all)", "rule": "any", "reference": "consensus"}
    frame = pl.DataFrame([{**row, "metric": "fdr", "value": 0.1 + 0.2, "low": None, "high": None, "n": 10}])
    (most,) = check_limits(frame, maxima=["any.fdr=0.3"])
    (least,) = check_limits(frame.with_columns(value=0.3 - 1e-16), minima=["any.fdr=0.3"])
    assert most.held and least.held and "is 0.3," in str(most)
