"""The verdict says the worst first, names every side in doubt, and never more than was examined."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.validate.finding import Finding
from moral_entropy.validate.verdict import NOT_EXAMINED, SIDES, about, is_thorough, verdict, worst_level

some_findings = st.lists(
    st.builds(
        Finding,
        side=st.sampled_from([*SIDES, "another"]),
        figure=st.just("figure"),
        value=st.floats(allow_nan=True),
        question=st.sampled_from(["", "care"]),
        level=st.sampled_from(["info", "good", "doubt", "bad"]),
        text=st.just("a sentence."),
    ),
    max_size=8,
)


@given(found=some_findings)
def test_every_side_in_doubt_is_named_and_no_other(found):
    said = verdict(found)
    alarmed = {SIDES.get(f.side, f.side) for f in found if f.alarms}
    if not found:
        assert said == NOT_EXAMINED
        return
    if alarmed:
        assert all(side in said for side in alarmed)
        assert not [side for side in SIDES.values() if side not in alarmed and side in said]
    else:
        assert said.startswith("Nothing found") and all(SIDES.get(f.side, f.side) in said for f in found)
    assert said.startswith("The yardstick is bent") == any(f.level == "bad" for f in found)
    assert said[-1] in ".)" and "  " not in said and ".." not in said


@given(found=some_findings)
def test_order_does_not_change_which_sides_are_named(found):
    def without_example(text):
        return re.sub(r"\(.*?\)", "", text)

    assert without_example(verdict(found)) == without_example(verdict(found[::-1]))


def test_worst_comes_first_and_the_rest_is_counted():
    found = [
        Finding("dependence", "dependent_pairs", 1, "care", level="doubt", text="a and b copy."),
        Finding("identifiability", "groups", 2, "fairness", level="bad", text="two groups."),
    ]
    assert verdict(found) == (
        "The yardstick is bent: what the votes can tell must be settled first (fairness: two groups. And 1 more.) "
        "Doubts remain about independence of the votes."
    )
    assert worst_level(found) == "bad" and worst_level([]) == "info"


def test_quick_looks_are_called_so():
    quick = [Finding("identifiability", "groups", 1.0), Finding("laplace", "pareto_k", 0.2)]
    assert verdict(quick).endswith(" only.") and not is_thorough(quick)
    whole = [*quick, Finding("dependence", "dependent_pairs", 0)]
    assert not verdict(whole).endswith(" only.") and is_thorough(whole)


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (Finding("gold", "ece", 0.1), ""),
        (Finding("gold", "ece", 0.1, "care", "twitter"), "care (twitter)"),
        (Finding("gold", "ece", 0.1, subject="ann"), "ann"),
    ],
)
def test_about(finding, expected):
    assert about(finding) == expected
