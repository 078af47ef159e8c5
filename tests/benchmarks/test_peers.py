"""Peers beside ours: what is missing, too slow or too large is said, and ours is ours."""

from __future__ import annotations

import sys
import textwrap
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support import load_script

from moral_entropy.consensus.fit import fit
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import MoralEntropyWarning

bench = load_script("benchmarks/bench_peers.py")
process = load_script("benchmarks/peer_process.py")

MADE_UP = """
    import time
    import numpy as np
    from child import Answer

    def version():
        return "1"

    def _only_large(work):
        # The warm-up has 60 items, and is let pass.
        def prepare(votes):
            return lambda lap: work(lap) if votes.n_items != 60 else None
        return prepare

    def _slow(lap):
        while True:
            time.sleep(0.05)
            lap()

    def _busy(lap):
        while True:
            pass

    def _large(lap):
        np.zeros(10**10)

    def _three(lap):
        for _ in range(3):
            lap()
        return Answer(np.tile([0.75, 0.25], (80, 1)), "after three")

    def _broken(lap):
        raise ValueError("no such luck")

    TOOLS = {name: _only_large(work) for name, work in
             {"slow": _slow, "busy": _busy, "large": _large, "three": _three, "broken": _broken}.items()}
"""


@pytest.fixture(scope="module")
def simulated():
    return simulate_votes(n_items=80, n_annotators=6, votes_per_item=4, seed=3)


@pytest.fixture
def source(tmp_path, simulated):
    path = tmp_path / "votes.npz"
    bench.write_votes(simulated.votes.ballots[0], path)
    return path


@pytest.fixture
def run_made_up(source, tmp_path, monkeypatch):
    (tmp_path / "with_made_up.py").write_text(textwrap.dedent(MADE_UP), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def run(which: str):
        tool = bench.Tool(f"made_up:{which}", which)
        return bench.run_tool(tool, source, tmp_path / "answer", 0.5, python=Path(sys.executable))

    return run


def test_questions_of_a_set_share_one_limit_of_the_processors_time(run_made_up, source, tmp_path):
    pairs = [(source, tmp_path / f"answer-{b}") for b in range(2)]
    tool = bench.Tool("made_up:busy", "busy")
    reports = process.run_on_all(tool, pairs, 0.5, clock="cpu", python=Path(sys.executable))
    assert [facts["failed"] for facts in reports] == ["not done in 0.5 s of CPU"] * 2


def test_questions_of_a_set_are_answered_one_by_one(run_made_up, source, tmp_path):
    pairs = [(source, tmp_path / f"answer-{b}") for b in range(2)]
    tool = bench.Tool("made_up:three", "three")
    reports = process.run_on_all(tool, pairs, 5.0, python=Path(sys.executable))
    assert [(facts["ended"], facts["labels_only"]) for facts in reports] == [("after three", False)] * 2
    assert all(np.load(f"{out}.npy").shape == (80, 2) for _, out in pairs)


def test_a_missing_environment_is_said(source, tmp_path):
    facts = bench.run_tool(bench.OTHERS[0], source, tmp_path / "answer", 5.0, python=tmp_path / "none")
    assert "no .venv-peers" in facts["failed"]
    assert "make bench-peers" in bench.tables([bench.PeerRun("some votes", bench.OTHERS[0], facts, None)])


def test_a_slow_tool_is_ended_and_its_passes_are_told(run_made_up):
    facts = run_made_up("slow")
    assert facts["failed"] == "not done in 0.5 s"
    assert facts["passes"] >= 1
    assert facts["seconds_a_pass"] >= 0.05


def test_a_tool_that_wants_too_much_memory_is_told(run_made_up):
    facts = run_made_up("large")
    assert facts["failed"] == "out of memory at 12 GB, one array alone 74.5 GiB"
    assert facts["peak_gb"] < 1


def test_a_tool_that_fails_is_told(run_made_up):
    assert run_made_up("broken")["failed"] == "failed with 1: ValueError: no such luck"


def test_passes_are_those_of_one_call(run_made_up):
    facts = run_made_up("three")
    assert (facts["passes"], facts["repeats"], facts["ended"]) == (3, 5, "after three")


def test_ours_is_the_fit(source, simulated, tmp_path):
    facts = bench.run_tool(bench.OURS, source, tmp_path / "answer", 60.0)
    expected = fit(simulated.votes, draws=0).fits[0]
    assert facts["passes"] == expected.climb.passes
    assert_allclose(np.load(tmp_path / "answer.npy"), expected.posterior_ik, atol=1e-12)


@pytest.fixture(scope="module")
def votes_of_two_domains():
    votes = simulate_votes(n_items=80, n_annotators=6, votes_per_item=4, n_labels=3, seed=3).votes
    return replace(votes, domains=("a", "b"), domain_i=np.repeat([0, 1], 40))


@pytest.fixture(scope="module")
def fits(votes_of_two_domains):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return {model: fit(votes_of_two_domains, model=model).fits[0] for model in ("mixed", "paper")}


@pytest.mark.parametrize("which", ["published", "model", "paper", "smoothed-share"])
def test_what_an_audit_publishes_is_what_runs(which, votes_of_two_domains, fits, tmp_path):
    ballot = votes_of_two_domains.ballots[0]
    bench.write_votes(ballot, tmp_path / "votes.npz", votes_of_two_domains.domain_i)
    tool = bench.Tool(f"moral_entropy:{which}", which)
    facts = bench.run_tool(tool, tmp_path / "votes.npz", tmp_path / "answer", 60.0)
    expected_ik = {
        "published": fits["mixed"].p_ik,
        "model": fits["mixed"].summary.mean_ik,
        "paper": fits["paper"].p_ik,
        "smoothed-share": (ballot.counts_ik + 0.5) / (ballot.counts_ik + 0.5).sum(axis=1, keepdims=True),
    }[which]
    assert "failed" not in facts
    assert_allclose(np.load(tmp_path / "answer.npy"), expected_ik, atol=1e-12)


def test_the_table_gives_ratios_to_ours(simulated):
    truth_i = simulated.truth_i
    right = bench.score(np.where(truth_i == 1, 0.75, 0.25), truth_i)
    ours = {"seconds": 0.5, "passes": 10, "seconds_a_pass": 0.05, "peak_gb": 0.2, "ended": "its own rule"}
    theirs = {**ours, "seconds": 20.0, "seconds_a_pass": 2.0}
    table = bench.tables(
        [bench.PeerRun("v", bench.OURS, ours, right), bench.PeerRun("v", bench.OTHERS[1], theirs, right)]
    )
    line = next(line for line in table.splitlines() if "crowd-kit DawidSkene" in line)
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1:10] == ["20", "40", "10", "2", "40", "0.2", "1.0000", "0.0625", "0.2877"]
