"""Rules by name, at their thresholds, and those that misbehave."""

from __future__ import annotations

import numpy as np
import pytest
from audit_support import loop_score
from numpy.testing import assert_allclose, assert_array_equal

from moral_entropy.errors import RuleError
from moral_entropy.rules.rules import PUBLISHED, RULES, Rule, as_rules, rule_named

GRID = np.array([[rest, chosen] for rest in range(7) for chosen in range(7)])


@pytest.mark.parametrize("name", list(RULES))
def test_every_rule_on_every_small_pair_of_counts(name):
    expected = [loop_score(name, int(chosen), int(rest + chosen)) for rest, chosen in GRID]
    assert_allclose(RULES[name].scores(GRID, label=1), expected)


def test_two_of_three_is_two_thirds_whatever_the_size():
    counts_ik = np.array([[k, 2 * k] for k in (1, 3, 7, 100, 10_000_019)])
    assert rule_named("quorum-2/3").scores(counts_ik, label=1).all()
    assert not rule_named("quorum-0.67").scores(counts_ik, label=1).any()


def test_other_labels_are_the_rest():
    counts_ik = np.array([[2, 1, 1], [0, 3, 1]])
    assert_array_equal(rule_named("majority").scores(counts_ik, label=0), [1, 0])
    assert_array_equal(rule_named("majority").scores(counts_ik, label=1), [0, 1])


@pytest.mark.parametrize(
    "name",
    ["", "anny", "k-vote-0", "k-vote-1.5", "k-vote-x", "quorum-0", "quorum-1.5", "quorum-1/0", "smoothed-share-0"],
)
def test_no_such_rule(name):
    with pytest.raises(RuleError, match=r"there is no rule .* Rules: any, majority.*k-vote-4"):
        rule_named(name)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            lambda counts: counts[:, 1] * 1.0,
            r"'mine' scored 2 of 3 items outside 0 to 1. First: row 1, counts \[0, 2\]",
        ),
        (lambda counts: -np.ones(len(counts)), "outside 0 to 1"),
        (lambda counts: np.ones(2), r"shape \(2,\) for 3 items; expected \(3,\)"),
        (lambda counts: counts, r"shape \(3, 2\)"),
    ],
)
def test_misbehaving_rules_are_named(answer, words):
    with pytest.raises(RuleError, match=words):
        Rule("mine", "mine", answer).scores(np.array([[1, 1], [0, 2], [0, 3]]), label=1)


def test_a_rule_cannot_write_to_the_votes():
    def greedy(counts_ip):
        counts_ip[:] = 0
        return counts_ip[:, 1]

    with pytest.raises(ValueError, match="read-only"):
        Rule("greedy", "greedy", greedy).scores(GRID, label=1)


def test_published_labels_are_not_made_of_counts():
    with pytest.raises(RuleError, match="come with the data"):
        PUBLISHED.scores(GRID, label=1)


def test_names_rules_and_callables():
    mine = Rule("mine", "my own", lambda counts: counts[:, 1] > 0)
    assert [rule.name for rule in as_rules(["any", mine, np.ones_like])] == ["any", "mine", "ones_like"]
    for given in (["any", "any"], [mine, mine], [Rule("consensus", "x", mine.score)]):
        with pytest.raises(RuleError, match="is taken"):
            as_rules(given)
    with pytest.raises(RuleError, match="3 is no rule"):
        as_rules([3])
