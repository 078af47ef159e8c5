"""What is accepted without a person's look keeps its promise, and the rest is ranked."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

import moral_entropy as me
from moral_entropy.cli.main import main
from moral_entropy.errors import UsageError
from moral_entropy.judges.escalate import accept, escalate, fewest


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
