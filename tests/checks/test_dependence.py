"""Copied votes are found and named; independent ones are left alone; every residual against loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from made_votes import copied
from support import plain_states, random_rows, votes_of

from moral_entropy import fit, simulate_votes
from moral_entropy.checks import dependence as module
from moral_entropy.checks.dependence import check_dependence, dependent_pairs, pairs_given_gold, weigh_pairs
from moral_entropy.model.patterns import collapse
from moral_entropy.model.posterior import state_posterior

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")

MODELS = pytest.mark.parametrize("model", ["mixed", "paper"])


def fitted(votes, **options):
    return fit(votes, **{"draws": 0, **options})


def pairs_in(votes, **options):
    [one] = fitted(votes, **options).fits
    posterior_rz = state_posterior(one.patterns, one.states, one.mode, slice(0, one.patterns.n_rows))
    return weigh_pairs(one.patterns, posterior_rz, one.states.votes_azv(one.confusion_akv))


def plain_parameters(votes, one):
    """How annotators vote by state, what states weigh, and their probabilities for each item, from the definitions."""
    if one.options.model == "paper":
        return one.confusion_akv, one.prevalence_k, one.posterior_ik
    mix_zk, group_z = plain_states(one.ballot.n_labels)
    vote_azv = np.einsum("zk,akv->azv", mix_zk, one.confusion_akv)
    weight_z = (one.weight_dg[0] / np.bincount(group_z))[group_z]
    return (
        vote_azv,
        weight_z,
        np.array([plain_states_of(one.ballot, i, weight_z, vote_azv) for i in range(one.ballot.n_items)]),
    )


def plain_states_of(ballot, i, weight_z, vote_azv):
    """Probabilities of one item's states, vote by vote."""
    state_z = weight_z.copy()
    for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
        state_z = state_z * vote_azv[code // ballot.n_labels, :, code % ballot.n_labels]
    return state_z / state_z.sum()


def plain_residual(theta, state_iz, i, a, b, said):
    """The residual of one pair on one item, with loops."""
    total = 0.0
    for z in range(theta.shape[1]):
        for v in range(theta.shape[2]):
            error_a = float(said[i, a] == v) - theta[a, z, v]
            error_b = float(said[i, b] == v) - theta[b, z, v]
            total += state_iz[i, z] * error_a * error_b
    return total


@MODELS
@pytest.mark.parametrize("n_labels", [2, 3])
def test_residuals_agree_with_loops(n_labels, model):
    rows = random_rows(np.random.default_rng(3), 90, 5, n_labels)
    votes = votes_of(rows, n_labels)
    [one] = fitted(votes, model=model).fits
    theta, _, state_iz = plain_parameters(votes, one)
    said = {(i, a): k for i, a, k in rows}
    pairs = pairs_in(votes, model=model)
    assert len(pairs.one_p) == 10
    for p, (a, b) in enumerate(zip(pairs.one_p.tolist(), pairs.other_p.tolist(), strict=True)):
        shared = [i for i in range(90) if (i, a) in said and (i, b) in said]
        excess = np.mean([plain_residual(theta, state_iz, i, a, b, said) for i in shared])
        assert (pairs.items_p[p], pairs.excess_p[p]) == (len(shared), pytest.approx(excess, abs=1e-9))
        assert pairs.agreement_p[p] == pytest.approx(np.mean([said[i, a] == said[i, b] for i in shared]))


@MODELS
@pytest.mark.parametrize("n_labels", [2, 3])
def test_errors_are_those_of_votes_drawn_again(n_labels, model):
    """Against a sum over all votes the two could have given, each with a posterior of its own."""
    rows = random_rows(np.random.default_rng(5), 12, 4, n_labels, share=1.0)
    votes = votes_of(rows, n_labels)
    theta, pi, _ = plain_parameters(votes, fitted(votes, model=model).fits[0])
    states, said = range(len(pi)), {(i, a): k for i, a, k in rows}
    pairs = pairs_in(votes, model=model)
    for p, (a, b) in enumerate(zip(pairs.one_p.tolist(), pairs.other_p.tolist(), strict=True)):
        variance = 0.0
        for i in range(12):
            joint, value = [], []
            for u in range(n_labels):
                for v in range(n_labels):
                    now = {**{c: said[i, c] for c in range(4)}, a: u, b: v}
                    joint_z = np.array([pi[z] * np.prod([theta[c, z, now[c]] for c in range(4)]) for z in states])
                    product_z = [
                        sum(((u == w) - theta[a, z, w]) * ((v == w) - theta[b, z, w]) for w in range(n_labels))
                        for z in states
                    ]
                    joint.append(joint_z.sum())
                    value.append(joint_z @ product_z / joint_z.sum())
            chance, value = np.array(joint) / sum(joint), np.array(value)
            assert chance @ value == pytest.approx(0.0, abs=1e-12)
            variance += chance @ value**2
        assert pairs.error_p[p] * 12 == pytest.approx(np.sqrt(variance))


@MODELS
def test_independent_votes_are_left_alone(model):
    chances, alarms = [], 0
    for seed in range(12):
        votes = simulate_votes(n_items=500, n_annotators=10, votes_per_item=5, seed=seed).votes
        alarms += sum(finding.is_warning for finding in check_dependence(fitted(votes, model=model)))
        chances.append(pairs_in(votes, model=model).chance_p)
    # One corpus in a hundred is expected to have a false one; what the fit absorbs makes the test cautious.
    assert alarms <= 1
    assert (np.concatenate(chances) < 0.01).mean() < 0.015


def test_copiers_with_errors_of_their_own_are_named():
    """Among fourteen annotators the two who always agree cannot persuade the fit; some copying shows less.

    The default model counts identical annotators as one before the fit: nothing is left to be named.
    """
    votes = simulate_votes(n_items=2_000, n_annotators=14, votes_per_item=5, seed=4).votes
    excess = []
    for share in (0.5, 1.0):
        made = copied(votes, 2, 5, share=share)
        [named] = [f for f in check_dependence(fitted(made, model="paper")) if f.metric == "dependent_pairs"]
        assert named.level == "doubt" and named.subject == "2 · 5" and "agree on" in named.text
        pairs = pairs_in(made, model="paper")
        first = dependent_pairs(pairs)[0]
        assert (pairs.one_p[first], pairs.other_p[first]) == (2, 5)
        excess.append(pairs.excess_p[first])
    assert not [f for f in check_dependence(fitted(made)) if f.metric == "dependent_pairs" and f.is_warning]
    assert excess[1] > 0.1 and 0.3 * excess[1] < excess[0] < 0.7 * excess[1]


def test_two_of_three_who_copy_cannot_be_told():
    """With three annotators two labels' model has as many parameters as the votes have patterns."""
    votes = copied(simulate_votes(n_items=400, n_annotators=3, votes_per_item=3, seed=2).votes, 0, 2)
    assert not [f for f in check_dependence(fitted(votes)) if f.is_warning]


def test_hard_items_that_all_get_wrong_raise_the_overall_figure():
    rng = np.random.default_rng(1)
    truth, hard = rng.integers(2, size=600), rng.random(600) < 0.4
    rows = []
    for i in range(600):
        for a in rng.choice(8, size=5, replace=False):
            right = rng.random() < (0.5 if hard[i] else 0.97)
            rows.append((i, int(a), int(truth[i] if right else 1 - truth[i])))
    clean = simulate_votes(n_items=600, n_annotators=8, votes_per_item=5, seed=3).votes
    excess = {}
    for model in ("paper", "mixed"):
        found = {f.metric: f for f in check_dependence(fitted(votes_of(rows), model=model))}
        calm = {f.metric: f for f in check_dependence(fitted(clean, model=model))}
        assert calm["excess_agreement"].level == calm["dependent_pairs"].level == "info"
        excess[model] = abs(found["excess_agreement"].value)
        if model == "paper":
            assert excess[model] > 2 * abs(calm["excess_agreement"].value)
    # To the mixed model such an item lies between the labels, where votes are independent again.
    assert excess["mixed"] < 0.5 * excess["paper"]


def test_common_blind_spots_show_given_gold():
    """Two who miss the same items, and four who miss items of their own."""
    rng = np.random.default_rng(4)
    truth_i, blind_i = rng.integers(2, size=400), rng.random(400) < 0.2
    wrong_ia = rng.random((400, 6)) < 0.2
    wrong_ia[:, 0] = wrong_ia[:, 1] = blind_i
    rows = [(i, a, int(truth_i[i] != wrong_ia[i, a])) for i in range(400) for a in range(6)]
    [one] = fitted(votes_of(rows, gold_i=truth_i)).fits
    pairs = pairs_given_gold(collapse(one.ballot, whole=True), one.ballot.gold_i)
    assert [(pairs.one_p[p], pairs.other_p[p]) for p in dependent_pairs(pairs)] == [(0, 1)]
    told = {f.metric: f for f in check_dependence(fitted(votes_of(rows, gold_i=truth_i)))}["errors_together"]
    assert told.subject == "0 · 1" and "0.99 (0 · 1)" in told.text and told.level == "info"


def test_many_votes_are_sampled(monkeypatch):
    votes = copied(simulate_votes(n_items=4_000, n_annotators=14, votes_per_item=5, seed=4).votes, 2, 5)
    monkeypatch.setattr(module, "MOST_PAIRS", 100_000)
    found = check_dependence(fitted(votes, model="paper"))
    assert next(f for f in found if f.metric == "excess_agreement").n < 3_000
    assert next(f for f in found if f.metric == "dependent_pairs").subject == "2 · 5"


def test_one_vote_an_item_cannot_be_compared():
    votes = votes_of([(i, i % 3, int(i % 2)) for i in range(60)])
    [found] = check_dependence(fitted(votes))
    assert found.n == 0 and "cannot be told" in found.text and not found.is_warning


def test_anonymous_votes_have_an_overall_figure_only():
    votes = votes_of(random_rows(np.random.default_rng(3), 80, 4, 2, share=1.0))
    ballot = votes.ballots[0]
    label_iv = np.sort(ballot.code_v.reshape(80, 4) % 2, axis=1)
    shared = replace(ballot, annotator_a=np.array([0]), code_v=label_iv.ravel().astype(np.int32))
    anonymous = replace(votes, ballots=(shared,), annotators=pl.Series(["(anyone)"]), anonymous=True)
    [found] = check_dependence(fitted(anonymous))
    assert found.metric == "excess_agreement" and found.n == 80
