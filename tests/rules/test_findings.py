"""Advice, the any rule by number of votes, and the reliability diagram, against sums written out."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from audit_support import rich_votes
from numpy.testing import assert_allclose
from scipy.stats import beta
from sklearn.calibration import calibration_curve

from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import UsageError
from moral_entropy.model.fit import fit
from moral_entropy.options import GradeOptions
from moral_entropy.rules.rules import rule_in_words, rule_named
from moral_entropy.rules.table import audit_rules
from moral_entropy.votes.table import UNKNOWN

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")


@pytest.fixture(scope="module")
def audited():
    votes = rich_votes(21, counted=True)
    consensus = fit(votes, draws=30)
    return votes, consensus


@pytest.mark.parametrize("costs", [(1.0, 1.0), (5.0, 1.0), (1.0, 8.0), (0.0, 1.0)])
def test_advice_is_the_cheapest_of_the_named_rules(audited, costs):
    votes, consensus = audited
    advice = audit_rules(votes, consensus, rules=["any"], cost_fp=costs[0], cost_fn=costs[1]).advice
    for fit_ in consensus.fits:
        voted_i = fit_.ballot.votes_i > 0
        counts_ik, p_i = fit_.ballot.counts_ik[voted_i], fit_.p_ik[voted_i, 1]
        weight_i = fit_.ballot.count_i[voted_i] / fit_.ballot.count_i[voted_i].sum()
        cost_by_rule = {
            name: weight_i @ np.where(rule_named(name).scores(counts_ik, 1) == 1, costs[0] * (1 - p_i), costs[1] * p_i)
            for name in ("any", "majority", "strict-majority", "two-vote", "quorum-2/3", "unanimous")
        }
        row = advice.frame.filter(question=fit_.question).row(0, named=True)
        assert_allclose([row["cost"], cost_by_rule[row["rule"]]], min(cost_by_rule.values()), rtol=1e-9)
        by_p = weight_i @ np.minimum(costs[0] * (1 - p_i), costs[1] * p_i)
        assert_allclose([row["cost_of_p"], row["excess"]], [by_p, row["cost"] - by_p], atol=1e-12)
        assert_allclose(row["cost_of_majority"], cost_by_rule["majority"])


def test_of_rules_that_label_alike_majority_is_advised():
    votes = simulate_votes(n_items=200, n_annotators=6, votes_per_item=3, seed=2).votes
    best = audit_rules(votes, fit(votes, draws=0), rules=["any"]).advice.best
    assert best["rule"] == "majority" and best["words"] == "at least half yes"


def test_advice_speaks_in_two_sentences(audited):
    advice = audit_rules(*audited, rules=["any"], cost_fp=2, reference="consensus").advice
    assert advice.text.count(". ") == 1 and advice.text.endswith(".")
    best = advice.best
    for words in (rule_in_words(best["rule"]), f": {best['cost']:.2f} (", "a wrong yes costs 2, a missed yes 1"):
        assert words in advice.text


@pytest.mark.parametrize("costs", [(0, 0), (-1, 1), (1, float("inf")), (float("nan"), 1)])
def test_costs_that_are_none(costs):
    with pytest.raises(UsageError, match="Costs are 0 or more"):
        GradeOptions(cost_fp=costs[0], cost_fn=costs[1])


@pytest.mark.parametrize("model", ["mixed", "paper"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_any_rule_by_votes_against_sums_over_who_voted(n_labels, model):
    votes = rich_votes(22, n_labels=n_labels, questions=("tone",))
    consensus = fit(votes, draws=20, model=model)
    fit_, ballot = consensus.fits[0], votes.ballots[0]
    frame = audit_rules(votes, consensus, rules=["any"]).any_by_votes
    target = 1
    label = ballot.labels[target]
    for n_votes in (1, 3, 5):
        items = [i for i in range(ballot.n_items) if ballot.votes_i[i] == n_votes]
        predicted = []
        for weight_dg, confusion_akv in zip(fit_.drawn.weight_dg, fit_.confusion_sakv, strict=True):
            weight_dz, mix_zk = fit_.states.weight_of_states(weight_dg), fit_.states.mix_zk
            silent = without = 0.0
            for i in items:
                codes = ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]
                domain = votes.domain_i[i] if len(weight_dz) > 1 else 0
                for weight, mix_k in zip(weight_dz[domain], mix_zk, strict=True):
                    chance = weight * (1 - mix_k[target])
                    without += chance
                    for code in codes:
                        chance *= 1 - sum(mix_k * confusion_akv[code // n_labels, :, target])
                    silent += chance
            predicted.append(1 - silent / without)
        row = frame.filter(label=label, votes=n_votes).row(0, named=True)
        assert row["n"] == len(items) > 0
        assert_allclose(row["predicted"], np.mean(predicted))
        assert_allclose([row["predicted_low"], row["predicted_high"]], np.quantile(predicted, [0.05, 0.95]))
        p_i, flagged_i = fit_.p_ik[items, target], ballot.counts_ik[items, target] > 0
        no_i = fit_.label_i[items] != target
        assert_allclose(row["expected_fpr"], ((1 - p_i) * flagged_i).sum() / (1 - p_i).sum())
        assert_allclose(row["fpr"], (no_i & flagged_i).sum() / no_i.sum())
        assert row["expected_fpr_low"] is row["expected_fpr_high"] is None
    curve = frame.filter(label=label).sort("votes")["curve"].to_list()
    assert all(b > a for a, b in itertools.pairwise(curve))
    assert frame.filter(label=label, votes=9)["fpr"].to_list() == [None]


def test_where_the_model_holds_prediction_meets_observation():
    votes = simulate_votes(n_items=4_000, n_annotators=12, votes_per_item=3.5, seed=3).votes
    frame = audit_rules(votes, fit(votes, draws=50, model="paper"), rules=["any"]).any_by_votes.filter(
        pl.col("n") > 300
    )
    assert frame.height > 2
    assert_allclose(frame["predicted"].to_numpy(), frame["expected_fpr"].to_numpy(), atol=0.03)


def test_the_reliability_diagram_is_scikit_learns():
    votes = simulate_votes(n_items=1_500, n_annotators=10, votes_per_item=3, seed=4).votes
    consensus = fit(votes, draws=20)
    frame = audit_rules(votes, consensus, rules=["any"]).reliability.filter(bins="width").sort("bin")
    ballot, p_i = votes.ballots[0], consensus.fits[0].p_ik[:, 1]
    share_b, mean_b = calibration_curve(ballot.gold_i, p_i, n_bins=15, strategy="uniform")
    assert_allclose(frame["p"].to_numpy(), mean_b)
    assert_allclose(frame["gold"].to_numpy(), share_b)
    assert frame["n"].sum() == 1_500
    yes_b = frame["gold"].to_numpy() * frame["n"].to_numpy()
    for column, share in (("low", 0.05), ("high", 0.95)):
        assert_allclose(frame[column].to_numpy(), beta.ppf(share, yes_b + 0.5, frame["n"].to_numpy() - yes_b + 0.5))


def test_bins_of_equal_mass_hold_about_equally_many():
    votes = simulate_votes(n_items=1_500, n_annotators=30, votes_per_item=3, seed=4).votes
    table = audit_rules(votes, fit(votes, draws=20), rules=["any"])
    frame = table.reliability.filter(bins="mass")
    assert frame.height == 15
    assert frame["n"].max() < 1.3 * frame["n"].min()
    ece = (frame["n"] * (frame["p"] - frame["gold"]).abs()).sum() / frame["n"].sum()
    row = table.frame.filter(question="label", domain="(all)", rule="consensus", metric="ece_mass")
    assert_allclose(row["value"][0], ece)


def test_many_items_of_gold_give_the_same_figures_and_about_the_same_intervals(monkeypatch):
    from moral_entropy.rules import calibration

    votes = simulate_votes(n_items=1_800, n_annotators=10, votes_per_item=4, seed=6).votes
    consensus = fit(votes, draws=100)
    monkeypatch.setattr(calibration, "FEW_ITEMS", 2_000)
    exact = audit_rules(votes, consensus, rules=["any"]).frame.filter(rule="consensus")
    monkeypatch.setattr(calibration, "FEW_ITEMS", 10)
    merged = audit_rules(votes, consensus, rules=["any"]).frame.filter(rule="consensus")
    assert exact["value"].equals(merged["value"])
    for metric in ("log_loss", "brier", "disagreement", "fpr"):
        one, two = (frame.filter(question="label", metric=metric).row(0, named=True) for frame in (exact, merged))
        assert_allclose(one["high"] - one["low"], two["high"] - two["low"], rtol=0.25)
    for frame in (exact, merged):
        inside = frame.filter(pl.col("low").is_not_null() & pl.col("value").is_finite())
        assert inside.filter((pl.col("low") > pl.col("value")) | (pl.col("value") > pl.col("high"))).height == 0


def test_no_gold_no_diagram():
    votes = rich_votes(23, questions=("care",))
    bare = votes.ballots[0].take(np.flatnonzero(votes.ballots[0].gold_i == UNKNOWN))
    from dataclasses import replace

    some = replace(votes, ballots=(bare,))
    table = audit_rules(some, fit(some, draws=5))
    assert table.reliability.height == 0
    assert table.frame["reference"].unique().to_list() == ["consensus"]
