"""Real votes: men and women of hate_paradigms, counted by hand."""

from __future__ import annotations

import polars as pl
import pytest
from support import real_data

from moral_entropy.groups.differences import paired_difference
from moral_entropy.groups.table import votes_of
from moral_entropy.groups.truths import YesVotes, read_truths
from moral_entropy.votes.read import read_votes


@pytest.fixture(scope="module")
def votes():
    return read_votes(real_data("hate_paradigms") / "votes.csv")


def test_the_difference_of_men_and_women_is_that_of_the_raw_votes(votes):
    [ballot] = votes.ballots
    item_v, annotator_v, label_v = votes_of(ballot)
    man_a = votes.annotators.str.contains(r"_M(_|$)").to_numpy().astype(int)
    found = paired_difference(item_v, annotator_v, man_a[annotator_v], (label_v == ballot.positive).astype(float))
    # Everybody voted on everything, so the paired difference is that of the shares: 65.75% and 59.4%.
    assert found["difference"] == pytest.approx(0.0635, abs=1e-9) and found["n_items"] == 200
    assert found["low"] < 0.0 < 0.12 < found["high"] < 0.14


def test_guidelines_have_a_truth_each(votes):
    [ballot] = votes.ballots
    guideline = votes.annotators.str.slice(0, 2)
    group_a = pl.Series(guideline).rank("dense").to_numpy().astype(int) - 1
    item_v, annotator_v, label_v = votes_of(ballot)
    yes = YesVotes(item_v, annotator_v, label_v == ballot.positive, ballot.n_items, len(votes.annotators))
    assert read_truths(yes, group_a)[0]["reading"] == "a truth per group"
