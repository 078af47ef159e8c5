"""Power-scaling from draws: against exact integration, curvature and refits; on votes that do and do not trigger it."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import entr, expit
from support import random_rows, vote_rows, votes_of

import moral_entropy as me
from moral_entropy.checks import prior_power
from moral_entropy.checks.density import densities_of
from moral_entropy.checks.prior_power import examine_prior_power, prior_decides, scale_powers
from moral_entropy.consensus import laplace
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.model import Parameters
from moral_entropy.consensus.priors import Priors
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.corpora.twins import twin
from moral_entropy.errors import MoralEntropyWarning

POINTS = 61
MODELS = ("paper", "mixed")


def quiet_fit(votes, **options):
    """A fit whose warnings are not this test's business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(votes, **options)


class Grid:
    """The exact posterior of prevalence, sensitivity and false alarms that all annotators share, on a grid."""

    def __init__(self, votes, alpha, beta):
        counts_ik = votes.ballots[0].counts_ik
        pairs, self.items = np.unique(counts_ik, axis=0, return_counts=True)
        axis = np.linspace(-7.0, 7.0, POINTS)
        x = np.stack([one.ravel() for one in np.meshgrid(axis, axis, axis, indexing="ij")])
        # Log ratios of label 1 to label 0: of the prevalence, of votes on items of label 0 and of label 1.
        self.p, self.false, self.hit = expit(x)
        log = np.log
        one = log(self.p) + pairs[:, 1:] * log(self.hit) + pairs[:, :1] * log(1 - self.hit)
        none = log(1 - self.p) + pairs[:, 1:] * log(self.false) + pairs[:, :1] * log(1 - self.false)
        self.posterior = expit(one - none)
        self.likelihood = self.items @ np.logaddexp(one, none)
        self.prior = alpha[0] * log(1 - self.p) + alpha[1] * log(self.p)
        self.prior += beta[0][0] * log(1 - self.false) + beta[0][1] * log(self.false)
        self.prior += beta[1][0] * log(1 - self.hit) + beta[1][1] * log(self.hit)

    def mass(self, prior=1.0, votes=1.0):
        log_mass = prior * self.prior + votes * self.likelihood
        mass = np.exp(log_mass - log_mass.max())
        return mass / mass.sum()

    def figures(self, **powers):
        """Prevalence, mean p, and the three mean entropies under some powers."""
        mass, share = self.mass(**powers), self.items / self.items.sum()
        mean = self.posterior @ mass
        total = share @ (entr(mean) + entr(1 - mean))
        aleatoric = share @ ((entr(self.posterior) + entr(1 - self.posterior)) @ mass)
        return np.array([self.p @ mass, share @ mean, total, aleatoric, total - aleatoric])

    def variance(self, **powers):
        mass = self.mass(**powers)
        return self.p**2 @ mass - (self.p @ mass) ** 2


@pytest.fixture(scope="module")
def exact():
    rows = random_rows(np.random.default_rng(3), 60, 5, 2)
    consensus = quiet_fit(
        votes_of(rows), priors=Priors(prevalence=(6, 3), diagonal=4, off_diagonal=1.5), pooling="full", model="paper"
    )
    grid = Grid(consensus.votes, (6, 3), ((4, 1.5), (1.5, 4)))
    rng = np.random.default_rng(0)
    at = rng.choice(len(grid.p), size=20_000, p=grid.mass())
    confusion_skv = np.stack(
        [np.stack([1 - grid.false, grid.false], axis=-1), np.stack([1 - grid.hit, grid.hit], axis=-1)], axis=1
    )[at]
    drawn = replace(
        consensus.fits[0],
        prevalence_sk=np.column_stack([1 - grid.p, grid.p])[at],
        confusion_sakv=np.repeat(confusion_skv[:, None], consensus.fits[0].ballot.n_annotators, axis=1),
    )
    return grid, drawn


@pytest.mark.parametrize(("power", "attribute"), [("prior", "prior"), ("votes", "votes")])
def test_moves_are_those_of_exact_integration(exact, power, attribute, monkeypatch):
    monkeypatch.setattr("moral_entropy.checks.prior_power.DRAWS", 20_000)
    grid, drawn = exact
    step = 0.02
    wanted_q = (grid.figures(**{power: 2**step}) - grid.figures(**{power: 2**-step})) / (2 * step)
    found = scale_powers(drawn, likelihood_draws=3_000)
    move_q, error_q = found[attribute].to_numpy(), found[f"{attribute}_error"].to_numpy()
    assert found["figure"].to_list() == ["prevalence", "mean_p", "total", "aleatoric", "epistemic"]
    assert (np.abs(move_q - wanted_q) < 4 * error_q + 1e-4).all()
    # The errors are small enough for that to mean something.
    assert (error_q < 0.25 * np.abs(wanted_q).max()).all()


