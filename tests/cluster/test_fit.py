"""The fit in parts against the fit on one machine: the same answer, whatever the number of parts."""

from __future__ import annotations

import numpy as np
import pytest
from cluster.here import Here
from numpy.testing import assert_allclose

from moral_entropy.cluster.fit import fit_votes, fit_with
from moral_entropy.consensus import laplace
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.priors import Priors
from moral_entropy.errors import UsageError
from moral_entropy.votes.simulate import simulate_votes


def assert_same_fit(many, one):
    """Equal up to rounding: log posterior to 1e-8, p to 1e-9; intervals and draws likewise."""
    for found, expected in zip(many.fits, one.fits, strict=True):
        assert found.climb.converged
        assert_allclose(found.climb.log_posterior, expected.climb.log_posterior, rtol=1e-8)
        assert_allclose(found.posterior_ik, expected.posterior_ik, atol=1e-9)
        assert_allclose(found.summary.mean_ik, expected.summary.mean_ik, atol=1e-9)
        assert_allclose(found.summary.low_i, expected.summary.low_i, atol=1e-8)
        assert_allclose(found.summary.expected_entropy_i, expected.summary.expected_entropy_i, atol=1e-8)
        assert_allclose(found.confusion_sakv, expected.confusion_sakv, atol=1e-8)
        assert found.curvature.method == expected.curvature.method


@pytest.mark.parametrize("n_parts", [1, 2, 5, 13])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_any_number_of_parts_gives_the_answer_of_one_machine(n_parts, n_labels):
    votes = simulate_votes(n_items=1_500, n_annotators=14, votes_per_item=4, n_labels=n_labels, seed=n_parts).votes
    assert_same_fit(fit_with(Here(), votes, Priors(), n_parts=n_parts, draws=60), fit(votes, draws=60))


def test_a_krylov_space_of_parts_is_that_of_one_machine(monkeypatch):
    monkeypatch.setattr(laplace, "DENSE", 10)
    votes = simulate_votes(n_items=2_000, n_annotators=60, votes_per_item=4, seed=3).votes
    many = fit_with(Here(), votes, Priors(), n_parts=4, draws=60)
    assert many.fits[0].curvature.method == "krylov"
    assert_same_fit(many, fit(votes, draws=60))


def test_workers_of_a_cluster_give_the_answer_of_one_machine(crew):
    votes = simulate_votes(n_items=4_000, n_annotators=30, votes_per_item=5, seed=4).votes
    for n_parts in (3, None):
        assert_same_fit(fit_votes(votes, crew.client, draws=60, n_parts=n_parts), fit(votes, draws=60))


def test_the_bits_do_not_depend_on_who_works(crew):
    votes = simulate_votes(n_items=1_000, n_annotators=10, votes_per_item=4, seed=5).votes
    there = fit_votes(votes, crew.client, draws=20, n_parts=5)
    here = fit_with(Here(), votes, Priors(), n_parts=5, draws=20)
    assert np.array_equal(there.fits[0].summary.mean_ik, here.fits[0].summary.mean_ik)


@pytest.mark.parametrize("refused", [{"solver": "adam"}, {"pooling": "partial"}, {"temper": "heldout"}])
def test_what_needs_one_machine_is_refused(refused):
    votes = simulate_votes(n_items=50, n_annotators=4, votes_per_item=3).votes
    with pytest.raises(UsageError, match="needs one machine"):
        fit_with(Here(), votes, Priors(), **refused)
