"""The coverage study on four small corpora: its truth and its counts, against plain loops."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import load_script

ROOT = Path(__file__).parents[2]


study = load_script("studies/interval_coverage.py")
SMALL = study.Setting("small", 200, 6, 3, 0.4)


def plain_rates(simulated):
    """The truth with loops: every item's posterior, then every rule's rates."""
    ballot, said = simulated.votes.ballots[0], {}
    prevalence, confusion = simulated.prevalence_k, simulated.confusion_akv
    for i in range(ballot.n_items):
        codes = ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]].tolist()
        joint = [prevalence[k] * math.prod(confusion[c // 2, k, c % 2] for c in codes) for k in (0, 1)]
        said[i] = (joint[1] / sum(joint), sum(c % 2 for c in codes), len(codes))
    rules = {
        "any": lambda yes, _: yes > 0,
        "majority": lambda yes, n: yes / n >= 0.5,
        "two-vote": lambda yes, _: yes > 1,
    }
    rates = {}
    for name, rule in rules.items():
        no = [rule(yes, n) for p, yes, n in said.values() if p < 0.5]
        yes_ = [not rule(yes, n) for p, yes, n in said.values() if p >= 0.5]
        rates[name, "fpr"], rates[name, "fnr"] = sum(no) / len(no), sum(yes_) / len(yes_)
        weights = [(p, rule(yes, n)) for p, yes, n in said.values()]
        rates[name, "expected_fpr"] = sum((1 - p) * g for p, g in weights) / sum(1 - p for p, _ in weights)
        rates[name, "expected_fnr"] = sum(p * (not g) for p, g in weights) / sum(p for p, _ in weights)
    return rates


@pytest.mark.parametrize("seed", range(2))
def test_the_truth_is_the_truth(seed):
    simulated = study.simulate(SMALL, seed)
    found, expected = study.true_rates(simulated), plain_rates(simulated)
    assert found.keys() == expected.keys()
    assert list(found.values()) == pytest.approx([expected[key] for key in found], abs=1e-12)


def test_between_labels_the_truth_is_that_of_the_place_an_item_was_drawn_at():
    setting = study.Setting("between", 4_000, 6, 4, 0.3, between=0.5)
    simulated = study.simulate(setting, 0)
    p_i = study.true_posterior(simulated, 0.5)
    [ballot] = simulated.votes.ballots
    codes = ballot.code_v[ballot.start_i[7] : ballot.start_i[8]].tolist()

    def chance(place):
        rows = [simulated.confusion_akv[c // 2, :, c % 2] for c in codes]
        return math.prod((1 - place) * no + place * yes for no, yes in rows)

    # Half of the items are at a label, three in ten of these at yes; the others anywhere: by Simpson's rule.
    inner = [(x / 200, (1 if x in (0, 200) else 4 if x % 2 else 2) / 600) for x in range(201)]
    weighed = [(0.0, 0.35 * chance(0.0)), (1.0, 0.15 * chance(1.0)), *((x, 0.5 * w * chance(x)) for x, w in inner)]
    assert p_i[7] == pytest.approx(sum(x * w for x, w in weighed) / sum(w for _, w in weighed), abs=1e-4)
    # The mean of p is the share of yes: 0.5 · 0.3 + 0.5 · 0.5.
    assert p_i.mean() == pytest.approx(0.4, abs=0.02)


def test_on_real_votes_the_truth_is_the_rate_against_gold():
    simulated = study.simulate(study.Setting("gold", 300, 6, 4, 0.4), 3)
    [ballot] = simulated.votes.ballots
    gold_i = np.where(np.arange(300) < 200, simulated.truth_i, -1).astype(np.int16)
    votes = replace(simulated.votes, ballots=(replace(ballot, gold_i=gold_i),))
    found = {(one.rule, one.metric): (one.truth, known) for one, known in study.real_outcomes(votes)}
    yes_i = ballot.counts_ik[:200, 1] >= 1
    truth = yes_i[simulated.truth_i[:200] == 0].mean()
    assert found["any", "expected_fpr"][0] == found["any", "fpr"][0] == pytest.approx(truth)
    known = found["any", "fpr"][1]
    assert known.low < truth < known.high


def test_annotators_are_drawn_from_their_ranges():
    confusion_akv = study.simulate(SMALL, 1).confusion_akv
    assert (confusion_akv[:, 1, 1] >= 0.5).all() and (confusion_akv[:, 1, 1] <= 0.8).all()
    assert (confusion_akv[:, 0, 0] >= 0.85).all() and (confusion_akv[:, 0, 0] <= 0.95).all()
    assert not np.array_equal(confusion_akv, study.simulate(SMALL, 2).confusion_akv)


def test_a_told_prior_has_the_mean_and_spread_of_the_ranges():
    told = study.Setting("told", 50, 4, 2, 0.25, told=True)
    simulated = study.simulate(told, 0)
    priors, ballot = told.priors(simulated), simulated.votes.ballots[0]
    beta_akv = priors.beta_akv(ballot, simulated.votes)
    for k, ends in ((0, told.specificity), (1, told.sensitivity)):
        right, total = beta_akv[0, k, k], beta_akv[0, k].sum()
        assert right / total == pytest.approx(np.mean(ends))
        variance = right * (total - right) / total**2 / (total + 1)
        assert variance == pytest.approx((ends[1] - ends[0]) ** 2 / 12)
    assert priors.alpha_k(ballot).tolist() == [75.0, 25.0]


def test_four_corpora_are_counted(monkeypatch):
    rows = study.study(SMALL, corpora=4, jobs=1)
    assert len(rows) == len(study.RULES) * len(study.METRICS)
    found = [one for seed in range(4) for one in study.outcomes(SMALL, seed)]
    for row in rows:
        mine = [one for one in found if (one.rule, one.metric) == (row.rule, row.metric)]
        assert row.corpora == 4 == row.covered + row.below + row.above
        assert row.covered == sum(one.low - 1e-9 <= one.truth <= one.high + 1e-9 for one in mine)
        assert row.below == sum(one.high + 1e-9 < one.truth for one in mine)
        assert row.width == pytest.approx(sum(one.high - one.low for one in mine) / 4)
    never = next(row for row in rows if (row.rule, row.metric) == ("any", "fnr"))
    assert (never.truth, never.verdict) == (0.0, "nothing to miss")
    [row] = study.table([(SMALL, rows)]).splitlines()[2:]
    assert row.startswith(f"| **small**: {SMALL.meaning} | ")


def test_verdicts():
    def verdict(covered, width=0.1):
        return study.Coverage("any", "fpr", 200, covered, 0, 200 - covered, 0.1, 0.1, width).verdict

    assert [verdict(n) for n in (169, 170, 190, 191)] == ["**below**", "within", "within", "**above**"]
    assert verdict(200, 0.0) == "nothing to miss"


def test_tables_go_between_the_markers():
    page = (ROOT / "docs" / "evidence" / "coverage.md").read_text(encoding="utf-8")
    once = study.with_tables(page, "NEW")
    assert "NEW" in once and study.with_tables(once, "NEW") == once
    assert once.split("<!--")[0] == page.split("<!--")[0]
    with pytest.raises(ValueError, match="has no place"):
        study.with_tables("# nothing here", "NEW")
