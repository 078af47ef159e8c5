"""Scores against a second library, and against loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from moral_entropy.checks.scores import auc, calibration_error, log_losses, mean_interval


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n_labels=st.integers(2, 4))
def test_scores_equal_those_of_scikit_learn(seed, n_labels):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    p_ik = rng.dirichlet(np.ones(n_labels), size=40)
    right_i = rng.integers(n_labels, size=40)
    weight_i = rng.integers(1, 5, size=40).astype(float)
    labels, weighted = list(range(n_labels)), {"sample_weight": weight_i}
    assert_allclose(log_losses(p_ik, right_i) @ weight_i / weight_i.sum(),
                    metrics.log_loss(right_i, p_ik, labels=labels, **weighted))  # fmt: skip
    tied_i = p_ik[:, 0].round(1)
    if len(set(right_i == 0)) == 2:
        assert_allclose(auc(tied_i, right_i == 0, weight_i), metrics.roc_auc_score(right_i == 0, tied_i, **weighted))


def test_calibration_error_equals_the_sum_over_bins():
    rng = np.random.default_rng(1)
    p_i = rng.random(500)
    right_i = (rng.random(500) < p_i**2).astype(int)
    expected = 0.0
    for b in range(15):
        inside = [i for i in range(500) if b / 15 < p_i[i] <= (b + 1) / 15]
        if inside:
            expected += len(inside) / 500 * abs(p_i[inside].mean() - right_i[inside].mean())
    assert_allclose(calibration_error(np.column_stack([1 - p_i, p_i]), right_i), expected)


def test_never_is_infinitely_wrong():
    assert log_losses(np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]), np.array([0, 0]))[1] == np.inf
    assert np.isnan(auc(np.array([0.1, 0.2]), np.array([1, 1])))


def test_intervals_of_means_hold_the_truth_19_times_in_20():
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(400):
        group_v = np.repeat(np.arange(80), 5)
        value_v = rng.standard_normal(80)[group_v] + rng.standard_normal(400)
        _, low, high = mean_interval(value_v, group_v)
        held += low <= 0.0 <= high
    assert 366 <= held <= 394
