"""The study of judges' scores: what it makes and counts."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from support import load_script

study = load_script("studies/judge_scores.py")


def perfect(n=300):
    gold_i = np.arange(n) % 2
    return study.JudgedSet("made", np.eye(2)[gold_i], np.eye(2)[gold_i], gold_i, np.array([0.0, 1.0]))


def test_perfect_judges_hold_the_truth_and_need_less():
    found = study.measure(perfect(), 50, 20)
    assert perfect().truth == 0.5
    assert (found.name, found.n_gold) == ("made", 50)
    assert found.held >= 0.8
    assert found.length < 0.6
    assert study.summary([found], 20, 20).startswith("Of 1 rows, ")
    assert (found.held_more, found.length_more) == (found.held, found.length)
    assert study.measure(perfect(), 50, 5, 20).held_more == found.held


def test_copies_differ_on_three_percent_and_shared_errors_are_shared():
    votes = study.made_panel(4_000, (0.9, 0.7), 0, copies=1)
    wide = votes.pivot(on="annotator", index=["item", "gold"], values="label")
    assert (wide["copy0"] != wide["judge1"]).mean() == pytest.approx(0.03, abs=0.01)
    assert (wide["judge0"] == wide["gold"]).mean() == pytest.approx(0.9, abs=0.02)
    shared = study.made_panel(4_000, (1.0, 1.0), 0, shared=0.15).pivot(
        on="annotator", index=["item", "gold"], values="label"
    )
    assert (shared["judge0"] != shared["gold"]).mean() == pytest.approx(0.15, abs=0.02)
    assert (shared["judge0"] == shared["judge1"]).all()


def test_three_opinions_of_people_are_a_tie(tmp_path):
    people = {"human1": "1212", "human2": "1221", "human3": "2210"}
    rows = [(i, who, cast[i]) for who, cast in people.items() for i in range(4)]
    rows += [(i, who, "12"[(i + n) % 2]) for n, who in enumerate(("pandalm-7b", "gpt")) for i in range(4)]
    rows += [(4, who, label) for who, label in zip(people, "012", strict=True)]
    rows += [(4, "pandalm-7b", "0"), (4, "gpt", "0")]
    pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row").write_csv(tmp_path / "votes.csv")
    found = study.pandalm(tmp_path / "votes.csv", draws=0)
    # Votes 112, 222, 121, and twice three opinions; the labels are 0, 1, 2.
    assert found.gold_i.tolist() == [1, 2, 1, 0, 0]
    assert found.value_k.tolist() == [0.5, 1.0, 0.0]


def test_followers_differ_as_often_as_they_should_and_the_best_is_counted():
    wide = study.made_panel(4_000, study.HIJACKED, 0, copies=4, noise=0.15).pivot(
        on="annotator", index=["item", "gold"], values="label"
    )
    assert (wide["copy3"] != wide["judge4"]).mean() == pytest.approx(0.15, abs=0.02)
    found = study.ranked_first(1, 0.03)
    assert set(found.first) == {"standing", "score", "known", "votes"} and set(found.first.values()) <= {0, 1}
    assert found.first["votes"] == found.first["standing"] == 1
    assert (len(found.held), len(found.score_held)) == (9, 1)
    assert found.score_length[0] < 1.0


def test_what_copies_are_worth_is_seen_with_known_answers():
    [found], [known] = (study.worth_of((0.9, 0.85, 0.8), 2, 1, n_gold) for n_gold in (0, 200))
    assert known == pytest.approx(3.0, rel=0.1) and found > 4.0
