"""The exponent's alarm: rings where items differ in difficulty, stays silent where they do not."""

from __future__ import annotations

import numpy as np
import pytest
from support import plain_mixed_em, plain_states, votes_of

from moral_entropy.consensus.fit import fit
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.validate.temper import examine_temper, exponent_of


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


def heard_thrice(n_items=60, seed=0):
    """Three voters, each heard three times."""
    rng = np.random.default_rng(seed)
    truth_i = rng.integers(2, size=n_items)
    said_ia = np.where(rng.random((n_items, 3)) < (0.9, 0.75, 0.7), truth_i[:, None], 1 - truth_i[:, None])
    return votes_of([(i, 3 * n + a, said_ia[i, a]) for i in range(n_items) for a in range(3) for n in range(3)])


def plain_scores(votes, one, exponent):
    """Log score of every item's votes between labels, each predicted from the others, with loops."""
    mix_zk, group_z = plain_states(2)
    _, state_iz = plain_mixed_em(votes, one.at, steps=1)
    weight_z = (one.mixture.weight_dg[0] / np.bincount(group_z))[group_z]
    said_ia, theta = one.ballot.code_v.reshape(one.ballot.n_items, -1) % 2, one.confusion_akv
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
    votes = heard_thrice()
    consensus = fit(votes, draws=0)
    found = exponent_of(consensus.fits[0])
    assert 0.0 < found.value < 1.0

    def score(exponent):
        return plain_scores(votes, consensus.fits[0], exponent).sum()

    assert score(found.value) > max(score(found.value - 0.02), score(found.value + 0.02))
    assert found.gain == pytest.approx((score(found.value) - score(1.0)) / votes.n_votes, rel=1e-6)
    (finding,) = examine_temper(consensus)
    assert finding.level == "doubt" and "--temper" not in finding.cure


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
