"""Ensembles: resampling against votes copied by hand, spreads against the posterior, switched modes found and named."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from support import plain_em, plain_mixed_em, plain_states, posterior_draws, random_rows, vote_rows, votes_of

from moral_entropy.checks.density import densities_of
from moral_entropy.checks.ensemble import (
    ensemble_of,
    examine_ensemble,
    resample_annotators,
    resample_items,
    shares_of_labels,
    switched_words,
)
from moral_entropy.checks.label_switching import switched
from moral_entropy.checks.modes import find_modes
from moral_entropy.consensus.em import maximise
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.model import Parameters
from moral_entropy.consensus.priors import Priors
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import MoralEntropyWarning


def quiet_fit(votes, **options):
    """A fit whose warnings are not this test's business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(votes, **options)


class Told:
    """A generator that draws what it is told."""

    def __init__(self, counts):
        self.counts = np.asarray(counts)

    def multinomial(self, n, chances):
        assert n == self.counts.sum()
        assert len(chances) == len(self.counts)
        return self.counts


def by_hand(model, votes, start):
    """The mode from a start by plain EM, and the items' label probabilities there."""
    if model == "paper":
        return plain_em(votes, start, Priors())
    at, state_iz = plain_mixed_em(votes, start, tolerance=1e-12)
    return at, state_iz @ plain_states(votes.ballots[0].n_labels)[0]


MODELS = pytest.mark.parametrize("model", ["mixed", "paper"])


@MODELS
def test_resampled_annotators_are_annotators_copied_by_hand(model):
    rows = random_rows(np.random.default_rng(2), 30, 4, 2)
    one = quiet_fit(votes_of(rows), draws=0, model=model).fits[0]
    copies = [2, 0, 1, 1]
    other, start = resample_annotators(densities_of(one).simplex, one.mode, Told(copies))
    found = maximise(other, start)
    # Who was annotator 0 is now 0 and 1; annotator 1 is gone.
    names = {0: (0, 1), 1: (), 2: (2,), 3: (3,)}
    copied = votes_of([(i, name, k) for i, a, k in rows for name in names[a]], n_items=30)
    home = one.mode
    wanted, wanted_ik = by_hand(model, copied, Parameters(home.log_weight_g, home.log_confusion_akv[[0, 0, 2, 3]]))
    np.testing.assert_allclose(found.at.weight_g, np.exp(wanted.log_weight_g), atol=1e-5)
    np.testing.assert_allclose(found.at.confusion_akv, np.exp(wanted.log_confusion_akv)[[0, 2, 3]], atol=1e-5)
    posterior_ik = other.posterior_rk(found.at)[one.patterns.row_i]
    voted_i = copied.ballots[0].votes_i > 0
    np.testing.assert_allclose(posterior_ik[voted_i], wanted_ik[voted_i], atol=1e-5)


@MODELS
def test_resampled_items_are_items_copied_by_hand(model):
    rows = random_rows(np.random.default_rng(5), 40, 4, 2)
    one = quiet_fit(votes_of(rows), draws=0, model=model).fits[0]
    item_n = np.random.default_rng(0).integers(40, size=40)
    counts_r = np.bincount(one.patterns.row_i[item_n], minlength=one.patterns.n_rows)
    other, start = resample_items(densities_of(one).simplex, one.mode, Told(counts_r))
    copied = votes_of([(n, a, k) for n, item in enumerate(item_n) for i, a, k in rows if i == item])
    found = maximise(other, start).at
    wanted, _ = by_hand(model, copied, start)
    np.testing.assert_allclose(found.weight_g, np.exp(wanted.log_weight_g), atol=1e-5)
    np.testing.assert_allclose(found.confusion_akv, np.exp(wanted.log_confusion_akv), atol=1e-5)


