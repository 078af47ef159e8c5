"""The pass of the mixed model where a label is known and hundreds of votes contradict it, against sums of logs."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support import votes_of

from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.model.patterns import collapse
from moral_entropy.model.states import between_labels

N_ANNOTATORS, RIGHT = 600, 0.9


@pytest.mark.parametrize(("known", "said"), [(0, 1), (1, 0), (1, 2)])
def test_a_known_label_counts_however_many_votes_contradict_it(known, said):
    n_labels = max(known, said) + 1
    rows = [(i, a, said) for i in (0, 1) for a in range(N_ANNOTATORS)]
    ballot = votes_of(rows, n_labels, gold_i=np.array([known, known])).ballots[0]
    states = between_labels(n_labels)
    pseudo_akv = np.zeros((N_ANNOTATORS, n_labels, n_labels))
    model = LogPosterior(collapse(ballot, use_gold=True), np.zeros((1, states.n_groups)), pseudo_akv, 1, between=states)
    wrong = (1 - RIGHT) / (n_labels - 1)
    confusion_kv = np.where(np.eye(n_labels, dtype=bool), RIGHT, wrong)
    weight_g = np.arange(1.0, states.n_groups + 1) / np.arange(1.0, states.n_groups + 1).sum()
    at = Parameters(np.log(weight_g[None]), np.log(np.tile(confusion_kv, (N_ANNOTATORS, 1, 1))))

    expectation = model.expect(at)

    log_item = math.log(weight_g[known]) + N_ANNOTATORS * math.log(wrong)
    assert_allclose(expectation.log_posterior, 2 * log_item, rtol=1e-12)
    votes_kv, items_g = np.zeros((n_labels, n_labels)), np.zeros(states.n_groups)
    votes_kv[known, said], items_g[known] = 2, 2
    assert_allclose(expectation.votes_akv, np.tile(votes_kv, (N_ANNOTATORS, 1, 1)), atol=1e-12)
    assert_allclose(expectation.items_g[0], items_g, atol=1e-12)
