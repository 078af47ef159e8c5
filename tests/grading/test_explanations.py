"""The paper's model as an explanation of votes: with many annotators its rows are pooled as those of the fit."""

from __future__ import annotations

import numpy as np
import pytest
from cluster.here import Here
from moral_entropy.cluster.parts import send_votes

from moral_entropy.consensus.fit import fit_parts
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.parts import local_parts
from moral_entropy.consensus.priors import Priors
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.grading.explanations import one_label_modes


def prevalence_of(simulated, **options):
    fitted = fit_parts(local_parts(simulated.votes), Priors(), FitOptions(draws=20, **options))
    [mode] = one_label_modes(fitted)
    return mode.weight_g[1]


@pytest.mark.parametrize("seed", [1, 2])
def test_error_rates_of_many_annotators_do_not_fit_chance(seed):
    rng = np.random.default_rng(seed)
    found_a, spared_a = rng.uniform(0.5, 0.8, 300), rng.uniform(0.85, 0.95, 300)
    confusion_akv = np.stack([np.stack([spared_a, 1 - spared_a], 1), np.stack([1 - found_a, found_a], 1)], axis=1)
    simulated = simulate_votes(
        n_items=1_000,
        n_annotators=300,
        votes_per_item=4,
        prevalence_k=[0.7, 0.3],
        confusion_akv=confusion_akv,
        seed=seed,
    )
    truth = (simulated.truth_i == 1).mean()
    pooled, alone = (prevalence_of(simulated, pooling=pooling) for pooling in ("auto", "none"))
    assert abs(pooled - truth) < 0.5 * abs(alone - truth)


def test_parts_of_a_cluster_give_the_same_explanation():
    votes = simulate_votes(n_items=400, n_annotators=120, votes_per_item=3, seed=2).votes
    options = FitOptions(draws=20)
    here, there = (
        one_label_modes(fit_parts(parts, Priors(), options))[0]
        for parts in (local_parts(votes), send_votes(votes, Here(), n_parts=3))
    )
    np.testing.assert_allclose(there.weight_g, here.weight_g, atol=1e-8)
    np.testing.assert_allclose(there.confusion_akv, here.confusion_akv, atol=1e-7)


def test_few_annotators_are_pooled_as_by_the_papers_model_itself():
    simulated = simulate_votes(n_items=300, n_annotators=12, votes_per_item=4, seed=3)
    [fitted] = fit_parts(
        local_parts(simulated.votes), Priors(), FitOptions(draws=0, model="paper", pooling="partial")
    ).consensus.fits
    np.testing.assert_allclose(prevalence_of(simulated, pooling="partial"), fitted.prevalence_k[1], atol=1e-6)
