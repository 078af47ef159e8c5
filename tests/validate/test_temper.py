"""The exponent's alarm: rings where items differ in difficulty, stays silent where they do not."""

from __future__ import annotations

import numpy as np
import pytest
from support import votes_of

from moral_entropy.consensus.fit import fit
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.validate.temper import examine_temper


def unequally_hard(seed=0, n_items=400):
    """Six annotators who are nearly always right on two thirds of the items, and guess on the rest."""
    rng = np.random.default_rng(seed)
    rows = []
    for item in range(n_items):
        truth, easy = rng.random() < 0.4, rng.random() < 2 / 3
        for annotator in range(6):
            right = rng.random() < (0.95 if easy else 0.5)
            rows.append((item, annotator, int(truth if right else not truth)))
    return votes_of(rows)


def test_items_of_unequal_difficulty_ask_for_less_confidence():
    (finding,) = examine_temper(fit(unequally_hard(), draws=20))
    assert finding.level == "doubt"
    assert finding.value < 0.9
    assert finding.high is not None and finding.high < 1.0
    assert "--temper heldout" in finding.cure


@pytest.mark.parametrize("pooling", ["none", "full"])
def test_independent_votes_do_not(pooling):
    votes = simulate_votes(n_items=600, n_annotators=8, votes_per_item=5, accuracy=(0.75, 0.8), seed=1).votes
    (finding,) = examine_temper(fit(votes, draws=20, pooling=pooling))
    assert finding.level == "good"


def test_a_tempered_fit_is_told_so_and_not_alarmed():
    (finding,) = examine_temper(fit(unequally_hard(), draws=20, temper="heldout"))
    assert finding.level == "info"
    assert "tempered" in finding.text


def test_single_votes_can_tell_nothing():
    votes = votes_of([(i, i % 3, i % 2) for i in range(30)])
    with pytest.warns(match="votes per item"):
        consensus = fit(votes, draws=20)
    (finding,) = examine_temper(consensus)
    assert (finding.level, finding.n) == ("info", 0)
