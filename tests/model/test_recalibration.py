"""Recalibration by gold: what it recovers, that no item sees its own gold, and that it does no harm."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from moral_entropy.model import recalibration
from moral_entropy.model.recalibration import BIAS_SPREAD, POWER_SPREAD, recalibrate
from moral_entropy.votes.table import UNKNOWN


def simulated(n=2_000, n_labels=3, temperature=1.0, bias=None, seed=0, spread=1.5):
    """Honest probabilities, labels drawn from them, and the same probabilities as a miscalibrated judge says them."""
    rng = np.random.default_rng(seed)
    honest_ik = softmax(spread * rng.normal(size=(n, n_labels)), axis=1)
    gold_i = np.array([rng.choice(n_labels, p=p_k) for p_k in honest_ik])
    said_ik = softmax(temperature * (np.log(honest_ik) - (0.0 if bias is None else np.asarray(bias))), axis=1)
    return said_ik, gold_i, honest_ik


def loss(p_ik, gold_i):
    return -np.log(p_ik[np.arange(len(gold_i)), gold_i])


@pytest.mark.parametrize("temperature", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("n_labels", [2, 4])
def test_recovers_a_known_temperature(temperature, n_labels):
    p_ik, gold_i, honest_ik = simulated(4_000, n_labels, temperature)
    new_ik, learnt = recalibrate(p_ik, gold_i)
    assert learnt.used and learnt.reason == ""
    assert_allclose(learnt.temperature, temperature, rtol=0.12)
    assert np.abs(new_ik - honest_ik).mean() < 0.02


def test_recovers_a_known_bias():
    bias_k = np.array([0.8, 0.0, -0.8])
    p_ik, gold_i, _ = simulated(6_000, bias=bias_k)
    _, learnt = recalibrate(p_ik, gold_i)
    assert_allclose(learnt.bias_k - learnt.bias_k.mean(), bias_k, atol=0.15)
    assert_allclose(learnt.temperature, 1.0, rtol=0.1)


def test_what_is_learnt_has_the_least_penalised_log_loss():
    p_ik, gold_i, _ = simulated(150, temperature=3.0)
    count_i = np.arange(150) % 3 + 1.0
    _, learnt = recalibrate(p_ik, gold_i, count_i=count_i)

    def cost(x):
        q_ik = softmax(x[0] * np.log(p_ik) + x[1:], axis=1)
        prior = ((x[0] - 1) / POWER_SPREAD) ** 2 / 2 + ((x[1:] / BIAS_SPREAD) ** 2).sum() / 2
        return prior + count_i @ loss(q_ik, gold_i)

    best = minimize(cost, np.array([0.5, 0.0, 0.0, 0.0]), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    assert_allclose([1 / learnt.temperature, *learnt.bias_k], best.x, atol=2e-4)


@pytest.mark.parametrize("temperature", [1.0, 1.25, 4.0])
def test_no_item_sees_its_own_gold(temperature):
    p_ik, gold_i, _ = simulated(60, temperature=temperature, seed=3)
    gold_i[50:] = UNKNOWN
    new_ik, _ = recalibrate(p_ik, gold_i)
    for i in range(0, 50, 4):
        changed_i = gold_i.copy()
        changed_i[i] = (gold_i[i] + 1 + i % 2) % 3
        changed_ik, _ = recalibrate(p_ik, changed_i)
        assert_array_equal(changed_ik[i], new_ik[i])


def test_items_without_gold_are_changed_by_what_all_gold_teaches(monkeypatch):
    p_ik, gold_i, _ = simulated(400, temperature=3.0)
    gold_i[200:] = UNKNOWN
    new_ik, learnt = recalibrate(p_ik, gold_i)
    expected_ik = softmax(np.log(p_ik[200:]) / learnt.temperature + learnt.bias_k, axis=1)
    assert_allclose(new_ik[200:], expected_ik, rtol=1e-9)
    monkeypatch.setattr(recalibration, "ITEMS_AT_ONCE", 33)
    assert_array_equal(recalibrate(p_ik, gold_i)[0], new_ik)


def test_improves_the_log_loss_of_items_it_has_not_seen():
    p_ik, gold_i, _ = simulated(1_000, temperature=3.0, bias=[0.5, 0.0, -0.5])
    shown_i = np.where(np.arange(1_000) < 100, gold_i, UNKNOWN)
    new_ik, learnt = recalibrate(p_ik, shown_i)
    rest = slice(100, None)
    assert loss(new_ik[rest], gold_i[rest]).mean() < loss(p_ik[rest], gold_i[rest]).mean() - 0.1
    # The gain that is told, with its standard error, is what other items do gain.
    true_gain = (loss(p_ik[rest], gold_i[rest]) - loss(new_ik[rest], gold_i[rest])).mean()
    assert abs(learnt.gain - true_gain) < 3 * learnt.gain_se


def test_gain_is_that_of_the_folds():
    p_ik, gold_i, _ = simulated(500, temperature=3.0)
    new_ik, learnt = recalibrate(p_ik, gold_i)
    assert_allclose((loss(p_ik, gold_i) - loss(new_ik, gold_i)).mean(), learnt.gain, rtol=1e-9)


@pytest.mark.parametrize("n", [25, 100, 1_000])
def test_does_no_harm_where_p_is_calibrated(n):
    changes, used = [], []
    for seed in range(12):
        p_ik, gold_i, _ = simulated(n, n_labels=2, seed=seed)
        new_ik, learnt = recalibrate(p_ik, gold_i)
        changes.append((loss(new_ik, gold_i) - loss(p_ik, gold_i)).mean())
        used.append(learnt.used)
    assert np.mean(used) < 0.25
    assert np.mean(changes) < 0.5 / n


def test_leaves_p_alone_where_gold_is_scarce():
    p_ik, gold_i, _ = simulated(19)
    new_ik, learnt = recalibrate(p_ik, gold_i)
    assert_array_equal(new_ik, p_ik)
    assert not learnt.used and "19 items have gold; recalibration needs 20" in learnt.reason
    assert np.isnan(learnt.gain)


def test_leaves_p_alone_where_nothing_is_gained():
    p_ik, gold_i, _ = simulated(2_000, seed=1)
    new_ik, learnt = recalibrate(p_ik, gold_i)
    assert not learnt.used and "no clear gain" in learnt.reason
    assert_array_equal(new_ik, p_ik)


def test_a_judge_that_gold_contradicts_counts_for_nothing():
    p_ik, gold_i, _ = simulated(500, n_labels=2, spread=3.0)
    new_ik, learnt = recalibrate(p_ik, 1 - gold_i)
    assert np.isinf(learnt.temperature)
    assert np.ptp(new_ik, axis=0).max() < 0.2


def test_p_of_zero_and_counted_items():
    p_ik, gold_i, _ = simulated(200, n_labels=2, temperature=3.0)
    p_ik[:5] = [1.0, 0.0]
    count_i = np.ones(200)
    new_ik, _ = recalibrate(p_ik, gold_i, count_i=count_i)
    assert np.isfinite(new_ik).all()
    assert_allclose(new_ik.sum(axis=1), 1.0)


def test_same_seed_same_answer_and_relabelling_permutes_it():
    p_ik, gold_i, _ = simulated(300, temperature=3.0)
    first_ik, _ = recalibrate(p_ik, gold_i, seed=4)
    assert_array_equal(recalibrate(p_ik, gold_i, seed=4)[0], first_ik)
    assert (recalibrate(p_ik, gold_i, seed=5)[0] != first_ik).any()
    turned_ik, _ = recalibrate(p_ik[:, ::-1].copy(), 2 - gold_i, seed=4)
    assert_allclose(turned_ik[:, ::-1], first_ik, atol=1e-5)
    assert_allclose(np.exp(log_softmax(np.log(first_ik), axis=1)), first_ik)


def test_where_gold_contradicts_p_the_biases_alone_have_the_least_log_loss():
    p_ik, _, _ = simulated(200, seed=8)
    gold_i = p_ik.argmin(axis=1)
    _, learnt = recalibrate(p_ik, gold_i)

    def cost(bias_k):
        prior = (1 / POWER_SPREAD) ** 2 / 2 + ((bias_k / BIAS_SPREAD) ** 2).sum() / 2
        return prior + loss(np.tile(softmax(bias_k), (200, 1)), gold_i).sum()

    best = minimize(cost, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    assert np.isinf(learnt.temperature)
    assert_allclose(learnt.bias_k, best.x, atol=2e-4)
