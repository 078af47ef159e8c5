"""The alternative-annotator test, against a plain second implementation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import false_discovery_control, ttest_1samp

from moral_entropy.judges.replace import alternative_annotator, false_discoveries
from moral_entropy.votes.table import UNKNOWN


def plain_test(model, people, epsilon, value=None):
    """The test as the paper words it, with dictionaries: item → vote."""
    p_values, advantages = [], []
    for name, votes in people.items():
        wins, differences = [], []
        for item, vote in votes.items():
            others = [other[item] for who, other in people.items() if who != name and item in other]
            if item not in model or not others:
                continue
            if value is None:
                person, machine = (np.mean([one == other for other in others]) for one in (vote, model[item]))
            else:
                person, machine = (
                    -np.sqrt(np.mean([(value[one] - value[other]) ** 2 for other in others]))
                    for one in (vote, model[item])
                )
            wins.append(machine >= person - 1e-12)
            differences.append(float(person >= machine - 1e-12) - float(machine >= person - 1e-12))
        if len(wins) >= 30:
            p_values.append(ttest_1samp(differences, epsilon, alternative="less").pvalue)
            advantages.append(np.mean(wins))
    rejected = false_discovery_control(p_values, method="by") <= 0.05
    return np.mean(rejected), np.mean(advantages)


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_test_of_the_paper(seed, numbers):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, 90)

    def votes(right, seen):
        cast = np.where(rng.random(90) < right, truth, rng.integers(0, 4, 90))
        return np.where(rng.random(90) < seen, cast, UNKNOWN)

    people_hi = np.stack([votes(0.7, 0.9), votes(0.6, 0.8), votes(0.8, 0.9), votes(0.7, 0.2)])
    model_i = votes(0.6 + 0.05 * seed, 0.95)
    value_k = np.array([0.0, 0.2, 0.5, 1.0]) if numbers else None
    p_h, advantage_h, n_h, left_out = alternative_annotator(model_i, people_hi, 0.15, value_k)
    as_dict = {h: {i: v for i, v in enumerate(row) if v != UNKNOWN} for h, row in enumerate(people_hi)}
    wanted = plain_test({i: v for i, v in enumerate(model_i) if v != UNKNOWN}, as_dict, 0.15, value_k)
    assert (false_discoveries(p_h, 0.05).mean(), advantage_h.mean()) == pytest.approx(wanted)
    assert (len(n_h), left_out) == (3, 1)


def test_a_model_that_is_the_majority_wins_and_a_coin_does_not():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 100)
    people_hi = np.stack([np.where(rng.random(100) < 0.8, truth, 1 - truth) for _ in range(3)])
    good = alternative_annotator(truth, people_hi, 0.1)[0]
    coin = alternative_annotator(rng.integers(0, 2, 100), people_hi, 0.1)[0]
    assert false_discoveries(good, 0.05).all()
    assert not false_discoveries(coin, 0.05).any()


def test_a_model_that_always_agrees_as_well_has_no_spread():
    same = np.zeros((3, 40), dtype=int)
    assert alternative_annotator(same[0], same, 0.1)[0].tolist() == [0.0, 0.0, 0.0]
    assert alternative_annotator(same[0], same, 0.0)[0].tolist() == [1.0, 1.0, 1.0]


def test_too_few_items():
    assert alternative_annotator(np.zeros(20, dtype=int), np.zeros((3, 20), dtype=int), 0.1) is None
