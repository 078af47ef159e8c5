"""The fit in parts against the fit on one machine: the same answer, whatever the number of parts."""

from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np
import pytest
from cluster.here import Here
from numpy.testing import assert_allclose
from support import random_rows, votes_of

from moral_entropy.cluster.fit import fit_on_cluster
from moral_entropy.consensus import laplace
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.priors import Priors
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import FitError, UsageError


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
        assert_allclose(astuple(found.exponent), astuple(expected.exponent), atol=1e-8)


@pytest.mark.parametrize("n_parts", [1, 2, 5, 13])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_any_number_of_parts_gives_the_answer_of_one_machine(n_parts, n_labels):
    votes = simulate_votes(n_items=1_500, n_annotators=14, votes_per_item=4, n_labels=n_labels, seed=n_parts).votes
    assert_same_fit(fit_on_cluster(votes, Here(), n_parts=n_parts, draws=60), fit(votes, draws=60))


@pytest.mark.parametrize(("temper", "use_gold"), [("heldout", False), ("heldout", True), ("gold", False), (0.5, False)])
def test_tempered_fits(temper, use_gold):
    simulated = simulate_votes(n_items=900, n_annotators=9, votes_per_item=4, seed=6)
    (ballot,) = simulated.votes.ballots
    gold_i = np.where(np.arange(900) % 6 == 0, ballot.counts_ik.argmax(axis=1), -1).astype(np.int16)
    votes = replace(simulated.votes, ballots=(replace(ballot, gold_i=gold_i),))
    options = {"draws": 40, "model": "paper", "temper": temper, "use_gold": use_gold}
    assert_same_fit(fit_on_cluster(votes, Here(), n_parts=4, **options), fit(votes, **options))


@pytest.mark.parametrize("n_labels", [2, 3])
def test_one_matrix_for_all(n_labels):
    votes = simulate_votes(n_items=900, n_annotators=9, votes_per_item=4, n_labels=n_labels, seed=7).votes
    known = Priors(annotators={str(votes.annotators[0]): 3.0 * np.eye(n_labels)})
    options = {"draws": 40, "pooling": "full", "priors": known}
    many, one = fit_on_cluster(votes, Here(), n_parts=4, **options), fit(votes, **options)
    assert_same_fit(many, one)
    assert_allclose(many.fits[0].beta_akv, one.fits[0].beta_akv)
    assert many.fits[0].pooling == "full"
    assert many.fits[0].climb.passes == one.fits[0].climb.passes


def test_tempering_by_gold_needs_some():
    votes = votes_of(random_rows(np.random.default_rng(0), 50, 4, 2))
    with pytest.raises(FitError, match="no item has a gold label"):
        fit_on_cluster(votes, Here(), model="paper", temper="gold")


def test_starts_are_compared_on_the_rows_of_one_machine(monkeypatch):
    monkeypatch.setattr("moral_entropy.consensus.modes.SAMPLE_VOTES", 300)
    votes = simulate_votes(n_items=3_000, n_annotators=4, votes_per_item=3, seed=2).votes
    many, one = fit_on_cluster(votes, Here(), n_parts=4, draws=0), fit(votes, draws=0)
    assert many.fits[0].climb.passes == one.fits[0].climb.passes
    assert list(many.fits[0].climb.modes) == list(one.fits[0].climb.modes)


def test_a_krylov_space_of_parts_is_that_of_one_machine(monkeypatch):
    monkeypatch.setattr(laplace, "DENSE", 10)
    votes = simulate_votes(n_items=2_000, n_annotators=60, votes_per_item=4, seed=3).votes
    many = fit_on_cluster(votes, Here(), n_parts=4, draws=60)
    assert many.fits[0].curvature.method == "krylov"
    assert_same_fit(many, fit(votes, draws=60))


def test_workers_of_a_cluster_give_the_answer_of_one_machine(workers):
    votes = simulate_votes(n_items=4_000, n_annotators=30, votes_per_item=5, seed=4).votes
    for n_parts in (3, None):
        assert_same_fit(fit_on_cluster(votes, workers, draws=60, n_parts=n_parts), fit(votes, draws=60))


def test_the_bits_do_not_depend_on_who_works(workers):
    votes = simulate_votes(n_items=1_000, n_annotators=10, votes_per_item=4, seed=5).votes
    there = fit_on_cluster(votes, workers, draws=20, n_parts=5)
    here = fit_on_cluster(votes, Here(), n_parts=5, draws=20)
    assert np.array_equal(there.fits[0].summary.mean_ik, here.fits[0].summary.mean_ik)


def test_what_needs_one_machine_is_refused():
    votes = simulate_votes(n_items=50, n_annotators=4, votes_per_item=3).votes
    with pytest.raises(UsageError, match="needs one machine"):
        fit_on_cluster(votes, Here(), model="paper", solver="adam")


@pytest.mark.parametrize("n_labels", [2, 3])
def test_rows_that_vary_around_common_ones(n_labels):
    votes = simulate_votes(n_items=400, n_annotators=8, votes_per_item=3, n_labels=n_labels, seed=8).votes
    many, one = (
        fit_on_cluster(votes, Here(), n_parts=3, draws=40, pooling="partial"),
        fit(votes, draws=40, pooling="partial"),
    )
    assert_allclose(many.fits[0].summary.mean_ik, one.fits[0].summary.mean_ik, atol=1e-6)
    assert_allclose(many.fits[0].common.mean_kv, one.fits[0].common.mean_kv, atol=1e-6)
