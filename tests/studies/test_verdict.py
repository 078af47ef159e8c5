"""The study of crowds alike and spot checks, on made-up sets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from support import load_script

study = load_script("studies/verdict.py")


def made_set(name, expected, error, *, n=400, family=None, people=True, seed=0):
    rng = np.random.default_rng([seed, len(name)])
    wrong = np.zeros(n)
    wrong[rng.permutation(n)[: round(error * n)]] = 1.0
    sure = np.clip(0.6 + 0.35 * rng.random(n) - 0.1 * wrong * rng.random(n), 0.5, 1.0)
    return study.LabelledSet(name, family or name, people, expected, expected, sure, wrong)


SETS = [
    made_set(f"s{'x' * i}", e, float(expit(0.2 + 0.5 * logit(e)))) for i, e in enumerate((0.02, 0.05, 0.1, 0.2, 0.3))
]


def test_the_line_is_the_one_the_sets_lie_on():
    intercept, slope = study.line(SETS, constant=False)
    x = [logit(one.expected) for one in SETS]
    y = [logit((one.wrong_j.sum() + 0.5) / (len(one.wrong_j) + 1)) for one in SETS]
    assert (slope, intercept) == pytest.approx(np.polyfit(x, y, 1))
    assert slope == pytest.approx(0.5, abs=0.05)
    assert study.line(SETS, constant=True) == (pytest.approx(np.mean(y)), 0.0)


def test_sets_of_one_family_count_as_one():
    twice = [*SETS[:4], *(made_set("s", 0.3, 0.6, family="f", seed=seed) for seed in range(5))]
    once = [*SETS[:4], made_set("s", 0.3, 0.6, family="f")]
    assert study.line(twice, constant=False) == pytest.approx(study.line(once, constant=False), abs=1e-9)


def test_what_is_said_of_a_set_is_learnt_without_its_family():
    other = made_set("odd", 0.05, 0.9)
    assert study.belief([*SETS, other], other) == study.belief([*SETS, made_set("odd", 0.05, 0.01)], other)
    assert study.belief(SETS, made_set("judges", 0.05, 0.3, people=False)) is None


def test_a_line_that_tells_nothing_gives_way_to_a_constant():
    rng = np.random.default_rng(1)
    random = [made_set(f"r{'y' * i}", float(rng.uniform(0.02, 0.3)), float(rng.uniform(0.1, 0.4))) for i in range(6)]
    facts = study.crowd_facts(random)["people"]
    assert (facts["slope"] == 0.0) == (facts["sd_of_line"] >= facts["sd_of_constant"])
    assert study.crowd_facts(SETS)["people"]["slope"] > 0.4


def test_floor_and_flag_are_counted():
    sets = [
        made_set("a", 0.06, 0.2),
        made_set("bb", 0.02, 0.2),
        made_set("ccc", 0.08, 0.05),
        made_set("dddd", 0.01, 0.05),
    ]
    facts = study.crowd_facts(sets)
    assert facts["floor"] == {"held": 3, "of": 4}
    assert {name: facts["flag"][name] for name in ("bad", "flagged_bad", "flagged_good")} == {
        "bad": 2, "flagged_bad": 1, "flagged_good": 1}  # fmt: skip


@pytest.mark.parametrize("n", [20, 50])
def test_random_sheets_are_unbiased_and_hold_the_truth(n):
    found = study.try_sheets(made_set("set", 0.1, 0.2), None, n, 300)
    assert abs(found.bias) < 4 * np.sqrt(0.2 * 0.8 / n / 300)
    assert found.held == found.held_alone and 0.85 < found.held < 0.99
    assert found.ship < 0.05


def test_the_page_has_a_row_for_every_set():
    found = {(one.name, n): study.try_sheets(one, study.belief(SETS, one), n, 5) for one in SETS for n in (20, 50, 100)}
    text = study.page_text(SETS, found, [], study.crowd_facts(SETS), 5)
    assert all(text.count(f"| {one.name} |") == 2 for one in SETS)


def test_corpora_with_a_trouble_are_held_against_their_truth():
    sets = list(study.read_troubled(1, 0))
    assert [one.name for one in sets] == [trouble.name for trouble in study.TROUBLES]
    by_name = {one.name: one for one in sets}
    # Half of the items are a coin toss, and about half of these are labelled wrongly.
    assert by_name["items hard for all"].error == pytest.approx(0.25, abs=0.06)
    assert by_name["an adversarial annotator among 12"].error < 0.2
    assert {len(one.wrong_j) for one in sets} == {1_000}


def test_wrong_assurance_counts_corpora_with_too_many_wrong_alone():
    def sheets(ship):
        return study.Sheets(0.9, 0.9, 0.1, 0.1, 0.0, ship, 0.0)

    troubled = [
        (made_set("flood", 0.1, 0.2), sheets(0.02)),
        (made_set("flood", 0.1, 0.3), sheets(0.0)),
        (made_set("flood", 0.1, 0.05), sheets(0.5)),
        (made_set("calm", 0.1, 0.05), sheets(0.6)),
    ]
    assert "| flood | 5.0% – 30.0% | 2 of 3 | 1.0% |" in study.trouble_table(troubled)
    assert "| calm | 5.0% – 5.0% | 0 of 1 | – |" in study.trouble_table(troubled)
    assert "in 2 of 4 corpora" in study.trouble_text(troubled, 500) and "1.0% end in *ship* (2.0% in the worst" in (
        study.trouble_text(troubled, 500)
    )
