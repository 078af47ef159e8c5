"""Scores of runs: against plain counting, and what is said where they cannot be trusted."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import moral_entropy as me
from moral_entropy.cli.main import main
from moral_entropy.errors import UsageError
from moral_entropy.judges.estimates import Answers, corrected_means, known_mean, ppi_mean
from moral_entropy.judges.known import known_items, stratum_weights
from moral_entropy.judges.values import quantities
from moral_entropy.runs.run import Question

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
            vote = truth if rng.random() < right else rng.choice([label for label in labels if label != truth])
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
    scores = me.score(run, by="system", at_least=0.6)
    items = run.items.sort("item")
    known_i, truth_i = items["gold"].is_not_null().to_numpy(), (items["gold"] == "yes").fill_null(False).to_numpy()
    # Judges of known quality: the consensus is as good as weights learnt from answers, or those are used.
    guess_ik = known_items(run, run.questions[0]).guess_ik
    answers = Answers(np.arange(300) % 2, np.arange(300), known_i, np.eye(2)[truth_i * 1], guess_ik, np.ones(300))
    estimates, gaps = corrected_means(answers, np.array([0.0, 1.0]))
    for system, estimate in zip("ab", estimates, strict=True):
        row = of(scores, system)
        assert (row["value"], row["low"], row["high"]) == pytest.approx((estimate.value, estimate.low, estimate.high))
        assert (row["n_items"], row["n_gold"], row["method"]) == (150, estimate.n_known, "corrected")
        shares = votes.filter(system=system).group_by("item").agg((pl.col("label") == "yes").mean())["label"]
        assert row["votes_value"] == pytest.approx(shares.mean())
        truth = votes.filter(system=system).unique("item")["gold"].drop_nulls() == "yes"
        assert row["gold_value"] == pytest.approx(truth.mean())
    [apart] = scores.differences.to_dicts()
    assert (apart["group"], apart["other"], apart["verdict"]) == ("a", "b", "trusted")
    assert (apart["value"], apart["low"]) == pytest.approx((gaps(0, 1).value, gaps(0, 1).low))
    assert of(scores, "a")["verdict"] == "trusted"


def test_percent_and_share_mean_the_same_limit(run):
    assert me.score(run, at_least=60).frame.equals(me.score(run, at_least=0.6).frame)
    with pytest.raises(UsageError, match="at_least is 160"):
        me.score(run, at_least=160)


def test_the_interval_is_asked_for_with_the_score(run):
    wide, narrow = (me.score(run, interval=mass).frame.row(0, named=True) for mass in (0.99, 0.5))
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]


def test_votes_of_people_beside_models_are_known_answers():
    """Three people on a part of the items, each right in 85%: aggregated, they hold the truth where majorities miss."""
    rng = np.random.default_rng(3)
    truth_i = rng.random(600) < 0.75
    rows = [(i, judge, "yes" if (rng.random() < right) == truth_i[i] else "no")
            for judge, right in RIGHT.items() for i in range(600)]  # fmt: skip
    rows += [(i, name, "yes" if (rng.random() < 0.85) == truth_i[i] else "no")
             for name in ("Anna", "Ben", "Claude") for i in range(150)]  # fmt: skip
    votes = pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row")
    run = me.audit(votes, draws=40)
    scores = me.score(run)
    row = scores.frame.row(0, named=True)
    assert (row["n_gold"], row["method"]) == (150, "corrected")
    assert row["low"] <= 0.75 <= row["high"]
    assert "Anna, Ben, Claude (people) are known answers" in scores.notes[0]
    by_dict = me.score(run, roles={"Anna": "llm", "Ben": "llm", "Claude": "llm"} | dict.fromkeys(RIGHT, "llm"))
    assert by_dict.frame["method"].to_list() == ["votes"]


def test_epochs_are_clusters(votes):
    """Every item asked about thrice with the same votes: the interval is that of the items."""
    thrice = pl.concat([votes.with_columns(item=pl.col("item") + 1_000 * epoch, sample="item") for epoch in range(3)])
    once, again = me.score(me.audit(votes, draws=20)), me.score(me.audit(thrice, draws=20))
    length = [score.frame["gold_high"][0] - score.frame["gold_low"][0] for score in (once, again)]
    assert length[1] == pytest.approx(length[0], rel=0.05)
    assert "900 items in 300 clusters" in " ".join(again.notes)


def test_codes_of_comparisons_are_wins_and_ties():
    votes = judged(90, labels=("0", "1", "2")).with_columns(first=pl.lit("x"), second=pl.lit("y"))
    row = me.score(me.audit(votes, draws=0)).frame.row(0, named=True)
    assert row["quantity"] == "win rate of '1'"
    share = votes.select(pl.col("label").replace_strict({"1": 1.0, "2": 0.0, "0": 0.5}).mean()).item()
    assert row["votes_value"] == pytest.approx(share)


def test_codes_that_may_be_comparisons_are_not_averaged_silently():
    scores = me.score(me.audit(judged(60, labels=("0", "1", "2")), draws=0))
    assert scores.frame["quantity"][0] == "mean" and "--values 1=1,2=0,0=0.5" in " ".join(scores.notes)


def test_grades_of_inspect_count_a_half():
    [grades] = quantities(Question("score", ("C", "I", "N", "P"), None))
    assert (grades.name, grades.value_k.tolist()) == ("share of correct answers", [1.0, 0.0, 0.0, 0.5])


def test_known_answers_of_all_items_are_the_score():
    votes = judged(120, known=1.0)
    scores = me.score(me.audit(votes, draws=20)).frame.row(0, named=True)
    truth = votes.unique("item")["gold"] == "yes"
    alone = known_mean(truth.to_numpy().astype(float))
    assert scores["method"] == "gold"
    assert (scores["value"], scores["low"], scores["high"]) == pytest.approx((alone.value, alone.low, alone.high))


def test_without_known_answers_nothing_is_trusted(blind):
    scores = me.score(blind, by="system", at_least=0.01)
    assert set(scores.frame["verdict"]) == set(scores.differences["verdict"]) == {"undecided"}
    assert set(scores.frame["method"]) == {"votes"}
    assert scores.frame["ppi_value"].is_null().all()
    assert "nothing here is called trusted" in scores.notes[0]
    assert (scores.frame["high"] - scores.frame["low"] > 0.3).all()


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
    scores = me.score(me.audit(votes, draws=20, gold_as_evidence=True))
    assert scores.frame["method"].to_list() == ["gold"]
    assert "cannot correct it" in scores.notes[0]


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
    scores = me.score(me.audit(votes, keep=["system"], draws=20), by="system")
    assert scores.differences.height == 6
    assert set(scores.differences["group"]) == {scores.frame.sort("value")["group"][-1]}


def test_quantities_of_a_nominal_question():
    names = [quantity.name for quantity in quantities(Question("q", ("x", "y", "z"), None))]
    assert names == ["share of 'x'", "share of 'y'", "share of 'z'"]


def test_the_command(run, tmp_path, capsys):
    run.save(tmp_path / "run")
    assert main(["judges", str(tmp_path / "run"), "--at-least", "0.3"]) == 0
    assert main(["judges", str(tmp_path / "run"), "--at-least", "0.99"]) == 1
    assert main(["judges", str(tmp_path / "run"), "--by", "system", "--at-least", "60"]) in (1, 3)
    shown = capsys.readouterr().out
    assert "PPI++" in shown
    assert "a - b" in shown
    # No limit, no verdicts; and the column that domains were read from may be named.
    by_domain = me.audit(judged(), domain="system", draws=0)
    assert me.score(by_domain, by="system").frame.equals(me.score(by_domain, by="domain").frame)
    assert main(["judges", str(tmp_path / "run")]) == 0
    assert "verdict" not in capsys.readouterr().out.partition("differences")[0]
    # The column system is taken without being named.
    assert main(["judges", str(tmp_path / "run"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["scores"] == me.score(run, by="system").frame.to_dicts()
    assert main(["judges", str(tmp_path / "run"), "--values", "yes"]) == 2


def stratified(seed, n=1_500):
    """Judges on easy items, most of them good, and on few hard ones, from which half of the known answers are drawn."""
    rng = np.random.default_rng(seed)
    hard_i = rng.random(n) < 0.2
    truth_i = rng.random(n) < np.where(hard_i, 0.3, 0.8)
    right = np.where(hard_i, 0.65, 0.9)
    votes_ji = [np.where(rng.random(n) < right, truth_i, ~truth_i) for _ in range(3)]
    known_i = np.zeros(n, dtype=bool)
    for stratum in (hard_i, ~hard_i):
        known_i[rng.permutation(np.flatnonzero(stratum))[:75]] = True
    return hard_i, truth_i, votes_ji, known_i


def test_answers_drawn_stratum_by_stratum_are_weighted_for_it():
    off, held, plain = [], 0, []
    for seed in range(30):
        hard_i, truth_i, votes_ji, known_i = stratified(seed)
        odds = sum(np.where(vote_i, 1.0, -1.0) for vote_i in votes_ji)
        p_i, item_i = 1 / (1 + np.exp(-1.5 * odds)), np.arange(len(odds))
        weight_i = stratum_weights(pl.Series(np.where(hard_i, "hard", "easy")), known_i)
        # Either part of the items weighs as all items do.
        for part_i in (known_i, ~known_i):
            assert np.average(hard_i[part_i], weights=weight_i[part_i]) == pytest.approx(hard_i.mean(), abs=1e-12)
        answers = Answers(np.zeros_like(item_i), item_i, known_i, np.eye(2)[truth_i * 1], np.stack([1 - p_i, p_i], 1),
                          weight_i)  # fmt: skip
        [score], _ = corrected_means(answers, np.array([0.0, 1.0]))
        share_i = np.mean(votes_ji, axis=0)
        gold_i = truth_i * 1.0
        alone = known_mean(gold_i[known_i], weight_i[known_i])
        estimates = score, ppi_mean(gold_i, share_i, known_i, weight_i), alone
        off.append([estimate.value - 0.7 for estimate in estimates])
        held += score.low <= 0.7 <= score.high
        plain.append(known_mean(gold_i[known_i]).value - 0.7)
    assert np.abs(np.mean(off, axis=0)).max() < 0.02 < 0.1 < np.abs(np.mean(plain))
    assert held >= 24


def test_strata_are_named_and_each_needs_an_answer():
    hard_i, truth_i, votes_ji, known_i = stratified(0, n=600)
    name_i, answer_i = np.where(hard_i, "hard", "easy"), np.where(known_i, np.where(truth_i, "y", "n"), None)
    rows = [(i, f"judge-{j}", "ny"[int(vote_i[i])], str(name_i[i]), answer_i[i])
            for i in range(600) for j, vote_i in enumerate(votes_ji)]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["item", "annotator", "label", "stratum", "gold"], orient="row")
    run = me.audit(frame, keep=["stratum"], draws=0, gold="gold", positive="y")
    weighted, plain = me.score(run, strata_column="stratum"), me.score(run)
    gold = run.items.drop_nulls("gold")
    share = {name: (rows["gold"] == "y").mean() for (name,), rows in gold.join(
        frame.select("item", "stratum").unique(), on="item").group_by("stratum")}  # fmt: skip
    by_size = np.average([share["hard"], share["easy"]], weights=[hard_i.sum(), (~hard_i).sum()])
    assert weighted.frame["gold_value"].item() == pytest.approx(by_size, abs=1e-9)
    assert plain.frame["gold_value"].item() == pytest.approx((gold["gold"] == "y").mean(), abs=1e-9)
    easy = pl.when(pl.col("stratum") == "easy").then("gold")
    with pytest.raises(UsageError, match=r"1 of 2 strata have no known answer, or no other. First: 'hard' \(0 of"):
        me.score(me.audit(frame.with_columns(gold=easy), keep=["stratum"], draws=0, gold="gold", positive="y"),
                 strata_column="stratum")  # fmt: skip
