"""The second implementation of the mixed model, checked before anything is compared with it."""

import mixed_reference as reference
import numpy as np
import pytest
from numpy.testing import assert_allclose
from support import plain_em, random_parameters, random_rows, votes_of

from moral_entropy.consensus.model import Parameters
from moral_entropy.model.priors import Priors

LABELS = [2, 3, 4]


def small(n_labels, n_items=12, n_annotators=4, seed=0, **options):
    rng = np.random.default_rng(seed)
    votes = [
        [(a, int(rng.integers(n_labels))) for a in range(n_annotators) if rng.random() < 0.8] for _ in range(n_items)
    ]
    return reference.MixedModel(votes, n_labels, n_annotators, **options)


def by_domain(n_labels, strength=5.0, **options):
    domain_i = np.arange(12) % 3
    n_groups = n_labels + n_labels * (n_labels - 1) // 2
    common_g = np.random.default_rng(3).dirichlet(np.full(n_groups, 4.0))
    return small(n_labels, domain_i=domain_i, strength=strength, common_g=common_g, **options)


def somewhere(model, seed=1):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(model.n_labels, 2.0), (model.n_annotators, model.n_labels))
    return rows, rng.dirichlet(np.full(model.n_groups, 2.0), model.n_domains)


@pytest.mark.parametrize(("n_labels", "n_states"), [(2, 9), (3, 12), (4, 22), (5, 35), (7, 28)])
def test_the_grid_has_corners_and_points_on_edges(n_labels, n_states):
    mix_zk, group_z = reference.grid(n_labels)
    assert len(mix_zk) == n_states
    assert_allclose(mix_zk.sum(axis=1), 1.0)
    assert (np.count_nonzero(mix_zk, axis=1) == np.where(group_z < n_labels, 1, 2)).all()


@pytest.mark.parametrize("n_labels", [2, 3])
def test_states_summed_out_by_item_are_states_enumerated_together(n_labels):
    model = small(n_labels, n_items=3, gold_i=[-1, 1, -1], points=2)
    at = somewhere(model)
    assert_allclose(reference.log_likelihood(model, *at), reference.enumerated_log_likelihood(model, *at), rtol=1e-12)


@pytest.mark.parametrize("make", [small, by_domain])
@pytest.mark.parametrize("n_labels", LABELS)
def test_em_climbs_to_where_the_gradient_vanishes(make, n_labels):
    model = make(n_labels, points=2)
    at = reference.start_from_shares(model)
    heights = []
    for _ in range(5):
        heights.append(reference.log_posterior(model, *at))
        at = reference.em_step(model, *at)
    assert (np.diff(heights) > 0).all()
    mode = reference.em(model, at, steps=400, tolerance=1e-7)
    assert_allclose(reference.gradient(model, reference.pack(*mode)), 0.0, atol=2e-5)


def test_curvature_agrees_with_differences_of_the_gradient():
    model = small(2, n_items=6, n_annotators=2, points=2)
    x = reference.pack(*somewhere(model))
    step = 1e-4
    rows = []
    for p in range(len(x)):
        up, down = x.copy(), x.copy()
        up[p] += step
        down[p] -= step
        rows.append((reference.gradient(model, up) - reference.gradient(model, down)) / (2 * step))
    assert_allclose(reference.hessian(model, x), rows, atol=1e-4)


def test_log_ratios_go_there_and_back():
    model = by_domain(3)
    at = somewhere(model)
    for there, back in zip(at, reference.unpack(reference.pack(*at), model), strict=True):
        assert_allclose(back, there, rtol=1e-12)


