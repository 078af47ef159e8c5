"""Simulated votes: the sizes asked for, the chances they were drawn with, and the same votes in memory and on disk."""

from __future__ import annotations

from math import comb, sqrt

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moral_entropy.corpora import simulate
from moral_entropy.corpora.simulate import assign_evenly, simulate_votes, write_simulated
from moral_entropy.errors import FileError, MoralEntropyError, UsageError


def long_table(simulated):
    """Spell a ballot out as the rows of a file."""
    votes, (ballot,) = simulated.votes, simulated.votes.ballots
    at_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    return pl.DataFrame(
        {
            "item": votes.items.to_numpy()[at_v],
            "annotator": votes.annotators.to_numpy()[ballot.code_v // ballot.n_labels].astype(np.int32),
            "label": (ballot.code_v % ballot.n_labels).astype(np.int8),
            "gold": ballot.gold_i[at_v].astype(np.int8),
        }
    )


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(simulate, "BLOCK_ITEMS", 64)


sizes = st.integers(1, 12).flatmap(
    lambda n_annotators: st.fixed_dictionaries(
        {
            "n_items": st.integers(1, 60),
            "n_annotators": st.just(n_annotators),
            "votes_per_item": st.one_of(st.integers(1, n_annotators), st.floats(1, n_annotators)),
            "n_labels": st.integers(2, 5),
            "seed": st.integers(0, 2**32),
        }
    )
)


@given(asked=sizes)
@settings(max_examples=60, deadline=None)
def test_any_sizes_give_different_annotators_on_every_item(asked):
    simulated = simulate_votes(**asked)
    rows = long_table(simulated)
    assert rows["item"].unique().sort().to_list() == list(range(asked["n_items"]))
    assert not rows.select("item", "annotator").is_duplicated().any()
    assert rows["annotator"].is_between(0, asked["n_annotators"] - 1).all()
    assert rows["label"].is_between(0, asked["n_labels"] - 1).all()
    if float(asked["votes_per_item"]).is_integer():
        assert (simulated.votes.ballots[0].votes_i == asked["votes_per_item"]).all()


@given(asked=sizes)
@settings(max_examples=30, deadline=None)
def test_the_truth_is_the_gold_of_the_ballot(asked):
    simulated = simulate_votes(**asked)
    assert (simulated.votes.ballots[0].gold_i == simulated.truth_i).all()
    assert np.allclose(simulated.confusion_akv.sum(axis=-1), 1)
    assert len(simulated.confusion_akv) == len(simulated.votes.annotators) == simulated.votes.ballots[0].n_annotators


@pytest.mark.parametrize("n_labels", [2, 3])
def test_votes_follow_the_confusion_they_were_drawn_from(n_labels):
    simulated = simulate_votes(n_items=20_000, n_annotators=8, votes_per_item=3.4, n_labels=n_labels, seed=3)
    counted = np.zeros((8, n_labels, n_labels))
    for row in long_table(simulated).iter_rows():
        counted[row[1], row[3], row[2]] += 1
    given_ak = counted.sum(axis=-1, keepdims=True)
    chance = simulated.confusion_akv
    # Up to 72 cells: five standard errors leave a false alarm in 20,000 runs, and the seed is fixed.
    assert (np.abs(counted / given_ak - chance) < 5 * np.sqrt(chance * (1 - chance) / given_ak)).all()


def test_truth_follows_the_prevalence():
    prevalence_k = [0.7, 0.05, 0.25]
    simulated = simulate_votes(
        n_items=70_000, n_annotators=4, votes_per_item=1, n_labels=3, seed=5, prevalence_k=prevalence_k
    )
    share_k = np.bincount(simulated.truth_i, minlength=3) / 70_000
    assert (np.abs(share_k - prevalence_k) < 5 * np.sqrt(0.25 / 70_000)).all()
    assert simulated.prevalence_k.tolist() == prevalence_k


def test_a_mean_that_is_no_whole_number_makes_ragged_items():
    ballot = simulate_votes(n_items=40_000, n_annotators=10, votes_per_item=2.5, seed=1).votes.ballots[0]
    spread = sqrt(9 * (1.5 / 9) * (1 - 1.5 / 9) / 40_000)
    assert abs(ballot.votes_i.mean() - 2.5) < 5 * spread
    assert ballot.votes_i.min() == 1
    assert len(np.unique(ballot.votes_i)) > 4


def test_given_confusion_is_used_and_does_not_move_the_truth():
    perfect = np.tile(np.eye(2), (5, 1, 1))
    sizes = {"n_items": 500, "n_annotators": 5, "votes_per_item": 3, "seed": 9}
    exact = simulate_votes(**sizes, confusion_akv=perfect)
    rows = long_table(exact)
    assert rows["label"].equals(rows["gold"], check_names=False)
    assert (exact.truth_i == simulate_votes(**sizes).truth_i).all()


def test_accuracy_bounds_the_chance_to_be_right():
    simulated = simulate_votes(n_items=900, n_annotators=300, votes_per_item=4, n_labels=3, accuracy=(0.8, 0.85))
    right = np.diagonal(simulated.confusion_akv, axis1=1, axis2=2)
    assert right.min() >= 0.8
    assert right.max() <= 0.85


def test_whoever_has_no_vote_is_left_out():
    simulated = simulate_votes(n_items=3, n_annotators=100, votes_per_item=2, seed=4)
    rows = long_table(simulated)
    assert simulated.votes.annotators.to_list() == sorted(rows["annotator"].unique().to_list())
    assert len(simulated.confusion_akv) == rows["annotator"].n_unique() < 100


@pytest.mark.parametrize("few_votes", [32, 0])
def test_every_set_of_annotators_is_as_likely(monkeypatch, few_votes):
    monkeypatch.setattr(simulate, "FEW_VOTES", few_votes)
    n_items = 30_000
    chosen = assign_evenly(np.random.default_rng(2), np.full(n_items, 3), 6).reshape(n_items, 3)
    sets, times = np.unique(chosen, axis=0, return_counts=True)
    assert len(sets) == comb(6, 3)
    expected = n_items / comb(6, 3)
    # Chi-squared with 19 degrees of freedom is above 50.8 once in 10,000.
    assert ((times - expected) ** 2 / expected).sum() < 50.8


@given(votes_i=st.lists(st.integers(0, 40), min_size=1, max_size=30), few=st.sampled_from([0, 64]))
@settings(max_examples=60, deadline=None)
def test_voters_are_different_sorted_and_as_many_as_asked(votes_i, few):
    count_i = np.array(votes_i)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulate, "FEW_VOTES", few)
        drawn = assign_evenly(np.random.default_rng(0), count_i, 40)
    for voters_v, asked in zip(np.split(drawn, count_i.cumsum()[:-1]), votes_i, strict=True):
        assert len(voters_v) == asked
        assert (np.diff(voters_v) > 0).all()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("votes_per_item", [3, 2.7])
