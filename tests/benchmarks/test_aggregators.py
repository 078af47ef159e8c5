"""Aggregators in processes of their own: ours is ours, and what is missing or too slow is said."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support import load_script

from moral_entropy import fit, simulate_votes

aggregators = load_script("benchmarks/aggregators.py")


@pytest.fixture(scope="module")
def simulated():
    return simulate_votes(n_items=80, n_annotators=6, votes_per_item=4, seed=2).votes


@pytest.fixture
def source(simulated, tmp_path):
    [ballot] = simulated.ballots
    np.savez(tmp_path / "votes.npz", item_v=np.repeat(np.arange(ballot.n_items), ballot.votes_i),
             annotator_v=ballot.code_v // 2, label_v=(ballot.code_v % 2).astype(np.int8), n_items=ballot.n_items,
             n_annotators=ballot.n_annotators, n_labels=2)  # fmt: skip
    return tmp_path / "votes.npz"


def test_ours_is_what_an_audit_publishes(simulated, source, tmp_path):
    [report] = aggregators.run_tool(aggregators.OURS, [(source, tmp_path / "answer")], 120.0)
    assert "failed" not in report and not report["labels_only"]
    assert_allclose(np.load(tmp_path / "answer.npy"), fit(simulated).fits[0].p_ik, rtol=1e-6, atol=1e-9)


def test_a_set_of_several_questions_shares_its_seconds(source, tmp_path):
    pairs = [(source, tmp_path / name) for name in ("first", "second")]
    reports = aggregators.run_tool(aggregators.OURS, pairs, 1e-3)
    assert [report["failed"] for report in reports] == ["not done in its CPU seconds"] * 2


def test_a_missing_environment_is_said(source, tmp_path, monkeypatch):
    monkeypatch.setattr(aggregators, "OTHER", tmp_path / "nowhere")
    [report] = aggregators.run_tool("crowd-kit MACE", [(source, tmp_path / "answer")], 1.0)
    assert report["failed"].startswith("not installed")
