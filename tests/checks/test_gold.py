"""Against gold: what is scored is what the package reports, gold is never seen by its own item, verdicts are right."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support import random_rows, real_data, votes_of

from moral_entropy.checks.gold import (
    GoldItems,
    examine_gold,
    gold_exponents,
    reports,
    score_reports,
    tempered_by_gold,
)
from moral_entropy.consensus.fit import fit
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.votes.read import read_votes


def with_gold(n_labels=2, seed=0, **options):
    votes = simulate_votes(n_items=150, n_annotators=8, votes_per_item=4, n_labels=n_labels, seed=seed).votes
    return fit(votes, **{"draws": 60, "model": "paper", **options})


def copied_votes(seed=0, copies=9):
    """Three independent voters, one better than the others, each heard `copies` times."""
    rng = np.random.default_rng(seed)
    truth_i = rng.integers(2, size=300)
    said_ia = np.where(rng.random((300, 3)) < (0.9, 0.7, 0.65), truth_i[:, None], 1 - truth_i[:, None])
    rows = [(item, 3 * copy + a, said_ia[item, a]) for item in range(300) for a in range(3) for copy in range(copies)]
    return votes_of(rows, gold_i=truth_i)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_mode_and_the_mean_are_those_of_the_fit(n_labels):
    one = with_gold(n_labels).fits[0]
    found = reports(GoldItems.of(one))
    assert_allclose(np.exp(found["mode"]), one.posterior_ik, atol=1e-10)
    assert_allclose(np.exp(found["consensus"]), one.summary.mean_ik, atol=1e-8)
    for log_p_ik in found.values():
        assert_allclose(np.exp(log_p_ik).sum(axis=1), 1.0)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_between_labels_the_published_p_and_the_model_alone_are_scored(n_labels):
    one = with_gold(n_labels, model="mixed").fits[0]
    items = GoldItems.of(one)
    found = reports(items)
    assert list(found) == ["plurality", "vote share", "mode", "model alone", "consensus"]
    assert_allclose(np.exp(found["model alone"]), one.summary.mean_ik)
    assert_allclose(np.exp(found["consensus"]), one.p_ik)
    loss = -np.average(np.log(one.p_ik[np.arange(150), one.ballot.gold_i]))
    assert score_reports(items, found)["consensus"].log_loss == pytest.approx(loss)
    assert "untempered" not in examine_gold(with_gold(n_labels, model="mixed"))[-1].text


def test_tempered_probabilities_are_those_of_a_tempered_fit():
    plain, less = with_gold().fits[0], with_gold(temper=0.4).fits[0]
    assert_allclose(np.exp(GoldItems.of(plain).log_mean_ik(0.4)), less.summary.mean_ik, atol=1e-8)
    # A fit that is tempered already is scored as the same methods on the same parameters.
    once, twice = reports(GoldItems.of(plain)), reports(GoldItems.of(less))
    assert_allclose(once["consensus"], twice["consensus"], atol=1e-9)
    assert_allclose(once["tempered by held-out votes"], twice["tempered by held-out votes"], atol=1e-9)


def test_no_draws_means_the_mode():
    one = with_gold(draws=0).fits[0]
    found = reports(GoldItems.of(one))
    assert_allclose(found["consensus"], found["mode"])


@pytest.mark.parametrize("prevalence", [False, True])
def test_no_item_sees_its_own_gold(prevalence):
    one = with_gold().fits[0]
    fold_i = np.arange(150) % 5
    before = tempered_by_gold(GoldItems.of(one), fold_i, prevalence=prevalence)
    turned_i = one.ballot.gold_i.copy()
    turned_i[fold_i == 2] = 1 - turned_i[fold_i == 2]
    turned = replace(one, ballot=replace(one.ballot, gold_i=turned_i))
    after = tempered_by_gold(GoldItems.of(turned), fold_i, prevalence=prevalence)
    assert_allclose(after[fold_i == 2], before[fold_i == 2], rtol=0)
    assert np.abs(after - before)[fold_i != 2].min() > 0


def test_gold_exponents_are_where_the_loss_is_flat():
    rng = np.random.default_rng(3)
    gold_i = rng.integers(3, size=200)
    evidence_ik = 2.0 * rng.standard_normal((200, 3)) + 2.0 * np.eye(3)[gold_i]
    log_prevalence_k = np.log([0.7, 0.2, 0.1])
    weight_i = rng.integers(1, 4, size=200).astype(float)
    found = np.array(gold_exponents(evidence_ik, log_prevalence_k, gold_i, weight_i))

    def loss(x):
        log_ik = x[0] * evidence_ik + x[1] * log_prevalence_k
        log_ik = log_ik - np.log(np.exp(log_ik).sum(axis=1, keepdims=True))
        return -np.average(log_ik[np.arange(200), gold_i], weights=weight_i)

    for step in ([1e-4, 0.0], [0.0, 1e-4]):
        assert abs(loss(found + step) - loss(found - step)) / 2e-4 < 1e-4


def test_votes_heard_again_and_again_are_found_out():
    consensus = fit(copied_votes(), draws=100, model="paper")
    verdict = examine_gold(consensus)[-1]
    assert verdict.figure == "gain_over_vote_share" and verdict.level == "doubt" and verdict.high < 0
    assert "--temper gold" in verdict.cure
    items = GoldItems.of(consensus.fits[0])
    scores = score_reports(items, reports(items))
    assert scores["tempered by gold"].log_loss < min(scores["vote share"].log_loss, scores["consensus"].log_loss)
    assert scores["tempered by gold"].ece < scores["consensus"].ece


@pytest.mark.parametrize("model", ["mixed", "paper"])
@pytest.mark.parametrize("seed", range(3))
def test_a_sound_consensus_is_not_doubted(seed, model):
    simulated = simulate_votes(n_items=600, n_annotators=8, votes_per_item=5, seed=seed)
    verdict = examine_gold(fit(simulated.votes, draws=100, model=model))[-1]
    assert verdict.level == "good" and verdict.low > 0


def test_gold_that_was_evidence_is_left_out():
    rng = np.random.default_rng(1)
    votes = votes_of(random_rows(rng, 40, 5, 2), gold_i=rng.integers(2, size=40))
    assert examine_gold(fit(votes, draws=0))
    assert examine_gold(fit(votes, draws=0, use_gold=True)) == []
    assert examine_gold(fit(votes_of(random_rows(rng, 40, 5, 2)), draws=0)) == []


@pytest.mark.parametrize("name", ["bluebird", "rte"])
def test_real_votes_need_tempering(name):
    folder = real_data(name)
    votes = read_votes(folder / "votes.csv", gold_file=folder / "gold.csv", on_repeat="count")
    items = GoldItems.of(fit(votes, draws=100, model="paper").fits[0])
    loss = {method: scores.log_loss for method, scores in score_reports(items, reports(items)).items()}
    assert loss["tempered by gold"] < min(loss["vote share"], loss["mode"], loss["consensus"])
    assert loss["tempered by held-out votes"] < 0.7 * loss["consensus"]
    assert loss["half tempered, half share"] < loss["vote share"]
    mixed = GoldItems.of(fit(votes, draws=100).fits[0])
    published = score_reports(mixed, reports(mixed))["consensus"].log_loss
    assert published < min(loss["vote share"], loss["mode"], loss["consensus"])
