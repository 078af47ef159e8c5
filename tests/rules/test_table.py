"""The whole audit against loops over items: values, intervals, pooling, several labels, gold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from audit_support import figures_of, items_of, loop_grades, rich_votes
from numpy.testing import assert_allclose
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss

from moral_entropy.model.fit import fit
from moral_entropy.rules.rules import RULES, Rule
from moral_entropy.rules.table import audit_rules
from moral_entropy.votes.table import UNKNOWN

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")


def fitted(votes, draws=40):
    return fit(votes, draws=draws, seed=3)


@pytest.fixture(scope="module")
def binary():
    votes = rich_votes(0, counted=True)
    consensus = fitted(votes)
    return votes, consensus, audit_rules(votes, consensus)


@pytest.fixture(scope="module")
def ternary():
    votes = rich_votes(1, n_labels=3, questions=("tone",))
    consensus = fitted(votes)
    return votes, consensus, audit_rules(votes, consensus)


def assert_same(found, expected):
    for metric, value in expected.items():
        if metric in found:
            if value is None:
                assert found[metric] is None, metric
            else:
                assert_allclose(found[metric], value, rtol=1e-9, atol=1e-12, err_msg=metric)


@pytest.mark.parametrize("rule", list(RULES))
@pytest.mark.parametrize("domain", [None, 0, 2])
def test_every_figure_against_the_consensus(binary, rule, domain):
    votes, consensus, table = binary
    where = {"domain": "(all)" if domain is None else votes.domains[domain], "reference": "consensus", "rule": rule}
    found = figures_of(table.frame, question="care", **where)
    expected = loop_grades(items_of(votes, consensus, "care", 1, rule, domain=domain))
    assert set(expected) <= set(found)
    assert_same(found, expected)


@pytest.mark.parametrize("rule", list(RULES))
def test_every_figure_against_gold(binary, rule):
    votes, consensus, table = binary
    found = figures_of(table.frame, question="fair", domain="(all)", reference="gold", rule=rule)
    expected = loop_grades(items_of(votes, consensus, "fair", 1, rule, gold=True))
    assert not any(metric.startswith("expected_") for metric in found)
    assert_same(found, expected)
    assert found["log_loss"] == found["cross_entropy"]


def test_figures_against_the_consensus_have_no_interval_and_those_against_gold_do(binary):
    _, _, table = binary
    consensus = table.frame.filter(reference="consensus")
    assert consensus["low"].null_count() == consensus["high"].null_count() == consensus.height
    assert table.frame.filter(reference="gold", metric="fpr")["low"].null_count() == 0


@pytest.mark.parametrize("rule", ["any", "majority", "share"])
def test_pooled_figures_take_items_of_all_questions_and_means_take_figures(binary, rule):
    votes, consensus, table = binary
    items = [item for question in ("care", "fair") for item in items_of(votes, consensus, question, 1, rule)]
    where = {"domain": "(all)", "reference": "consensus", "rule": rule}
    assert_same(figures_of(table.frame, question="(all)", **where), loop_grades(items))
    care, fair = (figures_of(table.frame, question=question, **where) for question in ("care", "fair"))
    mean = figures_of(table.frame, question="(mean)", **where)
    for metric in ("fpr", "fnr", "brier", "ece"):
        assert_allclose(mean[metric], (care[metric] + fair[metric]) / 2, rtol=1e-12)
    # Both questions have as many true negatives, so that only rates by the rule's own answers differ.
    assert abs(mean["fdr"] - figures_of(table.frame, question="(all)", **where)["fdr"]) > 1e-4


def test_n_is_the_denominator(binary):
    votes, consensus, table = binary
    items = [i for i in items_of(votes, consensus, "care", 1, "any") if not np.isnan(i["score"])]
    rows = table.frame.filter(question="care", domain="(all)", reference="consensus", rule="any")
    n = dict(zip(rows["metric"], rows["n"], strict=True))
    assert n["fpr"] == sum(i["weight"] for i in items if not i["yes"])
    assert n["fnr"] == sum(i["weight"] for i in items if i["yes"])
    assert n["fdr"] == sum(i["weight"] for i in items if i["decision"])
    assert n["expected_fnr"] == round(sum(i["weight"] * i["p"] for i in items))
    assert n["brier"] == sum(i["weight"] for i in items)
    assert n["abstained"] == votes.ballots[0].count_i.sum()


def test_scikit_learn_agrees_against_gold(binary):
    _, consensus, table = binary
    ballot = consensus.fits[0].ballot
    known_i = (ballot.gold_i != UNKNOWN) & (ballot.votes_i > 0)
    gold_i, weight_i = ballot.gold_i[known_i], ballot.count_i[known_i]
    counts_ik = ballot.counts_ik[known_i]
    flagged_i = counts_ik[:, 1] > 0
    (tn, fp), (fn, tp) = confusion_matrix(gold_i, flagged_i, sample_weight=weight_i)
    where = {"question": "care", "domain": "(all)", "reference": "gold"}
    found = figures_of(table.frame, rule="any", **where)
    assert_allclose([found["fpr"], found["fnr"], found["fdr"]], [fp / (fp + tn), fn / (fn + tp), fp / (fp + tp)])
    assert_allclose(found["for"], fn / (fn + tn))
    smoothed_i = (counts_ik[:, 1] + 0.5) / (counts_ik.sum(axis=1) + 1)
    found = figures_of(table.frame, rule="smoothed-share", **where)
    assert_allclose(found["brier"], brier_score_loss(gold_i, smoothed_i, sample_weight=weight_i))
    assert_allclose(found["log_loss"], log_loss(gold_i, smoothed_i, sample_weight=weight_i))
    assert_allclose(figures_of(table.frame, rule="share", **where)["log_loss"], np.inf)


def test_items_without_votes_are_counted_and_left_out(binary):
    votes, _, table = binary
    silent = votes.ballots[0].count_i[votes.ballots[0].votes_i == 0].sum()
    row = table.rules.filter(question="care", rule="any").row(0, named=True)
    assert row["abstained"] == silent > 0
    assert row["items"] == votes.ballots[0].count_i.sum()
    found = figures_of(table.frame, question="care", domain="(all)", reference="consensus", rule="any")
    assert_allclose(found["abstained"], silent / row["items"])


def test_published_labels_are_a_rule_and_missing_ones_abstain(binary):
    votes, consensus, table = binary
    ballot = votes.ballots[0]
    scores = [np.nan if code == UNKNOWN else float(code == 1) for code in ballot.published_i]
    items = items_of(votes, consensus, "care", 1, "published", scores=scores)
    found = figures_of(table.frame, question="care", domain="(all)", reference="consensus", rule="published")
    expected = loop_grades(items)
    # Published labels exist for items without votes too, where smoothing has nothing to hold on to but ½.
    assert_same(found, expected)
    row = table.rules.filter(question="care", rule="published").row(0, named=True)
    assert row["abstained"] == ballot.count_i[ballot.published_i == UNKNOWN].sum()


def test_ties_are_counted(binary):
    votes, _, table = binary
    ballot = votes.ballots[1]
    even_i = (ballot.counts_ik[:, 0] == ballot.counts_ik[:, 1]) & (ballot.votes_i > 0)
    tied = dict(table.rules.filter(question="fair").select("rule", "tied").iter_rows())
    assert tied["majority"] == tied["strict-majority"] == ballot.count_i[even_i].sum() > 0
    assert tied["any"] == 0


def test_decompositions_add_up(binary):
    wide = binary[2].frame.pivot(
        on="metric", index=["question", "domain", "label", "rule", "reference"], values="value"
    )
    wide = wide.filter(pl.col("question") != "(mean)")
    for name in ("brier", "kl", "cross_entropy", "zero_one"):
        parts = pl.col(f"{name}_reliability") - pl.col(f"{name}_resolution") + pl.col(f"{name}_uncertainty")
        finite = wide.filter(pl.col(name).is_finite())
        assert finite.height > 20
        assert finite.select((pl.col(name) - parts).abs().max()).item() < 1e-12
        assert wide.filter(pl.col(name).is_infinite() != pl.col(f"{name}_reliability").is_infinite()).height == 0


@pytest.mark.parametrize("label", ["a", "b", "c"])
def test_each_of_three_labels_against_the_rest(ternary, label):
    votes, consensus, table = ternary
    target = "abc".index(label)
    for rule in ("any", "majority", "share"):
        found = figures_of(table.frame, question="tone", label=label, domain="(all)", reference="consensus", rule=rule)
        assert_same(found, loop_grades(items_of(votes, consensus, "tone", target, rule)))


def plurality_of(ballot):
    scores_ik = []
    for counts in ballot.counts_ik.tolist():
        top = [count == max(counts) for count in counts]
        scores_ik.append([x / sum(top) for x in top] if sum(counts) else [np.nan] * len(counts))
    return np.array(scores_ik)


def test_plurality_by_label_and_as_one_label(ternary):
    votes, consensus, table = ternary
    fit_ = consensus.fits[0]
    score_ik = plurality_of(fit_.ballot)
    where = {"question": "tone", "domain": "(all)", "reference": "consensus", "rule": "plurality"}
    items = items_of(votes, consensus, "tone", 2, "plurality", scores=score_ik[:, 2])
    assert_same(figures_of(table.frame, label="c", **where), loop_grades(items))
    found = figures_of(table.frame, label="(multiclass)", **where)
    voted_i = fit_.ballot.votes_i > 0
    label_i, p_ik = fit_.label_i[voted_i], fit_.p_ik[voted_i]
    wrong_i = [1 - row[label] for row, label in zip(score_ik[voted_i], label_i, strict=True)]
    assert_allclose(found["disagreement"], np.mean(wrong_i))
    assert_allclose(found["expected_disagreement"], 1 - (score_ik[voted_i] * p_ik).sum(axis=1).mean())
    assert_allclose(found["brier"], ((score_ik[voted_i] - p_ik) ** 2).sum(axis=1).mean())
    votes_i = fit_.ballot.votes_i[voted_i, None]
    smoothed_ik = (score_ik[voted_i] * votes_i + 0.5) / (votes_i + 1.5)
    assert_allclose(found["cross_entropy_smoothed"], -(p_ik * np.log(smoothed_ik)).sum(axis=1).mean())
    tied = table.rules.filter(rule="plurality")["tied"].to_list()
    assert tied == [sum(0 < max(row) < 1 for row in score_ik)] * 3


def test_the_consensus_itself_against_gold(binary):
    votes, consensus, table = binary
    fit_ = consensus.fits[0]
    known_i = fit_.ballot.gold_i != UNKNOWN
    gold_i, weight_i = fit_.ballot.gold_i[known_i], fit_.ballot.count_i[known_i]
    p_i = fit_.p_ik[known_i, 1]
    found = figures_of(table.frame, question="care", domain="(all)", reference="gold", rule="consensus")
    assert_allclose(found["brier"], brier_score_loss(gold_i, p_i, sample_weight=weight_i))
    assert_allclose(found["log_loss"], log_loss(gold_i, p_i, sample_weight=weight_i))
    assert_allclose(found["disagreement"], np.average((p_i >= 0.5) != gold_i, weights=weight_i))
    scores = fit_.p_ik[:, 1].tolist()
    items = items_of(votes, consensus, "care", 1, "share", gold=True, scores=scores)
    assert_same(found, loop_grades(items))


def test_relabelling_permutes_the_figures():
    votes = rich_votes(2, questions=("care",))
    ballot = votes.ballots[0]
    flip = np.array([1, 0, -1])
    swapped = replace(
        ballot,
        labels=ballot.labels[::-1],
        positive=0,
        code_v=(ballot.code_v // 2 * 2 + flip[ballot.code_v % 2]).astype(np.int32),
        gold_i=flip[ballot.gold_i].astype(np.int16),
        published_i=flip[ballot.published_i].astype(np.int16),
    )
    other = replace(votes, ballots=(swapped,))
    one, two = (audit_rules(v, fit(v, draws=0)).frame for v in (votes, other))
    assert one.drop("value", "low", "high").equals(two.drop("value", "low", "high"))
    assert_allclose(one["value"].to_numpy(), two["value"].to_numpy(), rtol=1e-4, atol=1e-6)


def test_three_labels_renamed_are_the_same_figures_renamed():
    votes = rich_votes(4, n_labels=3, questions=("tone",))
    ballot = votes.ballots[0]
    move = np.array([2, 0, 1, -1])
    moved = replace(
        ballot,
        labels=tuple(ballot.labels[k] for k in (1, 2, 0)),
        positive=int(move[ballot.positive]),
        code_v=(ballot.code_v // 3 * 3 + move[ballot.code_v % 3]).astype(np.int32),
        gold_i=move[ballot.gold_i].astype(np.int16),
        published_i=move[ballot.published_i].astype(np.int16),
    )
    one, two = (
        audit_rules(v, fit(v, draws=0)).frame.sort("question", "domain", "label", "rule", "reference", "metric")
        for v in (votes, replace(votes, ballots=(moved,)))
    )
    assert_allclose(one["value"].to_numpy(), two["value"].to_numpy(), rtol=1e-4, atol=1e-6)


def test_counted_rows_are_as_many_items(binary):
    votes = rich_votes(5, questions=("care",), counted=True)
    ballot = votes.ballots[0]
    many = np.repeat(np.arange(ballot.n_items), ballot.count_i.astype(int))
    spread = replace(ballot.take(many), count_i=np.ones(len(many)), item_i=np.arange(len(many)))
    flat = replace(
        votes,
        ballots=(spread,),
        items=pl.Series("item", range(len(many))),
        domain_i=votes.domain_i[many],
    )
    one, two = (audit_rules(v, fit(v, draws=0)).frame for v in (votes, flat))
    assert one["n"].to_list() == two["n"].to_list()
    assert_allclose(one["value"].to_numpy(), two["value"].to_numpy(), rtol=1e-4, atol=1e-6)


def test_a_rule_of_ones_own_and_of_all_items_at_once(binary):
    votes, consensus, _ = binary

    def above_average(counts_ip):
        """More positive votes than the mean item."""
        return counts_ip[:, 1] > counts_ip[:, 1].mean()

    table = audit_rules(votes, consensus, rules=["any", above_average])
    found = figures_of(table.frame, question="care", domain="(all)", reference="consensus", rule="above_average")
    counts_ik = votes.ballots[0].counts_ik
    scores = np.where(counts_ik.sum(axis=1) > 0, counts_ik[:, 1] > counts_ik[:, 1].mean(), np.nan).tolist()
    assert_same(found, loop_grades(items_of(votes, consensus, "care", 1, "own", scores=scores)))
    assert table.rules.filter(rule="above_average")["meaning"][0] == "More positive votes than the mean item."


def test_no_figure_without_a_denominator():
    votes = rich_votes(6, questions=("care",))
    consensus = fitted(votes, draws=10)
    never = Rule("never", "no to everything", lambda counts_ip: np.zeros(len(counts_ip)))
    silent = Rule("silent", "says nothing", lambda counts_ip: np.full(len(counts_ip), np.nan))
    frame = audit_rules(votes, consensus, rules=[never, silent]).frame
    found = figures_of(frame, question="care", domain="(all)", reference="consensus", rule="never")
    assert found["fdr"] is None and found["fnr"] == 1.0 and found["fpr"] == 0.0
    rows = frame.filter(question="care", rule="silent").filter(~pl.col("metric").is_in(["abstained", "tied"]))
    assert rows["value"].null_count() == rows.height > 0
    assert rows["n"].sum() == 0
    assert frame.filter(pl.col("value").is_null() & pl.col("low").is_not_null()).height == 0


def test_repeats_change_nothing_and_the_seed_moves_resampling_only(binary):
    votes, consensus, table = binary
    again = audit_rules(votes, consensus)
    assert table.frame.equals(again.frame)
    other = audit_rules(votes, consensus, seed=1)
    same = pl.col("reference") == "consensus"
    assert table.frame.filter(same).equals(other.frame.filter(same))
    assert table.frame["value"].equals(other.frame["value"])
    assert not table.frame.equals(other.frame)


def test_gold_intervals_spread_as_resampled_items_do(binary):
    votes, _, table = binary
    ballot = votes.ballots[0]
    known_i = np.flatnonzero((ballot.gold_i != UNKNOWN) & (ballot.votes_i > 0))
    wrong_i = (ballot.counts_ik[known_i, 1] > 0) != ballot.gold_i[known_i]
    item_j = np.repeat(wrong_i, ballot.count_i[known_i].astype(int))
    rng = np.random.default_rng(0)
    means = [rng.choice(item_j, len(item_j)).mean() for _ in range(2_000)]
    row = table.frame.filter(question="care", domain="(all)", reference="gold", rule="any", metric="disagreement")
    assert_allclose([row["low"][0], row["high"][0]], np.quantile(means, [0.05, 0.95]), atol=0.02)


def test_no_draws_no_intervals():
    votes = rich_votes(7, questions=("care",))
    frame = audit_rules(votes, fit(votes, draws=0), reference="consensus").frame
    assert frame["low"].null_count() == frame["high"].null_count() == frame.height
    assert frame["value"].null_count() < frame.height / 10


def test_the_mean_over_questions_leaves_out_missing_figures(binary):
    votes, consensus, _ = binary

    def yes_to_one_question(counts_ip):
        """Yes, where there are as many yes as on the question asked first."""
        first = np.array_equal(counts_ip, votes.ballots[0].counts_ik)
        return np.full(len(counts_ip), float(first))

    frame = audit_rules(votes, consensus, rules=[yes_to_one_question], reference="consensus").frame
    by_question = dict(frame.filter(metric="fdr", domain="(all)").select("question", "value").iter_rows())
    assert by_question["fair"] is None and by_question["(mean)"] == by_question["care"] > 0
    assert frame.filter(metric="fdr", domain="(all)", question="(mean)")["n"].item() == 1
