"""The ensemble and the grid of priors: against the posterior, fits made by hand, and votes that two answers fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from moral_entropy import fit, simulate_votes
from moral_entropy.checks import refits
from moral_entropy.checks.refits import check_ensemble, check_priors
from moral_entropy.model.posterior import Parameters
from moral_entropy.model.priors import Priors

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")

MODELS = pytest.mark.parametrize("model", ["mixed", "paper"])


def by_figure(findings):
    return {(finding.metric, finding.subject): finding for finding in findings}


@MODELS
def test_where_the_model_holds_starts_agree(model):
    consensus = fit(simulate_votes(n_items=600, n_annotators=8, votes_per_item=5, seed=3).votes, model=model, draws=0)
    found = by_figure(check_ensemble(consensus, members=8, seed=1))
    assert not [finding for finding in found.values() if finding.is_warning]
    assert found["starts_agreeing", ""].value == 1.0 and found["p_sd_mean", ""].value < 1e-4
    again = by_figure(check_ensemble(consensus, members=8, seed=1))
    assert {key: f.value for key, f in again.items()} == {key: f.value for key, f in found.items()}


def test_an_answer_as_good_is_a_doubt(monkeypatch):
    monkeypatch.setattr(refits, "SPREAD", 5.0)
    votes = simulate_votes(n_items=300, n_annotators=4, votes_per_item=4, accuracy=(0.8, 0.95), seed=3).votes
    # Nothing tells an answer from its mirror image under a prior that does not believe in annotators.
    flat = fit(votes, model="paper", draws=50, priors=Priors(diagonal=1.5, off_diagonal=1.5))
    found = by_figure(check_ensemble(flat, members=12))
    other = found["mode_distance", ""]
    assert found["starts_agreeing", ""].value < 1.0
    assert other.level == "doubt" and abs(other.value) < 0.01 and "of 12 random starts" in other.text


def test_a_better_answer_is_bad():
    votes = simulate_votes(n_items=300, n_annotators=4, votes_per_item=4, accuracy=(0.8, 0.95), seed=3).votes
    sound = fit(votes, model="paper", draws=50)
    [one] = sound.fits
    mirrored = replace(one, mode=Parameters(one.mode.weight_dg[:, ::-1], one.confusion_akv[:, ::-1]))
    worst = by_figure(check_ensemble(replace(sound, fits=(mirrored,)), members=4))["mode_distance", ""]
    assert worst.level == "bad" and worst.value < -0.05 and "nats better" in worst.text


@MODELS
def test_a_cell_of_the_grid_is_a_fit_made_by_hand(model):
    votes = simulate_votes(n_items=400, n_annotators=8, votes_per_item=5, seed=3).votes
    consensus = fit(votes, model=model, draws=100)
    found = by_figure(check_priors(consensus))
    hand = [fit(votes, model=model, draws=0, priors=Priors(diagonal=d, off_diagonal=o)) for d, o in ((1, 1), (20, 5))]
    span = found["range_prevalence", "1"]
    for other in hand:
        share = float(other.fits[0].share_k[1])
        assert span.low <= share <= span.high
    changed = [np.mean(other.fits[0].label_i != consensus.fits[0].label_i) for other in hand]
    assert found["range_labels_changed", ""].high >= max(changed)
    assert span.value == pytest.approx(span.high - span.low) and not span.is_warning


def test_thin_votes_raise_a_doubt_about_the_prior():
    votes = simulate_votes(
        n_items=1_500, n_annotators=150, votes_per_item=1.3, prevalence_k=(0.8, 0.2), accuracy=(0.75, 0.9), seed=1
    ).votes
    (doubt,) = [finding for finding in check_priors(fit(votes, model="paper", draws=50)) if finding.is_warning]
    assert doubt.metric == "range_prevalence" and "the default assumption (the prior) decides" in doubt.meaning


def test_of_three_labels_every_share_ranges():
    votes = simulate_votes(n_items=200, n_annotators=6, votes_per_item=4, n_labels=3).votes
    shares = [finding for finding in check_priors(fit(votes, draws=0)) if finding.metric == "range_prevalence"]
    assert [finding.subject for finding in shares] == ["0", "1", "2"]
