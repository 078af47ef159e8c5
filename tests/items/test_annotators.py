"""Roles: a planted adversary and planted flaggers are found, honest annotators are left alone."""

from __future__ import annotations

import numpy as np
import pytest
from support import votes_of

from moral_entropy.checks.votes import check_identifiability
from moral_entropy.items import annotators as module
from moral_entropy.items.annotators import describe_annotators
from moral_entropy.items.disagreement import tally_votes
from moral_entropy.model.consensus import youden
from moral_entropy.model.fit import fit


def team(sensitivity_a, specificity_a, *, n_items=400, share=1.0, seed=0, positive=1):
    rng = np.random.default_rng(seed)
    truth_i = rng.random(n_items) < 0.4
    rows = []
    for i, truth in enumerate(truth_i):
        for a, (sensitivity, specificity) in enumerate(zip(sensitivity_a, specificity_a, strict=True)):
            if rng.random() < share:
                yes = rng.random() < (sensitivity if truth else 1 - specificity)
                rows.append((i, a, positive if yes else 1 - positive))
    return votes_of(rows, n_items=n_items, positive=positive)


def described(votes, draws=200, **options):
    return describe_annotators(fit(votes, draws=draws, seed=1).fits[0], **options)


@pytest.mark.parametrize("positive", [0, 1])
def test_planted_roles_are_found(positive):
    sensitivity_a = [0.85, 0.85, 0.85, 0.85, 0.2, 0.97, 0.5, 0.5]
    specificity_a = [0.85, 0.85, 0.85, 0.85, 0.3, 0.55, 0.98, 0.5]
    votes = team(sensitivity_a, specificity_a, positive=positive, seed=1)
    figures = described(votes)
    expected = ["", "", "", "", "worse than guessing", "says yes too often", "says yes too rarely", "like guessing"]
    assert figures["role"].tolist() == expected
    assert figures["below_chance"][4] > 0.99 > 0.01 > figures["below_chance"][0]
    np.testing.assert_allclose(figures["sensitivity"], sensitivity_a, atol=0.1)
    np.testing.assert_allclose(figures["specificity"], specificity_a, atol=0.1)
    against_a, compared_a = tally_votes(votes.ballots[0])[1:3]
    assert (against_a / compared_a).argmax() == 4


def test_honest_annotators_are_left_alone():
    roles = []
    for seed in range(12):
        figures = described(team([0.8] * 10, [0.85] * 10, n_items=150, share=0.5, seed=seed), draws=100)
        roles += figures["role"].tolist()
    named = [role for role in roles if role]
    assert roles.count("worse than guessing") == roles.count("like guessing") == 0
    # Flagging is judged by a 90% interval and a least size: of equals hardly one passes both.
    assert len(named) <= 0.05 * len(roles), named


def test_figures_are_those_of_the_draws():
    one = fit(team([0.8, 0.7, 0.9], [0.9, 0.8, 0.7], n_items=80), draws=60, seed=3).fits[0]
    figures = describe_annotators(one, interval=0.8)
    weight_a = one.ballot.votes_a / one.ballot.votes_a.sum()
    for a in range(3):
        sensitivity_s, specificity_s = one.confusion_sakv[:, a, 1, 1], one.confusion_sakv[:, a, 0, 0]
        youden_s = sensitivity_s + specificity_s - 1
        np.testing.assert_allclose(
            [figures["youden_low"][a], figures["youden_high"][a]], np.quantile(youden_s, [0.1, 0.9]), rtol=1e-9
        )
        assert figures["below_chance"][a] == np.mean(youden_s < 0)
        says_yes = one.confusion_sakv[:, :, :, 1].mean(axis=2)
        lean_s = says_yes[:, a] - says_yes @ weight_a
        np.testing.assert_allclose(figures["lean_low"][a], np.quantile(lean_s, 0.1), atol=1e-12)


def test_few_votes_are_no_role_else_and_no_draws_none_at_all():
    votes = team([0.9, 0.9, 0.1], [0.9, 0.9, 0.1], n_items=9)
    assert set(described(votes)["role"].tolist()) == {"few votes"}
    figures = described(team([0.9, 0.9, 0.1], [0.9, 0.9, 0.1]), draws=0)
    assert set(figures["role"].tolist()) == {""}
    assert np.isnan([figures["youden_low"], figures["below_chance"]]).all()


def test_more_labels_have_a_mean_diagonal_and_no_specificity():
    rng = np.random.default_rng(2)
    truth_i = rng.integers(3, size=200)
    rows = [(i, a, k if rng.random() < 0.8 else int(rng.integers(3))) for i, k in enumerate(truth_i) for a in range(4)]
    one = fit(votes_of(rows, 3), draws=30).fits[0]
    figures = describe_annotators(one)
    diagonal_a = [np.mean([one.confusion_akv[a, k, k] for k in range(3)]) for a in range(4)]
    np.testing.assert_allclose(figures["sensitivity"], diagonal_a)
    np.testing.assert_allclose(figures["youden"], (3 * np.array(diagonal_a) - 1) / 2)
    assert np.isnan(figures["specificity"]).all() and set(figures["role"].tolist()) == {""}


def test_chunks_change_nothing(monkeypatch):
    one = fit(team([0.8] * 5, [0.9] * 5, n_items=60), draws=20).fits[0]
    whole = describe_annotators(one)
    monkeypatch.setattr(module, "ANNOTATORS_AT_ONCE", 2)
    cut = describe_annotators(one)
    np.testing.assert_array_equal(whole["youden_low"], cut["youden_low"])
    np.testing.assert_array_equal(whole["lean_high"], cut["lean_high"])
    np.testing.assert_array_equal(whole["below_chance"], cut["below_chance"])


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_youden_index_is_that_of_the_checks(n_labels):
    rng = np.random.default_rng(7)
    truth_i = rng.integers(n_labels, size=300)
    wrong = [0.15, 0.2, 0.25, 0.9]
    rows = [
        (i, a, int(k if rng.random() >= wrong[a] else (k + rng.integers(1, n_labels)) % n_labels))
        for i, k in enumerate(truth_i)
        for a in range(4)
    ]
    consensus = fit(votes_of(rows, n_labels), draws=200)
    figures = describe_annotators(consensus.fits[0], interval=consensus.interval)
    [named] = [finding for finding in check_identifiability(consensus) if finding.metric == "below_chance"]
    assert named.subject == "3" and figures["role"][3] == "worse than guessing"
    assert figures["youden_low"][3] < youden(consensus.fits[0].confusion_sakv[:, 3]).mean() < figures["youden_high"][3]


def test_nobody_whose_interval_is_below_chance_is_called_near_it():
    """Nine items in twenty right: the 90% interval is below 0 while the probability of that is under 99%."""
    figures = {"youden": [-0.15, -0.15], "youden_low": [-0.3, -0.3], "youden_high": [-0.01, 0.01]}
    figures |= {"below_chance": [0.97, 0.94], **{f"lean{end}": [np.nan] * 2 for end in ("", "_low", "_high")}}
    roles = module._roles(np.array([40, 40]), {name: np.array(value) for name, value in figures.items()})
    assert roles.tolist() == ["probably worse than guessing", "like guessing"]
