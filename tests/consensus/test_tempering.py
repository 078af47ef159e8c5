"""The exponent: against sums written out by hand, and on votes made to need one or not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_softmax, softmax
from support import log_posterior_of, plain_log_joint, random_parameters, random_rows, votes_of

import moral_entropy as me
from moral_entropy.consensus.modes import find_mode
from moral_entropy.consensus.tempering import (
    NOTHING,
    gold_exponent,
    heldout_exponent,
    tempered,
    zero_between,
)
from moral_entropy.consensus.vote_share import pool_with_share, smoothed_share
from moral_entropy.corpora.simulate import simulate_votes


def learnt(votes, **options):
    model = log_posterior_of(votes, threads=1)
    return heldout_exponent(model, find_mode(model).at, **options)


def predicted_by_hand(votes, at, pseudo_akv, exponent):
    """Log score of every vote from the other votes on its item, with loops and dictionaries."""
    ballot = votes.ballots[0]
    n_labels = ballot.n_labels
    p_ik = softmax(plain_log_joint(votes, at), axis=1)
    votes_of_item = [
        [divmod(int(code), n_labels) for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]]
        for i in range(ballot.n_items)
    ]
    count_akv = pseudo_akv.astype(float).copy()
    for i, cast in enumerate(votes_of_item):
        for a, voted in cast:
            count_akv[a, :, voted] += p_ik[i]
    total = 0.0
    for i, cast in enumerate(votes_of_item):
        if len(cast) < 2:
            continue
        without_akv = count_akv.copy()
        for a, voted in cast:
            without_akv[a, :, voted] -= p_ik[i]
        row_akv = without_akv / without_akv.sum(axis=2, keepdims=True)
        for left, (a, voted) in enumerate(cast):
            weight_k = at.weight_g.copy()
            for other, (b, said) in enumerate(cast):
                if other != left:
                    weight_k *= row_akv[b, :, said] ** exponent
            total += np.log(weight_k @ row_akv[a, :, voted] / weight_k.sum())
    return total


def best_by_hand(score):
    """The highest of a fine grid on [0, 1], refined."""
    grid = np.linspace(0.0, 1.0, 41)
    top = grid[np.argmax([score(exponent) for exponent in grid])]
    ends = max(top - 0.025, 0.0), min(top + 0.025, 1.0)
    return minimize_scalar(lambda exponent: -score(exponent), bounds=ends, method="bounded", options={"xatol": 1e-6}).x


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_value_and_gain_equal_those_written_out_by_hand(n_labels, seed):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 25, 5, n_labels)
    # One annotator votes twice on some items, with one label and with two.
    rows += [(0, 0, 0), (1, 0, 1), (2, 1, 0)]
    votes = votes_of(rows, n_labels, n_items=27)
    model = log_posterior_of(votes)
    at = random_parameters(rng, 5, n_labels) if seed % 2 else find_mode(model).at
    pseudo_akv = model.pseudo_akv
    found = heldout_exponent(model, at)

    def score(exponent):
        return predicted_by_hand(votes, at, pseudo_akv, exponent)

    assert found.n == sum(count for count in votes.ballots[0].votes_i if count > 1)
    assert_allclose(found.value, best_by_hand(score), atol=2e-3)
    assert_allclose(found.gain * found.n, score(found.value) - score(1.0), atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), times=st.integers(2, 5))
def test_items_that_share_a_row_count_one_by_one(seed, times):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 8, 4, 2)
    copies = [(item + 8 * copy, annotator, label) for item, annotator, label in rows for copy in range(times)]
    together, apart = (log_posterior_of(votes_of(some, n_items=n)) for some, n in ((copies, 8 * times), (rows, 8)))
    counted = log_posterior_of(votes_of(rows, n_items=8, count_i=np.full(8, float(times))))
    assert together.patterns.collapsed and not apart.patterns.collapsed
    at = random_parameters(rng, 4, 2)
    one, other = heldout_exponent(together, at), heldout_exponent(counted, at)
    assert_allclose([one.value, one.gain, one.gain_se, one.n], [other.value, other.gain, other.gain_se, other.n])


def test_exponent_1_is_the_model_and_0_the_prevalence():
    rng = np.random.default_rng(3)
    model = log_posterior_of(votes_of(random_rows(rng, 30, 5, 3), 3))
    at = random_parameters(rng, 5, 3)
    assert_allclose(model.posterior_rk(tempered(at, 1.0)), model.posterior_rk(at), rtol=0)
    nothing_rk = model.posterior_rk(tempered(at, 0.0))
    assert_allclose(nothing_rk, np.broadcast_to(at.weight_g, nothing_rk.shape))


def test_tempered_posterior_equals_its_formula():
    rng = np.random.default_rng(4)
    votes = votes_of(random_rows(rng, 20, 4, 2))
    at, model = random_parameters(rng, 4, 2), log_posterior_of(votes)
    evidence_ik = plain_log_joint(votes, at) - at.log_weight_g
    expected_ik = softmax(at.log_weight_g + 0.37 * evidence_ik, axis=1)
    assert_allclose(model.patterns.spread(model.posterior_rk(tempered(at, 0.37))), expected_ik, atol=1e-12)


def in_teams(seed, agree, *, n_items=500, teams=4, size=3, right=0.75):
    """Votes of teams whose members copy their leader with some probability, and the truth."""
    rng = np.random.default_rng(seed)
    truth_i = rng.random(n_items) < 0.4
    rows = []
    for team in range(teams):
        leader_i = np.where(rng.random(n_items) < right, truth_i, ~truth_i)
        for member in range(size):
            own_i = np.where(rng.random(n_items) < right, truth_i, ~truth_i)
            vote_i = np.where(rng.random(n_items) < agree, leader_i, own_i)
            voted = np.flatnonzero(rng.random(n_items) < 0.7)
            rows += [(item, team * size + member, int(vote_i[item])) for item in voted]
    return votes_of(rows, n_items=n_items, gold_i=truth_i.astype(np.int16))


@pytest.mark.parametrize("seed", range(3))
def test_votes_that_copy_each_other_ask_for_less(seed):
    votes = in_teams(seed, agree=0.9)
    found = learnt(votes)
    assert found.value < 0.7 and found.high < 1.0 and found.below_one
    model = log_posterior_of(votes)
    at = find_mode(model).at
    gold_i, item_i = votes.ballots[0].gold_i, np.arange(500)
    plain, less = (model.patterns.spread(model.posterior_rk(tempered(at, e)))[item_i, gold_i] for e in (1, found.value))
    # What was learnt without gold is better by gold.
    assert -np.log(less).mean() < -np.log(plain).mean() - 0.1


@pytest.mark.parametrize("seed", range(3))
def test_independent_votes_ask_for_nothing(seed):
    found = learnt(simulate_votes(n_items=3_000, n_annotators=10, votes_per_item=5, seed=seed).votes)
    assert found.value > 0.9 and not found.below_one


def false_alarms(seeds, **sizes):
    return sum(learnt(simulate_votes(seed=seed, **sizes).votes).below_one for seed in seeds)


def test_few_false_alarms():
    assert false_alarms(range(30), n_items=200, n_annotators=8, votes_per_item=5) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_items", "n_annotators", "votes_per_item"),
    [(200, 8, 5), (1_000, 20, 3), (1_000, 100, 3), (2_000, 20, 1.3), (300, 30, 15), (100, 40, 20)],
)
def test_false_alarms_over_200_corpora_are_within_a_fortieth(n_items, n_annotators, votes_per_item):
    sizes = {"n_items": n_items, "n_annotators": n_annotators, "votes_per_item": votes_per_item}
    assert false_alarms(range(200), **sizes) <= 5


def test_known_labels_and_lonely_votes_are_left_out():
    rng = np.random.default_rng(5)
    rows = random_rows(rng, 30, 5, 2)
    open_votes = votes_of(rows, n_items=30)
    gold_i = np.full(33, -1)
    gold_i[30:32] = (0, 1)
    more = [(30, 0, 0), (30, 1, 1), (31, 0, 1), (31, 2, 1), (32, 3, 0)]
    votes = votes_of([*rows, *more], n_items=33, gold_i=gold_i)
    found = heldout_exponent(log_posterior_of(votes, use_gold=True), random_parameters(rng, 5, 2))
    assert found.n == sum(count for count in open_votes.ballots[0].votes_i if count > 1)
    alone = votes_of([(item, item % 3, item % 2) for item in range(10)])
    assert learnt(alone) == NOTHING
    assert (NOTHING.value, NOTHING.below_one) == (1.0, False)


def test_a_sample_of_the_rows_gives_about_the_same():
    votes = in_teams(7, agree=0.9, n_items=2_000)
    whole, part = learnt(votes), learnt(votes, most_votes=4_000)
    assert 3_000 < part.n < 5_000 < whole.n
    assert part == learnt(votes, most_votes=4_000)
    assert abs(part.value - whole.value) < 3 * (part.high - part.low)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n_labels=st.integers(2, 4))
def test_gold_exponent_is_where_the_log_loss_is_least(seed, n_labels):
    rng = np.random.default_rng(seed)
    gold_i = rng.integers(n_labels, size=60)
    evidence_ik = 2.0 * rng.standard_normal((60, n_labels)) + 1.5 * np.eye(n_labels)[gold_i]
    log_prevalence_k = np.log(rng.dirichlet(np.full(n_labels, 3.0)))
    weight_i = rng.integers(1, 4, size=60).astype(float)

    def loss(exponent):
        log_p_ik = log_softmax(log_prevalence_k + exponent * evidence_ik, axis=1)
        return -np.average(log_p_ik[np.arange(60), gold_i], weights=weight_i)

    found = gold_exponent(evidence_ik, log_prevalence_k, gold_i, weight_i=weight_i)
    best = minimize_scalar(loss, bounds=(0.0, 2.0), method="bounded", options={"xatol": 1e-7})
    assert_allclose(found.value, best.x, atol=1e-3)
    assert_allclose(found.gain, loss(1.0) - loss(found.value), atol=1e-12)
    often = np.repeat(np.arange(60), weight_i.astype(int))
    again = gold_exponent(evidence_ik[often], log_prevalence_k, gold_i[often])
    assert_allclose([again.value, again.low, again.high, again.n], [found.value, found.low, found.high, found.n])


def test_gold_that_is_not_known_teaches_nothing():
    evidence_ik, gold_i = np.log([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]), np.array([0, 1, -1])
    found = gold_exponent(evidence_ik, np.log([0.5, 0.5]), gold_i)
    assert found.n == 2 and found.value < 0.01
    assert gold_exponent(evidence_ik, np.log([0.5, 0.5]), np.full(3, -1)) == NOTHING


def test_half_with_the_share_lies_between_both():
    rng = np.random.default_rng(0)
    posterior_ik, counts_ik = rng.dirichlet(np.ones(3), size=20), rng.integers(0, 5, size=(20, 3))
    share_ik = smoothed_share(counts_ik)
    half_ik = pool_with_share(posterior_ik, counts_ik, np.full(len(counts_ik), 0.5))
    assert_allclose(half_ik.sum(axis=1), 1.0)
    assert (half_ik >= np.minimum(posterior_ik, share_ik)).all() and (
        half_ik <= np.maximum(posterior_ik, share_ik)
    ).all()


@given(st.floats(0.02, 0.98), st.floats(0.2, 30.0), st.floats(-3.0, 3.0))
def test_a_slope_is_zero_where_brent_finds_it(zero, steep, bend):
    def slope(x):
        return -np.expm1(steep * (x - zero)) * np.exp(bend * x)

    found = zero_between(slope, (0.0, slope(0.0)), (1.0, slope(1.0)))
    assert abs(found - brentq(slope, 0.0, 1.0)) < 1e-4


def test_one_row_of_weights_is_as_good_as_none():
    """With very many labels the mixed model has corners only, and its weights a row for the one domain."""
    rng = np.random.default_rng(2)
    votes = votes_of(random_rows(rng, 40, 5, 14), n_labels=14)
    at = random_parameters(rng, 5, 14)
    plain, mixed = log_posterior_of(votes), me.fit(votes, model="mixed", draws=0)
    rows = replace(at, log_weight_g=at.log_weight_g[None])
    density = replace(plain, pseudo_g=plain.pseudo_g[None])
    assert heldout_exponent(density, rows) == heldout_exponent(plain, at)
    assert mixed.fits[0].at.log_weight_g.shape == (1, 14)
