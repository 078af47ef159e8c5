"""Too few votes, hardly known annotators, one who dominates, items without votes and rows left out are counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from support import random_rows, votes_of

from moral_entropy.checks.votes import examine_votes
from moral_entropy.consensus.fit import fit
from moral_entropy.corpora.simulate import simulate_votes

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")


def fitted(votes, **options):
    return fit(votes, **{"draws": 50, **options})


def findings(votes, **options):
    return examine_votes(fitted(votes, **options))


def test_thin_data_are_thin_and_their_annotators_hardly_known():
    made = simulate_votes(n_items=200, n_annotators=60, votes_per_item=1.2, seed=1)
    found = {f.figure: f for f in findings(made.votes)}
    votes_i = made.votes.ballots[0].votes_i
    assert found["votes_per_item"].level == "bad" and found["votes_per_item"].value == pytest.approx(votes_i.mean())
    assert found["single_vote_items"].value == pytest.approx((votes_i == 1).mean())
    assert found["hardly_known"].level == "doubt" and found["hardly_known"].value > 0.8


def test_who_is_hardly_known_is_counted_from_the_posterior():
    rows = random_rows(np.random.default_rng(0), 80, 4, 2, share=1.0)
    rows += [(i, 4, int(i % 2)) for i in range(4)]
    consensus = fitted(votes_of(rows))
    [one] = consensus.fits
    thin = []
    for a in range(5):
        seen = np.zeros(2)
        for i, b, _ in rows:
            seen += one.posterior_ik[i] if a == b else 0.0
        thin.append(bool((seen < 3.0).any()))
    [found] = [f for f in examine_votes(consensus) if f.figure == "hardly_known"]
    assert thin == [False] * 4 + [True] and found.n == 1 and found.value == pytest.approx(4 / len(rows))


@pytest.mark.parametrize("n_labels", [2, 3])
def test_plenty_of_votes_raise_no_alarm(n_labels):
    votes = simulate_votes(n_items=400, n_annotators=8, votes_per_item=5, n_labels=n_labels, seed=5).votes
    found = findings(votes)
    assert {f.figure for f in found} == {"votes_per_item", "effective_votes", "single_vote_items", "hardly_known"}
    assert {f.level for f in found} == {"info"}


def test_votes_without_names_have_nobody_hardly_known():
    votes = votes_of(random_rows(np.random.default_rng(3), 50, 4, 2))
    ballot = votes.ballots[0]
    shared = replace(ballot, annotator_a=np.array([0]), code_v=np.sort(ballot.code_v % 2).astype(np.int32))
    anonymous = replace(votes, ballots=(shared,), annotators=pl.Series(["(anyone)"]), anonymous=True)
    assert {f.figure for f in findings(anonymous)} == {"votes_per_item", "single_vote_items"}


@pytest.mark.parametrize(("busy", "dominates"), [(40, True), (14, False)])
def test_an_annotator_who_dominates_is_named(busy, dominates):
    rows = [(i, a, i % 2) for i in range(12) for a in range(1, 5)] + [(i, 0, i % 2) for i in range(busy)]
    found = [f for f in findings(votes_of(rows, n_items=40)) if f.figure == "dominant_annotator"]
    assert [(f.subject, f.value, f.level) for f in found] == [("0", 40 / 88, "doubt")] * dominates


def test_items_without_votes_are_noted_and_do_not_make_the_others_thin():
    found = {
        f.figure: f for f in findings(votes_of(random_rows(np.random.default_rng(1), 30, 4, 2, share=1.0), n_items=90))
    }
    assert (found["items_without_votes"].value, found["items_without_votes"].level) == (60, "note")
    assert (found["votes_per_item"].value, found["votes_per_item"].level) == (4.0, "info")


@pytest.mark.parametrize(("dropped", "noted"), [(6, True), (5, False)])
def test_many_rows_left_out_are_noted(dropped, noted):
    votes = votes_of(random_rows(np.random.default_rng(1), 30, 4, 2))
    reading = replace(votes.reading, rows=100, dropped={"no label": dropped})
    found = [f for f in findings(replace(votes, reading=reading)) if f.figure == "rows_left_out"]
    assert [(f.level, f.text) for f in found] == [("note", "6 of 100 rows were left out (no label 6).")] * noted
