"""References against loops over the votes."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from study_support import annotators, told_votes

from moral_entropy.consensus.fit import fit
from moral_entropy.study.references import make_conditions, references_of
from moral_entropy.train.held_out import hold_out
from moral_entropy.train.targets import targets_from_consensus
from moral_entropy.votes.table import UNKNOWN

TEAM = annotators(*[(0.9, 0.7)] * 8)


@pytest.fixture(scope="module")
def consensus():
    return fit(told_votes(confusion_akv=TEAM, n_items=300), draws=60)


def test_references_equal_a_loop(consensus):
    found = {one.name: one.standards(consensus.votes.items)[0] for one in references_of(consensus)}
    assert list(found) == ["consensus", "majority", "gold", "votes"]
    ballot, p_ik = consensus.fits[0].ballot, consensus.fits[0].p_ik
    for i, (no, yes) in enumerate(ballot.counts_ik.tolist()):
        p = p_ik[i, 1]
        assert found["consensus"].share_ik[i, 1] == pytest.approx(p)
        assert found["consensus"].label_ik[i].tolist() == [p < 0.5, p >= 0.5]
        assert found["majority"].label_ik[i].tolist() == [yes < no, yes >= no]
        assert found["gold"].label_ik[i, 1] == ballot.gold_i[i]
        assert found["votes"].share_ik[i, 1] == pytest.approx(yes / (yes + no))
    assert found["votes"].weight_i == pytest.approx(ballot.votes_i / ballot.votes_i.mean())


def test_without_gold_there_is_no_such_reference(consensus):
    fits = tuple(
        replace(one, ballot=replace(one.ballot, gold_i=np.full(one.ballot.n_items, UNKNOWN, dtype=np.int16)))
        for one in consensus.fits
    )
    assert "gold" not in {one.name for one in references_of(replace(consensus, fits=fits))}


def test_items_it_does_not_know_have_no_weight(consensus):
    [reference] = [one for one in references_of(consensus) if one.name == "majority"]
    [standard] = reference.standards(pl.Series([0, 10_000, 1]))
    assert (standard.weight_i > 0).tolist() == [True, False, True]


def test_gold_that_was_evidence_is_no_reference(consensus):
    told = fit(consensus.votes, draws=20, use_gold=True)
    assert "gold" not in {one.name for one in references_of(told)}


def test_targets_of_the_votes_left_are_fitted_with_the_options_of_all_votes(consensus):
    fitted = fit(consensus.votes, draws=60, model="paper", temper=0.5)
    (_, left), _ = make_conditions(fitted, ("soft", "share"), held_out=0.25, seed=0)
    rest, _, _ = hold_out(consensus.votes)
    tempered, plain = (
        targets_from_consensus(fit(rest, draws=60, model="paper", **more), "soft") for more in ({"temper": 0.5}, {})
    )
    np.testing.assert_array_equal(left.targets["soft"].target_io, tempered.target_io)
    assert not np.array_equal(tempered.target_io, plain.target_io)
