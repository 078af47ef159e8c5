"""Copied votes are found and named; independent ones are left alone; every residual against loops."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from made_votes import copied
from scipy.stats import kstest
from support import plain_mixed_em, plain_states, random_rows, votes_of

from moral_entropy.checks import residuals as module
from moral_entropy.checks.density import log_posterior_of
from moral_entropy.checks.dependence import examine_dependence
from moral_entropy.checks.pairs import dependent_pairs, pool_pairs, weigh_pairs
from moral_entropy.checks.residuals import pair_votes, residuals_of
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.fit_findings import fit_findings
from moral_entropy.consensus.patterns import collapse
from moral_entropy.consensus.priors import Priors
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import MoralEntropyWarning


def fitted(votes, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(votes, **{"draws": 0, "dependence": "off", **options})


def residuals_in(votes, **options):
    [one] = fitted(votes, **options).fits
    return residuals_of(log_posterior_of(one), one.at)


MODELS = pytest.mark.parametrize("model", ["mixed", "paper"])


def plain_parameters(votes, one):
    """How annotators vote by state, what states weigh, and their probabilities for each item, from the definitions."""
    if one.options.model == "paper":
        return one.confusion_akv, one.prevalence_k, one.posterior_ik
    mix_zk, group_z = plain_states(one.ballot.n_labels)
    _, state_iz = plain_mixed_em(votes, one.at, steps=1)
    weight_g = one.mixture.weight_dg[0] / np.bincount(group_z)
    return np.einsum("zk,akv->azv", mix_zk, one.confusion_akv), weight_g[group_z], state_iz


def plain_residual(theta, state_iz, i, a, b, said):
    """The residual of one pair on one item, with loops."""
    total = 0.0
    for z in range(theta.shape[1]):
        for v in range(theta.shape[2]):
            error_a = float(said[i, a] == v) - theta[a, z, v]
            error_b = float(said[i, b] == v) - theta[b, z, v]
            total += state_iz[i, z] * error_a * error_b
    return total


@MODELS
@pytest.mark.parametrize("n_labels", [2, 3])
def test_residuals_agree_with_loops(n_labels, model):
    rows = random_rows(np.random.default_rng(3), 90, 5, n_labels)
    votes = votes_of(rows, n_labels)
    [one] = fitted(votes, model=model).fits
    theta, _, state_iz = plain_parameters(votes, one)
    said = {(i, a): k for i, a, k in rows}
    pairs = weigh_pairs(residuals_in(votes, model=model), least_items=1)
    assert len(pairs.one_p) == 10
    for p, (a, b) in enumerate(zip(pairs.one_p.tolist(), pairs.other_p.tolist(), strict=True)):
        shared = [i for i in range(90) if (i, a) in said and (i, b) in said]
        excess = np.mean([plain_residual(theta, state_iz, i, a, b, said) for i in shared])
        assert (pairs.items_p[p], pairs.excess_p[p]) == (len(shared), pytest.approx(excess, abs=1e-9))
        assert pairs.agreement_p[p] == pytest.approx(np.mean([said[i, a] == said[i, b] for i in shared]))


@MODELS
@pytest.mark.parametrize("n_labels", [2, 3])
def test_moments_are_those_of_votes_drawn_again(n_labels, model):
    """Against a sum over all votes the two could have given, each with a posterior of its own."""
    rows = random_rows(np.random.default_rng(5), 12, 4, n_labels, share=1.0)
    votes = votes_of(rows, n_labels)
    residuals = residuals_in(votes, model=model)
    theta, pi, _ = plain_parameters(votes, fitted(votes, model=model).fits[0])
    states = range(len(pi))
    said = {(i, a): k for i, a, k in rows}
    second_e, third_e = residuals.moments(np.arange(len(residuals.votes.row_e)))
    row_i = collapse(votes.ballots[0]).row_i
    for e in range(len(second_e)):
        i = int(np.flatnonzero(row_i == residuals.votes.row_e[e])[0])
        a, b = residuals.votes.one_e[e] // n_labels, residuals.votes.other_e[e] // n_labels
        joint, value = [], []
        for u in range(n_labels):
            for v in range(n_labels):
                now = {**{c: said[i, c] for c in range(4)}, int(a): u, int(b): v}
                joint_z = np.array([pi[z] * np.prod([theta[c, z, now[c]] for c in range(4)]) for z in states])
                product_z = [
                    sum(((u == w) - theta[a, z, w]) * ((v == w) - theta[b, z, w]) for w in range(n_labels))
                    for z in states
                ]
                joint.append(joint_z.sum())
                value.append(joint_z @ product_z / joint_z.sum())
        chance, value = np.array(joint) / sum(joint), np.array(value)
        assert chance @ value == pytest.approx(0.0, abs=1e-12)
        assert second_e[e] == pytest.approx(chance @ value**2) and third_e[e] == pytest.approx(chance @ value**3)


@pytest.mark.parametrize(("model", "n_domains"), [("paper", 1), ("mixed", 1), ("mixed", 2)])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_scores_are_the_gradient(n_labels, model, n_domains):
    votes = votes_of(random_rows(np.random.default_rng(2), 40, 4, n_labels), n_labels)
    votes = replace(votes, domains=("a", "b")[:n_domains], domain_i=np.arange(40, dtype=np.int32) % n_domains)
    residuals = residuals_in(votes, model=model)
    patterns, at = residuals.votes.patterns, residuals.at
    # Items without a domain are one more.
    assert at.log_weight_g.size == {"paper": n_labels, "mixed": (2 * n_domains - 1) * residuals.states.n_groups}[model]
    flat = replace(
        residuals.log_posterior, pseudo_g=0 * at.log_weight_g, pseudo_akv=np.zeros_like(at.log_confusion_akv)
    )
    found_p = residuals.scores.T @ patterns.weight_r
    np.testing.assert_allclose(found_p, flat.expect(at).gradient(at), atol=1e-8)


@MODELS
def test_independent_votes_have_uniform_chances(model):
    chances, squares, named = [], [], 0
    for seed in range(20):
        votes = simulate_votes(n_items=500, n_annotators=10, votes_per_item=5, seed=seed).votes
        pairs = weigh_pairs(residuals_in(votes, model=model), least_items=20)
        chances.append(pairs.chance_p)
        squares.append(pairs.dispersion)
        named += len(dependent_pairs(pairs))
    # One corpus in a hundred is expected to have a false one.
    assert named <= 1
    assert np.mean(squares) == pytest.approx(1.0, abs=0.15)
    chance_p = np.concatenate(chances)
    assert kstest(chance_p, "uniform").pvalue > 0.001 and (chance_p < 0.01).mean() < 0.03


@pytest.mark.parametrize(("n_annotators", "n_labels"), [(6, 2), (8, 2), (8, 3), (14, 2)])
def test_copied_votes_are_found_and_named(n_annotators, n_labels):
    sizes = {"n_items": 800, "n_annotators": n_annotators, "votes_per_item": 5, "n_labels": n_labels}
    votes = simulate_votes(**sizes, seed=4).votes
    clean = examine_dependence(fitted(votes), replicates=0)
    assert not [f for f in clean if f.alarms]
    found = near_copies(fitted(copied(votes, 2, 5), dependence="merge"))
    assert [set(f.subject.split(", ")) for f in found] == [{"2", "5"}]
    assert found[0].level == "doubt" and "counted as one" in found[0].text
    assert not near_copies(fitted(votes, dependence="merge"))


def near_copies(consensus):
    return [f for f in fit_findings(consensus) if f.figure == "near_copies"]


def test_copiers_with_errors_of_their_own_are_a_pair_to_look_into():
    """Among fourteen annotators the two who always agree cannot persuade the fit."""
    votes = copied(simulate_votes(n_items=800, n_annotators=14, votes_per_item=5, seed=4).votes, 2, 5)
    found = [f for f in examine_dependence(fitted(votes), replicates=0) if f.figure == "pair_excess"]
    assert found[0].subject == "2 · 5" and found[0].level == "bad" and "Count them as one" in found[0].cure
    assert found[0].low < found[0].value < found[0].high and found[0].value > 0.1


def test_copiers_who_look_perfect_are_seen_through():
    """With six annotators the fit believes the two who always agree, and the others seem to err together."""
    votes = copied(simulate_votes(n_items=800, n_annotators=6, votes_per_item=5, seed=4).votes, 2, 5)
    consensus = fitted(votes, model="paper", dependence="report")
    assert consensus.fits[0].confusion_akv[[2, 5]].diagonal(axis1=1, axis2=2).min() > 0.97
    pairs = weigh_pairs(residuals_in(votes, model="paper"), least_items=20)
    believed = {(pairs.one_p[p], pairs.other_p[p]) for p in dependent_pairs(pairs)}
    assert believed and (2, 5) not in believed
    [named] = near_copies(consensus)
    assert set(named.subject.split(", ")) == {"2", "5"} and named.level == "doubt"
    found = {f.figure: f for f in examine_dependence(consensus, replicates=0)}
    assert "--merge A+B" in found["dependent_pairs"].cure
    found = {f.figure: f for f in examine_dependence(fitted(votes, model="paper"), replicates=0)}
    assert "--dependence merge" in found["dependent_pairs"].cure


def test_some_copying_is_measured():
    votes = simulate_votes(n_items=2_000, n_annotators=12, votes_per_item=5, seed=9).votes
    half = [
        f for f in examine_dependence(fitted(copied(votes, 0, 3, share=0.5)), replicates=0) if f.figure == "pair_excess"
    ]
    whole = [f for f in examine_dependence(fitted(copied(votes, 0, 3)), replicates=0) if f.figure == "pair_excess"]
    assert half[0].subject == whole[0].subject == "0 · 3"
    assert 0.3 * whole[0].value < half[0].value < 0.7 * whole[0].value


def test_hard_items_that_all_get_wrong_raise_the_overall_figure():
    rng = np.random.default_rng(1)
    truth, hard = rng.integers(2, size=600), rng.random(600) < 0.4
    rows = []
    for i in range(600):
        for a in rng.choice(8, size=5, replace=False):
            right = rng.random() < (0.5 if hard[i] else 0.97)
            rows.append((i, int(a), int(truth[i] if right else 1 - truth[i])))
    clean = simulate_votes(n_items=600, n_annotators=8, votes_per_item=5, seed=3).votes
    excess = {}
    for model in ("paper", "mixed"):
        found = {f.figure: f for f in examine_dependence(fitted(votes_of(rows), model=model), replicates=0)}
        calm = {f.figure: f for f in examine_dependence(fitted(clean, model=model), replicates=0)}
        assert calm["excess_agreement"].level == calm["typical_excess"].level == "info"
        excess[model] = abs(found["excess_agreement"].value)
        if model == "paper":
            assert excess[model] > 2 * abs(calm["excess_agreement"].value)
    # To the mixed model such an item lies between the labels, where votes are independent again.
    assert excess["mixed"] < 0.5 * excess["paper"]


def test_what_votes_are_worth_is_told_in_the_words_of_the_audit():
    votes = copied(simulate_votes(n_items=800, n_annotators=6, votes_per_item=5, seed=4).votes, 2, 5)
    consensus = fitted(votes, dependence="merge")
    [told] = [f.text for f in fit_findings(consensus) if f.figure == "effective_votes"]
    found = {f.figure: f for f in examine_dependence(consensus, replicates=0)}
    # On two items of three one vote of the five is a copy, which leaves 4⅓: more, as correlations are shrunk.
    assert told.startswith("5.0 votes per item are worth 4.4 independent ones")
    assert told.split(" (")[0] in found["excess_agreement"].meaning
    unseen = {f.figure: f for f in examine_dependence(fitted(votes), replicates=0)}
    assert "worth" not in unseen["excess_agreement"].meaning


def test_two_of_three_who_copy_cannot_be_told():
    """With three annotators two labels' model has as many parameters as the votes have patterns."""
    votes = copied(simulate_votes(n_items=400, n_annotators=3, votes_per_item=3, seed=2).votes, 0, 2)
    assert not [f for f in examine_dependence(fitted(votes), replicates=0) if f.alarms]


