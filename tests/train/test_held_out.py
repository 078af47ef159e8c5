"""What is held out leaves no trace in the targets."""

from dataclasses import replace

import numpy as np
import pytest
from study_support import annotators, told_votes

from moral_entropy.consensus.fit import fit, refit
from moral_entropy.errors import TrainError
from moral_entropy.study.references import held_out_reference
from moral_entropy.train.held_out import hold_out, keep_votes
from moral_entropy.train.targets import targets_from_consensus

TEAM = annotators(*[(0.9, 0.7)] * 8)


@pytest.fixture(scope="module")
def consensus():
    return fit(told_votes(confusion_akv=TEAM, n_items=300), draws=60)


def cast(ballot):
    """The votes as (item, annotator, label), annotators and items by their ids."""
    item_v = np.repeat(ballot.item_i, ballot.votes_i)
    annotator_v, label_v = np.divmod(ballot.code_v, ballot.n_labels)
    return list(zip(item_v.tolist(), ballot.annotator_a[annotator_v].tolist(), label_v.tolist(), strict=True))


def test_annotators_are_held_out_whole(consensus):
    votes = consensus.votes
    *parts, note = hold_out(votes, share=0.25, seed=4)
    rest, held, before = (cast(one.ballots[0]) for one in (*parts, votes))
    assert sorted(rest + held) == sorted(before)
    who_held, who_rest = {a for _, a, _ in held}, {a for _, a, _ in rest}
    assert len(who_held) == 2 and not who_held & who_rest
    assert note == f"2 of 8 annotators, with {len(held):,} of {len(before):,} votes, are held out."
    assert parts[0].ballots[0].n_items == votes.ballots[0].n_items
    assert cast(hold_out(votes, share=0.25, seed=4)[1].ballots[0]) == held
    assert {cast(hold_out(votes, share=0.25, seed=n)[1].ballots[0])[0][1] for n in range(8)} != {held[0][1]}


def test_targets_know_nothing_of_what_is_held_out(consensus):
    """Turn every held-out vote into its opposite: no target moves, and the reference turns around."""
    rest, held, _ = hold_out(consensus.votes, seed=1)
    held_a = set(np.unique([a for _, a, _ in cast(held.ballots[0])]).tolist())
    ballot = consensus.votes.ballots[0]
    turned_v = np.array([a in held_a for _, a, _ in cast(ballot)])
    code_v = np.where(turned_v, ballot.code_v ^ 1, ballot.code_v).astype(np.int32)
    turned_rest, turned_held, _ = hold_out(replace(consensus.votes, ballots=(replace(ballot, code_v=code_v),)), seed=1)
    for kind in ("soft", "share", "any", "majority", "two-vote"):
        one, other = (targets_from_consensus(refit(consensus, votes=votes), kind) for votes in (rest, turned_rest))
        np.testing.assert_array_equal(one.target_io, other.target_io)
    items = consensus.votes.items
    [one], [other] = (held_out_reference(consensus, votes).standards(items) for votes in (held, turned_held))
    some = one.weight_i > 0
    np.testing.assert_allclose(one.share_ik[some, 1], other.share_ik[some, 0])


def test_anonymous_votes_lose_one_per_item(consensus):
    ballot = consensus.votes.ballots[0]
    nobody = replace(
        ballot, code_v=np.sort((ballot.code_v % 2).reshape(-1, 4), axis=1).ravel(), annotator_a=np.zeros(1, int)
    )
    votes = replace(consensus.votes, ballots=(nobody,), anonymous=True)
    rest, held, note = hold_out(votes, seed=2)
    assert rest.ballots[0].votes_i.tolist() == [3] * 300
    assert held.ballots[0].votes_i.tolist() == [1] * 300
    both_ik = rest.ballots[0].counts_ik + held.ballots[0].counts_ik
    np.testing.assert_array_equal(both_ik, nobody.counts_ik)
    assert note.startswith("The votes have no annotators, so none can be held out: instead one vote per item")
    # Drawn at random: the held-out votes are about as often yes as all are.
    assert held.ballots[0].counts_ik[:, 1].mean() == pytest.approx(nobody.counts_ik[:, 1].sum() / 1_200, abs=0.08)


def test_two_anonymous_votes_left_are_said_to_be_too_few():
    votes = told_votes(confusion_akv=TEAM, n_items=50, votes_per_item=3)
    assert "Hardly an item has more than two votes left" in hold_out(replace(votes, anonymous=True))[2]
    votes = told_votes(confusion_akv=TEAM, n_items=50, votes_per_item=4)
    assert "Hardly an item" not in hold_out(replace(votes, anonymous=True))[2]


def test_an_only_vote_stays():
    votes = replace(told_votes(confusion_akv=TEAM, n_items=50, votes_per_item=1), anonymous=True)
    with pytest.raises(TrainError, match=r"^no item has two votes on a question"):
        hold_out(votes)


def test_two_annotators_are_too_few():
    votes = told_votes(confusion_akv=TEAM[:2], n_items=50, votes_per_item=2)
    with pytest.raises(TrainError, match=r"^2 annotators are too few to hold any out"):
        hold_out(votes)
    assert hold_out(told_votes(confusion_akv=TEAM[:3], n_items=50, votes_per_item=3), share=0.9)[2].startswith("1 of 3")


def test_keeping_all_votes_changes_nothing(consensus):
    ballot = consensus.votes.ballots[0]
    same = keep_votes(ballot, np.ones(ballot.n_votes, dtype=bool))
    assert cast(same) == cast(ballot)
