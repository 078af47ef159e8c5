"""The log posterior, its gradient and its Hessian against enumeration and finite differences."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support import log_posterior_of, plain_log_posterior, random_parameters, random_rows, votes_of

from moral_entropy.consensus.coordinates import pack, unpack
from moral_entropy.consensus.em import maximise
from moral_entropy.consensus.laplace import RowBlocks, information, krylov_gaussian
from moral_entropy.model.priors import Priors
from moral_entropy.consensus.starts import paper_start
from moral_entropy.corpora.simulate import simulate_votes

LABELS = [2, 3, 4]


def tiny(n_labels, seed=0, n_items=5, n_annotators=3):
    rng = np.random.default_rng(seed)
    votes = votes_of(random_rows(rng, n_items, n_annotators, n_labels), n_labels)
    return votes, random_parameters(rng, votes.ballots[0].n_annotators, n_labels)


@pytest.mark.parametrize("n_labels", LABELS)
def test_log_posterior_equals_the_sum_over_all_labellings(n_labels):
    votes, at = tiny(n_labels)
    ballot, priors = votes.ballots[0], Priors(prevalence=3.0)
    pi, theta = at.weight_g, at.confusion_akv
    total = 0.0
    for z in itertools.product(range(n_labels), repeat=ballot.n_items):
        probability = 1.0
        for i, k in enumerate(z):
            probability *= pi[k]
            for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
                probability *= theta[code // n_labels, k, code % n_labels]
        total += probability
    off = (1.2 - 1) * (np.log(theta).sum() - np.log(theta.diagonal(axis1=1, axis2=2)).sum())
    prior = 2.0 * np.log(pi).sum() + 0.8 * np.log(theta.diagonal(axis1=1, axis2=2)).sum() + off
    assert_allclose(log_posterior_of(votes, priors).expect(at).log_posterior, np.log(total) + prior, rtol=1e-12)


@pytest.mark.parametrize("n_labels", LABELS)
def test_expected_counts_equal_those_over_all_labellings(n_labels):
    votes, at = tiny(n_labels, n_items=4)
    ballot, model = votes.ballots[0], log_posterior_of(votes)
    weight, items_k, votes_akv = 0.0, np.zeros(n_labels), np.zeros((ballot.n_annotators, n_labels, n_labels))
    for z in itertools.product(range(n_labels), repeat=ballot.n_items):
        log_probability, seen_k, seen_akv = 0.0, np.zeros(n_labels), np.zeros_like(votes_akv)
        for i, k in enumerate(z):
            log_probability += at.log_weight_g[k]
            seen_k[k] += 1
            for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
                log_probability += at.log_confusion_akv[code // n_labels, k, code % n_labels]
                seen_akv[code // n_labels, k, code % n_labels] += 1
        probability = np.exp(log_probability)
        weight += probability
        items_k += probability * seen_k
        votes_akv += probability * seen_akv
    expected = model.expect(at)
    assert_allclose(expected.items_g - model.pseudo_g, items_k / weight, rtol=1e-10)
    assert_allclose(expected.votes_akv - model.pseudo_akv, votes_akv / weight, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("use_gold", [False, True])
@pytest.mark.parametrize("n_labels", LABELS)
def test_gradient_equals_finite_differences(n_labels, use_gold):
    rng = np.random.default_rng(1)
    rows = random_rows(rng, 30, 4, n_labels)
    votes = votes_of(rows, n_labels, gold_i=np.where(np.arange(30) < 5, 1, -1))
    at = random_parameters(rng, 4, n_labels)
    model = log_posterior_of(votes, use_gold=use_gold)
    x = pack(at)

    def height(x_p):
        return model.expect(unpack(x_p, n_labels)).log_posterior

    step = 1e-6
    numeric = [(height(x + step * e) - height(x - step * e)) / (2 * step) for e in np.eye(len(x))]
    assert_allclose(model.expect(at).gradient(at), numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("repeats", [False, True], ids=["one vote each", "repeated votes"])
@pytest.mark.parametrize("n_labels", LABELS)
def test_hessian_equals_finite_differences_of_the_gradient(n_labels, repeats):
    rng = np.random.default_rng(2)
    rows = random_rows(rng, 25, 3, n_labels)
    if repeats:
        rows += [(i, a, (k + 1) % n_labels) for i, a, k in rows[:20]]
    votes = votes_of(rows, n_labels)
    at = random_parameters(rng, 3, n_labels)
    model = log_posterior_of(votes)
    x, step = pack(at), 1e-6

    def slope(x_p):
        there = unpack(x_p, n_labels)
        return model.expect(there).gradient(there)

    numeric = np.array([(slope(x - step * e) - slope(x + step * e)) / (2 * step) for e in np.eye(len(x))])
    assert_allclose(information(model, at), numeric, rtol=1e-5, atol=1e-6)


def test_log_posterior_equals_a_plain_loop_on_counted_and_empty_items():
    rng = np.random.default_rng(3)
    rows = random_rows(rng, 40, 5, 3)
    votes = votes_of(rows, 3, n_items=43, count_i=np.arange(1.0, 44.0))
    at, priors = random_parameters(rng, 5, 3), Priors(prevalence=(2, 5, 1))
    assert_allclose(
        log_posterior_of(votes, priors).expect(at).log_posterior, plain_log_posterior(votes, at, priors), rtol=1e-12
    )


def test_three_thousand_votes_on_one_item_do_not_underflow():
    rows = [(0, a, int(a % 3 > 0)) for a in range(3_000)] + [(1, a, 1) for a in range(0, 3_000, 7)]
    votes = votes_of(rows)
    at = random_parameters(np.random.default_rng(4), 3_000, 2)
    value = log_posterior_of(votes).expect(at).log_posterior
    assert np.isfinite(value)
    assert_allclose(value, plain_log_posterior(votes, at, Priors()), rtol=1e-12)


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_krylov_covariance_equals_the_dense_inverse_when_its_space_is_whole(n_labels, by_row, monkeypatch):
    if by_row:
        monkeypatch.setattr("moral_entropy.consensus.laplace.ANNOTATOR_BLOCK", 0)
    rng = np.random.default_rng(5)
    votes = votes_of(random_rows(rng, 200, 3, n_labels), n_labels)
    model = log_posterior_of(votes, Priors(prevalence=2.0, diagonal=3.0, off_diagonal=2.0))
    at = maximise(model, paper_start(3, n_labels)).at
    gaussian = krylov_gaussian(model, at)
    root = gaussian.step(np.eye(model.n_parameters))
    assert_allclose(root @ root.T, np.linalg.inv(information(model, at)), rtol=1e-6, atol=1e-9)


def test_krylov_standard_errors_are_near_the_dense_ones_when_its_space_is_small():
    votes = simulate_votes(n_items=2_000, n_annotators=300, votes_per_item=4, seed=1).votes
    model = log_posterior_of(votes, Priors(prevalence=2.0, diagonal=2.8, off_diagonal=2.2))
    at = maximise(model, paper_start(300, 2)).at
    assert model.n_parameters == 601
    root = krylov_gaussian(model, at).step(np.eye(601))
    exact = np.linalg.inv(information(model, at))
    ratio = np.sqrt((root**2).sum(axis=1) / np.diag(exact))
    assert abs(ratio.mean() - 1) < 0.01
    assert 0.9 < ratio.min() < ratio.max() < 1.1
    # What all annotators share, such as their mean sensitivity, is where the coupling matters most.
    shared = np.tile([0.0, 1 / 300], 300)
    together = np.concatenate([[0.0], shared])
    assert abs(np.linalg.norm(together @ root) / np.sqrt(together @ exact @ together) - 1) < 0.05


@pytest.mark.parametrize("n_labels", [2, 3, 7])
def test_blocks_of_confusion_rows_are_those_of_the_dense_curvature(n_labels, monkeypatch):
    monkeypatch.setattr("moral_entropy.consensus.laplace.ANNOTATOR_BLOCK", 0)
    rng = np.random.default_rng(8)
    model = log_posterior_of(votes_of(random_rows(rng, 60, 4, n_labels), n_labels))
    at = maximise(model, paper_start(4, n_labels)).at
    dense, root = (
        information(model, at),
        krylov_gaussian(model, at).blocks.solve(np.eye(model.n_parameters), transposed=True),
    )
    own = np.kron(np.eye(1 + 4 * n_labels), np.ones((n_labels - 1,) * 2))
    assert_allclose(root @ root.T, np.linalg.inv(dense * own), rtol=1e-8, atol=1e-10)
    across = krylov_gaussian(model, at).blocks.solve(np.eye(model.n_parameters), transposed=False)
    assert_allclose(across, root.T, rtol=1e-9, atol=1e-12)


def test_standard_errors_of_many_labels_are_near_the_dense_ones():
    votes = simulate_votes(
        n_items=1_000, n_annotators=5, votes_per_item=4, n_labels=12, accuracy=(0.3, 0.7), seed=2
    ).votes
    model = log_posterior_of(votes, Priors(prevalence=2.0, diagonal=2.8, off_diagonal=2.2))
    at = maximise(model, paper_start(5, 12)).at
    gaussian = krylov_gaussian(model, at)
    assert isinstance(gaussian.blocks, RowBlocks)
    ratio = np.linalg.norm(gaussian.step(np.eye(671)), axis=1) / np.sqrt(np.diag(np.linalg.inv(information(model, at))))
    assert abs(ratio.mean() - 1) < 0.02
    assert 0.94 < ratio.min() < ratio.max() < 1.05


@pytest.mark.parametrize(("n_labels", "annotator_block"), [(2, 90), (3, 90), (2, 0), (3, 0)])
def test_blocks_of_rows_add_up_to_the_same_krylov_space(n_labels, annotator_block, monkeypatch):
    monkeypatch.setattr("moral_entropy.consensus.laplace.ANNOTATOR_BLOCK", annotator_block)
    rng = np.random.default_rng(6)
    votes = votes_of(random_rows(rng, 300, 4, n_labels), n_labels)
    at = maximise(log_posterior_of(votes), paper_start(4, n_labels)).at
    whole = krylov_gaussian(log_posterior_of(votes), at)
    monkeypatch.setattr("moral_entropy.consensus.model.SMALL", 10)
    cut = log_posterior_of(votes)
    assert len(cut.bound_b) > 10
    normal = np.eye(cut.n_parameters)
    assert_allclose(krylov_gaussian(cut, at).step(normal), whole.step(normal), rtol=1e-7, atol=1e-9)