def test_too_many_parameters_make_tests_cautious(monkeypatch):
    votes = copied(simulate_votes(n_items=800, n_annotators=14, votes_per_item=5, seed=4).votes, 2, 6)
    exact = weigh_pairs(residuals_in(votes), least_items=20)
    monkeypatch.setattr(module, "MOST_PARAMETERS", 3)
    cautious = weigh_pairs(residuals_in(votes), least_items=20)
    assert (cautious.error_p >= exact.error_p).all()
    np.testing.assert_allclose(cautious.excess_p, exact.excess_p)
    assert dependent_pairs(cautious)[0] == dependent_pairs(exact)[0]


def test_many_votes_are_sampled(monkeypatch):
    votes = copied(simulate_votes(n_items=4_000, n_annotators=14, votes_per_item=5, seed=4).votes, 2, 5)
    monkeypatch.setattr(module, "MOST_PAIRS_OF_VOTES", 40_000)
    residuals = residuals_in(votes)
    pairs = weigh_pairs(residuals, least_items=20)
    assert residuals.votes.patterns.n_rows < collapse(votes.ballots[0]).n_rows
    [first] = [(pairs.one_p[p], pairs.other_p[p]) for p in dependent_pairs(pairs)[:1]]
    assert first == (2, 5)


def test_pairs_of_votes_are_every_two_once():
    patterns = collapse(votes_of([(0, 0, 1), (0, 1, 0), (0, 2, 1), (1, 1, 1), (2, 0, 0), (2, 2, 0)]).ballots[0])
    votes = pair_votes(patterns)
    found = sorted(zip((votes.one_e // 2).tolist(), (votes.other_e // 2).tolist(), strict=True))
    assert found == [(0, 1), (0, 2), (0, 2), (1, 2)]


def test_one_vote_an_item_cannot_be_compared():
    votes = votes_of([(i, i % 3, int(i % 2)) for i in range(60)])
    [found] = examine_dependence(fitted(votes), replicates=0)
    assert found.n == 0 and "cannot be told" in found.text and not found.alarms


def test_anonymous_votes_have_an_overall_figure_only():
    votes = votes_of(random_rows(np.random.default_rng(3), 80, 4, 2, share=1.0))
    ballot = votes.ballots[0]
    label_iv = np.sort(ballot.code_v.reshape(80, 4) % 2, axis=1)
    shared = replace(ballot, annotator_a=np.array([0]), code_v=label_iv.ravel().astype(np.int32))
    anonymous = replace(votes, ballots=(shared,), annotators=pl.Series(["(anyone)"]), anonymous=True)
    [found] = examine_dependence(fitted(anonymous, priors=Priors()), replicates=0)
    assert found.figure == "excess_agreement" and found.n == 80


@pytest.mark.parametrize("options", [{"pooling": "full"}, {"pooling": "partial", "draws": 20}])
def test_pooled_fits_are_examined_too(options):
    votes = simulate_votes(n_items=300, n_annotators=6, votes_per_item=4, seed=8, accuracy=(0.8, 0.8)).votes
    found = {f.figure: f for f in examine_dependence(fitted(votes, **options), replicates=0)}
    assert found["dependent_pairs"].value == 0 and found["dependent_pairs"].n == 15


def test_the_pooled_figure_is_the_mean_of_all_pairs():
    residuals = residuals_in(simulate_votes(n_items=300, n_annotators=6, votes_per_item=4, seed=8).votes)
    pairs, together = weigh_pairs(residuals, least_items=1), pool_pairs(residuals)
    assert together.excess == pytest.approx(np.average(pairs.excess_p, weights=pairs.items_p))
    assert together.agreement == pytest.approx(np.average(pairs.agreement_p, weights=pairs.items_p))
