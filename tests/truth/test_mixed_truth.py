"""The mixed model against brute force: every state of every item, finite differences, a dense matrix."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support import random_rows, votes_of

from moral_entropy.consensus import laplace
from moral_entropy.consensus.coordinates import pack, unpack_like
from moral_entropy.consensus.em import maximise
from moral_entropy.model.fit import fit
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.model.patterns import Domains, collapse
from moral_entropy.model.priors import Priors
from moral_entropy.consensus.starts import share_start
from moral_entropy.model.states import States, between_labels

CASES = list(product((2, 3, 4), (1, 3)))


def made(n_labels, n_domains, *, use_gold=False, seed=0, n_items=25, n_annotators=4):
    """A log posterior of the mixed model on random votes, an annotator with repeats among them, and its parameters."""
    rng = np.random.default_rng([n_labels, n_domains, seed])
    rows = np.array(random_rows(rng, n_items, n_annotators, n_labels, share=0.7))
    rows = np.concatenate([rows, rows[:5] * [1, 1, 0] + [0, 0, 1]])
    gold_i = np.where(rng.random(n_items) < 0.2, rng.integers(n_labels, size=n_items), -1)
    ballot = votes_of(rows, n_labels, n_items=n_items, gold_i=gold_i).ballots[0]
    domains = Domains(rng.integers(n_domains, size=n_items).astype(np.int32), n_domains) if n_domains > 1 else None
    patterns = collapse(ballot, use_gold=use_gold, domains=domains)
    states = between_labels(n_labels)
    pseudo_dg = rng.uniform(0.5, 2.0, (n_domains, states.n_groups))
    beta_akv = rng.uniform(0.5, 2.0, (n_annotators, n_labels, n_labels))
    model = LogPosterior(patterns, pseudo_dg, beta_akv, 1, between=states)
    weight_dg = rng.dirichlet(np.full(states.n_groups, 3.0), size=n_domains)
    confusion_akv = rng.dirichlet(np.full(n_labels, 2.0), size=(n_annotators, n_labels))
    return model, Parameters(np.log(weight_dg), np.log(confusion_akv))


def enumerate_items(model, at):
    """Walk over rows: domain, weight, and the joint probability of votes and state, one state after the other."""
    patterns, states = model.patterns, model.states
    for r in range(patterns.n_rows):
        d = int(patterns.domain_r[r]) if patterns.n_domains > 1 else 0
        joint = []
        for z in range(states.n_states):
            group = states.group_z[z]
            value = at.weight_g[d, group] / np.sum(states.group_z == group)
            for code in patterns.code_v[patterns.start_r[r] : patterns.start_r[r + 1]]:
                a, v = divmod(int(code), patterns.n_labels)
                value *= sum(states.mix_zk[z, k] * at.confusion_akv[a, k, v] for k in range(patterns.n_labels))
            joint.append(value if patterns.clamp_r[r] in (-1, z) else 0.0)
        yield d, patterns.weight_r[r], np.array(joint)


def plain_log_posterior(model, at):
    """The log posterior, state by state; spreading an edge's weight over its points is part of the likelihood."""
    total = sum(weight * np.log(joint.sum()) for _, weight, joint in enumerate_items(model, at) if weight)
    return total + (model.pseudo_g * at.log_weight_g).sum() + (model.pseudo_akv * at.log_confusion_akv).sum()


@pytest.mark.parametrize(("n_labels", "n_domains"), CASES)
@pytest.mark.parametrize("use_gold", [False, True])
def test_log_posterior_and_label_probabilities_are_those_of_all_states(n_labels, n_domains, use_gold):
    model, at = made(n_labels, n_domains, use_gold=use_gold)
    assert_allclose(model.expect(at).log_posterior, plain_log_posterior(model, at), rtol=1e-10)
    plain_rz = np.array([joint / joint.sum() for _, _, joint in enumerate_items(model, at)])
    assert_allclose(model.posterior_rz(at), plain_rz, atol=1e-12)
    assert_allclose(model.posterior_rk(at), plain_rz @ model.states.mix_zk, atol=1e-12)
    assert_allclose(model.interior_r(at), plain_rz[:, n_labels:].sum(axis=1), atol=1e-12)


@pytest.mark.parametrize(("n_labels", "n_domains"), CASES)
def test_gradient_equals_finite_differences(n_labels, n_domains):
    model, at = made(n_labels, n_domains, use_gold=True)
    x_p, step = pack(at), 1e-5
    gradient_p = model.expect(at).gradient(at)
    for p in range(len(x_p)):
        away = np.zeros(len(x_p))
        away[p] = step
        up, down = (plain_log_posterior(model, unpack_like(x_p + sign * away, at)) for sign in (1, -1))
        assert_allclose(gradient_p[p], (up - down) / (2 * step), atol=1e-5)