def test_prior_share_is_how_the_variance_shrinks(exact):
    grid, drawn = exact
    step = 0.02
    slope = np.log(grid.variance(prior=2**step) / grid.variance(prior=2**-step)) / (2 * step * np.log(2))
    rest = np.log(grid.variance(votes=2**step) / grid.variance(votes=2**-step)) / (2 * step * np.log(2))
    (share,) = scale_powers(drawn, likelihood_draws=0)["prior_share"].drop_nulls()
    # The law is that of a Gaussian; on sixty items the posterior is only roughly one.
    assert abs(share + slope) < 0.12
    assert abs((1 - share) + rest) < 0.2


@pytest.mark.parametrize("model", ["mixed", "paper"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_prior_share_is_that_of_the_curvature(n_labels, model):
    n_items, per_item = (400, 2) if model == "paper" else (1_500, 8)
    sizes = {"n_items": n_items, "n_annotators": 30, "votes_per_item": per_item, "n_labels": n_labels}
    votes = simulate_votes(**sizes, seed=4).votes
    consensus = quiet_fit(votes, draws=4_000, model=model, coordinates="jacobian")
    one = consensus.fits[0]
    ground, at = densities_of(one), one.mode
    # Without votes the curvature is the prior's own, here at the mean of the draws; that of all is at the mode.
    alone = replace(ground.log_ratio, patterns=replace(one.patterns, weight_r=np.zeros(one.patterns.n_rows)))
    weight = one.weight_sdg.mean(axis=0)
    weight = weight if model == "mixed" else weight[0]
    mean = Parameters(np.log(weight), np.log(one.confusion_sakv.mean(axis=0)))
    prior_pp, all_pp = laplace.information(alone, mean), laplace.information(ground.log_ratio, at)
    weight_g = np.atleast_2d(at.weight_g)[0]
    slope_kp = np.zeros((n_labels, len(all_pp)))
    slope_gp = (np.diag(weight_g) - np.outer(weight_g, weight_g))[:, 1:]
    slope_kp[:, : len(weight_g) - 1] = one.states.label_gk.T @ slope_gp
    v_pk = np.linalg.solve(all_pp, slope_kp.T)
    wanted_k = np.einsum("pk,pq,qk->k", v_pk, prior_pp, v_pk) / np.einsum("kp,pk->k", slope_kp, v_pk)
    found_k = scale_powers(one, likelihood_draws=0)["prior_share"].drop_nulls()
    np.testing.assert_allclose(found_k, wanted_k if n_labels > 2 else wanted_k[1:], atol=0.06)


def test_moves_are_those_of_a_refit_under_a_scaled_prior():
    votes = simulate_votes(n_items=1_500, n_annotators=10, votes_per_item=5, seed=1).votes
    told = Priors(prevalence=(40, 20), diagonal=8, off_diagonal=4)
    one = quiet_fit(votes, model="paper", priors=told, draws=4_000).fits[0]
    scaled = [
        quiet_fit(votes, priors=Priors(prevalence=(40 * by, 20 * by), diagonal=8 * by, off_diagonal=4 * by),
                  model="paper", coordinates="logit-mode", draws=4_000)
        for by in (2**-0.25, 2**0.25)
    ]  # fmt: skip
    low, high = (refit.fits[0].prevalence_sk[:, 1].mean() for refit in scaled)
    found = scale_powers(one, likelihood_draws=0)
    assert abs((high - low) / 0.5) > 5 * found["prior_error"][0]
    np.testing.assert_allclose(found["prior"][0], (high - low) / 0.5, rtol=0.25)


def alarms_of(consensus):
    return [finding for finding in examine_prior_power(consensus, likelihood_draws=0) if finding.alarms]


def test_thin_votes_raise_the_alarm():
    votes = simulate_votes(n_items=3_000, n_annotators=300, votes_per_item=1.3, seed=5).votes
    (alarm,) = alarms_of(quiet_fit(votes, pooling="none"))
    assert alarm.level == "doubt"
    assert "the default assumption decides" in alarm.meaning
    assert f"{alarm.value:.0%}" in alarm.text
    # Rows in common, as so many annotators have by default, leave less to the prior; that votes are few is still said.
    assert [one.figure for one in quiet_fit(votes).findings if one.alarms] == ["votes_per_item"]


def test_the_thin_twin_raises_the_alarm_and_the_thick_one_does_not():
    silent = []
    for seed in range(3):
        thin = me.read_votes(twin("emfd", scale=0.2, seed=seed))
        fits = {model: quiet_fit(thin, model=model) for model in MODELS}
        found = {model: {alarm.question for alarm in alarms_of(consensus)} for model, consensus in fits.items()}
        silent += [(seed, question) for question in thin.questions if question not in found["paper"]]
        # What domains have in common is learnt, so that there is less for the prior to decide.
        assert found["mixed"]
        # Whatever this check misses, the number of votes is named.
        for consensus in fits.values():
            assert {finding.question for finding in consensus.findings if finding.alarms} == set(thin.questions)
    # A known miss: authority of seed 0 is fitted at 1% (the truth is 16%) with a wide sd, and a third of what is known
    # of it is the prior's, just below the bar.
    assert silent in ([], [(0, "authority")])
    thick = me.read_votes(twin("mfrc", scale=0.5))
    assert [alarms_of(quiet_fit(thick, model=model)) for model in MODELS] == [[], []]


def test_one_annotator_alone_raises_the_alarm():
    votes = simulate_votes(n_items=300, n_annotators=1, votes_per_item=1, seed=2).votes
    assert len(alarms_of(quiet_fit(votes))) == 1


def test_a_prior_firmer_than_the_votes_raises_the_alarm():
    votes = simulate_votes(n_items=200, n_annotators=8, votes_per_item=5, seed=0).votes
    assert alarms_of(quiet_fit(votes)) == []
    assert len(alarms_of(quiet_fit(votes, priors=Priors(prevalence=(900, 600))))) == 1


def test_without_draws_there_is_nothing_to_say():
    votes = simulate_votes(n_items=50, n_annotators=5, votes_per_item=3).votes
    assert examine_prior_power(quiet_fit(votes, draws=0)) == []


def test_three_labels_have_a_share_each_and_anonymous_votes_have_one_matrix():
    votes = simulate_votes(n_items=300, n_annotators=6, votes_per_item=4, n_labels=3).votes
    shares = [found for found in examine_prior_power(quiet_fit(votes)) if found.figure == "prior_share"]
    assert [found.subject for found in shares] == ["0", "1", "2"]
    rows = [(item, 0, label) for item, _, label in random_rows(np.random.default_rng(1), 80, 4, 2)]
    shared = replace(votes_of(rows), anonymous=True)
    assert len([found for found in examine_prior_power(quiet_fit(shared)) if found.figure == "prior_share"]) == 1


@settings(max_examples=15)
@given(drawn=vote_rows())
def test_vote_order_is_irrelevant(drawn):
    rows, n_labels = drawn
    backwards = [rows[n] for n in reversed(range(len(rows)))]
    one, other = (examine_prior_power(quiet_fit(votes_of(some, n_labels), draws=50)) for some in (rows, backwards))
    assert one == other


def test_renaming_annotators_in_the_draws_changes_nothing():
    votes = simulate_votes(n_items=200, n_annotators=7, votes_per_item=3, seed=6).votes
    one = quiet_fit(votes).fits[0]
    order_a = np.random.default_rng(0).permutation(7)
    place_a = np.argsort(order_a)
    code_v = place_a[one.patterns.code_v // 2] * 2 + one.patterns.code_v % 2
    other = replace(
        one,
        patterns=replace(one.patterns, code_v=code_v.astype(np.int32)),
        confusion_sakv=one.confusion_sakv[:, order_a],
        beta_akv=one.beta_akv[order_a],
    )
    first, second = scale_powers(one), scale_powers(other)
    for name in ("prior", "votes", "prior_share"):
        np.testing.assert_allclose(first[name].drop_nulls(), second[name].drop_nulls(), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_false_alarms_on_clean_votes_are_rare():
    alarms = 0
    for seed in range(1_000, 1_200):
        votes = simulate_votes(n_items=400, n_annotators=12, votes_per_item=5, seed=seed).votes
        scaling = scale_powers(quiet_fit(votes, draws=400).fits[0], likelihood_draws=0)
        alarms += prior_decides(scaling.row(0, named=True))
    assert alarms <= 4


@pytest.mark.parametrize(
    ("push", "said"), [(0.0, "leave the share of 'yes' at 50.0%"), (0.05, "from 50.0% to about 55.0%")]
)
def test_a_share_that_stays_is_not_said_to_move(push, said):
    row = {"label": "yes", "value": 0.5, "prior": push, "prior_error": 0.0, "sd": 0.1, "prior_share": 0.9}
    assert said in prior_power._words(None, row)["text"]
