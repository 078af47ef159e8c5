"""The Youden index of any number of labels, and the posterior probability of being below chance."""

from __future__ import annotations

import numpy as np
import pytest
from support import random_rows, votes_of

from moral_entropy.items.annotators import describe_annotators
from moral_entropy.model.consensus import below_chance, surely_below_chance, youden
from moral_entropy.model.fit import fit


@pytest.mark.parametrize("n_labels", [2, 3])
def test_below_chance_is_the_share_of_draws(n_labels):
    votes = votes_of(random_rows(np.random.default_rng(2), 80, 5, n_labels), n_labels)
    one = fit(votes, draws=60).fits[0]
    for a, below in enumerate(below_chance(one)):
        means = [np.mean([one.confusion_sakv[s, a, k, k] for k in range(n_labels)]) for s in range(60)]
        assert below == np.mean(np.array(means) < 1 / n_labels)
    np.testing.assert_array_equal(below_chance(one), describe_annotators(one)["below_chance"])


def test_youden_of_two_labels_is_the_usual_one():
    confusion_akv = np.array([[[0.9, 0.1], [0.3, 0.7]], [[0.2, 0.8], [0.9, 0.1]]])
    np.testing.assert_allclose(youden(confusion_akv), [0.9 + 0.7 - 1, 0.2 + 0.1 - 1])
    np.testing.assert_allclose(youden(np.full((3, 3), 1 / 3)), 0.0, atol=1e-15)
    np.testing.assert_allclose(youden(np.eye(3)), 1.0)


def test_below_chance_needs_sureness_and_votes():
    below_a = np.array([0.98, 0.99, 1.0, 1.0, np.nan])
    assert surely_below_chance(below_a, np.array([90, 90, 10, 9, 90])).tolist() == [False, True, True, False, False]
