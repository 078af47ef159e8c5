"""The density against loops, differences and the mode of the fit; Pareto-k against ArviZ, and on planted data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support import plain_states, random_rows, votes_of

from moral_entropy import fit, simulate_votes
from moral_entropy.checks import posterior as module
from moral_entropy.checks.nuts import import_nutpie
from moral_entropy.checks.posterior import check_laplace, density, pareto_k, posterior_of
from moral_entropy.errors import MissingExtraError
from moral_entropy.model.search import pack, unpack

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")


def with_everything(n_labels, **options):
    """A fit with two domains, some known labels taken as evidence, and identical items."""
    rng = np.random.default_rng(n_labels)
    gold_i = np.where(np.arange(60) < n_labels, np.arange(60), -1)
    rows = random_rows(rng, 60, 5, n_labels)
    votes = votes_of([*rows, *((60 + i, a, k) for i, a, k in rows)], n_labels, gold_i=np.tile(gold_i, 2))
    votes = replace(votes, domains=("a", "b"), domain_i=np.tile(np.arange(60, dtype=np.int32) % 2, 2))
    return fit(votes, **{"draws": 30, "use_gold": True, **options}).fits[0]


CASES = pytest.mark.parametrize(
    ("n_labels", "options"),
    [
        (2, {}),
        (3, {}),
        (2, {"model": "paper"}),
        (3, {"model": "paper", "use_gold": False}),
    ],
)


def plain_density(one, weight_dg, confusion_akv):
    """Likelihood item by item and state by state, and the Dirichlet densities in log ratios."""
    ballot, n_labels = one.ballot, one.ballot.n_labels
    mix_zk, group_z = plain_states(n_labels) if one.options.mixed else (np.eye(n_labels), np.arange(n_labels))
    total = (one.pseudo.weight_dg * np.log(weight_dg)).sum()
    total += (one.pseudo.confusion_akv * np.log(confusion_akv)).sum()
    for i in range(ballot.n_items):
        domain = one.patterns.domain_r[one.patterns.row_i[i]] if len(weight_dg) > 1 else 0
        known = one.patterns.clamp_r[one.patterns.row_i[i]]
        chance = 0.0
        for z, group in enumerate(group_z):
            if known in (-1, z):
                joint = weight_dg[domain, group] / np.sum(group_z == group)
                for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
                    joint *= mix_zk[z] @ confusion_akv[code // n_labels, :, code % n_labels]
                chance += joint
        total += np.log(chance)
    return total


@CASES
def test_the_density_is_that_of_loops_and_its_gradient_that_of_differences(n_labels, options):
    one = with_everything(n_labels, **options)
    posterior = posterior_of(one)
    rng = np.random.default_rng(0)
    mode_p = pack(one.mode)
    assert len(mode_p) == posterior.n_parameters
    places = mode_p + 0.3 * rng.standard_normal((2, len(mode_p)))
    heights = [density(posterior, x_p)[0] for x_p in places]
    weights, rows = unpack(places, one.mode)
    plain = [plain_density(one, *at) for at in zip(weights, rows, strict=True)]
    # Up to one constant.
    assert heights[1] - heights[0] == pytest.approx(plain[1] - plain[0], rel=1e-9)
    for x_p in places:
        step_pp = 1e-5 * np.eye(len(x_p))
        slope_p = [(density(posterior, x_p + h)[0] - density(posterior, x_p - h)[0]) / 2e-5 for h in step_pp]
        np.testing.assert_allclose(density(posterior, x_p)[1], slope_p, atol=1e-6)


@CASES
def test_the_mode_of_the_fit_is_its_mode_too(n_labels, options):
    one = with_everything(n_labels, draws=0, **options)
    posterior = posterior_of(one)
    _, gradient_p = density(posterior, pack(one.mode))
    assert np.abs(gradient_p).max() < 1e-3


@pytest.mark.parametrize("spread", [0.05, 1.5, 30.0])
def test_pareto_k_is_arvizs(spread):
    try:
        *_, arviz = import_nutpie()
    except MissingExtraError as missing:
        pytest.skip(str(missing))
    for n in (60, 400):
        log_ratio_s = np.random.default_rng(n).normal(12.0, spread, n)
        assert pareto_k(log_ratio_s) == pytest.approx(float(arviz.psislw(log_ratio_s.copy())[1]), rel=1e-9)
    assert pareto_k(np.zeros(100)) == -np.inf


@pytest.mark.parametrize(("model", "most"), [("mixed", module.HOPELESS), ("paper", module.USABLE)])
def test_plenty_of_votes_do_not_alarm(model, most):
    votes = simulate_votes(n_items=3_000, n_annotators=6, votes_per_item=5, seed=1).votes
    (finding,) = check_laplace(fit(votes, model=model))
    assert (finding.check, finding.metric, finding.n) == ("laplace", "pareto_k", 400)
    assert not finding.is_warning and finding.value < most
    assert finding.level == ("good" if finding.value <= 0.7 else "info")


def test_draws_that_are_too_narrow_alarm():
    votes = simulate_votes(n_items=400, n_annotators=40, votes_per_item=4, seed=1).votes
    consensus = fit(votes, model="paper", draws=200)
    [one] = consensus.fits
    # Half the spread in log ratios: the same Gaussian density, at places that the posterior finds far likelier.
    narrow_s = one.confusion_sakv**0.5
    narrow_s /= narrow_s.sum(axis=-1, keepdims=True)
    narrow = replace(one, drawn=one.drawn._replace(confusion_akv=narrow_s))
    (finding,) = check_laplace(replace(consensus, fits=(narrow,)))
    assert finding.level == "doubt" and "81 parameters" in finding.text


def test_what_cannot_be_checked_is_said(monkeypatch):
    votes = simulate_votes(n_items=200, n_annotators=5, votes_per_item=4, seed=1).votes
    (none,), (few,) = (check_laplace(fit(votes, draws=draws)) for draws in (0, 99))
    monkeypatch.setattr(module, "MOST_WORK", 1)
    (large,) = check_laplace(fit(votes, draws=150))
    for finding, why in ((none, "few draws"), (few, "few draws"), (large, "many votes")):
        assert finding.level == "info" and np.isnan(finding.value) and why in finding.text
