"""References against loops over the votes; what is held out leaves no trace in the targets."""

from dataclasses import replace

import numpy as np
import pytest
from train.pupils import annotators, told_votes

from moral_entropy.consensus.fit import fit
from moral_entropy.errors import TrainError
from moral_entropy.train.references import (
    FAVOURED,
    REFERENCES,
    held_out_reference,
    hold_out,
    keep_votes,
    references_of,
    refit,
)
from moral_entropy.train.targets import targets_from_consensus
from moral_entropy.votes.table import UNKNOWN

TEAM = annotators(*[(0.9, 0.7)] * 8)


@pytest.fixture(scope="module")
def consensus():
    return fit(told_votes(confusion_akv=TEAM, n_items=300), draws=60)


def cast(ballot):
    """The votes as (item, annotator, label), annotators and items by their ids."""
    item_v = np.repeat(ballot.item_i, ballot.votes_i)
    annotator_v, label_v = np.divmod(ballot.code_v, ballot.n_labels)
    return list(zip(item_v.tolist(), ballot.annotator_a[annotator_v].tolist(), label_v.tolist(), strict=True))


def test_every_reference_says_what_it_is_and_whom_it_favours():
    assert list(REFERENCES) == list(FAVOURED)


def test_references_equal_a_loop(consensus):
    found = {one.name: one.standards(consensus.votes.items)[0] for one in references_of(consensus)}
    assert list(found) == ["consensus", "majority", "gold", "votes"]
    ballot, mean_ik = consensus.fits[0].ballot, consensus.fits[0].summary.mean_ik
    for i, (no, yes) in enumerate(ballot.counts_ik.tolist()):
        p = mean_ik[i, 1]
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
    import polars as pl

    [reference] = [one for one in references_of(consensus) if one.name == "majority"]
    [standard] = reference.standards(pl.Series([0, 10_000, 1]))
    assert (standard.weight_i > 0).tolist() == [True, False, True]


def test_annotators_are_held_out_whole(consensus):
    votes = consensus.votes
    cut = hold_out(votes, share=0.25, seed=4)
    rest, held, before = (cast(one.ballots[0]) for one in (cut.rest, cut.held, votes))
    assert sorted(rest + held) == sorted(before)
    who_held, who_rest = {a for _, a, _ in held}, {a for _, a, _ in rest}
    assert len(who_held) == 2 and not who_held & who_rest
    assert cut.note == f"2 of 8 annotators, with {len(held):,} of {len(before):,} votes, are held out."
    assert cut.rest.ballots[0].n_items == votes.ballots[0].n_items
    assert cast(hold_out(votes, share=0.25, seed=4).held.ballots[0]) == held
    assert {cast(hold_out(votes, share=0.25, seed=n).held.ballots[0])[0][1] for n in range(8)} != {held[0][1]}


def test_targets_know_nothing_of_what_is_held_out(consensus):
    """Turn every held-out vote into its opposite: no target moves, and the reference turns around."""
    cut = hold_out(consensus.votes, seed=1)
    held_a = set(np.unique([a for _, a, _ in cast(cut.held.ballots[0])]).tolist())
    ballot = consensus.votes.ballots[0]
    turned_v = np.array([a in held_a for _, a, _ in cast(ballot)])
    code_v = np.where(turned_v, ballot.code_v ^ 1, ballot.code_v).astype(np.int32)
    turned = hold_out(replace(consensus.votes, ballots=(replace(ballot, code_v=code_v),)), seed=1)
    for kind in ("soft", "share", "any", "majority", "two-vote"):
        one, other = (targets_from_consensus(refit(consensus, half.rest), kind) for half in (cut, turned))
        np.testing.assert_array_equal(one.target_io, other.target_io)
    items = consensus.votes.items
    [one], [other] = (held_out_reference(consensus, half.held).standards(items) for half in (cut, turned))
    some = one.weight_i > 0
    np.testing.assert_allclose(one.share_ik[some, 1], other.share_ik[some, 0])


def test_the_refit_is_a_fit_of_the_rest(consensus):
    rest = hold_out(consensus.votes).rest
    again, plain = refit(consensus, rest), fit(rest, draws=60)
    np.testing.assert_array_equal(again.posterior_ik, plain.posterior_ik)


def test_anonymous_votes_lose_one_an_item(consensus):
    ballot = consensus.votes.ballots[0]
    nobody = replace(
        ballot, code_v=np.sort((ballot.code_v % 2).reshape(-1, 4), axis=1).ravel(), annotator_a=np.zeros(1, int)
    )
    votes = replace(consensus.votes, ballots=(nobody,), anonymous=True)
    cut = hold_out(votes, seed=2)
    assert cut.rest.ballots[0].votes_i.tolist() == [3] * 300
    assert cut.held.ballots[0].votes_i.tolist() == [1] * 300
    both_ik = cut.rest.ballots[0].counts_ik + cut.held.ballots[0].counts_ik
    np.testing.assert_array_equal(both_ik, nobody.counts_ik)
    assert cut.note.startswith("The votes have no annotators, so none can be held out: instead one vote an item")
    # Drawn at random: the held-out votes are about as often yes as all are.
    assert cut.held.ballots[0].counts_ik[:, 1].mean() == pytest.approx(nobody.counts_ik[:, 1].sum() / 1_200, abs=0.08)


def test_two_anonymous_votes_left_are_said_to_be_too_few():
    votes = told_votes(confusion_akv=TEAM, n_items=50, votes_per_item=3)
    assert "Hardly an item has more than two votes left" in hold_out(replace(votes, anonymous=True)).note
    votes = told_votes(confusion_akv=TEAM, n_items=50, votes_per_item=4)
    assert "Hardly an item" not in hold_out(replace(votes, anonymous=True)).note


def test_an_only_vote_stays():
    votes = replace(told_votes(confusion_akv=TEAM, n_items=50, votes_per_item=1), anonymous=True)
    with pytest.raises(TrainError, match=r"^no item has two votes on a question"):
        hold_out(votes)


def test_two_annotators_are_too_few():
    votes = told_votes(confusion_akv=TEAM[:2], n_items=50, votes_per_item=2)
    with pytest.raises(TrainError, match=r"^2 annotators are too few to hold any out"):
        hold_out(votes)
    assert hold_out(told_votes(confusion_akv=TEAM[:3], n_items=50, votes_per_item=3), share=0.9).note.startswith(
        "1 of 3"
    )


def test_keeping_all_votes_changes_nothing(consensus):
    ballot = consensus.votes.ballots[0]
    same = keep_votes(ballot, np.ones(ballot.n_votes, dtype=bool))
    assert cast(same) == cast(ballot)


def test_gold_that_was_evidence_is_no_reference(consensus):
    told = fit(consensus.votes, draws=20, use_gold=True)
    assert "gold" not in {one.name for one in references_of(told)}


def test_the_refit_takes_the_options_of_the_fit(consensus):
    rest = hold_out(consensus.votes).rest
    tempered = refit(consensus, rest, {"temper": 0.5})
    np.testing.assert_array_equal(tempered.posterior_ik, fit(rest, draws=60, temper=0.5).posterior_ik)
    assert not np.array_equal(tempered.posterior_ik, refit(consensus, rest).posterior_ik)
