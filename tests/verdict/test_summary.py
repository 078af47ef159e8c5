"""Figures of the last screen and of `check`, recounted item by item and vote by vote from the votes themselves."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

import moral_entropy as me
from moral_entropy.planning import next_votes, worse_than_the_team
from moral_entropy.rules.rules import rule_named
from moral_entropy.verdict.figures import pooled_rules, run_figures
from moral_entropy.verdict.summary import Summary, wrong_range


def made_votes(labels, seed):
    """Five raters, one of whom guesses, on seventy items, most of which have gold; some raters are absent."""
    draw = random.Random(seed)
    rows = []
    for item in range(70):
        truth = draw.choice(labels)
        for rater, skill in (("ann", 0.95), ("ben", 0.9), ("cem", 0.8), ("dua", 0.8), ("eli", 0.1)):
            if draw.random() < 0.8:
                says = truth if draw.random() < skill else draw.choice(labels)
                rows.append((f"i{item}", rater, says, truth if item % 10 else None))
    return pl.DataFrame(rows, schema=["item", "annotator", "label", "gold"], orient="row")


@pytest.fixture(scope="module", params=[("no", "yes"), ("x", "y", "z")], ids=["two labels", "three"])
def case(request):
    votes = made_votes(request.param, 4)
    return votes, me.audit(votes, gold="gold", draws=30, report=False), request.param


def votes_by_item(votes):
    """By item: the votes, and the gold label."""
    found = {}
    for item, _, label, gold in votes.iter_rows():
        found.setdefault(item, ([], gold))[0].append(label)
    return found


def labels_of(rule, votes, labels):
    """Return how probably the rule gives each label, item by item."""
    found = {}
    for item, (cast, _) in votes_by_item(votes).items():
        counts = np.array([[cast.count(label) for label in labels]])
        if len(labels) == 2:
            yes = float(rule_named(rule).decisions(rule_named(rule).scores(counts, 1))[0])
            found[item] = {labels[0]: 1 - yes, labels[1]: yes}
        else:
            found[item] = {label: float(rule_named(rule).scores(counts, k)[0]) for k, label in enumerate(labels)}
    return found


def test_accuracy_is_the_share_of_items_that_are_labelled_right(case):
    votes, run, labels = case
    gold = {item: truth for item, (_, truth) in votes_by_item(votes).items() if truth is not None}
    consensus = dict(run.items.select("item", "label").iter_rows())
    chances = {item: {labels[0]: 1 - p, labels[1]: p} for item, p in run.items.select("item", "p").iter_rows()}
    if len(labels) > 2:
        for item, label, p in run.table("posterior").select("item", "class", "p").iter_rows():
            chances[item][label] = p
    for rule in ("majority", "any") if len(labels) == 2 else ("plurality",):
        given = labels_of(rule, votes, labels)
        for reference, truth in (("gold", gold), ("consensus", consensus)):
            expected = np.mean([given[item][label] for item, label in truth.items()])
            if reference == "consensus":
                # Expected by p: the mean chance that the label the rule gives is right.
                expected = np.mean([
                    sum(share * chances[item][label] for label, share in given[item].items()) for item in given
                ])  # fmt: skip
            [found] = [one for one in pooled_rules(run, reference) if rule in one["names"]]
            assert found["figures"]["accuracy"]["value"] == pytest.approx(expected, abs=1e-12)
    right = np.mean([consensus[item] == label for item, label in gold.items()])
    assert run_figures(run)["accuracy"]["value"] == pytest.approx(right)


def test_rules_of_a_group_label_alike_and_others_do_not(case):
    votes, run, labels = case
    if len(labels) > 2:
        pytest.skip("label by label")
    groups = [row["names"] for row in pooled_rules(run, "consensus")]
    given = {rule: labels_of(rule, votes, labels) for group in groups for rule in group}
    assert sorted(rule for group in groups for rule in group) == sorted(run.table("audit_rules")["rule"].to_list())
    for group in groups:
        assert all(given[rule] == given[group[0]] for rule in group)
    firsts = [group[0] for group in groups]
    assert all(given[one] != given[two] for one in firsts for two in firsts if one < two)


def test_the_best_rule_against_gold_is_the_best_of_all_thresholds(case):
    votes, run, labels = case
    best = run.manifest["best_rule"]
    if len(labels) > 2:
        assert (best["rule"], best["words"]) == ("plurality", "the label with most votes")
        return
    items = [(cast.count("yes"), len(cast), gold) for cast, gold in votes_by_item(votes).values() if gold]

    def wrong(says_yes):
        return np.mean([says_yes(yes, of) != (gold == "yes") for yes, of, gold in items])

    thresholds = [wrong(lambda yes, _, k=k: yes >= k) for k in range(1, 6)]
    shares = {Fraction(a, b) for b in range(1, 6) for a in range(1, b + 1)}
    thresholds += [wrong(lambda yes, of, share=share: Fraction(yes, of) >= share) for share in shares]
    assert best["against"] == "gold" and best["n"] == len(items)
    assert best["cost"] == pytest.approx(min(thresholds))
    assert best["majority"] == pytest.approx(wrong(lambda yes, of: 2 * yes >= of))
    assert f"against gold (majority: {round(100 * best['majority'])}" in run.manifest["advice"]


def test_annotators_are_held_against_gold_with_an_exact_interval(case):
    votes, run, _ = case
    figures, summary = run_figures(run), {row["annotator"]: row for row in run.annotators.to_dicts()}
    wrong = {}
    for (name,), own in votes.drop_nulls("gold").group_by("annotator"):
        right, n = int((own["label"] == own["gold"]).sum()), own.height
        exact = binomtest(right, n).proportion_ci(0.9, method="exact")
        row, figure = summary[name], figures[f"annotator:{name}.accuracy@gold"]
        assert (row["gold_votes"], figure["n"]) == (n, n)
        for found in ((row["gold_accuracy"], row["gold_accuracy_low"], row["gold_accuracy_high"]),
                      (figure["value"], figure["low"], figure["high"])):  # fmt: skip
            assert found == pytest.approx((right / n, exact.low, exact.high))
        wrong[name] = (1 - exact.high, n - right, n)
    people = run.checked.filter(kind="annotator")
    assert people["name"].to_list() == sorted(wrong, key=lambda name: -wrong[name][0])
    everyone = sum(some for _, some, _ in wrong.values()) / sum(n for *_, n in wrong.values())
    worse = {name for name, (low, *_) in wrong.items() if low > everyone}
    assert set(worse_than_the_team(run)) == worse == {"eli"}
    assert "eli" in "\n".join(Summary(run).lines())


def test_next_asks_nobody_whom_gold_has_shown_to_be_bad(case):
    _, run, _ = case
    assert "eli" not in next_votes(run, 70)["annotator"].to_list()
    # Whoever is named is asked, where the vote could change a label.
    assert set(next_votes(run, 70, annotators=["eli"])["annotator"]) <= {"eli"}


def test_votes_like_the_consensus_are_recounted(case):
    votes, run, _ = case
    consensus = dict(run.items.select("item", "label").iter_rows())
    figures = run_figures(run)
    for (name,), own in votes.group_by("annotator"):
        same = np.mean([label == consensus[item] for item, label in own.select("item", "label").iter_rows()])
        assert figures[f"annotator:{name}.accuracy"]["value"] == pytest.approx(same)
        assert figures[f"label/annotator:{name}.accuracy"] == figures[f"annotator:{name}.accuracy"]
    assert figures["uncertain"]["value"] == pytest.approx(figures["label/uncertain"]["value"])


def test_cells_of_the_markdown_table_are_escaped_once(case):
    summary = Summary(case[1])
    summary.questions[0] |= {"question": "a|b", "uncertain": 0.001}
    assert "| a\\|b |" in summary.markdown() and "| &lt;1% |" in summary.markdown()


@pytest.mark.parametrize("seed", range(20))
def test_a_printed_interval_holds_its_value(seed):
    draw = np.random.default_rng(seed)
    low, value, high = np.sort(draw.beta(0.5, 3.0, 3))
    least, most = map(float, wrong_range({"low": low, "high": high}).removesuffix("%").split("–"))
    assert least <= 100 * low <= 100 * value <= 100 * high <= most
