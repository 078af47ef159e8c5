"""The study of the three parts, small: where they tend to as votes arrive, and what is written."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support import ROOT, load_script


@pytest.fixture(scope="module")
def module():
    pytest.importorskip("altair")
    return load_script("studies/three_parts.py")


@pytest.fixture(scope="module")
def found(module):
    return module.study(n_items=2_000, n_followed=60, seed=1)


def test_ambiguity_stays_and_the_other_parts_vanish(found):
    rows = {(row["place"], row["n"]): row for row in found.iter_rows(named=True)}
    halfway, sure = rows["halfway between the labels", 300], rows["surely one label", 300]
    assert halfway["ambiguity"] == pytest.approx(math.log(2), abs=0.03)
    assert halfway["votes"] + halfway["annotators"] < 0.03
    assert sure["ambiguity"] + sure["votes"] + sure["annotators"] < 0.02
    few = rows["halfway between the labels", 3]
    assert few["ambiguity"] < few["votes"]


def test_people_vote_as_the_place_says(module):
    crowd = module.Crowd.of(3)
    right_a = crowd.confusion_akv[:, [0, 1], [0, 1]]
    assert right_a.min() >= 0.7 and right_a.max() <= 0.9
    for place in (0.0, 0.5, 1.0):
        ballot = crowd.vote(np.full(400, place), 50).ballots[0]
        expected = place * right_a[:, 1].mean() + (1 - place) * (1 - right_a[:, 0].mean())
        assert (ballot.code_v % 2).mean() == pytest.approx(expected, abs=0.02)
        assert (ballot.votes_i == 50).all()


def test_the_figure_and_the_page_show_every_figure(module, found):
    [values] = [module.chart(found)["data"]["values"]]
    assert len(values) == 30 and sum(one["nats"] for one in values) == pytest.approx(
        found.select(list(module.PARTS)).sum_horizontal().sum()
    )
    page = (ROOT / "docs" / "concepts" / "entropy.md").read_text()
    assert len([line for line in page.splitlines() if line.startswith(("| halfway", "| surely"))]) == 10
    shown_in = (page, *((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "paper/paper.md")))
    assert all("figures/three-parts.svg" in text for text in shown_in)
