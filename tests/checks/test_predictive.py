"""Votes drawn from the fit: like the votes where the model holds, unlike them where it does not."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import random_rows, votes_of

from moral_entropy.checks import predictive as module
from moral_entropy.checks.predictive import (
    Predicted,
    check_predictions,
    predictive_findings,
    statistics,
    vote_pattern,
    voters_of,
)
from moral_entropy.consensus.fit import fit
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.items.agreement import measure_agreement


def fitted(votes, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(votes, **{"draws": 200, "seed": 1, **options})


def shared_difficulty(seed, n_items=600):
    """Some items are easy for all and others a coin toss for all: votes are not independent given the label."""
    rng = np.random.default_rng(seed)
    truth, hard = rng.integers(2, size=n_items), rng.random(n_items) < 0.5
    rows = []
    for i in range(n_items):
        for a in rng.choice(9, size=6, replace=False):
            right = rng.random() < (0.5 if hard[i] else 0.99)
            rows.append((i, int(a), int(truth[i] if right else 1 - truth[i])))
    return votes_of(rows)


@settings(max_examples=50, deadline=None)
@given(
    counts=st.lists(st.tuples(*[st.integers(0, 4)] * 3).filter(sum), min_size=1, max_size=12).filter(
        lambda rows: any(sum(row) > 1 for row in rows)
    )
)
def test_statistics_against_loops_and_another_implementation(counts):
    agreement, unanimous, kappa = statistics(np.array(counts))
    shares = []
    for row in counts:
        votes = [k for k, n in enumerate(row) for _ in range(n)]
        if len(votes) > 1:
            shares.append(np.mean([one == other for one, other in combinations(votes, 2)]))
    assert agreement == pytest.approx(np.mean(shares))
    several = [row for row in counts if sum(row) > 1]
    assert unanimous == pytest.approx(np.mean([max(row) == sum(row) for row in several]))
    other = dict(measure_agreement(np.array(counts), resamples=0).select("statistic", "value").iter_rows())
    if not np.isnan(other["fleiss_kappa"]):
        assert kappa == pytest.approx(other["fleiss_kappa"], abs=1e-9)


def test_patterns_are_counted():
    counts = [(2, 1), (2, 1), (0, 3), (1, 0)]
    pattern = vote_pattern(np.array(counts), positive=1)
    wanted = Counter((sum(row), row[1]) for row in counts)
    assert {divmod(c, 41): n for c, n in enumerate(pattern.tolist()) if n} == dict(wanted)
    several = vote_pattern(np.array([(2, 1, 0), (1, 1, 1)]), positive=2)
    assert {divmod(c, 41) for c in np.flatnonzero(several).tolist()} == {(3, 2), (3, 1)}


@pytest.mark.parametrize("n_labels", [2, 3])
def test_replicates_have_the_votes_the_draws_predict(n_labels):
    votes = votes_of(random_rows(np.random.default_rng(2), 300, 4, n_labels), n_labels)
    [one] = fitted(votes, draws=100).fits
    # One draw, repeated: then the mean of an annotator's votes is prevalence times confusion.
    same = replace(one, prevalence_sk=one.prevalence_sk[:1], confusion_sakv=one.confusion_sakv[:1])
    voters, rng = voters_of(same, most=10**6), np.random.default_rng(0)
    np.testing.assert_array_equal(voters.counts(voters.label_v), one.ballot.counts_ik)
    drawn = np.concatenate([module._replicate(same, voters, 0, rng) for _ in range(400)])
    who = np.tile(voters.annotator_v, 400)
    for a in range(4):
        share_v = np.bincount(drawn[who == a], minlength=n_labels) / np.count_nonzero(who == a)
        np.testing.assert_allclose(share_v, same.prevalence_sk[0] @ same.confusion_sakv[0, a], atol=0.01)


def test_pre_counted_rows_count_as_often_as_they_say():
    rows = [(0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 1, 1)]
    [one] = fitted(votes_of(rows, count_i=np.array([30.0, 10.0]))).fits
    voters = voters_of(one, most=10**6)
    assert voters.n_items == 40
    agreement, unanimous, _ = statistics(voters.counts(voters.label_v))
    assert agreement == unanimous == 0.75
    assert voters_of(one, most=20).n_items == 10


def test_known_labels_stay_as_they_are():
    votes = votes_of([(i, a, int(i % 2)) for i in range(40) for a in range(3)], gold_i=np.arange(40) % 2)
    [one] = fitted(votes, use_gold=True).fits
    voters = voters_of(one, most=10**6)
    assert voters.known_i.tolist() == [i % 2 for i in range(40)]
    drawn = module._replicate(one, voters, 0, np.random.default_rng(0))
    assert (drawn == np.repeat(voters.known_i, 3)).mean() > 0.9


def examined(consensus, **options):
    [one] = consensus.fits
    return predictive_findings(consensus, one, **options)


def test_independent_votes_are_as_predicted_and_shared_difficulty_is_not():
    calm = []
    for seed in range(6):
        clean = simulate_votes(n_items=600, n_annotators=9, votes_per_item=6, seed=seed).votes
        calm += [f.level for f in examined(fitted(clean), replicates=100)]
    assert len(calm) == 24 and calm.count("info") >= 23
    found = {f.figure: f for f in examined(fitted(shared_difficulty(1)), replicates=200)}
    assert found["predicted_votes_pattern"].level == "doubt" and "times as far" in found["predicted_votes_pattern"].text
    low, high = found["predicted_votes_pattern"].low, found["predicted_votes_pattern"].high
    assert found["predicted_votes_pattern"].value > 2 * high > 2 * low


def test_chances_are_shares_of_replicates():
    middle = Predicted("agreement", 0.5, np.linspace(0.0, 1.0, 100))
    assert middle.chance == pytest.approx(1.0, abs=0.03)
    extreme = Predicted("agreement", 2.0, np.linspace(0.0, 1.0, 99))
    assert extreme.chance == pytest.approx(2 / 100)
    assert Predicted("votes_pattern", 2.0, np.linspace(0.0, 1.0, 99)).chance == pytest.approx(1 / 100)


def test_the_same_seed_gives_the_same_findings_and_nothing_without_draws():
    votes = votes_of(random_rows(np.random.default_rng(3), 60, 4, 2))
    consensus = fitted(votes)
    assert examined(consensus, replicates=20) == examined(consensus, replicates=20)
    assert examined(consensus, replicates=20) != examined(consensus, replicates=20, seed=1)
    assert examined(fitted(votes, draws=0)) == []
    alone = votes_of([(i, 0, i % 2) for i in range(20)])
    assert check_predictions(fitted(alone).fits[0]) == []
