"""The verdict says the worst first, names every side in doubt, and never more than was examined."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.checks.sides import SIDES
from moral_entropy.checks.verdict import NOT_EXAMINED, is_thorough, title_of, verdict
from moral_entropy.findings import Finding

some_findings = st.lists(
    st.builds(
        Finding,
        side=st.sampled_from([*SIDES, "another"]),
        figure=st.just("figure"),
        value=st.floats(allow_nan=True),
        question=st.sampled_from(["", "care"]),
        level=st.sampled_from(["info", "good", "note", "doubt", "bad"]),
        text=st.just("a sentence."),
    ),
    max_size=8,
)


@given(found=some_findings)
def test_every_side_in_doubt_is_named_and_no_other(found):
    said = verdict(found)
    alarmed = {title_of(f.side) for f in found if f.alarms}
    if not found:
        assert said == NOT_EXAMINED
        return
    if alarmed:
        assert all(title in said for title in alarmed)
        assert not [side.title for side in SIDES.values() if side.title not in alarmed and side.title in said]
    else:
        assert said.startswith("No doubt was found") and all(title_of(f.side) in said for f in found)
    assert said.startswith("The consensus itself may be wrong") == any(f.level == "bad" for f in found)
    assert said[-1] in ".)?r" and "  " not in said and ".." not in said


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
        "The consensus itself may be wrong. To settle first: Can the votes tell? (fairness: two groups. And 1 more.) "
        "Doubts remain: Do annotators vote independently?"
    )


def test_quick_looks_are_called_so():
    quick = [
        Finding("identifiability", "groups", 1.0),
        Finding("laplace", "pareto_k", 0.2),
        Finding("gold", "p_off", 0.0),
    ]
    assert verdict(quick).endswith("Only the quick checks were made.") and not is_thorough(quick)
    whole = [*quick, Finding("dependence", "dependent_pairs", 0)]
    assert "quick" not in verdict(whole) and is_thorough(whole)
