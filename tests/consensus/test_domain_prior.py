"""What domains have in common: mixed rounds end where plain ones lead, and no step leaves the simplex."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from moral_entropy.consensus import mixed
from moral_entropy.consensus.domain_prior import LEAST_LEFT, DomainPrior, learn_domain_prior
from moral_entropy.consensus.em import maximise
from moral_entropy.model.fit import fit
from moral_entropy.consensus.mixed import find_mixed_mode
from moral_entropy.consensus.starts import share_start
from moral_entropy.votes.read import read_votes


def votes_by_domain(n_labels, n_domains, n_annotators, n_items, votes_per_item, *, right=0.8, between=0.3, seed=0):
    """Votes on items of several domains, some items between two labels."""
    rng = np.random.default_rng(seed)
    prevalence_dk = rng.dirichlet(np.full(n_labels, 3.0), n_domains)
    rows = []
    for i in range(n_items):
        d = rng.integers(n_domains)
        one, other = rng.choice(n_labels, p=prevalence_dk[d]), rng.integers(n_labels)
        share = rng.random() if rng.random() < between else 1.0
        for a in rng.choice(n_annotators, votes_per_item, replace=False):
            meant = one if rng.random() < share else other
            rows.append((i, f"a{a}", f"l{meant if rng.random() < right else rng.integers(n_labels)}", f"d{d}"))
    return read_votes(pl.DataFrame(rows, schema=["item", "annotator", "label", "domain"], orient="row"))


def plain_rounds(density, at, n_rounds=400):
    """Learn weights and what they have in common in turn, unmixed, until neither moves: prior and rounds."""
    pseudo_g, n_domains = density.pseudo_g[0], len(density.pseudo_g)
    density, prior = replace(density, pseudo_g=density.pseudo_g / n_domains), None
    for n in range(n_rounds):
        optimum = maximise(density, at)
        at = optimum.at
        found = learn_domain_prior(optimum.expected.items_g - density.pseudo_g, pseudo_g, density.states.label_gk)
        if prior is not None and np.abs(found.coordinates_x - prior.coordinates_x).max() < 0.01:
            return prior, n
        density, prior = replace(density, pseudo_g=found.pseudo_dg(n_domains)), found
    raise AssertionError("plain rounds did not end")


SETS = {
    "slow": {"n_labels": 2, "n_domains": 20, "n_annotators": 10, "n_items": 1_000, "votes_per_item": 2},
    "three labels": {"n_labels": 3, "n_domains": 3, "n_annotators": 12, "n_items": 400, "votes_per_item": 3},
    "one vote per item": {"n_labels": 3, "n_domains": 2, "n_annotators": 4, "n_items": 1_000, "votes_per_item": 1},
}


@pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")
@pytest.mark.parametrize("name", SETS)
def test_mixed_rounds_end_where_plain_ones_lead(name, monkeypatch):
    fitted, searches = [], []

    def spied_mode(density, **options):
        fitted.append((density, find_mixed_mode(density, **options)))
        return fitted[0][1]

    def spied_search(*given, **options):
        searches.append(1)
        return maximise(*given, **options)

    monkeypatch.setattr("moral_entropy.model.fit.find_mixed_mode", spied_mode)
    monkeypatch.setattr(mixed, "maximise", spied_search)
    fit(votes_by_domain(**SETS[name]), draws=0)
    (density, (densities, optimum)) = fitted[0]
    prior, n_rounds = plain_rounds(density, share_start(density))
    assert optimum.converged and n_rounds > len(searches)
    assert_allclose(densities.domain_prior.common_g, prior.common_g, atol=1e-4)
    assert_allclose(densities.domain_prior.strength, prior.strength, rtol=0.01)


weights = st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=6)


@given(weights, st.lists(st.floats(-1e7, 1e7), min_size=7, max_size=7), st.floats(0.5, 1e5))
def test_no_step_takes_a_weight_away(weight_g, step_x, strength):
    common_g = np.array(weight_g) / sum(weight_g)
    prior = DomainPrior(common_g, strength)
    step_x = np.array(step_x)[: len(common_g) + 1]
    # Weights keep their sum, as those of a mixture of steps do.
    step_x[:-1] -= step_x[:-1].mean()
    there = prior.towards(prior.coordinates_x + step_x)
    assert_allclose(there.common_g.sum(), 1.0)
    assert np.all(there.common_g >= LEAST_LEFT * common_g * (1 - 1e-6))
    assert abs(np.log(there.strength / strength)) < 1.0 + 1e-9


def test_a_short_step_is_taken_whole():
    prior, near = DomainPrior(np.array([0.6, 0.4]), 20.0), DomainPrior(np.array([0.55, 0.45]), 30.0)
    there = prior.towards(near.coordinates_x)
    assert_allclose(there.common_g, near.common_g)
    assert_allclose(there.strength, 30.0)
