"""The exponent's alarm: rings where items differ in difficulty, stays silent where they do not."""

from __future__ import annotations

import numpy as np
import pytest
from support import plain_mixed_em, plain_states, votes_of

from moral_entropy.checks.density import log_posterior_of
from moral_entropy.checks.temper import examine_temper, less_sure
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.model import Parameters
from moral_entropy.consensus.tempering import heldout_exponent
from moral_entropy.corpora.simulate import simulate_votes


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
    (finding,) = examine_temper(fit(unequally_hard(), draws=20, model="paper"))
    assert finding.level == "doubt"
    assert finding.value < 0.9
    assert finding.high is not None and finding.high < 1.0
    assert "--temper heldout" in finding.cure


def test_between_labels_they_do_not():
    (finding,) = examine_temper(fit(unequally_hard(), draws=20))
    assert (finding.level, finding.value) == ("good", pytest.approx(1.0, abs=0.1))


def plain_scores(one, votes, at, exponent):
    """Log score of every item's votes between labels, each predicted from the others, with loops."""
    mix_zk, group_z = plain_states(2)
    _, state_iz = plain_mixed_em(votes, at, steps=1)
    weight_z = (at.weight_g[0] / np.bincount(group_z))[group_z]
    said_ia, theta = one.ballot.code_v.reshape(one.ballot.n_items, -1) % 2, at.confusion_akv
    vote_azv = np.einsum("zk,akv->azv", mix_zk, theta)
    own_iak = np.array([
        [state_iz[i] @ (mix_zk * theta[a, :, v] / vote_azv[a, :, v, None]) for a, v in enumerate(said_a)]
        for i, said_a in enumerate(said_ia)
    ])  # fmt: skip
    counts_akv = np.array(one.beta_akv)
    for a in range(theta.shape[0]):
        for v in range(2):
            counts_akv[a, :, v] += own_iak[said_ia[:, a] == v, a].sum(axis=0)
    score_i = np.zeros(len(said_ia))
    for i, said_a in enumerate(said_ia):
        chance_az = []
        for a, v in enumerate(said_a):
            cell_k, total_k = counts_akv[a, :, v] - own_iak[i, a], counts_akv[a].sum(axis=1) - own_iak[i, a]
            chance_az.append(mix_zk @ (cell_k / total_k))
        for a in range(len(said_a)):
            others_z = weight_z * np.prod([chance_az[b] for b in range(len(said_a)) if b != a], axis=0) ** exponent
            score_i[i] += np.log(others_z @ chance_az[a] / others_z.sum())
    return score_i


def test_the_exponent_between_labels_is_that_of_states_listed_one_by_one():
    votes = unequally_hard(n_items=100)
    [one] = fit(votes, draws=0).fits
    # Were hardly an item between labels, as is not so at the mode, votes would count too much together.
    at = Parameters(np.log([[0.6, 0.399, 0.001]]), one.at.log_confusion_akv)
    found = heldout_exponent(log_posterior_of(one), at)
    assert 0.0 < found.value < 0.9

    def score(exponent):
        return plain_scores(one, votes, at, exponent).sum()

    assert score(found.value) > max(score(found.value - 0.02), score(found.value + 0.02))
    assert found.gain == pytest.approx((score(found.value) - score(1.0)) / votes.n_votes, rel=1e-6)


def test_the_cure_between_labels_is_no_exponent():
    [one] = fit(unequally_hard(), draws=0).fits
    assert "--temper" not in less_sure(one) and "gold" in less_sure(one)


@pytest.mark.parametrize("pooling", ["none", "full"])
def test_independent_votes_do_not(pooling):
    votes = simulate_votes(n_items=600, n_annotators=8, votes_per_item=5, accuracy=(0.75, 0.8), seed=1).votes
    (finding,) = examine_temper(fit(votes, draws=20, pooling=pooling))
    assert finding.level == "good"


def test_a_tempered_fit_is_told_so_and_not_alarmed():
    (finding,) = examine_temper(fit(unequally_hard(), draws=20, model="paper", temper="heldout"))
    assert finding.level == "info"
    assert "tempered" in finding.text


def test_single_votes_can_tell_nothing():
    votes = votes_of([(i, i % 3, i % 2) for i in range(30)])
    with pytest.warns(match="votes per item"):
        consensus = fit(votes, draws=20)
    (finding,) = examine_temper(consensus)
    assert (finding.level, finding.n) == ("info", 0)
