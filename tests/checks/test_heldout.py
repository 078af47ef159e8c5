"""Held-out votes: against fits made by hand, on votes that can be predicted and on votes that cannot."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from support import plain_states, random_rows, real_data, votes_of

from moral_entropy import fit, read_votes, simulate_votes
from moral_entropy.checks import heldout
from moral_entropy.checks.heldout import METHODS, check_heldout, hold_out
from moral_entropy.model.priors import Priors

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")


def gains(findings):
    return {finding.metric: finding for finding in findings if finding.metric.startswith("gain_over")}


@pytest.mark.parametrize("model", ["mixed", "paper"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_predictions_are_sums_over_states_of_a_fit_without_the_votes(n_labels, model, monkeypatch):
    rows = np.array(random_rows(np.random.default_rng(n_labels), 60, 6, n_labels))
    consensus = fit(votes_of(rows, n_labels, n_items=60), model=model, draws=0)
    left_out = []

    def without(ballot, out_v, original=heldout._without):
        left_out.append(out_v)
        return original(ballot, out_v)

    monkeypatch.setattr(heldout, "_without", without)
    p_mvk, label_v, item_v = hold_out(consensus, 0, folds=3, seed=4)
    [one] = consensus.fits
    annotator_v = one.ballot.code_v // n_labels
    assert_allclose(p_mvk.sum(axis=2), 1.0)
    assert sorted(np.concatenate(left_out).tolist()) == list(range(len(label_v)))
    for out_v in left_out:
        kept_v = np.setdiff1d(np.arange(len(label_v)), out_v)
        rest = votes_of(np.column_stack([item_v, annotator_v, label_v])[kept_v], n_labels, n_items=60)
        [other] = fit(rest, model=model, draws=0).fits
        mix_zk, group_z = plain_states(n_labels) if model == "mixed" else (np.eye(n_labels), np.arange(n_labels))
        weight_z = (other.mode.weight_dg[0] / np.bincount(group_z))[group_z]
        vote_azv = np.einsum("zk,akv->azv", mix_zk, other.confusion_akv)
        for v in out_v:
            vote_z = vote_azv[annotator_v[v], :, label_v[v]]
            said = label_v[kept_v][item_v[kept_v] == item_v[v]].tolist()
            share = (said.count(label_v[v]) + 0.5) / (len(said) + 0.5 * n_labels)
            item_z = weight_z.copy()
            for u in kept_v[item_v[kept_v] == item_v[v]]:
                item_z *= vote_azv[annotator_v[u], :, label_v[u]]
            item_z /= item_z.sum()
            for m, expected in enumerate((item_z @ vote_z, share, weight_z @ vote_z)):
                assert_allclose(p_mvk[m, v, label_v[v]], expected, rtol=1e-6, err_msg=METHODS[m])


def test_votes_with_a_label_behind_them_are_predicted_best_by_the_consensus():
    simulated = simulate_votes(n_items=800, n_annotators=12, votes_per_item=5, seed=2)
    findings = check_heldout(fit(simulated.votes, draws=0))
    assert {finding.level for finding in gains(findings).values()} == {"good"}
    loss = {finding.subject: finding for finding in findings if finding.metric == "log_loss"}
    assert loss["consensus"].low < loss["consensus"].value < loss["consensus"].high
    assert loss["consensus"].value < min(loss["vote share"].value, loss["prevalence"].value)


def test_votes_by_the_toss_of_a_coin_are_predicted_by_nobody():
    rng = np.random.default_rng(0)
    rows = [(item, annotator, rng.integers(2)) for item in range(300) for annotator in range(4)]
    found = gains(check_heldout(fit(votes_of(rows), draws=0)))
    assert found["gain_over_prevalence"].level != "good"
    assert found["gain_over_prevalence"].value < 0.005


def test_votes_without_annotators_and_single_votes():
    rows = pl.DataFrame({"item": [f"i{n // 3}" for n in range(300)], "label": [int(n % 7 < 3) for n in range(300)]})
    assert check_heldout(fit(read_votes(rows, anonymous=True), draws=0))
    alone = votes_of([(item, item % 3, item % 2) for item in range(12)])
    assert check_heldout(fit(alone, draws=0))


def test_too_few_votes_give_no_findings():
    few = fit(votes_of([(0, 0, 0), (1, 0, 1), (2, 1, 0)]), draws=0)
    assert check_heldout(few, folds=5) == []


def test_a_consensus_that_may_not_see_the_items_is_doubted():
    # A prior that all but forbids one label leaves the annotators' habits, where the votes show items apart.
    simulated = simulate_votes(n_items=300, n_annotators=10, votes_per_item=8, accuracy=(0.9, 0.95), seed=1)
    priors = Priors(prevalence=(2e4, 1.0), diagonal=200.0, off_diagonal=200.0)
    found = gains(check_heldout(fit(simulated.votes, draws=0, model="paper", priors=priors), folds=2))
    assert found["gain_over_vote_share"].level == "doubt" and found["gain_over_vote_share"].high < 0


def test_the_seed_decides_the_folds_and_known_labels_are_not_predicted():
    gold_i = np.where(np.arange(40) < 10, 1, -1)
    votes = votes_of(random_rows(np.random.default_rng(6), 40, 5, 2), gold_i=gold_i)
    consensus = fit(votes, draws=0, use_gold=True)
    first, again, other = (hold_out(consensus, 0, seed=seed, folds=2) for seed in (1, 1, 2))
    assert_allclose(first[0], again[0], rtol=0)
    assert not np.array_equal(first[0], other[0]) and first[2].min() == 10


def test_counted_rows_are_not_held_out():
    counted = fit(read_votes(real_data("caries") / "grouped.csv"), draws=0)
    assert hold_out(counted, 0, folds=2) is None and check_heldout(counted, folds=2) == []
