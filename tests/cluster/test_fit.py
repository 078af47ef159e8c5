"""The fit in parts against the fit on one machine: the same answer, whatever the number of parts."""

from __future__ import annotations

from dataclasses import astuple, fields, replace

import numpy as np
import pytest
from cluster.here import Here
from cluster.tables import LEARNT
from numpy.testing import assert_allclose, assert_array_equal
from support import random_rows, votes_of

from moral_entropy.cluster.fit import fit_on_cluster
from moral_entropy.consensus import laplace
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import DrawSummary
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import FitError, UsageError


def assert_same_fit(many, one, *, close=1e-8):
    """Equal up to rounding: log posterior to 1e-8, p to 1e-9; intervals and draws likewise."""
    for found, expected in zip(many.fits, one.fits, strict=True):
        assert found.climb.converged
        assert_allclose(found.climb.log_posterior, expected.climb.log_posterior, rtol=close)
        assert_allclose(found.posterior_ik, expected.posterior_ik, atol=close / 10)
        assert_allclose(found.p_ik, expected.p_ik, atol=close / 10)
        for column in fields(DrawSummary):
            atol = close / 10 if column.name == "mean_ik" else close
            assert_allclose(getattr(found.summary, column.name), getattr(expected.summary, column.name), atol=atol)
        assert_allclose(found.confusion_sakv, expected.confusion_sakv, atol=close)
        assert_allclose(found.weight_sdg, expected.weight_sdg, atol=close)
        assert found.curvature.method == expected.curvature.method
        assert_allclose(astuple(found.exponent), astuple(expected.exponent), atol=1e-8)


@pytest.mark.parametrize("n_parts", [1, 2, 5, 13])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_any_number_of_parts_gives_the_answer_of_one_machine(n_parts, n_labels):
    votes = simulate_votes(n_items=1_500, n_annotators=14, votes_per_item=4, n_labels=n_labels, seed=n_parts).votes
    assert_same_fit(fit_on_cluster(votes, Here(), n_parts=n_parts, draws=60), fit(votes, draws=60))


def copied_votes(n_items=600, n_labels=2, seed=1):
    """Six annotators and two near-copies, of the first and of the second; every fourth item has gold."""
    rng = np.random.default_rng(seed)
    truth_i = rng.integers(n_labels, size=n_items)
    said_ia = np.where(rng.random((n_items, 6)) < 0.8, truth_i[:, None], rng.integers(n_labels, size=(n_items, 6)))
    copied_ia = np.where(rng.random((n_items, 2)) < 0.03, rng.integers(n_labels, size=(n_items, 2)), said_ia[:, :2])
    said_ia = np.hstack([said_ia, copied_ia])
    rows = [(i, a, said_ia[i, a]) for i in range(n_items) for a in range(8) if rng.random() < 0.8]
    return votes_of(rows, n_labels, n_items=n_items, gold_i=np.where(np.arange(n_items) % 4 == 0, truth_i, -1))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"draws": 0},
        {"use_gold": True},
        {"dependence": "off"},
        {"pooling": "full"},
        {"model": "paper"},
        {"model": "paper", "merge": ("2+3+4",)},
    ],
    ids=str,
)
@pytest.mark.parametrize("n_labels", [2, 3])
def test_copies_in_parts_are_counted_as_on_one_machine(n_labels, options):
    votes, options = copied_votes(n_labels=n_labels), {"draws": 40} | options
    many, one = fit_on_cluster(votes, Here(), n_parts=4, **options), fit(votes, **options)
    assert_same_fit(many, one)
    assert_same_counting(many, one)
    [fitted] = many.fits
    if not options.keys() & {"dependence", "merge"}:
        assert {frozenset(group.tolist()) for group in fitted.copies.groups} == {frozenset({0, 6}), frozenset({1, 7})}
    assert (fitted.counts_ik.sum() < fitted.ballot.n_votes) == bool(fitted.counted_groups)


def assert_same_counting(many, one):
    """Who was counted as one, and what all votes are worth."""
    for found, expected in zip(many.fits, one.fits, strict=True):
        assert_array_equal(found.counts_ik, expected.counts_ik)
        assert_array_equal(found.label_i, expected.label_i)
        assert list(map(list, found.counted_groups)) == list(map(list, expected.counted_groups))
        assert (found.worth is None) == (expected.worth is None)
        if expected.worth is not None:
            worths = [
                (fit.worth.votes, fit.worth.effective, fit.worth.low, fit.worth.high) for fit in (found, expected)
            ]
            assert_allclose(*worths, rtol=1e-8)


