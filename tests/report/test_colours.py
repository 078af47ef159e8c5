"""Colours and shapes: no two names of a chart look alike, however many there are."""

from __future__ import annotations

from itertools import combinations

import pytest

from moral_entropy.report.chart_specs import FAR, FURTHER, OKABE_ITO, PALETTE, distance, looks_of
from moral_entropy.report.tables import MAX_TARGETS

MORAL = ["Authority", "Care", "Equality", "Loyalty", "Non-Moral", "Proportionality", "Purity", "Thin Morality"]


def test_distances_are_those_of_the_published_conversion():
    # Primaries in CIELAB (D65): red 53.24, 80.09, 67.20; green 87.73, -86.18, 83.18; blue 32.30, 79.19, -107.86.
    assert distance("#FF0000", "#00FF00") == pytest.approx(170.6, abs=0.2)
    assert distance("#FF0000", "#0000FF") == pytest.approx(176.3, abs=0.2)
    assert distance("#123456", "#123456") == 0


def test_the_colours_are_as_far_apart_as_those_of_okabe_and_ito():
    closest = min(distance(*pair) for pair in combinations(OKABE_ITO, 2))
    assert closest >= FAR
    assert min(distance(*pair) for pair in combinations(PALETTE, 2)) >= closest
    assert len({*PALETTE}) == len(OKABE_ITO) + len(FURTHER) == 14


@pytest.mark.parametrize("names", [[f"question {i}" for i in range(12)], MORAL, ["care", "harm", "toxic", "Care/Harm"]])
def test_a_dozen_names_have_as_many_colours(names):
    colours = [look.colour for look in looks_of(names)]
    assert min(distance(*pair) for pair in combinations(colours, 2)) >= FAR


@pytest.mark.parametrize("n", [8, 14, 15, MAX_TARGETS, 42])
@pytest.mark.parametrize("first", [[], MORAL])
def test_no_two_names_look_alike(n, first):
    looks = looks_of([*first, *(f"label {i}" for i in range(n - len(first)))])
    assert len(looks) == n == len(set(looks))
    for one, other in combinations(looks, 2):
        assert one.shape != other.shape or distance(one.colour, other.colour) >= FAR


def test_a_foundation_keeps_its_colour_in_the_paper():
    looks = dict(zip(MORAL, looks_of(MORAL), strict=True))
    assert (looks["Care"].colour, looks["Authority"].colour) == ("#00B4A6", "#6A4C93")
