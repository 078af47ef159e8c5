"""The league on made-up figures and on one small set: means, ranks, what is kept, and what the page says."""

from __future__ import annotations

import numpy as np
import pytest
from support import load_script

from moral_entropy import read_votes, simulate_votes
from moral_entropy.corpora.twins import twin

league = load_script("studies/league.py")
pages = load_script("studies/league_page.py")
OURS, SHARE, DS = league.OURS, pages.SHARE, "crowd-kit DawidSkene"


def entry(name, kinds, ours, share, other):
    lines = {tool: {"failed": "not done"} for tool in league.TOOLS}
    for tool, (accuracy, log_loss) in {OURS: ours, SHARE: share, pages.PLURALITY: share, DS: other}.items():
        lines[tool] = {"accuracy": accuracy, "log_loss": log_loss, "seconds": 0.5}
    return league.Entry(name, kinds, 100, lines)


@pytest.fixture
def entries():
    return [
        entry("first", (league.FEW,), (0.9, 0.2), (0.8, 0.4), (0.7, 0.8)),
        entry("second", (league.LLM, league.LABELS), (0.6, 0.9), (0.8, 0.3), (0.9, 0.3)),
    ]


def test_sums_over_sets_are_means_and_geometric_means(entries):
    assert pages.accuracy(entries, OURS) == pytest.approx(0.75)
    assert pages.ratio(entries, OURS) == pytest.approx(np.sqrt(0.5 * 3.0))
    assert pages.accuracy(entries, "snorkel LabelModel") is None and pages.ratio(entries, "snorkel LabelModel") is None


def test_the_page_says_who_is_best_and_where_ours_loses(entries):
    text = pages.page(entries, "facts")
    assert (
        "| **all real sets** | 2 | smoothed vote share and vote share (plurality) and crowd-kit DawidSkene: .800"
        in text
    )
    assert "less often than the plurality by more than one standard error: second (20.0 points)." in text
    assert "Log loss above that of the smoothed share (ratio): second (3.00)." in text
    tables = pages.tables(entries)
    assert "crowd-kit DawidSkene,2,1,0,1,-5.0," in tables["league-duels.csv"]
    assert [name for name in tables if f"(../data/{name})" not in text] == []


@pytest.mark.parametrize(
    ("name", "n_labels", "per_item", "kinds"),
    [("rte", 2, 3, (league.FEW,)), ("web", 5, 9, (league.MANY, league.LABELS)), ("mftc", 2, 3, (league.TWIN,))],
)
def test_kinds_follow_from_votes_and_labels(name, n_labels, per_item, kinds):
    made = simulate_votes(n_items=40, n_annotators=12, votes_per_item=per_item, n_labels=n_labels, seed=0)
    assert league.kinds_of(name, made.votes.ballots[0]) == kinds


def test_answers_are_kept_and_scored_against_gold(tmp_path, monkeypatch):
    asked = []

    def run_tool(tool, pairs, _):
        asked.append(tool)
        for source, out in pairs:
            with np.load(source) as parts:
                np.save(out, np.full((int(parts["n_items"]), 2), 0.5))
        return [{"seconds": 1.0, "labels_only": False} for _ in pairs]

    monkeypatch.setattr(league, "run_tool", run_tool)
    votes = read_votes(twin("mfrc", scale=0.002), gold="gold")
    reports = league.run_all("mfrc", votes, 60.0, 1, tmp_path)
    [found] = league.entries_of("mfrc", votes, reports)
    assert found.lines[OURS]["accuracy"] == 0.5 and found.lines[OURS]["seconds"] == len(votes.ballots)
    assert league.run_all("mfrc", votes, 60.0, 0, tmp_path) == reports and len(asked) == len(league.TOOLS)
    assert league.run_all("mfrc", votes, 61.0, 0, tmp_path)[OURS][0] == {"failed": league.NOT_RUN}
