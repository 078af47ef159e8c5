"""The search for the mode: monotone, truthful about convergence, the same with any number of threads, off saddles."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support import log_posterior_of, plain_em, posterior_draws, random_rows, votes_of

from moral_entropy.consensus import laplace
from moral_entropy.consensus import model as module
from moral_entropy.consensus.em import maximise
from moral_entropy.model.fit import fit
from moral_entropy.model.findings import fit_findings
from moral_entropy.consensus.laplace import damped_newton_steps, information
from moral_entropy.consensus.model import Expectation, LogPosterior
from moral_entropy.consensus.modes import leave_saddle
from moral_entropy.model.patterns import collapse
from moral_entropy.model.priors import Priors
from moral_entropy.consensus.starts import paper_start, share_start, starts
from moral_entropy.model.states import between_labels
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import ConvergenceWarning, FitError, IdentifiabilityWarning, PriorError, ThinDataWarning


def simulated(n_labels=2, **options):
    given = {"n_items": 400, "n_annotators": 9, "votes_per_item": 4, "seed": 5} | options
    return simulate_votes(n_labels=n_labels, **given).votes


@pytest.mark.parametrize("newton", [0, 2_500], ids=["mixed", "newton"])
@pytest.mark.parametrize("n_labels", [2, 3, 4])
def test_climb_reaches_the_mode_of_plain_em(n_labels, newton):
    votes, priors = simulated(n_labels), Priors()
    model = log_posterior_of(votes, priors)
    start = paper_start(9, n_labels)
    optimum = maximise(model, start, newton=newton)
    slow, posterior_ik = plain_em(votes, start, priors)
    assert optimum.converged
    assert_allclose(optimum.at.confusion_akv, slow.confusion_akv, atol=1e-6)
    assert_allclose(model.patterns.spread(model.posterior_rk(optimum.at)), posterior_ik, atol=1e-6)


@pytest.mark.parametrize("newton", [0, 2_500], ids=["mixed", "newton"])
def test_the_log_posterior_never_falls_on_the_way(newton):
    model = log_posterior_of(simulated(3, votes_per_item=2))
    for name, start in starts(model):
        trace = np.array(maximise(model, start, newton=newton).trace)
        assert len(trace) > 2, name
        assert (np.diff(trace) >= -1e-12 * np.abs(trace[:-1])).all(), name


def test_mixing_ends_on_the_same_summit_as_strides_and_takes_no_longer(monkeypatch):
    model = log_posterior_of(simulated(n_items=3_000, n_annotators=1_300))
    start = paper_start(1_300, 2)
    mixed = maximise(model, start)
    monkeypatch.setattr("moral_entropy.consensus.em._Search.mixing_pays", lambda *_: False)
    strided = maximise(model, start)
    assert mixed.converged
    assert strided.converged
    assert mixed.passes < 1.2 * strided.passes
    assert_allclose(mixed.at.confusion_akv, strided.at.confusion_akv, atol=1e-7)


def test_running_out_of_passes_is_said():
    with pytest.warns(ConvergenceWarning, match="passes a derivative of"):
        consensus = fit(simulated(votes_per_item=2), draws=0, max_passes=2)
    assert not consensus.converged
    assert consensus.fits[0].climb.gradient_norm > 1e-3


def without_signal(n_labels=2, **options):
    given = {"n_items": 20_000, "n_annotators": 50, "votes_per_item": 5, "seed": 1} | options
    chance_akv = np.full((given["n_annotators"], n_labels, n_labels), 1 / n_labels)
    return simulate_votes(n_labels=n_labels, confusion_akv=chance_akv, **given).votes


@pytest.mark.parametrize(("n_labels", "n_items", "seed"), [(2, 20_000, 1), (2, 20_000, 2), (3, 6_000, 1)])
def test_votes_without_signal_converge_in_a_few_hundred_passes(n_labels, n_items, seed):
    # Without Newton steps they take more passes than that.
    model = log_posterior_of(without_signal(n_labels, n_items=n_items, seed=seed))
    for name, start in starts(model):
        optimum = maximise(model, start)
        assert optimum.converged, name
        assert not optimum.flat
        assert optimum.passes < 600, name
        assert (np.diff(optimum.trace) >= -1e-12 * np.abs(optimum.trace[:-1])).all()


def test_damped_newton_steps_end_on_the_summit_of_extrapolations(monkeypatch):
    model = log_posterior_of(without_signal(n_items=2_000, n_annotators=20, seed=3))
    start = dict(starts(model))["any 0"]
    monkeypatch.setattr("moral_entropy.consensus.em.UNDAMPED", 0)
    damped, plain = maximise(model, start), maximise(model, start, newton=0)
    assert damped.converged
    assert_allclose(damped.log_posterior, plain.log_posterior, atol=1e-6)
    assert_allclose(damped.at.confusion_akv, plain.at.confusion_akv, atol=1e-5)


def test_damped_newton_step_solves_with_a_share_of_the_complete_information_added():
    model = log_posterior_of(simulated(3))
    at = paper_start(9, 3)
    expected = model.expect(at)
    gradient = expected.gradient(at)
    steps = dict(damped_newton_steps(model, at, gradient, expected, 0.05))
    assert max(steps) <= 1.0
    whole, missing = information(model, at), np.zeros((model.n_parameters,) * 2)
    model.take_missing(at, missing)
    missing = np.tril(missing) + np.tril(missing, -1).T
    for damping, step in steps.items():
        assert_allclose((whole + damping * (whole - missing)) @ step, gradient, atol=1e-8)


def test_damped_newton_steps_do_not_leave_the_simplex_under_flat_priors(monkeypatch):
    monkeypatch.setattr("moral_entropy.consensus.em.UNDAMPED", 0)
    votes = simulate_votes(n_items=200, n_annotators=60, votes_per_item=1.2, seed=1).votes
    model = log_posterior_of(votes, Priors(diagonal=1.0, off_diagonal=1.0))
    for name, start in starts(model):
        optimum = maximise(model, start, tolerance=1e-6)
        assert np.isfinite(optimum.at.log_confusion_akv).all(), name
        assert np.isfinite(optimum.log_posterior), name
        assert not optimum.flat


def between_labels_of(votes):
    """The density that the default model begins its search in."""
    [ballot], states, priors = votes.ballots, between_labels(2), Priors()
    pseudo_g = np.full((1, states.n_groups), 0.5)
    return LogPosterior(collapse(ballot), pseudo_g, priors.beta_akv(ballot, votes), between=states)


@pytest.mark.parametrize(
    "votes",
    [simulated(), simulated(n_items=60, n_annotators=30, votes_per_item=1.3), without_signal(n_items=500)],
    ids=["plain", "thin", "no signal"],
)
def test_kept_curvature_leads_to_the_same_mode_and_never_down(votes, monkeypatch):
    model = between_labels_of(votes)
    start = share_start(model)
    plain, computed = maximise(model, start), []
    factors = laplace.damped_factors
    monkeypatch.setattr(laplace, "damped_factors", lambda *given: computed.append(1) or factors(*given))
    kept = laplace.KeptCurvature()
    found = maximise(model, start, kept=kept)
    assert found.converged
    assert_allclose(found.at.confusion_akv, plain.at.confusion_akv, atol=1e-8)
    assert (np.diff(found.trace) >= -1e-12 * np.abs(found.trace[:-1])).all()
    # A density much like it has its mode near by, and nearly the same curvature.
    near = replace(model, pseudo_g=model.pseudo_g + 1e-3)
    before = len(computed)
    again = maximise(near, found.at, kept=kept)
    assert again.converged
    assert before > 0
    assert len(computed) == before
    assert_allclose(again.at.confusion_akv, maximise(near, start).at.confusion_akv, atol=1e-8)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_curvature_that_leads_astray_is_forgotten(size):
    model = between_labels_of(simulated())
    start = share_start(model)
    astray = laplace.KeptCurvature((np.sqrt(size) * np.eye(model.n_parameters), True))
    found = maximise(model, start, kept=astray)
    assert found.converged
    assert_allclose(found.at.confusion_akv, maximise(model, start).at.confusion_akv, atol=1e-8)


def test_few_rows_at_a_time_make_the_same_start(monkeypatch):
    model = between_labels_of(simulated())
    whole = share_start(model)
    monkeypatch.setattr("moral_entropy.consensus.starts.ROWS_AT_ONCE", 7)
    assert_array_equal(share_start(model).log_confusion_akv, whole.log_confusion_akv)


def test_a_row_without_a_vote_is_level_under_flat_priors():
    counts = Expectation(np.array([0.0, 2.0]), np.array([[[0.0, 0.0], [1.0, 3.0]]]), 0.0)
    assert_allclose(counts.maximum().confusion_akv, [[[0.5, 0.5], [0.25, 0.75]]])


def test_a_plateau_is_left_after_many_passes_and_said(monkeypatch):
    monkeypatch.setattr("moral_entropy.consensus.em.PLATEAU_PASSES", 60)
    monkeypatch.setattr("moral_entropy.consensus.em.PLATEAU_WINDOW", 20)
    monkeypatch.setattr("moral_entropy.consensus.em.PLATEAU_GAIN", 5.0)
    model = log_posterior_of(without_signal(n_items=2_000, n_annotators=400))
    ended = maximise(model, paper_start(400, 2), newton=0)
    assert ended.flat
    assert not ended.converged
    assert 60 <= ended.passes < 200
    consensus = fit(simulated(), draws=0)
    one = consensus.fits[0]
    climb = replace(one.climb, converged=False, flat=True)
    found = fit_findings(replace(consensus, fits=(replace(one, climb=climb),)))[0]
    assert (found.figure, found.level) == ("converged", "doubt")
    assert "ended on a plateau: its last 250 passes gained under 0.05 nats" in found.text


def test_convergence_means_a_level_and_downward_curved_summit():
    fitted = fit(simulated(), draws=50).fits[0]
    assert fitted.climb.converged
    assert fitted.climb.gradient_norm < 1e-4
    assert fitted.curvature.positive_definite
    assert 0 < fitted.curvature.smallest <= 1


def test_smallest_share_of_information_equals_the_generalised_eigenvalue():
    votes = simulated(3)
    fitted = fit(votes, draws=10, model="paper", coordinates="paper").fits[0]
    model = log_posterior_of(votes)
    from moral_entropy.consensus.laplace import _complete_diagonal
    from moral_entropy.consensus.model import Parameters

    at = Parameters(np.log(fitted.prevalence_k), np.log(fitted.confusion_akv))
    scale = 1 / np.sqrt(_complete_diagonal(model, at))
    values = np.linalg.eigvalsh(information(model, at) * np.outer(scale, scale))
    assert_allclose(fitted.curvature.smallest, values[0], rtol=0.02)


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    monkeypatch.setattr(module, "SMALL", 100_000)
    votes = simulate_votes(n_items=36_000, n_annotators=40, votes_per_item=5, seed=3).votes
    assert votes.n_votes > module.SMALL and collapse(votes.ballots[0]).n_rows > module.ROWS_AT_ONCE
    one, four = (fit(votes, draws=20, threads=threads).fits[0] for threads in (1, 4))
    assert one.climb == four.climb
    assert_array_equal(one.summary.mean_ik, four.summary.mean_ik)
    assert_array_equal(one.summary.expected_entropy_i, four.summary.expected_entropy_i)


def test_two_annotators_who_always_disagree_do_not_rest_on_the_saddle():
    rows = [(i, a, (i + a) % 2) for i in range(20) for a in range(2)]
    with pytest.warns(IdentifiabilityWarning, match=r"100\.0% of the labels would change"):
        fitted = fit(votes_of(rows), draws=50, model="paper").fits[0]
    assert fitted.curvature.positive_definite
    start = log_posterior_of(votes_of(rows))
    level = maximise(start, paper_start(2, 2))
    assert fitted.climb.log_posterior > level.log_posterior + 0.1


def test_the_best_of_several_starts_wins_and_rivals_are_named():
    # Every annotator flips labels on half of the items: two teams that share nobody can each trade names.
    rng = np.random.default_rng(0)
    rows = [(i, a, int(rng.random() < (0.9 if i % 2 else 0.1))) for i in range(200) for a in range(2)]
    priors = Priors(diagonal=1.0, off_diagonal=1.0)
    with pytest.warns(IdentifiabilityWarning, match=r"second answer fits almost as well \(.* nats lower\)"):
        fitted = fit(votes_of(rows), priors=priors, draws=0, model="paper").fits[0]
    assert fitted.climb.log_posterior >= max(fitted.climb.modes.values()) - 1e-6


def test_one_annotator_warns_that_nothing_is_identified():
    rows = [(i, 0, int(i % 3 == 0)) for i in range(30)]
    with (
        pytest.warns(IdentifiabilityWarning, match="one annotator"),
        pytest.warns(ThinDataWarning, match=r"1\.00 votes per item"),
    ):
        fit(votes_of(rows), draws=10)


def test_gold_as_evidence_clamps_and_teaches():
    rng = np.random.default_rng(8)
    rows = random_rows(rng, 80, 4, 2)
    gold_i = np.where(np.arange(80) < 40, np.arange(80) % 2, -1)
    votes = votes_of(rows, gold_i=gold_i)
    clamped, free = (fit(votes, draws=20, use_gold=use).fits[0] for use in (True, False))
    assert_array_equal(clamped.posterior_ik[:40, 1], gold_i[:40])
    assert_array_equal(clamped.summary.mean_ik[:40, 1], gold_i[:40])
    assert not np.allclose(clamped.confusion_akv, free.confusion_akv, atol=0.01)
    assert_array_equal(posterior_draws(clamped, np.arange(40))[..., 1], np.tile(gold_i[:40], (20, 1)))


def test_an_annotators_known_confusion_counts_as_votes():
    votes = simulated()
    known = np.array([[900.0, 100.0], [300.0, 700.0]])
    fitted = fit(votes, priors=Priors(annotators={3: known}), draws=0).fits[0]
    assert_allclose(fitted.confusion_akv[3], known / 1000, atol=0.04)
    with pytest.raises(PriorError, match="2 × 2"):
        fit(votes, priors=Priors(annotators={3: [1.0, 2.0]}), draws=0)


def test_the_prevalence_prior_is_ordered_negative_then_positive():
    rows = random_rows(np.random.default_rng(1), 30, 3, 2)
    late, early = (fit(votes_of(rows, positive=p), priors=Priors(prevalence=(800, 200)), draws=0) for p in (1, 0))
    assert late.fits[0].prevalence_k[1] < 0.3
    assert early.fits[0].prevalence_k[1] > 0.7


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"solver": "sgd"}, "em, adam"),
        ({"coordinates": "polar"}, "jeffreys, paper, jacobian, logit-mode"),
        ({"draws": -1}, "at least 2"),
        ({"interval": 1.0}, "between 0 and 1"),
    ],
)
def test_misuse_names_the_choices(options, text):
    with pytest.raises(FitError, match=text):
        fit(simulated(n_items=10), **options)


@pytest.mark.parametrize(
    ("prior", "text"),
    [
        ({"prevalence": 0}, "is 0"),
        ({"diagonal": -1}, "is -1"),
        ({"off_diagonal": 0.5}, "Below 1"),
        ({"prevalence": (1, float("nan"))}, "nan"),
    ],
)
def test_a_prior_without_a_mode_is_refused(prior, text):
    with pytest.raises(PriorError, match=text):
        Priors(**prior)


def test_a_prevalence_prior_of_the_wrong_length_is_refused():
    with pytest.raises(PriorError, match="3 values, question 'label' has 2 labels"):
        fit(simulated(n_items=10), priors=Priors(prevalence=(1, 2, 3)), draws=0)


def test_flat_confusion_priors_stay_finite_on_the_edge():
    rows = [(i, a, int(i < 10)) for i in range(30) for a in range(3)]
    fitted = fit(votes_of(rows), priors=Priors(diagonal=1.0, off_diagonal=1.0), draws=50).fits[0]
    assert np.isfinite(fitted.climb.log_posterior)
    assert np.isfinite(fitted.summary.mean_ik).all()
    assert_array_equal(fitted.label_i, [1] * 10 + [0] * 20)


def test_a_level_point_that_is_no_maximum_is_left():
    model = log_posterior_of(votes_of([(i, a, (i + a) % 2) for i in range(20) for a in range(2)]))
    level = maximise(model, paper_start(2, 2))
    assert level.converged
    onward = leave_saddle(model, level, tolerance=1e-7, max_passes=1_000)
    assert onward.log_posterior > level.log_posterior + 0.1