def test_spread_over_items_is_the_posteriors_where_the_model_holds():
    votes = simulate_votes(n_items=2_000, n_annotators=8, votes_per_item=5, seed=3).votes
    one = quiet_fit(votes).fits[0]
    spread = next(spread for spread in ensemble_of(one, members=60, seed=1)[1] if spread.kind == "items")
    assert spread.members == 60
    # Sixty members tell a standard deviation to about a tenth.
    np.testing.assert_allclose(spread.prevalence_sd_k, one.prevalence_sk.std(axis=0), rtol=0.35)
    np.testing.assert_allclose(spread.prevalence_k, one.prevalence_k, atol=4 * spread.prevalence_sd_k.max() / 60**0.5)
    sd_i = posterior_draws(one, np.arange(300)).std(axis=0)[:, 1]
    found_i = spread.p_sd_r[one.patterns.row_i[:300]]
    # Of item by item the two are close in rank, and in size on the mean.
    assert np.corrcoef(sd_i, found_i)[0, 1] > 0.9
    assert 0.7 < found_i.mean() / sd_i.mean() < 1.4


def test_p_spread_is_that_of_the_members_one_by_one():
    votes = simulate_votes(n_items=200, n_annotators=6, votes_per_item=4, seed=8).votes
    one = quiet_fit(votes, draws=0).fits[0]
    found = next(spread for spread in ensemble_of(one, members=5, seed=4)[1] if spread.kind == "items")
    simplex, at = densities_of(one).simplex, one.mode
    p_mr = []
    for member in range(5):
        other, start = resample_items(simplex, at, np.random.default_rng([4, 0, member]))
        p_mr.append(simplex.posterior_rk(maximise(other, start).at)[:, 1])
    np.testing.assert_allclose(found.p_sd_r, np.std(p_mr, axis=0, ddof=1), atol=1e-3)
    order = np.repeat(found.p_sd_r, found.weight_r.astype(int))
    assert abs(found.p_sd - order.mean()) < 1e-12
    assert np.quantile(order, 0.945) <= found.p_sd_95 <= np.quantile(order, 0.955)


def two_teams(links, seed=0):
    """Votes of annotators 0 to 3 on items 0 to 149, of 4 to 7 on the others, and of all on a few of them."""
    rng = np.random.default_rng(seed)
    truth_i = rng.random(300) < 0.5
    rows = []
    for item in range(300):
        for annotator in range(8):
            own = (item < 150) == (annotator < 4)
            if own or item < links:
                right = rng.random() < 0.85
                rows.append((item, annotator, int(truth_i[item] == right)))
    return votes_of(rows)


def test_a_team_that_can_switch_is_found_and_named():
    consensus = quiet_fit(two_teams(links=0), priors=Priors(diagonal=1.5, off_diagonal=1.5))
    findings = examine_ensemble(consensus, members=3)
    close = [found for found in findings if found.figure == "mode_distance" and found.alarms]
    texts = " / ".join(found.text for found in close)
    team = "4 of 8 annotators are switched: 4, 5, 6, 7"
    other = "4 of 8 annotators are switched: 0, 1, 2, 3"
    assert team in texts or other in texts
    half = next(found for found in close if team in found.text or other in found.text)
    # With no link and a prior that does not tell right from wrong, only the shared prevalence objects.
    assert half.value < 3
    changed = next(found for found in findings if found.figure == "mode_changed" and found.subject == half.subject)
    assert abs(changed.value - 0.5) < 0.02


def test_a_linked_team_cannot_switch():
    consensus = quiet_fit(two_teams(links=30))
    assert not [found for found in examine_ensemble(consensus, members=3) if found.alarms]


def test_under_a_prior_without_a_side_everybody_can_switch():
    votes = simulate_votes(n_items=200, n_annotators=6, votes_per_item=4, n_labels=3, seed=1).votes
    consensus = quiet_fit(votes, priors=Priors(diagonal=1.5, off_diagonal=1.5))
    one = consensus.fits[0]
    modes = find_modes(densities_of(one).simplex, one.mode, seeds=0)
    twins = [mode for mode in modes[1:] if abs(mode.distance) < 1e-3]
    assert {mode.traded for mode in twins} == {((0, 1),), ((0, 2),), ((1, 2),)}
    for mode in twins:
        ((first, second),) = mode.traded
        assert mode.changed > 0.4
        assert f"'{first}' and '{second}' trade places" in switched_words(consensus, one, mode)


