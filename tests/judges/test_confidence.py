"""Votes of which judges are unsure: against names changed by hand, and against the truth."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import moral_entropy as me
from moral_entropy.errors import UsageError, VotesError
from moral_entropy.judges.confidence import FEWEST_VOTES, UNSURE, split_unsure, sureness
from moral_entropy.judges.panel import read_panel
from moral_entropy.judges.table import describe_judges
from moral_entropy.votes.read import read_votes


def votes_of(n_items=300, n_judges=4, seed=0):
    """Judges who are right as often as they say."""
    rng = np.random.default_rng(seed)
    truth_i = rng.random(n_items) < 0.4
    frames = []
    for j in range(n_judges):
        sure_i = (0.5 + 0.5 * rng.beta(3, 1.2, n_items)).round(3)
        vote_i = np.where(rng.random(n_items) < sure_i, truth_i, ~truth_i) * 1
        frames.append(pl.DataFrame({"item": np.arange(n_items), "annotator": f"gpt-{j}", "label": vote_i, "c": sure_i}))
    return pl.concat(frames), truth_i


def renamed(frame):
    median = pl.col("c").median().over("annotator")
    name = pl.when(pl.col("c") < median).then(pl.col("annotator") + UNSURE).otherwise("annotator")
    return frame.with_columns(annotator=name)


def same(found, wanted):
    assert found.annotators.to_list() == wanted.annotators.to_list()
    for one, other in zip(found.ballots, wanted.ballots, strict=True):
        for name in ("start_i", "code_v", "annotator_a", "item_i", "gold_i"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        np.testing.assert_array_equal(
            found.kept["c"].gather(one.row_v).to_numpy(), wanted.kept["c"].gather(other.row_v).to_numpy()
        )


@given(seed=st.integers(0, 999), n_items=st.integers(2 * FEWEST_VOTES + 2, 80), n_labels=st.integers(2, 3))
def test_votes_taken_apart_are_those_of_names_changed_by_hand(seed, n_items, n_labels):
    rng = np.random.default_rng(seed)
    rows = [(int(i), f"j{j}", int(rng.integers(n_labels)) if i else j % n_labels, float(rng.random()))
            for j in range(3) for i in range(n_items)]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["item", "annotator", "label", "c"], orient="row").sample(
        fraction=1.0, shuffle=True, seed=seed
    )
    same(split_unsure(read_votes(frame, keep=("c",)), "c"), read_votes(renamed(frame), keep=("c",)))


def test_logarithms_are_told_from_probabilities():
    frame, _ = votes_of(80, 2)
    logs = frame.with_columns(pl.col("c").log())
    plain, logged = (split_unsure(read_votes(one, keep=("c",)), "c") for one in (frame, logs))
    assert plain.annotators.to_list() == logged.annotators.to_list()
    np.testing.assert_array_equal(plain.ballots[0].code_v, logged.ballots[0].code_v)


def test_judges_with_few_unsure_votes_stay_whole():
    frame, _ = votes_of(2 * FEWEST_VOTES - 2, 2)
    votes = read_votes(frame, keep=("c",))
    assert split_unsure(votes, "c") is votes
    always, _ = votes_of(100, 2)
    equal = read_votes(always.with_columns(c=pl.lit(0.9)), keep=("c",))
    assert split_unsure(equal, "c") is equal


def test_how_sure_judges_are_makes_the_consensus_better():
    gains = []
    for seed in range(2):
        frame, truth_i = votes_of(400, 5, seed)
        plain, told = (me.audit(frame, draws=0, report=False, **given) for given in ({}, {"confidence": "c"}))
        p_i, q_i = (one.items.sort("item")["p"].to_numpy() for one in (plain, told))
        gains.append([-np.log(np.where(truth_i, p, 1 - p)).mean() for p in (p_i, q_i)])
    before, after = np.mean(gains, axis=0)
    assert after < 0.85 * before


def test_a_judge_stays_one_judge():
    frame, truth_i = votes_of(200, 3)
    gold = pl.DataFrame({"item": np.arange(60), "gold": truth_i[:60] * 1})
    run = me.audit(frame, draws=20, confidence="c", gold=gold)
    assert run.manifest["unsure"] == {f"gpt-{j}{UNSURE}": f"gpt-{j}" for j in range(3)}
    assert [one["judge"] for one in run.manifest["roles"]["judges"]] == ["gpt-0", "gpt-1", "gpt-2"]
    found = describe_judges(run)
    assert sorted(found.frame["judge"]) == ["gpt-0", "gpt-1", "gpt-2"]
    assert found.frame["n_votes"].to_list() == [200] * 3 and found.frame["missing"].to_list() == [0.0] * 3
    assert run.findings.filter(side="judges").is_empty()
    # The evidence of a vote is that of the row which the fit has for such votes.
    panel = read_panel(run, run.questions[0])
    rows = run.table("annotators")
    median = frame["c"].filter(frame["annotator"] == "gpt-1").median()
    mine = frame.filter(annotator="gpt-1").sort("item")
    at = int(np.argmax(panel.mix_zk[:, 1]))
    for i in range(20):
        name = "gpt-1" + UNSURE * bool(mine["c"][i] < median)
        cell = rows.filter(annotator=name, true="1", voted=str(mine["label"][i]))["probability"][0]
        assert panel.evidence(1)[i, at] == pytest.approx(np.log(cell))
    # Scores count votes in part without being told again.
    assert me.score(run).frame["votes_value"][0] == me.score(run, confidence="c").frame["votes_value"][0]


def test_what_is_no_probability_is_refused():
    frame, _ = votes_of(50, 2)
    with pytest.raises(UsageError, match=r"1 of 3 votes have a 'c' that is no probability. First: 1\.5"):
        sureness(pl.Series("c", [0.2, 1.5, None]))
    with pytest.raises(VotesError, match="no column 'sure'"):
        me.audit(frame, draws=0, confidence="sure")
