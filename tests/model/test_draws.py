"""Draws against the curvature they come from, and what is summed over them against a direct computation."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr, softmax
from support import published_draws, random_rows, votes_of

from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.model import draws as module
from moral_entropy.model.entropy import decompose_entropy
from moral_entropy.model.fit import fit, log_posterior
from moral_entropy.model.posterior import Parameters, labelled_information
from moral_entropy.model.priors import Priors
from moral_entropy.model.search import pack

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")

MODELS = ["paper", "mixed"]
MANY = 20_000


def some_votes(n_labels, n_items=300, n_annotators=4, seed=1, n_items_in_all=None, **known):
    rng = np.random.default_rng(seed)
    return votes_of(random_rows(rng, n_items, n_annotators, n_labels), n_labels, n_items=n_items_in_all, **known)


def at_its_mode(votes, fitted):
    """The log posterior of a fit, and the counts at its mode."""
    posterior = log_posterior(votes, fitted.ballot, fitted.patterns, Priors(), fitted.options)
    return posterior, posterior.expect(fitted.mode)


def covariance_of(fitted):
    x_sp = np.stack([pack(type(fitted.mode)(w, c)) for w, c in zip(*fitted.drawn, strict=True)])
    return x_sp.mean(axis=0), np.cov(x_sp.T)


def assert_alike(found_pp, expected_pp):
    scale_p = np.sqrt(np.diagonal(expected_pp))
    assert_allclose(found_pp / np.outer(scale_p, scale_p), expected_pp / np.outer(scale_p, scale_p), atol=0.05)


@pytest.mark.parametrize("model", MODELS)
def test_draws_have_the_mode_and_the_inverse_curvature(model):
    votes = some_votes(2, domain_i=np.arange(300) % 2 if model == "mixed" else None)
    [fitted] = fit(votes, draws=MANY, model=model).fits
    posterior, counts = at_its_mode(votes, fitted)
    curvature_pp = posterior.information(fitted.mode, counts)
    n_weights = fitted.mode.weight_dg[:, 1:].size
    weights = np.arange(n_weights)
    # Where items say less than one item's worth about a weight, that much is assumed.
    curvature_pp[weights, weights] = np.maximum(curvature_pp[weights, weights], 1.0)
    # In the default model a tenth of a vote, shared out between all labels, is known of every row at least.
    rows = np.arange(n_weights, len(curvature_pp))
    curvature_pp[rows, rows] += 0.05 * (model == "mixed")
    lower_pp = np.tril(curvature_pp)
    expected_pp = np.linalg.inv(lower_pp + np.tril(lower_pp, -1).T)
    mean_p, found_pp = covariance_of(fitted)
    assert fitted.curvature.method == "dense" and fitted.curvature.positive_definite
    assert_allclose((mean_p - pack(fitted.mode)) / np.sqrt(np.diagonal(expected_pp)), 0.0, atol=0.03)
    assert_alike(found_pp, expected_pp)


@pytest.mark.parametrize("model", MODELS)
def test_beyond_dense_there_is_one_block_per_annotator(model, monkeypatch):
    monkeypatch.setattr(module, "DENSE", 0)
    votes = some_votes(3)
    [fitted] = fit(votes, draws=MANY, model=model).fits
    posterior, counts = at_its_mode(votes, fitted)
    assert fitted.curvature.method == "annotators"
    own_app = posterior.own_information(fitted.mode, counts)
    (_, found_pp), n_weights = covariance_of(fitted), fitted.mode.weight_dg[:, 1:].size
    for a, own_pp in enumerate(own_app):
        own = slice(n_weights + 6 * a, n_weights + 6 * a + 6)
        least_pp = 0.1 * np.kron(np.eye(3), [[2 / 3, -1 / 3], [-1 / 3, 2 / 3]]) * (model == "mixed")
        assert_alike(found_pp[own, own], np.linalg.inv(own_pp + least_pp))


def test_beyond_blocks_there_are_single_rows(monkeypatch):
    monkeypatch.setattr(module, "DENSE", 0)
    monkeypatch.setattr(module, "ANNOTATOR_BLOCK", 0)
    votes = some_votes(3)
    [fitted] = fit(votes, draws=MANY).fits
    posterior, counts = at_its_mode(votes, fitted)
    assert fitted.curvature.method == "rows"
    row_akoo = labelled_information(posterior.completed(counts).confusion_akv, fitted.mode.confusion_akv)
    (_, found_pp), n_weights = covariance_of(fitted), fitted.mode.weight_dg[:, 1:].size
    for at, row_oo in enumerate(row_akoo.reshape(-1, 2, 2)):
        row = slice(n_weights + 2 * at, n_weights + 2 * at + 2)
        assert_alike(found_pp[row, row], np.linalg.inv(row_oo))


def gibbs_draws(fitted, n_sweeps, seed=0):
    """Label probabilities of every item in every third sweep of a Gibbs sampler: states, then labels, then rows."""
    rng, ballot, states = np.random.default_rng(seed), fitted.ballot, fitted.states
    n_items, n_labels = ballot.n_items, ballot.n_labels
    item_v = np.repeat(np.arange(n_items), np.diff(ballot.start_i))
    annotator_v, vote_v = np.divmod(ballot.code_v, n_labels)
    weight_g, confusion_akv, p_sik = fitted.mode.weight_dg[0], fitted.mode.confusion_akv, []
    for sweep in range(n_sweeps):
        log_vz = np.log(states.votes_azv(confusion_akv)[annotator_v, :, vote_v])
        log_iz = np.add.reduceat(log_vz, ballot.start_i[:-1]) + np.log(states.weight_of_states(weight_g))
        p_iz = softmax(log_iz, axis=1)
        if sweep % 3 == 0:
            p_sik.append(p_iz @ states.mix_zk)
        state_i = (p_iz.cumsum(axis=1) > rng.random((n_items, 1))).argmax(axis=1)
        group_g = np.bincount(states.group_z[state_i], minlength=states.n_groups)
        weight_g = rng.dirichlet(1.0 + fitted.pseudo.weight_dg[0] + group_g)
        label_vk = states.mix_zk[state_i][item_v] * confusion_akv[annotator_v, :, vote_v]
        label_vk /= label_vk.sum(axis=1, keepdims=True)
        label_v = (label_vk.cumsum(axis=1) > rng.random((len(label_vk), 1))).argmax(axis=1)
        count_akv = np.zeros_like(confusion_akv)
        np.add.at(count_akv, (annotator_v, label_v, vote_v), 1.0)
        gamma_akv = rng.standard_gamma(1.0 + fitted.pseudo.confusion_akv + count_akv)
        confusion_akv = np.maximum(gamma_akv / gamma_akv.sum(axis=-1, keepdims=True), 1e-300)
    return np.array(p_sik)


@pytest.mark.parametrize("n_labels", [2, 4, 8])
def test_intervals_and_epistemic_parts_are_about_those_of_gibbs_samples(n_labels):
    ratio_sr = []
    for seed in (1, 2, 3):
        votes = simulate_votes(n_items=300, n_annotators=12, votes_per_item=5, n_labels=n_labels, seed=seed).votes
        [fitted] = fit(votes, draws=300).fits
        away_sik = gibbs_draws(fitted, 500)[40:] - fitted.model_ik
        p_sik = fitted.p_ik + (1.0 - fitted.share_weight_i[:, None]) * away_sik
        about = np.arange(votes.n_items), fitted.p_ik.argmax(axis=1) if n_labels > 2 else fitted.ballot.positive
        low_i, high_i = np.quantile(p_sik[:, *about], [0.05, 0.95], axis=0)
        epistemic_i = entr(p_sik.mean(axis=0)).sum(axis=1) - entr(p_sik).sum(axis=2).mean(axis=0)
        widths = (fitted.high_i - fitted.low_i).mean() / (high_i - low_i).mean()
        ratio_sr.append((widths, fitted.epistemic_i.mean() / epistemic_i.mean()))
    widths, parts = np.exp(np.log(ratio_sr).mean(axis=0))
    assert 0.75 < widths < 1.33 and 0.67 < parts < 1.5


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("n_labels", [2, 3])
def test_summaries_and_entropies_equal_a_direct_computation(n_labels, model):
    known = {"domain_i": np.arange(81) % 3 - 1, "gold_i": np.where(np.arange(81) < 4, 1, -1)}
    votes = some_votes(n_labels, 80, 9, n_items_in_all=81, **known)
    [fitted] = fit(votes, draws=101, model=model, use_gold=True).fits
    p_sik = published_draws(fitted)
    states, n_items = fitted.states, fitted.ballot.n_items
    for i in range(4, n_items, 11):
        codes = fitted.ballot.code_v[fitted.ballot.start_i[i] : fitted.ballot.start_i[i + 1]]
        domain = votes.domain_i[i] % 3 if model == "mixed" else 0
        r_z = states.weight_of_states(fitted.drawn.weight_dg[7, domain])
        for code in codes:
            r_z = r_z * (states.mix_zk @ fitted.confusion_sakv[7, code // n_labels, :, code % n_labels])
        plain_k = r_z @ states.mix_zk / r_z.sum()
        assert_allclose(fitted.draws_of(np.array([fitted.patterns.row_i[i]]))[7, 0], plain_k, atol=1e-12)
    mean_ik = p_sik.mean(axis=0)
    if model == "paper":
        assert_allclose(fitted.p_ik, mean_ik, atol=1e-12)
    epistemic_i = entr(mean_ik).sum(axis=1) - entr(p_sik).sum(axis=2).mean(axis=0)
    assert_allclose(fitted.epistemic_i, epistemic_i, atol=1e-10)
    about_i = np.full(n_items, 1) if n_labels == 2 else fitted.label_i.astype(int)
    p_si = np.take_along_axis(p_sik, about_i[None, :, None], axis=2)[..., 0]
    p_i = fitted.p_ik[np.arange(n_items), about_i]
    low_i, high_i = np.where(fitted.share_weight_i < 1, np.quantile(p_si, [0.05, 0.95], axis=0), np.nan)
    assert_allclose(fitted.low_i, np.minimum(low_i, p_i), atol=1e-10)
    assert_allclose(fitted.high_i, np.maximum(high_i, p_i), atol=1e-10)
    assert_allclose(decompose_entropy(fitted).total_i, entr(fitted.p_ik).sum(axis=1), atol=1e-12)


def test_rows_in_blocks_are_summed_as_in_one(monkeypatch):
    votes = some_votes(3, n_items=100)
    [one] = fit(votes, draws=50).fits
    monkeypatch.setattr(module, "BLOCK_ROWS", 7)
    [other] = fit(votes, draws=50).fits
    for name in ("p_ik", "low_i", "high_i", "epistemic_i"):
        assert_array_equal(getattr(one, name), getattr(other, name))


def test_draws_made_in_tiles_are_those_made_at_once(monkeypatch):
    votes = some_votes(3, n_items=100)
    monkeypatch.setattr(module, "DENSE", 0)
    [one] = fit(votes, draws=50).fits
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 100)
    [other] = fit(votes, draws=50).fits
    assert_array_equal(one.confusion_sakv, other.confusion_sakv)


def test_more_votes_narrow_the_interval_and_lower_the_entropy():
    few, many = (fit(some_votes(2, seed=2, n_items=400, n_annotators=a), draws=200).fits[0] for a in (3, 12))
    assert decompose_entropy(many).total_i.mean() < 0.7 * decompose_entropy(few).total_i.mean()
    assert np.nanmean(many.high_i - many.low_i) < np.nanmean(few.high_i - few.low_i)


def test_flat_directions_are_drawn_along_alike_whatever_sign_their_eigenvectors_have(monkeypatch):
    flat = SimpleNamespace(
        information=lambda *_: np.diag([1.0, 1.0, 0.0]), common=0.0, patterns=SimpleNamespace(n_labels=2),
        completed=lambda _: Parameters(np.full((1, 2), 2.0), np.full((1, 2, 2), 2.0)),
    )  # fmt: skip
    even = Parameters(np.full((1, 2), 0.5), np.full((1, 2, 2), 0.5))
    normal_sp = np.random.default_rng(0).standard_normal((5, 3))
    curvature, root = module._dense(flat, even, None)
    assert not curvature.positive_definite
    eigh = module.eigh
    monkeypatch.setattr(module, "eigh", lambda matrix: turned(*eigh(matrix)))
    _, other = module._dense(flat, even, None)
    assert_allclose(other(normal_sp), root(normal_sp), atol=1e-12)
    assert np.isclose(root(normal_sp)[0, 2] / normal_sp[0, 2], module.LEAST_INFORMATION**-0.5)


def turned(value_q, vector_pq):
    """Change the sign of all eigenvectors, and turn the first two if they tie."""
    vector_pq = -vector_pq
    if len(value_q) > 1 and abs(value_q[1] - value_q[0]) < 1e-9:
        vector_pq[:, :2] = vector_pq[:, :2] @ np.array([[0.6, -0.8], [0.8, 0.6]])
    return value_q, vector_pq
