"""Held-out votes: against refits by a textbook EM, on votes that can be predicted and on votes that cannot."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from support import plain_em, plain_mixed_em, plain_states, random_rows, real_data, votes_of

from moral_entropy.checks.heldout import METHODS, examine_heldout, hold_out
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.priors import Priors
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import ThinDataWarning
from moral_entropy.votes.read import read_votes


def gains(findings):
    return {finding.figure: finding for finding in findings if finding.figure.startswith("gain_over")}


@pytest.mark.parametrize("n_labels", [2, 3])
def test_predictions_equal_those_of_a_textbook_em_without_the_votes(n_labels):
    rng = np.random.default_rng(n_labels)
    rows = np.array(random_rows(rng, 60, 6, n_labels))
    votes = votes_of(rows, n_labels, n_items=60)
    one = fit(votes, model="paper", draws=0).fits[0]
    held = hold_out(one, folds=3, seed=4)
    ballot = one.ballot
    item_v = np.repeat(np.arange(60), ballot.votes_i)
    annotator_v, label_v = np.divmod(ballot.code_v, n_labels)
    assert_allclose(held.label_v, label_v)
    assert sorted(np.bincount(held.fold_v)) == sorted(len(part) for part in np.array_split(label_v, 3))
    for fold in range(3):
        kept_v, out_v = held.fold_v != fold, held.fold_v == fold
        rest = votes_of(np.column_stack([item_v, annotator_v, label_v])[kept_v], n_labels, n_items=60)
        at, posterior_ik = plain_em(rest, one.mode, Priors(), tolerance=1e-10)
        for v in np.flatnonzero(out_v):
            row_kv = at.confusion_akv[annotator_v[v]]
            said = [label_v[u] for u in range(len(label_v)) if kept_v[u] and item_v[u] == item_v[v]]
            share = (said.count(label_v[v]) + 0.5) / (len(said) + 0.5 * n_labels)
            p_k = posterior_ik[item_v[v]] if said else at.weight_g
            chance = {
                "consensus": p_k @ row_kv[:, label_v[v]],
                "vote share": share,
                "prevalence": at.weight_g @ row_kv[:, label_v[v]],
            }
            for method, expected in chance.items():
                found = np.exp(held.log_p_mvk[METHODS.index(method), v, label_v[v]])
                assert_allclose(found, expected, atol=2e-3)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_predictions_between_labels_equal_those_of_states_listed_one_by_one(n_labels):
    rng = np.random.default_rng(n_labels)
    rows = np.array(random_rows(rng, 40, 5, n_labels))
    one = fit(votes_of(rows, n_labels, n_items=40), draws=0).fits[0]
    held = hold_out(one, folds=3, seed=4)
    assert held.methods == ("consensus", "vote share", "prevalence") and not len(held.exponent_f)
    mix_zk, group_z = plain_states(n_labels)
    annotator_v, label_v = np.divmod(one.ballot.code_v, n_labels)
    for fold in range(3):
        kept_v, out_v = held.fold_v != fold, np.flatnonzero(held.fold_v == fold)
        left = votes_of(np.column_stack([held.item_v, annotator_v, label_v])[kept_v], n_labels, n_items=40)
        at, state_iz = plain_mixed_em(left, one.mode)
        weight_z = (at.weight_g[0] / np.bincount(group_z))[group_z]
        vote_vz = np.einsum("zk,vk->vz", mix_zk, at.confusion_akv[annotator_v[out_v], :, label_v[out_v]])
        for method, weight_vz in (("consensus", state_iz[held.item_v[out_v]]), ("prevalence", weight_z[None])):
            found_v = np.exp(held.log_p_mvk[held.methods.index(method), out_v, label_v[out_v]])
            assert_allclose(found_v, (weight_vz * vote_vz).sum(axis=1), atol=2e-3)


def test_chances_of_labels_sum_to_one_and_exponents_are_learnt():
    votes = simulate_votes(n_items=300, n_annotators=8, votes_per_item=4, n_labels=3).votes
    for model, n_exponents in (("paper", 5), ("mixed", 0)):
        one = fit(votes, model=model, draws=0).fits[0]
        held = hold_out(one)
        assert_allclose(np.exp(held.log_p_mvk).sum(axis=2), 1.0)
        assert len(held.exponent_f) == n_exponents and ((held.exponent_f >= 0) & (held.exponent_f <= 1)).all()
        assert len(held.label_v) == one.ballot.n_votes


def test_votes_with_a_label_behind_them_are_predicted_best_by_the_consensus():
    simulated = simulate_votes(n_items=800, n_annotators=12, votes_per_item=5, seed=2)
    findings = examine_heldout(fit(simulated.votes, draws=0))
    assert {finding.level for finding in gains(findings).values()} == {"good"}
    loss = {finding.subject: finding for finding in findings if finding.figure == "log_loss"}
    assert loss["consensus"].low < loss["consensus"].value < loss["consensus"].high
    assert loss["consensus"].value < min(loss["vote share"].value, loss["prevalence"].value)
    by_votes = [finding for finding in findings if finding.figure == "log_loss_by_votes"]
    assert sum(finding.n for finding in by_votes if finding.subject.startswith("consensus,")) == loss["consensus"].n


@pytest.mark.filterwarnings("ignore::moral_entropy.errors.IdentifiabilityWarning")
def test_votes_by_the_toss_of_a_coin_are_predicted_by_nobody():
    rng = np.random.default_rng(0)
    rows = [(item, annotator, rng.integers(2)) for item in range(300) for annotator in range(4)]
    found = gains(examine_heldout(fit(votes_of(rows), draws=0)))
    assert found["gain_over_prevalence"].level != "good"
    assert found["gain_over_prevalence"].value < 0.005


@pytest.mark.filterwarnings("ignore::moral_entropy.errors.ConvergenceWarning")
def test_a_consensus_that_may_not_see_the_items_is_doubted():
    # A prior that all but forbids one label leaves the annotators' habits, where the votes show items apart.
    simulated = simulate_votes(n_items=300, n_annotators=10, votes_per_item=8, accuracy=(0.9, 0.95), seed=1)
    priors = Priors(prevalence=(2e4, 1.0), diagonal=200.0, off_diagonal=200.0)
    for model, cure in (("paper", "partial or --temper heldout."), ("mixed", "Try --pooling partial.")):
        found = gains(examine_heldout(fit(simulated.votes, draws=0, model=model, priors=priors)))
        assert found["gain_over_vote_share"].level == "doubt" and found["gain_over_vote_share"].high < 0
        assert found["gain_over_vote_share"].cure.endswith(cure)


def test_the_seed_decides_the_folds():
    one = fit(simulate_votes(n_items=100, n_annotators=6, votes_per_item=4).votes, draws=0).fits[0]
    first, again, other = hold_out(one, seed=1), hold_out(one, seed=1), hold_out(one, seed=2)
    assert_allclose(first.log_p_mvk, again.log_p_mvk, rtol=0)
    assert (first.fold_v != other.fold_v).any()


def test_known_labels_are_not_predicted():
    rng = np.random.default_rng(6)
    gold_i = np.full(40, -1)
    gold_i[:10] = 1
    votes = votes_of(random_rows(rng, 40, 5, 2), gold_i=gold_i)
    held = hold_out(fit(votes, draws=0, use_gold=True).fits[0])
    assert held.item_v.min() == 10


@pytest.mark.parametrize("pooling", ["partial", "full"])
def test_pooled_fits_are_held_out_too(pooling):
    votes = simulate_votes(n_items=300, n_annotators=10, votes_per_item=4, accuracy=(0.8, 0.95)).votes
    found = gains(examine_heldout(fit(votes, draws=0, pooling=pooling), folds=3))
    assert found["gain_over_prevalence"].level == "good"


def test_votes_without_annotators_and_single_votes():
    rows = pl.DataFrame({"item": [f"i{n // 3}" for n in range(300)], "label": [int(n % 7 < 3) for n in range(300)]})
    assert examine_heldout(fit(read_votes(rows, anonymous=True), draws=0))
    alone = votes_of([(item, item % 3, item % 2) for item in range(12)])
    with pytest.warns(ThinDataWarning):
        assert examine_heldout(fit(alone, draws=0))


def test_too_few_votes_give_no_findings():
    with pytest.warns(UserWarning):
        few = fit(votes_of([(0, 0, 0), (1, 0, 1), (2, 1, 0)]), draws=0)
    assert examine_heldout(few, folds=5) == []


def test_counted_rows_are_held_out_item_by_item():
    counted = fit(read_votes(real_data("caries") / "grouped.csv"), draws=0)
    held = hold_out(counted.fits[0])
    assert len(held.label_v) == 5 * 3_859
    assert gains(examine_heldout(counted))["gain_over_prevalence"].level == "good"
