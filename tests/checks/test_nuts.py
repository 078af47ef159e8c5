"""Laplace beside NUTS: every figure against plain NumPy on all draws, and findings on data of several kinds."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.special import entr
from support import random_rows, votes_of

from moral_entropy.checks.density import densities_of
from moral_entropy.checks.nuts import COORDINATES, compare, examine_nuts
from moral_entropy.checks.nuts_sampler import sample
from moral_entropy.consensus.draws import draw, mixed_posterior_of_rows, posterior_of_rows
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.options import FitOptions
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.runs.findings import findings_frame
from moral_entropy.votes.read import read_votes

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    pytest.importorskip("nutpie", reason="needs the extra: pip install 'moral-entropy[mcmc]'")


def quiet_fit(votes, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(votes, **options)


def two_domains(votes):
    n = len(votes.items)
    return replace(votes, domains=("even", "odd"), domain_i=(np.arange(n) % 2).astype(np.int32))


@pytest.mark.parametrize(
    ("n_labels", "coordinates", "positive", "model"),
    [
        (2, "jacobian", 1, "paper"),
        (2, "paper", 0, "paper"),
        (3, "jeffreys", 2, "paper"),
        (2, "logit-mode", 0, "mixed"),
        (3, "logit-mode", 1, "mixed"),
    ],
)
def test_agreement_is_what_all_draws_say(n_labels, coordinates, positive, model):
    rows = random_rows(np.random.default_rng(8), 40, 4, n_labels)
    votes = two_domains(votes_of(rows, n_labels, positive=positive, count_i=np.arange(40) % 3 + 1))
    one = quiet_fit(votes, draws=20, model=model, temper=0.7 if model == "paper" else "off").fits[0]
    samples = sample(one, chains=2, tune=60, draws=80)
    found = compare(votes, one, samples, coordinates, draws=100, seed=4, interval=0.8)
    _, gaussian, _ = draw(
        densities_of(one), one.mode, one.ballot, FitOptions(draws=100, seed=4, coordinates=coordinates)
    )
    laplace_sik, nuts_sik = (posterior_at(one, drawn) for drawn in (gaussian, samples.drawn))
    assert [agreement.domain for agreement in found] == ["(all)", "even", "odd"]
    for agreement, inside in zip(found, (slice(None), slice(0, None, 2), slice(1, None, 2)), strict=True):
        weight_i = one.ballot.count_i[inside]
        of_odds = n_labels == 2 and model == "paper"
        plain = plain_agreement(laplace_sik[:, inside], nuts_sik[:, inside], weight_i, n_labels, positive, of_odds)
        assert agreement.n_items == weight_i.sum()
        for name, value in plain.items():
            assert getattr(agreement, name) == pytest.approx(value, rel=1e-9, abs=1e-12), name


def posterior_at(one, drawn):
    """Label probabilities of every item in every draw."""
    if one.mixture is None:
        return posterior_of_rows(one.patterns, drawn.weight_g, drawn.confusion_akv**0.7, one.patterns.row_i)
    mixture = replace(one.mixture, weight_sdg=drawn.weight_g)
    return mixed_posterior_of_rows(one.patterns, mixture, drawn.confusion_akv, one.patterns.row_i)


def plain_agreement(laplace_sik, nuts_sik, weight_i, n_labels, positive, of_odds):
    """The same figures, one item at a time."""
    items = []
    for i, weight in enumerate(weight_i):
        one_sk, other_sk = laplace_sik[:, i], nuts_sik[:, i]
        parts = [(entr(p).sum(1).mean(), entr(p.mean(0)).sum() - entr(p).sum(1).mean()) for p in (one_sk, other_sk)]
        label = positive if n_labels == 2 else one_sk.mean(0).argmax()
        # Of two labels that are all there is, the package takes quantiles of log odds.
        scale = (lambda p: np.log(p / (1 - p))) if of_odds else (lambda p: p)
        low, high = np.quantile(scale(one_sk[:, label]), [0.1, 0.9])
        inside = np.mean((scale(other_sk[:, label]) >= low - 1e-9) & (scale(other_sk[:, label]) <= high + 1e-9))
        items.append((weight, *parts[0], *parts[1], np.abs(one_sk.mean(0) - other_sk.mean(0)).max(), inside))
    weight, aleatoric, epistemic, nuts_aleatoric, nuts_epistemic, apart, inside = np.array(items).T
    copies = np.repeat(np.arange(len(weight)), weight.astype(int))
    cov = np.cov(epistemic[copies], nuts_epistemic[copies])
    ratios = sorted(zip(epistemic / nuts_epistemic, weight * nuts_epistemic, strict=True))
    half = sum(share for _, share in ratios) / 2
    below = np.cumsum([share for _, share in ratios])
    return {
        "aleatoric": np.average(aleatoric, weights=weight),
        "epistemic": np.average(epistemic, weights=weight),
        "nuts_aleatoric": np.average(nuts_aleatoric, weights=weight),
        "nuts_epistemic": np.average(nuts_epistemic, weights=weight),
        "correlation": cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1]),
        "item_ratio": next(ratio for (ratio, _), reached in zip(ratios, below, strict=True) if reached >= half),
        "p_mean": np.average(apart, weights=weight),
        "p_max": apart.max(),
        "coverage": np.average(inside, weights=weight),
    }


def test_with_plenty_of_votes_all_coordinates_agree_with_nuts():
    votes = simulate_votes(n_items=2_000, n_annotators=5, votes_per_item=5, seed=3).votes
    consensus = quiet_fit(votes, draws=100, model="paper")
    findings = examine_nuts(consensus, chains=2, tune=200, draws=400)
    nuts = [finding for finding in findings if finding.side == "nuts"]
    assert {(finding.figure, finding.subject) for finding in nuts} >= {("ess", "items"), ("rhat", "parameters")}
    assert next(finding for finding in nuts if finding.figure == "divergences").value == 0
    for coordinates in COORDINATES:
        ours = {f.figure: f for f in findings if f.side == "nuts" and f.subject == coordinates and not f.domain}
        assert 0.85 < ours["epistemic_ratio"].value < 1.15
        assert 0.97 < ours["aleatoric_ratio"].value < 1.03
        assert 0.86 < ours["coverage"].value < 0.94
        assert ours["p_max_difference"].value < 0.05
        assert ours["epistemic_ratio"].level == ("good" if coordinates == "jeffreys" else "info")
    assert findings_frame(findings).height == len(findings)


def test_between_labels_one_gaussian_is_held_against_nuts():
    votes = simulate_votes(n_items=600, n_annotators=5, votes_per_item=5, seed=3).votes
    findings = examine_nuts(quiet_fit(votes, draws=100), chains=2, tune=150, draws=200)
    assert {finding.subject for finding in findings if finding.figure == "coverage"} == {"logit-mode"}
    ours = {finding.figure: finding for finding in findings if finding.subject == "logit-mode"}
    assert 0.5 < ours["annotators_ratio"].value < 2.0 and 0.8 < ours["ambiguity_and_votes_ratio"].value < 1.2
    assert ours["annotators_ratio"].level in ("good", "doubt") and "annotators part" in ours["annotators_ratio"].text


def test_thin_votes_are_said_to_be_far_from_gaussian():
    votes = simulate_votes(n_items=80, n_annotators=20, votes_per_item=1.3, seed=2).votes
    thin = quiet_fit(votes, draws=100, model="paper", coordinates="paper")
    findings = examine_nuts(thin, chains=2, tune=200, draws=200)
    ours = next(f for f in findings if f.figure == "epistemic_ratio" and f.subject == "paper" and not f.domain)
    assert not 0.8 <= ours.value <= 1.25
    assert ours.level == "doubt"
    assert f"{ours.value:.2f} times" in ours.text


def test_anonymous_votes_and_several_labels():
    frame = pl.DataFrame({"item": [i // 3 for i in range(90)], "label": [str((i * i // 7) % 3) for i in range(90)]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        consensus = fit(read_votes(frame, anonymous=True), draws=50)
    findings = examine_nuts(consensus, chains=2, tune=60, draws=60)
    assert {finding.side for finding in findings} == {"nuts"}
    assert all(np.isfinite(f.value) for f in findings if f.figure in ("ess", "epistemic_ratio", "coverage"))


@pytest.mark.parametrize("draws", [0, 50])
def test_whether_a_fit_is_bounded_is_read_from_its_options(draws):
    votes = simulate_votes(n_items=150, n_annotators=6, votes_per_item=5, seed=2).votes
    constrained = quiet_fit(votes, draws=draws, constrain="better-than-chance").fits[0]
    assert densities_of(constrained).simplex.better_than_chance
    assert not densities_of(quiet_fit(votes, draws=draws).fits[0]).simplex.better_than_chance


def test_a_bounded_fit_is_not_sampled_and_says_so():
    votes = simulate_votes(n_items=100, n_annotators=4, votes_per_item=3, seed=3).votes
    (finding,) = examine_nuts(quiet_fit(votes, draws=50, constrain="better-than-chance"))
    assert finding.level == "info"
    assert "kept at chance" in finding.text


def test_partial_pooling_is_compared_given_the_common_rows():
    votes = simulate_votes(n_items=300, n_annotators=6, votes_per_item=3, seed=3).votes
    findings = examine_nuts(quiet_fit(votes, draws=50, pooling="partial"), chains=2, tune=100, draws=100)
    assert any("given the common rows" in finding.text for finding in findings)
