"""The calibration study on a few corpora: its truth against plain loops, its sums on outcomes made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support import load_script

study = load_script("studies/simulation_calibration.py")
SMALL = study.Setting("small", 80, 5, 3, (8.0, 4.0), (8.0, 2.0))


def test_parameters_come_from_the_prior():
    worlds = [study.simulate(SMALL, seed) for seed in range(300)]
    prevalence = np.array([world.prevalence_k[1] for world in worlds])
    right = np.concatenate([np.diagonal(world.confusion_akv, axis1=1, axis2=2).ravel() for world in worlds])
    # Means and variances of Beta(4, 8) and Beta(8, 2).
    assert prevalence.mean() == pytest.approx(4 / 12, abs=0.03)
    assert prevalence.var() == pytest.approx(4 * 8 / (12**2 * 13), rel=0.25)
    assert right.mean() == pytest.approx(0.8, abs=0.01)
    assert right.var() == pytest.approx(8 * 2 / (10**2 * 11), rel=0.15)


def test_the_true_posterior_is_bayes_rule():
    world = study.simulate(SMALL, 3)
    ballot = world.votes.ballots[0]
    plain = []
    for i in range(ballot.n_items):
        codes = ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]].tolist()
        joint = [
            world.prevalence_k[k] * math.prod(world.confusion_akv[c // 2, k, c % 2] for c in codes) for k in (0, 1)
        ]
        plain.append(joint[1] / sum(joint))
    found = study.posterior_of_places(ballot, world.confusion_akv, np.array([0.0, 1.0]), world.prevalence_k)
    np.testing.assert_allclose(found, plain, rtol=1e-12)


def test_under_the_default_model_items_lie_between_labels():
    found = [study.mixed_outcome(SMALL, seed) for seed in range(6)]
    p_i, true_i = (np.concatenate([getattr(one, name) for one in found]) for name in ("p_i", "true_i"))
    # Corners have 8 and 4 pseudo-items, seven states between them one each: (4 + 3.5) / 19 are yes.
    assert true_i.mean() == pytest.approx(7.5 / 19, abs=0.15)
    assert p_i.mean() == pytest.approx(true_i.mean(), abs=0.06)
    assert np.corrcoef(p_i, true_i)[0, 1] > 0.4
    assert np.mean([one.covered_i.mean() for one in found]) > 0.6


def outcome(rank, p, true, covered, alarmed=False):
    return study.Outcome(rank, np.array([rank]), np.array(p), np.array(true), np.array(covered), alarmed)


def test_sums_of_outcomes_made_by_hand():
    outcomes = [outcome((n + 0.5) / 20, [0.25, 0.75], [0.0, 1.0], [1.0, float(n < 10)], n == 0) for n in range(20)]
    found = study.calibrate(outcomes)
    assert found.prevalence_ks == pytest.approx(0.025)
    assert found.prevalence_covered == pytest.approx(0.9)
    assert found.items_covered == pytest.approx(0.75)
    assert (found.p, found.true) == (0.5, 0.5)
    assert found.ece == pytest.approx(0.25)
    assert found.log_loss == pytest.approx(-math.log(0.75))
    assert found.alarms == pytest.approx(0.05)


def test_ranks_that_pile_up_are_told_from_uniform_ones():
    piled = study.calibrate([outcome(0.97, [0.5], [1.0], [1.0]) for _ in range(40)])
    assert piled.prevalence_chance < 1e-6
    assert piled.prevalence_covered == 0.0


def test_the_study_runs_and_finds_its_place(tmp_path):
    found = [(SMALL, "jeffreys", study.study(SMALL, "jeffreys", corpora=4, jobs=1))]
    assert all(len(one.p_i) == 80 and 0 <= one.prevalence <= 1 for one in found[0][2])
    text = study.fragment(found)
    assert "| small | jeffreys | 4 |" in text
    page = study.with_tables(
        "before\n<!-- sbc: written by studies/simulation_calibration.py -->\nearlier words\n<!-- end of sbc -->\nafter",
        text,
    )
    assert "earlier words" not in page
    assert page.startswith("before") and page.endswith("after")
    with pytest.raises(ValueError, match="no place"):
        study.with_tables("nothing", text)


@pytest.mark.slow
def test_two_hundred_corpora_are_calibrated():
    plenty = study.Setting("plenty", 600, 8, 4, (8.0, 4.0), (8.0, 2.0))
    found = study.calibrate(study.study(plenty, "jeffreys", corpora=200, jobs=1))
    assert found.prevalence_chance > 0.01
    assert 0.85 < found.prevalence_covered < 0.95
    assert 0.86 < found.items_covered < 0.94
    assert found.ece < 0.02
    # Of 200 clean corpora, at most one in fifty may alarm.
    assert found.alarms <= 0.02
