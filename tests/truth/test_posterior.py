"""The log posterior against enumeration of every labelling, its derivatives against finite differences."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support import log_posterior_of, random_parameters, random_rows, votes_of

from moral_entropy.model import search
from moral_entropy.model.fit import OWN
from moral_entropy.model.patterns import collapse
from moral_entropy.model.posterior import Parameters, score
from moral_entropy.model.priors import Priors
from moral_entropy.model.search import maximise, pack, starts, unpack

CASES = [("paper", 2, 1), ("paper", 3, 1), ("mixed", 2, 1), ("mixed", 2, 2), ("mixed", 3, 1), ("mixed", 3, 2)]


def made(model, n_labels, n_domains, *, n_items=25, n_annotators=4, use_gold=True, repeats=True):
    """A log posterior of random votes, some gold, an annotator with two votes on an item; and parameters."""
    rng = np.random.default_rng([n_labels, n_domains])
    rows = np.array(random_rows(rng, n_items, n_annotators, n_labels))
    if repeats:
        rows = np.concatenate([rows, rows[:5] * [1, 1, 0] + [0, 0, 1]])
    gold_i = np.where(rng.random(n_items) < 0.2, rng.integers(n_labels, size=n_items), -1)
    domain_i = rng.integers(n_domains, size=n_items) if n_domains > 1 else None
    votes = votes_of(rows, n_labels, n_items=n_items, gold_i=gold_i, domain_i=domain_i)
    posterior = log_posterior_of(votes, model=model, use_gold=use_gold)
    return posterior, random_parameters(rng, posterior)


def held(posterior, at):
    """The same with the pseudo-counts of a place held: a proper density, whose derivatives are those of the model."""
    pseudo = posterior.pseudo_counts(posterior.expect(at))

    class Held(type(posterior)):
        def pseudo_counts(self, counts):
            return pseudo

    return Held(**{name: getattr(posterior, name) for name in posterior.__dataclass_fields__})


def states_by_row(posterior, at):
    """Walk over rows: their weight, and the joint probability of votes and state, one state after the other."""
    patterns, states = posterior.patterns, posterior.states
    for r in range(patterns.n_rows):
        d = int(patterns.domain_r[r]) if patterns.n_domains > 1 else 0
        joint_z = np.empty(states.n_states)
        for z, group in enumerate(states.group_z):
            joint_z[z] = at.weight_dg[d, group] / np.sum(states.group_z == group)
            for code in patterns.code_v[patterns.start_r[r] : patterns.start_r[r + 1]]:
                a, v = divmod(int(code), patterns.n_labels)
                joint_z[z] *= states.mix_zk[z] @ at.confusion_akv[a, :, v]
            if patterns.clamp_r[r] not in (-1, z):
                joint_z[z] = 0.0
        yield patterns.weight_r[r], joint_z


def plain_log_posterior(posterior, at, pseudo):
    likelihood = sum(weight * np.log(joint_z.sum()) for weight, joint_z in states_by_row(posterior, at) if weight)
    return likelihood + sum((p * np.log(x)).sum() for p, x in zip(pseudo, at, strict=True))


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_papers_log_posterior_and_counts_are_those_over_all_labellings(n_labels):
    rng = np.random.default_rng(n_labels)
    votes = votes_of(random_rows(rng, 5, 3, n_labels), n_labels)
    ballot, posterior = votes.ballots[0], log_posterior_of(votes, Priors(prevalence=3.0))
    at = random_parameters(rng, posterior)
    pi, theta = at.weight_dg[0], at.confusion_akv
    total, items_k, votes_akv = 0.0, np.zeros(n_labels), np.zeros_like(theta)
    for labelling in product(range(n_labels), repeat=ballot.n_items):
        probability, seen_akv = 1.0, np.zeros_like(theta)
        for i, k in enumerate(labelling):
            probability *= pi[k]
            for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
                probability *= theta[code // n_labels, k, code % n_labels]
                seen_akv[code // n_labels, k, code % n_labels] += 1
        total += probability
        items_k += probability * np.bincount(labelling, minlength=n_labels)
        votes_akv += probability * seen_akv
    right = np.log(theta.diagonal(axis1=1, axis2=2)).sum()
    prior = 2.0 * np.log(pi).sum() + 0.8 * right + 0.2 * (np.log(theta).sum() - right)
    counts = posterior.expect(at)
    assert_allclose(posterior.objective(at, counts), np.log(total) + prior, rtol=1e-12)
    assert_allclose(counts.items_dg[0], items_k / total, rtol=1e-10)
    assert_allclose(counts.votes_akv, votes_akv / total, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_objective_and_label_probabilities_are_those_of_all_states(case):
    posterior, at = made(*case)
    counts = posterior.expect(at)
    pseudo = posterior.pseudo_counts(counts)
    assert_allclose(posterior.objective(at, counts), plain_log_posterior(posterior, at, pseudo), rtol=1e-10)
    plain_rz = np.array([joint_z / joint_z.sum() for _, joint_z in states_by_row(posterior, at)])
    p_rk, interior_r, ambiguity_r = score(posterior.patterns, posterior.states, at)
    assert_allclose(p_rk, plain_rz @ posterior.states.mix_zk, atol=1e-12)
    assert_allclose(interior_r, plain_rz[:, case[1] :].sum(axis=1), atol=1e-12)
    assert_allclose(ambiguity_r, plain_rz @ posterior.states.ambiguity_z, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_gradient_equals_finite_differences(case):
    posterior, at = made(*case, n_items=12, n_annotators=3)
    posterior = held(posterior, at)
    pseudo, x_p, step = posterior.pseudo_counts(None), pack(at), 1e-5

    def height(x_p):
        return plain_log_posterior(posterior, unpack(x_p, at), pseudo)

    numeric = [(height(x_p + step * e) - height(x_p - step * e)) / (2 * step) for e in np.eye(len(x_p))]
    assert_allclose(posterior.gradient(at, posterior.expect(at)), numeric, atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_curvature_equals_finite_differences_and_its_blocks_those_of_annotators(case):
    posterior, at = made(*case)
    posterior = held(posterior, at)
    x_p, step, counts = pack(at), 1e-5, posterior.expect(at)

    def slope(x_p):
        there = unpack(x_p, at)
        return posterior.gradient(there, posterior.expect(there))

    numeric_pp = [-(slope(x_p + step * e) - slope(x_p - step * e)) / (2 * step) for e in np.eye(len(x_p))]
    curvature_pp = posterior.information(at, counts)
    assert_allclose(np.tril(curvature_pp), np.tril(numeric_pp), atol=2e-5)


@pytest.mark.parametrize("case", CASES)
def test_blocks_by_annotator_are_those_of_the_curvature(case):
    posterior, at = made(*case)
    counts, n_own, start = posterior.expect(at), at.confusion_akv[0, :, 1:].size, at.weight_dg[:, 1:].size
    lower_pp = np.tril(posterior.information(at, counts))
    whole_pp = lower_pp + np.tril(lower_pp, -1).T
    own_app = posterior.own_information(at, counts)
    for a, own_pp in enumerate(own_app):
        own = slice(start + a * n_own, start + (a + 1) * n_own)
        assert_allclose(own_pp, whole_pp[own, own], atol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_the_mode_is_a_maximum_where_the_gradient_vanishes(case):
    posterior, _ = made(*case, n_items=120, use_gold=False, repeats=False)
    optimum, _, _ = search.find_mode(posterior, all_starts=case[0] == "paper")
    assert optimum.converged and optimum.steepness <= search.TOLERANCE
    pseudo = posterior.pseudo_counts(optimum.counts)
    top = plain_log_posterior(posterior, optimum.at, pseudo)
    rng = np.random.default_rng(0)
    for _ in range(5):
        near = unpack(pack(optimum.at) + 0.05 * rng.standard_normal(posterior.n_parameters), optimum.at)
        assert plain_log_posterior(posterior, near, pseudo) < top


def test_corners_of_the_mixed_model_are_the_papers_model():
    posterior, at = made("mixed", 3, 1)
    weight_g = np.full(posterior.states.n_groups, 1e-290)
    weight_g[:3] = [0.5, 0.3, 0.2]
    mixed_rk, interior_r, _ = score(posterior.patterns, posterior.states, Parameters(weight_g[None], at.confusion_akv))
    paper, _ = made("paper", 3, 1)
    paper_rk, _, _ = score(paper.patterns, paper.states, Parameters(weight_g[None, :3], at.confusion_akv))
    assert_allclose(mixed_rk, paper_rk, atol=1e-12)
    assert_allclose(interior_r, 0.0, atol=1e-12)


def test_rows_by_hand_are_drawn_to_the_common_row():
    posterior, at = made("mixed", 2, 1)
    counts = posterior.expect(at)
    beta_kv = np.array([[1.8, 1.2], [1.2, 1.8]])
    common_kv = counts.votes_akv.sum(axis=0) + 2 * beta_kv
    common_kv /= common_kv.sum(axis=1, keepdims=True)
    own_kv = posterior.pseudo_akv[0]
    assert_allclose(posterior.pseudo_counts(counts).confusion_akv[0], own_kv + posterior.common * common_kv)
    assert_allclose(own_kv, OWN * beta_kv)


def test_domains_are_drawn_to_all_items_by_thirty_items():
    posterior, at = made("mixed", 2, 2)
    counts = posterior.expect(at)
    shared_g = counts.items_dg.sum(axis=0) + np.array([1, 1, 7])
    np.testing.assert_allclose(
        posterior.pseudo_counts(counts).weight_dg, np.tile(30 * shared_g / shared_g.sum(), (3, 1))
    )


@pytest.mark.parametrize("n_labels", [2, 3])
def test_collapsed_items_count_as_often_as_they_occur(n_labels):
    rng = np.random.default_rng(3)
    votes = votes_of(random_rows(rng, 200, 3, n_labels), n_labels)
    posterior = log_posterior_of(votes, model="mixed")
    assert posterior.patterns.n_rows < len(posterior.patterns.row_i)
    whole = replace(posterior, patterns=collapse(votes.ballots[0], whole=True))
    at = random_parameters(rng, posterior)
    for one, other in zip(posterior.expect(at), whole.expect(at), strict=True):
        assert_allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_log_posterior_never_falls_along_em(n_labels):
    posterior, _ = made("paper", n_labels, 1, use_gold=False)
    _, at = next(starts(posterior))
    heights = []
    for _ in range(40):
        optimum = maximise(posterior, at, max_passes=1)
        heights.append(optimum.objective)
        at = search._Point(posterior, at).next
    assert (np.diff(heights) >= -1e-11 * np.abs(heights[0])).all()
