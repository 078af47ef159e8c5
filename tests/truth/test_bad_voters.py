"""Annotators who harm a plain vote: named, and harmless to the consensus. Truth known, since votes are simulated."""

import numpy as np
import polars as pl
import pytest

from moral_entropy.model.fit import fit
from moral_entropy.pipeline import audit
from moral_entropy.votes.read import read_votes

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")

SEEDS = range(3)
N_ITEMS = 600


def panel(seed, n_items=N_ITEMS):
    """Truth, and votes of twelve judges of 75% to 92%, five on every item."""
    rng = np.random.default_rng(seed)
    truth_i = (rng.random(n_items) < 0.35).astype(int)
    right_a = rng.uniform(0.75, 0.92, 12)
    rows = [
        (i, f"judge {a:02d}", int(truth_i[i] if rng.random() < right_a[a] else 1 - truth_i[i]))
        for i in range(n_items)
        for a in rng.choice(12, 5, replace=False)
    ]
    return truth_i, rows, rng


def votes_from(rows):
    return read_votes(pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row"))


def accuracy(rows, truth_i):
    votes = votes_from(rows)
    return float((fit(votes, draws=100).fits[0].label_i == truth_i[votes.items.to_numpy()]).mean())


def with_adversary(rows, truth_i, rng):
    some = rng.choice(N_ITEMS, 150, replace=False)
    return [*rows, *((int(i), "adversary", int(truth_i[i] == (rng.random() < 0.12))) for i in some)]


def with_spammer(rows, truth_i, rng):
    some = rng.choice(N_ITEMS, len(rows) // 20, replace=False)
    return [*rows, *((int(i), "spammer", 1) for i in some)]


def with_switched_team(rows, truth_i, rng):
    return [(i, name, 1 - label if name in ("judge 00", "judge 01") else label) for i, name, label in rows]


@pytest.mark.parametrize("spoil", [with_adversary, with_spammer])
@pytest.mark.parametrize("seed", SEEDS)
def test_single_ones_are_harmless(spoil, seed):
    truth_i, rows, rng = panel(seed)
    assert accuracy(spoil(rows, truth_i, rng), truth_i) >= accuracy(rows, truth_i) - 0.01


@pytest.mark.parametrize("seed", SEEDS)
def test_a_switched_team_hardly_harms(seed):
    """The model turns the votes of a switched sixth around; the vote share in the published p cannot: two points."""
    truth_i, rows, rng = panel(seed, 2_400)
    switched = with_switched_team(rows, truth_i, rng)
    assert accuracy(switched, truth_i) >= accuracy(rows, truth_i) - 0.02
    one = fit(votes_from(switched), draws=100).fits[0]
    model_i = one.model_ik.argmax(axis=1)
    assert (model_i == truth_i).mean() >= accuracy(rows, truth_i) - 0.01


def test_they_are_named():
    truth_i, rows, rng = panel(0)
    run = audit(votes_from(with_adversary(with_spammer(rows, truth_i, rng), truth_i, rng)), draws=100, report=False)
    below = run.findings.filter(pl.col("text").str.contains("worse than guessing"))
    assert "adversary" in " ".join(below["text"].to_list())
    roles = dict(run.table("annotator_summary").select("annotator", "role").iter_rows())
    assert roles["adversary"] == "worse than guessing"
    assert roles["spammer"] == "like guessing"