@pytest.mark.parametrize("n_labels", LABELS)
def test_corners_alone_are_the_plain_model(n_labels):
    rng = np.random.default_rng(5)
    rows = random_rows(rng, 30, 4, n_labels)
    votes = votes_of(rows, n_labels)
    # In log ratios a pseudo-count is one more than at the mode over the simplex.
    priors = Priors(prevalence=2.0)
    ballot = votes.ballots[0]
    by_item = [
        [divmod(int(code), n_labels) for code in ballot.code_v[first:last]]
        for first, last in zip(ballot.start_i[:-1], ballot.start_i[1:], strict=True)
    ]
    beta_kv = priors.beta_akv(ballot, votes)[0] - 1
    model = reference.MixedModel(by_item, n_labels, ballot.n_annotators, corners_only=True, beta_kv=beta_kv)
    start = random_parameters(rng, ballot.n_annotators, n_labels)
    at, posterior_ik = plain_em(votes, start, priors, tolerance=1e-10)
    mode = reference.em(model, (start.confusion_akv, start.weight_g[None]), steps=3_000, tolerance=1e-10)
    assert isinstance(at, Parameters)
    assert_allclose(mode[0], at.confusion_akv, atol=1e-6)
    assert_allclose(reference.labels_of_items(model, *mode), posterior_ik, atol=1e-5)


def test_parts_of_entropy_sum_to_the_total_and_none_is_negative():
    model = small(3)
    draws = [somewhere(model, seed) for seed in range(5)]
    total_i, *parts = reference.entropy_parts(model, draws)
    assert_allclose(sum(parts), total_i)
    assert all((part_i >= -1e-12).all() for part_i in parts)


def test_corners_alone_have_no_ambiguity():
    model = small(3, corners_only=True)
    _, ambiguity_i, _, _ = reference.entropy_parts(model, [somewhere(model, seed) for seed in range(3)])
    assert_allclose(ambiguity_i, 0.0)


@pytest.mark.parametrize("counts", [(0, 0), (3, 0), (1, 4), (30, 12), (2, 0, 1), (0, 0, 0), (9, 4, 2)])
def test_truthful_votes_and_half_a_pseudo_vote_are_the_smoothed_share(counts):
    counts_ik = np.array([counts])
    assert_allclose(reference.share_by_integration(counts), reference.smoothed_share(counts_ik)[0], atol=1e-9)


def test_truthful_votes_on_a_fine_grid_approach_the_smoothed_share():
    # Points at the quantiles of Beta(½, ½), all equally likely: the prior of the smoothed share, made of states.
    angle = (np.arange(4_000) + 0.5) / 4_000 * np.pi / 2
    mix_zk = np.column_stack([np.cos(angle) ** 2, np.sin(angle) ** 2])
    for counts in [(3, 0), (1, 4), (30, 12)]:
        likelihood_z = np.prod(mix_zk ** np.array(counts), axis=1)
        found = likelihood_z @ mix_zk / likelihood_z.sum()
        assert_allclose(found, reference.smoothed_share(np.array([counts]))[0], atol=1e-6)


def test_a_strong_common_weight_is_every_domains_own_and_a_weak_one_is_none():
    strong, weak = by_domain(2, strength=1e9), by_domain(2, strength=1e-6)
    at = somewhere(strong)
    assert_allclose(reference.em_step(strong, *at)[1], np.tile(strong.common_g, (3, 1)), atol=1e-7)
    _, items_dg = reference.expected_counts(weak, *at)
    assert_allclose(reference.em_step(weak, *at)[1], items_dg / items_dg.sum(axis=1, keepdims=True), atol=1e-6)


def test_strength_is_low_where_domains_differ_and_high_where_they_do_not():
    model = small(2)
    kappas = np.geomspace(0.2, 1e4, 200)
    best = []
    for shares in ([0.1, 0.5, 0.9], [0.5, 0.5, 0.5]):
        items_dg = np.array([[500 * (1 - share), 500 * share, 3.0] for share in shares])
        common_g = reference.common_weights(model, items_dg)
        heights = [reference.log_strength_density(kappa, common_g, items_dg) for kappa in kappas]
        best.append(kappas[int(np.argmax(heights))])
    assert best[0] < 10 < 50 < best[1]


def test_an_item_without_votes_tells_nothing_and_gets_the_weights():
    model = small(2, n_items=4)
    model.votes[0] = []
    at = somewhere(model)
    assert_allclose(reference.states_of_items(model, *at)[0], reference.state_weights(model, at[1])[0])
    _, items_dg = reference.expected_counts(model, *at)
    assert_allclose(items_dg.sum(), 3.0)
