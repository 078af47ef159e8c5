"""Effective sample size and R-hat, against ArviZ."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from moral_entropy.validate.mixing import measure_mixing


def arviz():
    """ArviZ, whose import announces its next version; skips where it is absent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return pytest.importorskip("arviz", reason="needs the extra: pip install 'moral-entropy[mcmc]'")


def chains(phi, n_draws, *, n_chains=4, n_quantities=12, seed=0):
    """Autoregressive chains; some quantities tie, drift, or differ between chains."""
    noise_qcs = np.random.default_rng(seed).standard_normal((n_quantities, n_chains, n_draws))
    value_qcs = noise_qcs.copy()
    for s in range(1, n_draws):
        value_qcs[..., s] = phi * value_qcs[..., s - 1] + noise_qcs[..., s]
    value_qcs[1] = np.round(value_qcs[1])
    value_qcs[2, 0] += 1.0
    value_qcs[3, 1] *= 3.0
    value_qcs[4] += np.linspace(0, 2, n_draws)
    return value_qcs


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.6, 0.97])
@pytest.mark.parametrize("n_draws", [101, 400])
def test_figures_are_arvizs(phi, n_draws):
    az = arviz()
    value_qcs = chains(phi, n_draws)
    mixing = measure_mixing(value_qcs, threads=2)
    np.testing.assert_allclose(mixing.ess_q, [az.ess(one_cs) for one_cs in value_qcs], rtol=1e-9)
    np.testing.assert_allclose(mixing.rhat_q, [az.rhat(one_cs) for one_cs in value_qcs], rtol=1e-9)


def test_threads_and_company_change_nothing():
    value_qcs = chains(0.5, 200)
    whole = measure_mixing(value_qcs, threads=2)
    for q in range(len(value_qcs)):
        alone = measure_mixing(value_qcs[q : q + 1], threads=1)
        assert alone.ess_q[0] == whole.ess_q[q]
        assert alone.rhat_q[0] == whole.rhat_q[q]


def test_what_never_moves_has_no_figure():
    mixing = measure_mixing(np.stack([np.ones((4, 50)), chains(0.0, 50)[2]]))
    assert np.isnan([mixing.ess_q[0], mixing.rhat_q[0]]).all()
    assert mixing.least_ess == mixing.ess_q[1]
    assert mixing.most_rhat == mixing.rhat_q[1]


def test_ranks_only_count():
    value_qcs = chains(0.5, 200)[:1]
    plain, bent = measure_mixing(value_qcs), measure_mixing(np.exp(value_qcs))
    assert plain.ess_q == bent.ess_q