@pytest.mark.parametrize(("n_labels", "n_domains"), [(2, 1), (2, 3), (3, 2)])
def test_curvature_equals_finite_differences_of_the_gradient(n_labels, n_domains):
    model, at = made(n_labels, n_domains, use_gold=True)
    x_p, step = pack(at), 1e-5
    curvature_pp = laplace.information(model, at)
    for p in range(len(x_p)):
        away = np.zeros(len(x_p))
        away[p] = step
        there = [unpack_like(x_p + sign * away, at) for sign in (1, -1)]
        up, down = (model.expect(one).gradient(one) for one in there)
        assert_allclose(curvature_pp[p], -(up - down) / (2 * step), atol=2e-5)


@pytest.mark.parametrize(("n_labels", "n_domains"), [(2, 1), (2, 3), (3, 2)])
def test_products_with_the_curvature_are_those_of_the_matrix(n_labels, n_domains):
    model, at = made(n_labels, n_domains, n_items=60)
    optimum = maximise(model, at)
    assert optimum.converged
    whole_pp = laplace.information(model, optimum.at)
    coupling = laplace._Coupling(model, optimum.at)
    vector_p = np.random.default_rng(1).standard_normal(len(whole_pp))
    assert_allclose(coupling.curvature(vector_p), whole_pp @ vector_p, atol=1e-8)


def test_corners_alone_are_the_papers_model():
    model, at = made(3, 1)
    n_labels = 3
    paper = replace(model, between=None, pseudo_g=model.pseudo_g[0, :n_labels])
    weight_g = np.full(model.states.n_groups, 1e-290)
    weight_g[:n_labels] = [0.5, 0.3, 0.2]
    mixed_at = Parameters(np.log(weight_g)[None], at.log_confusion_akv)
    paper_at = Parameters(np.log([0.5, 0.3, 0.2]), at.log_confusion_akv)
    assert_allclose(model.posterior_rk(mixed_at), paper.posterior_rk(paper_at), atol=1e-12)


def test_perfect_annotators_give_the_smoothed_share():
    """With θ = I and φ ~ Dir(½) on a fine grid the mean of φ is the smoothed share."""
    states = States(2, points=20_001)
    share_z = states.mix_zk[2:, 1]
    density_z = 1.0 / np.sqrt(share_z * (1.0 - share_z))
    for yes, no in ((3, 0), (1, 2), (0, 5), (4, 3)):
        posterior_z = density_z * share_z**yes * (1 - share_z) ** no
        mean = posterior_z @ share_z / posterior_z.sum()
        assert_allclose(mean, (yes + 0.5) / (yes + no + 1), atol=2e-3)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_summaries_of_draws_are_those_of_every_state_and_draw(n_labels):
    rng = np.random.default_rng(n_labels)
    votes = votes_of(random_rows(rng, 40, 12, n_labels, share=0.9), n_labels, n_items=41)
    [one] = fit(votes, model="mixed", draws=60).fits
    mixture, states, ballot = one.mixture, one.mixture.states, one.ballot
    for i in range(0, 41, 5):
        codes = ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]
        p_sk, ambiguity_s, interior_s = [], [], []
        for s in range(60):
            r_z = states.weight_of_states(mixture.weight_sdg[s, 0])
            for code in codes:
                a, v = divmod(int(code), n_labels)
                r_z = r_z * (states.mix_zk @ one.confusion_sakv[s, a, :, v])
            r_z = r_z / r_z.sum()
            p_sk.append(r_z @ states.mix_zk)
            ambiguity_s.append(r_z @ states.ambiguity_z)
            interior_s.append(r_z[n_labels:].sum())
        p_sk = np.array(p_sk)
        summary = one.summary
        assert_allclose(summary.mean_ik[i], p_sk.mean(axis=0), atol=1e-9)
        entropy = -(p_sk * np.log(np.maximum(p_sk, 1e-300))).sum(axis=1).mean()
        assert_allclose(summary.expected_entropy_i[i], entropy, atol=1e-9)
        assert_allclose(summary.ambiguity_i[i], np.mean(ambiguity_s), atol=1e-9)
        assert_allclose(summary.interior_i[i], np.mean(interior_s), atol=1e-9)
        about = 1 if n_labels == 2 else int(p_sk.mean(axis=0).argmax())
        assert_allclose([summary.low_i[i], summary.high_i[i]], np.quantile(p_sk[:, about], [0.05, 0.95]), atol=1e-9)


def test_the_start_is_the_share_of_votes():
    model, _ = made(3, 2)
    start = share_start(model)
    assert start.weight_g.shape == (2, 6)
    assert_allclose(start.weight_g.sum(axis=1), 1.0)
    assert_allclose(start.weight_g[:, 3:], start.weight_g[:, 3:4] * np.ones(3))


def test_default_rows_keep_all_wrong_labels_together_below_three():
    ballot = votes_of([(0, 0, 0)], 8).ballots[0]
    row_kv = Priors().row_kv(ballot, mixed=True)
    assert_allclose(row_kv.sum(axis=1), 1.8 + 3.0)
    assert_allclose(Priors().row_kv(ballot)[0, 1], 1.2)
