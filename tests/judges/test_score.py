"""Scores of runs: against plain counting, and what is said where they cannot be trusted."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from support import posterior_draws

import moral_entropy as me
from moral_entropy.cli.main import main
from moral_entropy.errors import UsageError
from moral_entropy.judges.estimates import corrected_mean, difference, gold_alone
from moral_entropy.judges.known import known_items
from moral_entropy.judges.score import drawn_means
from moral_entropy.judges.values import quantities
from moral_entropy.runs.run import Question
from moral_entropy.votes.table import UNKNOWN

RIGHT = {"gpt-a": 0.9, "gpt-b": 0.85, "llama": 0.8, "qwen": 0.7}


def judged(n_items=300, known=0.3, labels=("no", "yes"), seed=0):
    """Votes of four judges on the answers of two systems, the answer known on a part."""
    rng = np.random.default_rng(seed)
    rows = []
    for item in range(n_items):
        system = "ab"[item % 2]
        truth = rng.choice(labels) if len(labels) > 2 else labels[int(rng.random() < {"a": 0.8, "b": 0.5}[system])]
        gold = truth if rng.random() < known else None
        for judge, right in RIGHT.items():
            vote = truth if rng.random() < right else rng.choice([one for one in labels if one != truth])
            rows.append((item, judge, str(vote), system, gold))
    return pl.DataFrame(rows, schema=["item", "annotator", "label", "system", "gold"], orient="row")


@pytest.fixture(scope="module")
def votes():
    return judged()


@pytest.fixture(scope="module")
def run(votes):
    return me.audit(votes, keep=["system"], draws=60)


@pytest.fixture(scope="module")
def blind(votes):
    return me.audit(votes.drop("gold"), keep=["system"], draws=60)


def of(score, group, frame="frame"):
    [row] = getattr(score, frame).filter(group=group).to_dicts()
    return row


def test_a_score_by_system_is_that_of_its_items(run, votes):
    found = me.score(run, by="system", at_least=0.6)
    for system in "ab":
        ids = votes.filter(system=system)["item"].unique().sort()
        items = run.items.filter(pl.col("item").is_in(ids.implode())).sort("item")
        gold_i = np.array([{"no": 0, "yes": 1, None: UNKNOWN}[one] for one in items["gold"]])
        p_i = items["p"].to_numpy()
        wanted = corrected_mean(gold_i, np.stack([1 - p_i, p_i], axis=1), np.array([0.0, 1.0]))
        row = of(found, system)
        assert (row["value"], row["low"], row["high"]) == pytest.approx((wanted.value, wanted.low, wanted.high))
        assert (row["n_items"], row["n_gold"], row["method"]) == (150, int((gold_i >= 0).sum()), "corrected")
        shares = votes.filter(system=system).group_by("item").agg((pl.col("label") == "yes").mean())["label"]
        assert row["votes_value"] == pytest.approx(shares.mean())
        assert row["gold_value"] == pytest.approx((gold_i[gold_i >= 0] == 1).mean())
    [apart] = found.differences.to_dicts()
    assert (apart["group"], apart["other"], apart["verdict"]) == ("a", "b", "trusted")
    assert apart["value"] == pytest.approx(of(found, "a")["value"] - of(found, "b")["value"])
    assert of(found, "a")["verdict"] == "trusted"


def test_known_answers_of_all_items_are_the_score():
    votes = judged(120, known=1.0)
    found = me.score(me.audit(votes, draws=20)).frame.row(0, named=True)
    truth = votes.unique("item")["gold"] == "yes"
    alone = gold_alone(truth.to_numpy().astype(float))
    assert found["method"] == "gold"
    assert (found["value"], found["low"], found["high"]) == pytest.approx((alone.value, alone.low, alone.high))


def test_without_known_answers_nothing_is_trusted(blind):
    found = me.score(blind, by="system", at_least=0.01)
    assert set(found.frame["verdict"]) == set(found.differences["verdict"]) == {"undecided"}
    assert set(found.frame["method"]) == {"votes"}
    assert found.frame["ppi_value"].is_null().all()
    assert "nothing here is called trusted" in found.notes[0]


def test_draws_of_a_score_are_those_of_its_items(blind):
    [question] = blind.questions
    known, group_i = known_items(blind, question), np.arange(300) % 2
    mean_gs = drawn_means(blind.consensus, known, np.array([0.0, 1.0]), group_i, 2)
    [fit] = blind.consensus.fits
    own_i = 1.0 - fit.share_weight_i
    p_si = fit.p_ik[:, 1] + own_i * (posterior_draws(fit)[:, :, 1] - fit.model_ik[:, 1])
    assert mean_gs == pytest.approx(np.stack([p_si[:, group_i == g].mean(axis=1) for g in (0, 1)]))


def test_a_folder_and_the_run_in_memory_have_the_same_score(blind, tmp_path):
    blind.save(tmp_path / "run")
    there = me.score(tmp_path / "run", by="system")
    assert there.frame.equals(me.score(blind, by="system").frame)


def test_answers_of_a_spot_check_are_known_answers(blind, votes):
    truth = dict(judged(known=1.0).select("item", "gold").iter_rows())
    sheet = blind.spot_check(60).with_columns(answer=pl.col("item").replace_strict(truth))
    row = me.score(blind.with_answers(sheet)).frame.row(0, named=True)
    assert (row["n_gold"], row["method"]) == (60, "corrected")
    answers = (sheet["answer"] == "yes").to_numpy().astype(float)
    assert row["gold_value"] == pytest.approx(np.average(answers, weights=sheet["weight"]))


def test_gold_that_was_evidence_is_scored_alone(votes):
    found = me.score(me.audit(votes, draws=20, gold_as_evidence=True))
    assert found.frame["method"].to_list() == ["gold"]
    assert "cannot correct it" in found.notes[0]


def test_numbers_have_a_mean_on_their_own_scale():
    votes = judged(200, labels=("1", "2", "5"))
    run = me.audit(votes, draws=20)
    row = me.score(run, at_least=1.5).frame.row(0, named=True)
    assert (row["quantity"], row["limit"]) == ("mean", 1.5)
    gold = votes.unique("item").drop_nulls("gold")["gold"].cast(pl.Float64)
    assert row["gold_value"] == pytest.approx(gold.mean())
    assert 1 < row["low"] < row["value"] < row["high"] < 5


def test_wins_and_ties():
    votes = judged(200, labels=("A", "B", "tie"))
    run = me.audit(votes, draws=20)
    row = me.score(run).frame.row(0, named=True)
    told = me.score(run, values=["A=2", "B=-2", "tie=0"]).frame.row(0, named=True)
    assert row["quantity"] == "win rate of 'A'"
    assert told["value"] == pytest.approx(4 * row["value"] - 2)
    with pytest.raises(UsageError, match="'tie' is not among them"):
        me.score(run, values=["A=1", "B=0"])


def test_undecided_says_how_many_more(run):
    value = me.score(run).frame["value"][0]
    close = me.score(run, at_least=value - 0.02).frame.row(0, named=True)
    assert close["verdict"] == "undecided"
    assert close["more_gold"] is None or close["more_gold"] > 0


def test_one_label_among_known_answers_is_said(votes):
    only = votes.with_columns(gold=pl.when(pl.col("gold") == "yes").then(pl.col("gold")))
    notes = " ".join(me.score(me.audit(only, draws=20)).notes)
    assert "known answers are 'yes'" in notes
    assert "hardly a random part" in notes


def test_columns_that_cannot_be_scored_by(run, votes):
    with pytest.raises(UsageError, match=r"Did you mean .domain.\? Found: domain, system"):
        me.score(run, by="domains")
    split = votes.with_columns(who=pl.col("annotator"))
    with pytest.raises(UsageError, match="300 items have more than one 'who'"):
        me.score(me.audit(split, keep=["who"], draws=20), by="who")


def test_more_systems_than_six_are_compared_with_the_highest():
    votes = judged(140, known=1.0).with_columns(system=(pl.col("item") % 7).cast(pl.String))
    found = me.score(me.audit(votes, keep=["system"], draws=20), by="system")
    assert found.differences.height == 6
    assert set(found.differences["group"]) == {found.frame.sort("value")["group"][-1]}


def test_the_difference_is_that_of_the_estimates():
    a, b = gold_alone(np.ones(9)), gold_alone(np.zeros(9))
    assert difference(a, b).value == 1.0


def test_quantities_of_a_nominal_question():
    names = [one.name for one in quantities(Question("q", ("x", "y", "z"), None))]
    assert names == ["share of 'x'", "share of 'y'", "share of 'z'"]


def test_the_command(run, tmp_path, capsys):
    run.save(tmp_path / "run")
    assert main(["judges", str(tmp_path / "run"), "--by", "system", "--at-least", "0.6"]) == 0
    shown = capsys.readouterr().out
    assert "PPI++" in shown
    assert "a - b" in shown
    # The column system is taken without being named.
    assert main(["judges", str(tmp_path / "run"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["scores"] == me.score(run, by="system").frame.to_dicts()
    assert main(["judges", str(tmp_path / "run"), "--values", "yes"]) == 2
