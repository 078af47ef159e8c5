"""Fits bound to be better than chance, against a general constrained optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from support import log_posterior_of, random_parameters, random_rows, votes_of

from moral_entropy.consensus.coordinates import unpack
from moral_entropy.model.fit import fit
from moral_entropy.consensus.model import Parameters


def with_an_adversary(seed=0, n_items=120):
    rng = np.random.default_rng(seed)
    truth_i = rng.integers(2, size=n_items)
    rows = []
    for item, truth in enumerate(truth_i):
        rows += [(item, a, truth if rng.random() < 0.8 else 1 - truth) for a in range(4)]
        rows.append((item, 4, truth if rng.random() < 0.2 else 1 - truth))
    return votes_of(rows)


def test_the_bound_holds_at_the_mode_and_in_every_draw():
    votes = with_an_adversary()
    free = fit(votes, draws=100).fits[0]
    assert (np.diagonal(free.confusion_akv, axis1=1, axis2=2)[4] < 0.4).all(), "the data made to trigger it does"
    bound = fit(votes, constrain="better-than-chance", draws=100).fits[0]
    assert bound.climb.converged
    assert np.diagonal(bound.confusion_akv, axis1=1, axis2=2).min() >= 0.5 - 1e-12
    assert np.diagonal(bound.confusion_sakv, axis1=2, axis2=3).min() >= 0.5 - 1e-12
    assert_allclose(bound.confusion_sakv.sum(axis=-1), 1.0)
    assert bound.climb.log_posterior < free.climb.log_posterior


def test_the_constrained_mode_is_that_of_a_general_optimiser():
    votes = with_an_adversary(1, n_items=60)
    density = log_posterior_of(votes)
    bound = fit(votes, model="paper", constrain="better-than-chance", draws=0).fits[0]

    def loss(x):
        return -density.expect(unpack(x, 2)).log_posterior

    # Log ratios of voting 1 to voting 0: at most 0 where 0 is right, at least 0 where 1 is.
    bounds = [(None, None)] + [(None, 0.0), (0.0, None)] * 5
    start = np.array([0.0] + [-0.5, 0.5] * 5)
    found = minimize(loss, start, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-8})
    assert_allclose(bound.climb.log_posterior, -found.fun, atol=1e-5)
    assert_allclose(bound.confusion_akv, unpack(found.x, 2).confusion_akv, atol=2e-3)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_a_fit_that_keeps_the_bound_anyway_is_unchanged(n_labels):
    votes = votes_of(random_rows(np.random.default_rng(2), 150, 6, n_labels, share=1.0), n_labels)
    free, bound = (fit(votes, constrain=how, draws=0).fits[0] for how in ("none", "better-than-chance"))
    assert np.diagonal(free.confusion_akv, axis1=1, axis2=2).min() > 1 / n_labels, "the data keeps it"
    assert_allclose(bound.confusion_akv, free.confusion_akv, atol=1e-5)


@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_lifting_touches_only_rows_below_chance(n_labels):
    at = random_parameters(np.random.default_rng(7), 20, n_labels)
    lifted = at.at_least_chance()
    right_ak = np.diagonal(at.confusion_akv, axis1=1, axis2=2)
    good_ak = right_ak >= 1 / n_labels
    assert good_ak.any()
    assert (~good_ak).any()
    assert_allclose(lifted.confusion_akv[good_ak], at.confusion_akv[good_ak])
    assert_allclose(np.diagonal(lifted.confusion_akv, axis1=1, axis2=2)[~good_ak], 1 / n_labels)
    assert_allclose(lifted.confusion_akv.sum(axis=-1), 1.0)
    again = Parameters(lifted.log_weight_g, lifted.log_confusion_akv + 1e-12).at_least_chance()
    assert_allclose(again.confusion_akv, lifted.confusion_akv, atol=1e-9)


def test_the_log_posterior_never_falls_under_the_bound():
    from dataclasses import replace

    from moral_entropy.consensus.em import maximise

    density = replace(log_posterior_of(with_an_adversary(3)), better_than_chance=True)
    start = random_parameters(np.random.default_rng(1), 5, 2)
    trace = maximise(density, start).trace
    assert_array_equal(np.diff(trace) >= -1e-9, True)
