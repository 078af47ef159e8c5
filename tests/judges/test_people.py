"""May a model replace people (against a plain second implementation), and what is accepted keeps its promise."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest, false_discovery_control, ttest_1samp

import moral_entropy as me
from moral_entropy.cli.main import main
from moral_entropy.errors import UsageError
from moral_entropy.judges.people import accept, alternative_annotator, escalate, fewest
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
    win_h, advantage_h, n_h, left_out = alternative_annotator(model_i, people_hi, 0.15, value_k)
    as_dict = {h: {i: v for i, v in enumerate(row) if v != UNKNOWN} for h, row in enumerate(people_hi)}
    wanted = plain_test({i: v for i, v in enumerate(model_i) if v != UNKNOWN}, as_dict, 0.15, value_k)
    assert (win_h.mean(), advantage_h.mean()) == pytest.approx(wanted)
    assert (len(n_h), left_out) == (3, 1)


def test_a_model_that_is_the_majority_wins_and_a_coin_does_not():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 100)
    people_hi = np.stack([np.where(rng.random(100) < 0.8, truth, 1 - truth) for _ in range(3)])
    good = alternative_annotator(truth, people_hi, 0.1)[0]
    coin = alternative_annotator(rng.integers(0, 2, 100), people_hi, 0.1)[0]
    assert good.all()
    assert not coin.any()


def test_a_model_that_always_agrees_as_well_has_no_spread():
    same = np.zeros((3, 40), dtype=int)
    assert alternative_annotator(same[0], same, 0.1)[0].all()
    assert not alternative_annotator(same[0], same, 0.0)[0].any()


def test_too_few_items():
    assert alternative_annotator(np.zeros(20, dtype=int), np.zeros((3, 20), dtype=int), 0.1) is None


def judged(seed, n=2_000, known=300):
    """Labels whose confidence is how often they are right, and the answers of some."""
    rng = np.random.default_rng(seed)
    confidence_i = np.round(rng.uniform(0.6, 1.0, n), 3)
    return confidence_i, rng.random(n) > confidence_i, np.arange(n) < known


def test_the_promise_holds_over_repetitions():
    """At most the risk of the repetitions accept labels of which more than 10% are wrong."""
    broken = some = 0
    for seed in range(150):
        confidence_i, wrong_i, known_i = judged(seed)
        found = accept(confidence_i, wrong_i, known_i, 0.1, 0.1)
        if found is not None:
            some += 1
            level = found[0]
            # Of uniform confidences above a level, (1 - level) / 2 are wrong.
            broken += (1.0 - level) / 2 > 0.1
    assert some > 100
    assert broken / 150 <= 0.1


def test_every_accepted_confidence_passes_the_exact_test():
    confidence_i, wrong_i, known_i = judged(1)
    level, n, wrong = accept(confidence_i, wrong_i, known_i, 0.08, 0.1)
    here = known_i & (confidence_i >= level)
    assert (n, wrong) == (here.sum(), (wrong_i & here).sum())
    # The one-sided bound of 90% is the two-sided one of 80%.
    assert binomtest(wrong, n).proportion_ci(0.8, method="exact").high <= 0.08


def test_too_few_answers_accept_nothing():
    assert fewest(0.05, 0.05) == 59
    confidence_i, wrong_i, known_i = judged(2, known=58)
    assert accept(confidence_i, wrong_i & False, known_i, 0.05, 0.05) is None


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 500)
    hard = rng.random(500) < 0.2
    rows = [
        (i, who, int(t if rng.random() < (0.5 if hard[i] else 0.97) else 1 - t), int(t) if i < 250 else None)
        for who in ("gpt-a", "gpt-b", "llama", "qwen", "mistral")
        for i, t in enumerate(truth)
    ]
    return me.audit(pl.DataFrame(rows, schema=["item", "annotator", "label", "gold"], orient="row"), draws=20)


def test_a_run_is_split_into_accepted_and_sent(run):
    [found] = escalate(run, agreement=0.9)
    assert found["accepted"] + found["sent"] == 250
    assert found["accepted"] > 100
    assert found["queue"]["expected_gain"].is_sorted(descending=True)
    assert set(found["queue"]["item"]).isdisjoint(str(i) for i in range(250))
    with pytest.raises(UsageError, match="agreement is 1; it is a share"):
        escalate(run, agreement=1)


def test_the_command(run, tmp_path, capsys):
    run.save(tmp_path / "run")
    folder, queue = str(tmp_path / "run"), str(tmp_path / "queue.csv")
    assert main(["next", folder, "--for", "people", "--agreement", "0.9", "-n", "5"]) == 0
    assert "accept " in capsys.readouterr().out
    assert main(["next", folder, "--for", "people", "-n", "5", "-o", queue]) == 0
    assert pl.read_csv(queue).height == 5
    capsys.readouterr()
    assert main(["next", folder, "--for", "people", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["queue"]