def test_shares_of_labels_are_those_of_the_fit_over_its_domains():
    votes = simulate_votes(n_items=300, n_annotators=6, votes_per_item=4, n_labels=3, seed=2).votes
    votes = replace(votes, domains=("a", "b"), domain_i=(np.arange(300) < 100).astype(np.int32))
    one = quiet_fit(votes, draws=0).fits[0]
    found_k = shares_of_labels(densities_of(one).simplex, one.mode)
    np.testing.assert_allclose(found_k, one.prevalence_k)
    # At the mode in log ratios the weights are the items' mean, drawn a little to what domains have in common.
    np.testing.assert_allclose(found_k, one.posterior_ik.mean(axis=0), atol=0.03)


@MODELS
def test_a_mode_higher_than_the_reported_one_is_bad(model):
    votes = simulate_votes(n_items=300, n_annotators=6, votes_per_item=4, seed=2).votes
    consensus = quiet_fit(votes, model=model)
    one = consensus.fits[0]
    lower = maximise(densities_of(one).simplex, switched(one.at, np.ones(6, dtype=bool), (0, 1))).at
    stuck = replace(one, prevalence_k=lower.weight_g, confusion_akv=lower.confusion_akv)
    if model == "mixed":
        stuck = replace(stuck, mixture=replace(one.mixture, weight_dg=lower.weight_g))
    findings = examine_ensemble(replace(consensus, fits=(stuck,)), members=2)
    (bad,) = [found for found in findings if found.level == "bad"]
    assert "nats better" in bad.text and "better answer" in bad.meaning
    assert "all annotators are switched" in bad.text


def test_votes_that_spread_more_than_their_posterior_says_raise_the_alarm():
    # The same posterior, ten times as sure as it has reason to be.
    votes = simulate_votes(n_items=500, n_annotators=6, votes_per_item=4, seed=5).votes
    consensus = quiet_fit(votes)
    one = consensus.fits[0]
    sure_sk = one.prevalence_sk.mean(axis=0) + 0.1 * (one.prevalence_sk - one.prevalence_sk.mean(axis=0))
    doubted = replace(consensus, fits=(replace(one, prevalence_sk=sure_sk),))
    for examined, alarms in ((consensus, 0), (doubted, 1)):
        found = [one for one in examine_ensemble(examined, members=20) if one.figure == "bootstrap_ratio"]
        assert sum(one.alarms for one in found) == alarms


def test_one_shared_annotator_and_one_matrix_for_all():
    rows = [(item, 0, label) for item, _, label in random_rows(np.random.default_rng(1), 60, 4, 2)]
    anonymous = replace(votes_of(rows), anonymous=True)
    named = simulate_votes(n_items=100, n_annotators=5, votes_per_item=3).votes
    for consensus in (quiet_fit(anonymous), quiet_fit(named, pooling="full"), quiet_fit(named, pooling="partial")):
        found = examine_ensemble(consensus, members=3)
        kinds = {finding.subject for finding in found if finding.figure == "p_sd_mean"}
        assert {"starts", "items"} <= kinds


@settings(max_examples=8)
@given(drawn=vote_rows())
def test_vote_order_is_irrelevant(drawn):
    rows, n_labels = drawn
    backwards = [rows[n] for n in reversed(range(len(rows)))]
    one, other = (
        examine_ensemble(quiet_fit(votes_of(some, n_labels), draws=20), members=2) for some in (rows, backwards)
    )
    assert one == other


@pytest.mark.slow
def test_false_alarms_on_clean_votes_are_rare():
    alarms = 0
    for seed in range(1_000, 1_200):
        votes = simulate_votes(n_items=400, n_annotators=12, votes_per_item=5, seed=seed).votes
        found = examine_ensemble(quiet_fit(votes, draws=300), members=20)
        alarms += any(finding.alarms for finding in found)
    assert alarms <= 4