def test_the_file_holds_the_votes_of_memory(tmp_path, votes_per_item):
    sizes = {"n_items": 1_000, "n_annotators": 20, "votes_per_item": votes_per_item, "n_labels": 3, "seed": 11}
    in_memory = long_table(simulate_votes(**sizes))
    n_votes = write_simulated(tmp_path / "votes.parquet", **sizes)
    read = pl.read_parquet(tmp_path / "votes.parquet")
    assert read.equals(in_memory)
    assert read.schema == {"item": pl.Int64, "annotator": pl.Int32, "label": pl.Int8, "gold": pl.Int8}
    assert n_votes == in_memory.height


@pytest.mark.usefixtures("small_blocks")
def test_blocks_do_not_repeat_each_other():
    truth_i = simulate_votes(n_items=128, n_annotators=5, votes_per_item=2, seed=0).truth_i
    assert (truth_i[:64] != truth_i[64:]).any()


def test_the_seed_decides_the_bytes(tmp_path):
    sizes = {"n_items": 2_000, "n_annotators": 20, "votes_per_item": 3, "n_labels": 2}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_simulated(tmp_path / name, **sizes, seed=seed)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != (tmp_path / "c").read_bytes()


def test_progress_ends_at_one(tmp_path):
    shares = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulate, "BLOCK_ITEMS", 20)
        write_simulated(tmp_path / "v", n_items=95, n_annotators=3, votes_per_item=1, advance=shares.append)
    assert shares == [0.2, 0.4, 0.6, 0.8, 1.0]


def test_many_votes_on_one_item():
    simulated = simulate_votes(n_items=3, n_annotators=3_000, votes_per_item=3_000)
    assert simulated.votes.ballots[0].votes_i.tolist() == [3_000] * 3


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"votes_per_item": 6}, r"only 5 annotators .* at most 5 votes"),
        ({"votes_per_item": 5.5}, r"5\.5, but there are only 5"),
        ({"votes_per_item": 0.5}, "choose 1 or more"),
        ({"votes_per_item": float("nan")}, "choose 1 or more"),
        ({"n_labels": 1}, "from 2 to 127"),
        ({"n_labels": 128}, "from 2 to 127"),
        ({"n_items": 0}, "0 items"),
        ({"n_annotators": 0}, "0 annotators"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_sizes_that_make_no_sense(tmp_path, wrong, says):
    sizes = {"n_items": 10, "n_annotators": 5, "votes_per_item": 2, "n_labels": 2} | wrong
    with pytest.raises(UsageError, match=says):
        simulate_votes(**sizes)
    with pytest.raises(UsageError, match=says):
        write_simulated(tmp_path / "votes.parquet", **sizes)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"prevalence_k": [0.5, 0.4]}, r"1 of 1 rows of prevalence_k .* \[0\.5, 0\.4\]"),
        ({"prevalence_k": [1.0]}, r"shape \(1,\), but these sizes need \(2,\)"),
        ({"confusion_akv": np.full((5, 2, 2), 0.4)}, "10 of 10 rows of confusion_akv"),
        ({"accuracy": (0.9, 0.6)}, "the lower end first"),
    ],
)
def test_chances_that_make_no_sense(wrong, says):
    with pytest.raises(MoralEntropyError, match=says):
        simulate_votes(n_items=10, n_annotators=5, votes_per_item=2, **wrong)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match="there is no folder"):
        write_simulated(tmp_path / "no" / "votes.parquet", n_items=1, n_annotators=1, votes_per_item=1)
    with pytest.raises(FileError, match="it is a folder"):
        write_simulated(tmp_path, n_items=1, n_annotators=1, votes_per_item=1)


def test_a_failure_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "votes.parquet"
    path.write_text("old")

    def fail(_share):
        msg = "stop here"
        raise RuntimeError(msg)

    with pytest.raises(Exception, match="stop here"):
        write_simulated(path, n_items=10, n_annotators=2, votes_per_item=1, advance=fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
