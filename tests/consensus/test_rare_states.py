"""Draws of rare weights against the gamma variables they stand for, and against one-dimensional integration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import gamma, norm

from moral_entropy.consensus.rare_states import log_gamma_quantiles, skew_rare_weights


@pytest.mark.parametrize("shape", [0.3, 2.0, 40.0])
def test_quantiles_are_those_of_the_gamma_distribution(shape):
    normal_s = np.linspace(-2.5, 3.0, 23)
    expected = np.log(gamma.ppf(norm.cdf(normal_s), shape, scale=1.0 / shape))
    assert_allclose(log_gamma_quantiles(normal_s, shape), expected, rtol=1e-6, atol=1e-9)


def test_tiny_shapes_do_not_underflow():
    found = log_gamma_quantiles(np.array([-3.0, 0.0, 3.0]), 1e-3)
    assert np.isfinite(found).all()
    assert (np.diff(found) >= 0).all()


def test_a_weight_of_few_items_keeps_its_mean():
    """A Gaussian in logs with the curvature of half an item would raise the mean of the weight many times."""
    rng = np.random.default_rng(0)
    mode_dg = np.log([[0.6, 0.399, 0.001]])
    step_sdg = np.zeros((20_000, 1, 3))
    step_sdg[:, 0, 2] = rng.standard_normal(20_000) / np.sqrt(0.5)
    gaussian = mode_dg + step_sdg
    gaussian_mean = (np.exp(gaussian) / np.exp(gaussian).sum(axis=2, keepdims=True))[:, 0, 2].mean()
    log_sdg, _ = skew_rare_weights(gaussian - np.log(np.exp(gaussian).sum(axis=2, keepdims=True)), mode_dg)
    assert gaussian_mean > 0.0025
    assert_allclose(np.exp(log_sdg[:, 0, 2]).mean(), 0.001, rtol=0.05)
    assert_allclose(np.exp(log_sdg).sum(axis=2), 1.0)


def test_weights_of_many_items_stay():
    rng = np.random.default_rng(1)
    mode_dg = np.log([[0.7, 0.3]])
    log_sdg = np.log(rng.dirichlet([7_000, 3_000], size=(50, 1)))
    moved_sdg, added_s = skew_rare_weights(log_sdg, mode_dg)
    assert_allclose(moved_sdg, log_sdg, atol=1e-12)
    assert not added_s.any()


def test_density_is_that_of_the_gamma_variable():
    """Importance weights to the gamma density, computed from the reported change, are all equal."""
    rng = np.random.default_rng(2)
    items = 3.0
    step_s = rng.standard_normal(4_000) / np.sqrt(items)
    mode_dg = np.log([[0.9, 0.1]])
    raw_sdg = mode_dg + np.stack([np.zeros(4_000), step_s], axis=1)[:, None]
    log_sdg, added_s = skew_rare_weights(raw_sdg, mode_dg)
    spread = np.sqrt((step_s**2).mean())
    gaussian_s = -0.5 * (step_s / spread) ** 2
    moved_s = log_sdg[:, 0, 1] - log_sdg[:, 0, 0] - (mode_dg[0, 1] - mode_dg[0, 0])
    shape = spread**-2
    exact_s = gamma.logpdf(np.exp(moved_s), shape, scale=1 / shape) + moved_s
    assert np.ptp(gaussian_s + added_s - exact_s) < 1e-6


def test_rounding_does_not_choose_the_state_that_the_others_are_measured_from():
    rng = np.random.default_rng(4)
    mode_dg = np.log(np.array([[0.3, 0.3, 0.3, 0.1]]))
    log_sdg = mode_dg + rng.normal(size=(200, 1, 4))
    one, other = (skew_rare_weights(log_sdg, mode_dg + 1e-15 * np.eye(4)[g]) for g in (0, 2))
    np.testing.assert_allclose(one[0], other[0], atol=1e-12)
    np.testing.assert_allclose(one[1], other[1], atol=1e-12)
