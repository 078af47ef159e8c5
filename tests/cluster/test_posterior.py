"""The log posterior in parts against the one on one machine, and against plain sums over items."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cluster.here import Here
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from support import log_posterior_of, plain_log_posterior, random_parameters, random_rows, vote_rows, votes_of

from moral_entropy.cluster.parts import send_votes
from moral_entropy.consensus import laplace
from moral_entropy.consensus.parts import domains_of
from moral_entropy.consensus.patterns import collapse
from moral_entropy.consensus.priors import Priors


def in_parts(votes, n_parts, *, use_gold=False, by_domain=False):
    """The log posterior of the first ballot, its items in several parts."""
    priors, ballot = Priors(), votes.ballots[0]
    parts = send_votes(votes, Here(), use_gold=use_gold, by_domain=by_domain, n_parts=n_parts)
    return parts.log_posterior(0, priors.alpha_k(ballot) - 1, priors.beta_akv(ballot, votes) - 1)


@given(rows=vote_rows(), n_parts=st.integers(1, 9), seed=st.integers(0, 99))
def test_passes_over_parts_add_up_to_the_pass_over_all(rows, n_parts, seed):
    votes = votes_of(*rows)
    at = random_parameters(np.random.default_rng(seed), votes.ballots[0].n_annotators, rows[1])
    one, many = log_posterior_of(votes).expect(at), in_parts(votes, n_parts).expect(at)
    assert_allclose(many.votes_akv, one.votes_akv, atol=1e-12)
    assert_allclose(many.items_g, one.items_g, atol=1e-12)
    assert_allclose(many.log_posterior, plain_log_posterior(votes, at, Priors()), rtol=1e-12)


@pytest.mark.parametrize("annotator_block", [0, 90])
@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("n_parts", [1, 4])
def test_curvature_of_parts_adds_up(n_labels, n_parts, annotator_block, monkeypatch):
    monkeypatch.setattr("moral_entropy.consensus.laplace.ANNOTATOR_BLOCK", annotator_block)
    rng = np.random.default_rng(5)
    gold_i = np.where(np.arange(60) % 7 == 0, rng.integers(n_labels, size=60), -1)
    votes = votes_of(random_rows(rng, 60, 5, n_labels), n_labels, gold_i=gold_i)
    at = random_parameters(rng, 5, n_labels)
    one, many = log_posterior_of(votes, use_gold=True), in_parts(votes, n_parts, use_gold=True)
    assert_allclose(laplace.information(many, at), laplace.information(one, at), atol=1e-11)
    whole, cut = laplace.krylov_gaussian(one, at), laplace.krylov_gaussian(many, at)
    normal_ps = rng.standard_normal((one.n_parameters, 3))
    assert_allclose(cut.step(normal_ps), whole.step(normal_ps), atol=1e-9)


def test_scout_has_the_rows_that_one_machine_would_choose():
    rng = np.random.default_rng(6)
    votes = votes_of(random_rows(rng, 300, 12, 2, share=0.3))
    one, many = log_posterior_of(votes), in_parts(votes, 5)
    for most_votes in (10**6, 400):
        expected, found = one.sample_rows(most_votes).patterns, many.sample_rows(most_votes).patterns
        assert_array_equal(found.start_r, expected.start_r)
        assert_array_equal(found.code_v, expected.code_v)
        assert_array_equal(found.weight_r, expected.weight_r)


def votes_by_item(ballot, *, use_gold):
    """Every item's votes, and its label if that is told."""
    for first, last, gold in zip(ballot.start_i[:-1], ballot.start_i[1:], ballot.gold_i, strict=True):
        yield ballot.code_v[first:last].tolist(), int(gold) if use_gold else -1


@given(rows=vote_rows(max_items=20, max_annotators=3), n_parts=st.integers(1, 9), use_gold=st.booleans())
def test_rows_of_parts_are_those_of_one_machine(rows, n_parts, use_gold):
    votes = votes_of(*rows, n_items=20, gold_i=np.where(np.arange(20) % 3 == 0, 1, -1))
    expected = collapse(votes.ballots[0], use_gold=use_gold)
    kinds = {(*row, clamp) for row, clamp in votes_by_item(votes.ballots[0], use_gold=use_gold)}
    assert not expected.collapsed or expected.n_rows == len(kinds)
    many = in_parts(votes, n_parts, use_gold=use_gold)
    found = many.parts.fetch_rows(0)
    for name in ("start_r", "code_v", "weight_r", "clamp_r"):
        assert_array_equal(getattr(found.patterns, name), getattr(expected, name))
    assert_array_equal(found.count_r, np.bincount(expected.row_i, minlength=expected.n_rows))
    assert many.n_votes == len(expected.code_v)


@given(rows=vote_rows(max_items=20, max_annotators=3), n_parts=st.integers(1, 9), repeat=st.sampled_from([1, 2, 3]))
def test_items_of_two_domains_are_never_one_row(rows, n_parts, repeat):
    votes = votes_of(*rows, n_items=20)
    votes = replace(votes, domains=("a", "b"), domain_i=(np.arange(20) // repeat % 3 - 1).astype(np.int32))
    expected = collapse(votes.ballots[0], domains=domains_of(votes, votes.ballots[0]))
    found = in_parts(votes, n_parts, by_domain=True).parts.fetch_rows(0).patterns
    for name in ("start_r", "code_v", "weight_r", "domain_r", "n_domains"):
        assert_array_equal(getattr(found, name), getattr(expected, name))
    kinds = {
        (*row, d) for (row, _), d in zip(votes_by_item(votes.ballots[0], use_gold=False), votes.domain_i, strict=True)
    }
    assert not expected.collapsed or found.n_rows == len(kinds)


@pytest.mark.parametrize("per_heap", [1, 7, 10**6])
def test_identical_items_of_different_parts_are_one_row(monkeypatch, per_heap):
    monkeypatch.setattr("moral_entropy.cluster.rows.ROWS_AT_ONCE", per_heap)
    rows = [(item, annotator, (item * annotator) % 3 % 2) for item in range(200) for annotator in range(item % 4)]
    votes = votes_of(rows, n_items=200)
    expected = collapse(votes.ballots[0])
    found = in_parts(votes, 4).parts.fetch_rows(0, np.array([0, 2, 3]))
    assert expected.collapsed
    assert_array_equal(found.patterns.code_v, expected.take(np.array([0, 2, 3])).code_v)
    assert_array_equal(found.patterns.weight_r, expected.weight_r[[0, 2, 3]])
    # Items without a vote weigh nothing in the fit, and are items nonetheless.
    assert_array_equal(found.count_r, np.bincount(expected.row_i)[[0, 2, 3]])
