"""The study of groups, small: its simulated crowds differ in what they should, and its tables hold what was found."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support import ROOT, load_script

from moral_entropy.groups.camps import adjusted_rand


@pytest.fixture(scope="module")
def module():
    return load_script("studies/groups.py")


def rates(crowd):
    return [crowd.votes.yes_v[crowd.group_a[crowd.votes.annotator_v] == g].mean() for g in (0, 1)]


def test_crowds_differ_in_what_they_should(module):
    same, strict, other = (
        module.simulate(1, kind, (20, 20), items=300, votes=3)
        for kind in ("no difference", "another threshold", "another truth")
    )
    assert abs(np.subtract(*rates(same))) < 0.08 < np.subtract(*rates(strict))
    assert (same.place_ig[:, 0] == same.place_ig[:, 1]).all()
    assert np.mean(np.sign(other.place_ig[:, 0]) != np.sign(other.place_ig[:, 1])) == pytest.approx(0.3, abs=0.08)
    assert np.bincount(same.votes.item_v).tolist() == [6] * 300


def test_who_knows_the_items_tells_the_camps(module):
    crowd = module.simulate(3, "another truth", (12, 6), items=60, votes=40, by="annotator", parting=0.5, sharpness=2.0)
    assert np.bincount(crowd.votes.annotator_v).tolist() == [40] * 18
    assert adjusted_rand(module.told_by_places(crowd, 2.0), crowd.group_a) == 1.0


def test_false_alarms_are_counted(module):
    rows = [line for line in module.false_alarms(2).splitlines() if line.startswith("| 3")]
    assert len(rows) == 2 and all("%" in row for row in rows)


def test_the_page_has_a_place_for_every_part():
    page = (ROOT / "docs" / "evidence" / "groups.md").read_text(encoding="utf-8")
    parts = re.findall(r"<!-- (\S+): written by studies/groups.py -->", page)
    assert parts == ["alarms", "readings", "camps", "guidelines", "demographics", "one-truth"]