def test_copies_are_looked_for_in_the_rows_of_one_machine(monkeypatch):
    votes = copied_votes(n_items=900)
    everywhere = fit(votes, draws=0).fits[0].copies
    monkeypatch.setattr("moral_entropy.consensus.counting.MOST_VOTES", 1_200)
    many, one = fit_on_cluster(votes, Here(), n_parts=4, draws=20), fit(votes, draws=20)
    assert_allclose(many.fits[0].copies.strength_a, one.fits[0].copies.strength_a)
    assert abs(one.fits[0].copies.strength_a - everywhere.strength_a).max() > 1e-3, "of a sample"
    assert_same_fit(many, one)
    assert_same_counting(many, one)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_domains_in_parts_are_those_of_one_machine(n_labels):
    votes = copied_votes(n_labels=n_labels)
    # Parts are consecutive items: one domain lies in one part alone, another has every third item, some have none.
    domain_i = np.where(np.arange(600) < 100, 0, np.where(np.arange(600) % 3 == 0, 1, -1)).astype(np.int32)
    votes = replace(votes, domains=("early", "third"), domain_i=domain_i)
    many, one = fit_on_cluster(votes, Here(), n_parts=4, draws=40), fit(votes, draws=40)
    assert_same_fit(many, one, close=LEARNT)
    assert_same_counting(many, one)
    found, expected = many.fits[0].mixture, one.fits[0].mixture
    assert_array_equal(found.items_d, [(domain_i == d).sum() for d in (0, 1, -1)])
    assert_allclose(found.strength, expected.strength, rtol=LEARNT)
    assert_allclose(found.weight_dg, expected.weight_dg, atol=LEARNT)
    assert np.ptp(found.weight_dg, axis=0).max() > 1e-3


@pytest.mark.parametrize(("temper", "use_gold"), [("heldout", False), ("heldout", True), ("gold", False), (0.5, False)])
def test_tempered_fits(temper, use_gold):
    simulated = simulate_votes(n_items=900, n_annotators=9, votes_per_item=4, seed=6)
    (ballot,) = simulated.votes.ballots
    gold_i = np.where(np.arange(900) % 6 == 0, ballot.counts_ik.argmax(axis=1), -1).astype(np.int16)
    votes = replace(simulated.votes, ballots=(replace(ballot, gold_i=gold_i),))
    options = {"draws": 40, "model": "paper", "temper": temper, "use_gold": use_gold}
    assert_same_fit(fit_on_cluster(votes, Here(), n_parts=4, **options), fit(votes, **options))


@pytest.mark.parametrize("model", ["mixed", "paper"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_one_matrix_for_all(n_labels, model):
    votes = simulate_votes(n_items=900, n_annotators=9, votes_per_item=4, n_labels=n_labels, seed=7).votes
    known = Priors(annotators={str(votes.annotators[0]): 3.0 * np.eye(n_labels)})
    options = {"draws": 40, "model": model, "pooling": "full", "priors": known}
    many, one = fit_on_cluster(votes, Here(), n_parts=4, **options), fit(votes, **options)
    assert_same_fit(many, one)
    assert_allclose(many.fits[0].beta_akv, one.fits[0].beta_akv)
    assert many.fits[0].pooling == "full"
    # Under the mixed model rounding decides about the last passes.
    assert model == "mixed" or many.fits[0].climb.passes == one.fits[0].climb.passes


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


def test_workers_of_a_cluster_count_copies_and_tell_domains(workers):
    votes = replace(copied_votes(), domains=("even", "odd"), domain_i=(np.arange(600) % 2).astype(np.int32))
    many, one = fit_on_cluster(votes, workers, draws=40, n_parts=3), fit(votes, draws=40)
    assert_same_fit(many, one, close=LEARNT)
    assert_same_counting(many, one)
    assert len(many.fits[0].counted_groups) == 2


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
    votes = simulate_votes(n_items=150, n_annotators=5, votes_per_item=3, n_labels=n_labels, seed=8).votes
    many, one = (
        fit_on_cluster(votes, Here(), n_parts=3, draws=10, pooling="partial"),
        fit(votes, draws=10, pooling="partial"),
    )
    assert_allclose(many.fits[0].summary.mean_ik, one.fits[0].summary.mean_ik, atol=1e-6)
    assert_allclose(many.fits[0].common.mean_kv, one.fits[0].common.mean_kv, atol=1e-6)
