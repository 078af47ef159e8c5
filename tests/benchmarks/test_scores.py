"""The scores of the benchmarks, against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss
from support import load_script

scores = load_script("benchmarks/scores.py")


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    truth_i = rng.integers(0, 2, 400)
    p_i = rng.beta(0.3, 0.3, 400)
    p_i[:3] = (0.0, 1.0, 0.5)
    found = scores.score(p_i, truth_i)
    assert found.accuracy == pytest.approx(accuracy_score(truth_i, p_i >= 0.5))
    assert found.brier == pytest.approx(brier_score_loss(truth_i, p_i))
    assert found.log_loss == pytest.approx(log_loss(truth_i, np.clip(p_i, 1e-6, 1 - 1e-6)))
    assert found.n_undefined == 0


def test_a_sure_error_costs_what_the_clip_says():
    found = scores.score([1.0, 0.5], [0, 1])
    assert found.log_loss == pytest.approx((-np.log(1e-6) + np.log(2)) / 2)


def test_labels_alone_have_no_log_loss():
    found = scores.score([1, 0, 1, 1], [1, 0, 0, 1])
    assert (found.accuracy, found.brier, found.log_loss) == (0.75, 0.25, None)


def test_what_is_no_number_counts_as_a_half_and_is_counted():
    found = scores.score([np.nan, 1.0], [0, 1])
    assert (found.n_undefined, found.brier) == (1, 0.125)
