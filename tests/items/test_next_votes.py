"""Expected information gain, against enumerating the new vote and applying Bayes' rule to each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy

from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.items import next_votes as module
from moral_entropy.items.next_votes import NOBODY, choose_votes, information_gain
from moral_entropy.model.fit import fit
from moral_entropy.model.posterior import state_posterior


def enumerated(p_k, confusion_kv):
    """Entropy now, less the mean entropy after each vote that could come."""
    after = 0.0
    for v in range(len(p_k)):
        joint_k = p_k * confusion_kv[:, v]
        if joint_k.sum() > 0:
            after += joint_k.sum() * entropy(joint_k / joint_k.sum())
    return entropy(p_k) - after


def some_parameters(seed, n_items=7, n_annotators=4, n_labels=3):
    rng = np.random.default_rng(seed)
    p_ik = rng.dirichlet(np.full(n_labels, 0.7), size=n_items)
    return p_ik, rng.dirichlet(np.full(n_labels, 0.8), size=(n_annotators, n_labels))


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_the_gain_is_that_of_every_vote_enumerated(seed, n_labels):
    p_ik, confusion_akv = some_parameters(seed, n_labels=n_labels)
    gain_ia = information_gain(p_ik, confusion_akv)
    for i, p_k in enumerate(p_ik):
        for a, confusion_kv in enumerate(confusion_akv):
            assert gain_ia[i, a] == pytest.approx(enumerated(p_k, confusion_kv), abs=1e-12)
    assert (gain_ia >= 0).all() and (gain_ia <= entropy(p_ik, axis=1)[:, None] + 1e-12).all()


def test_certainty_gains_nothing_and_zeros_are_no_trouble():
    p_ik = np.array([[1.0, 0.0], [0.3, 0.7]])
    confusion_akv = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    gain_ia = information_gain(p_ik, confusion_akv)
    assert gain_ia[0, 0] == pytest.approx(0.0, abs=1e-12)
    assert gain_ia[1, 0] == pytest.approx(entropy([0.3, 0.7]), rel=1e-12)


@pytest.mark.parametrize("at_once", [200_000, 20])
def test_the_best_annotator_who_has_not_voted_is_chosen(at_once, monkeypatch):
    monkeypatch.setattr(module, "CELLS_AT_ONCE", at_once)
    rng = np.random.default_rng(4)
    p_ik, confusion_akv = some_parameters(9, n_items=30, n_annotators=6)
    voters = [sorted(rng.choice(6, size=rng.integers(0, 7), replace=False).tolist()) for _ in range(30)]
    code_v = np.array([a * 3 + int(rng.integers(3)) for voted in voters for a in voted])
    start_i = np.concatenate([[0], np.cumsum([len(voted) for voted in voters])])
    votes_a = np.bincount(code_v // 3, minlength=6)
    gain_i, annotator_i = choose_votes(p_ik, start_i, code_v, confusion_akv, votes_a)
    average_kv = sum(n * confusion_kv for n, confusion_kv in zip(votes_a, confusion_akv, strict=True)) / votes_a.sum()
    for i, voted in enumerate(voters):
        average = enumerated(p_ik[i], average_kv)
        left = [a for a in range(6) if a not in voted]
        if not left:
            assert annotator_i[i] == NOBODY and gain_i[i] == pytest.approx(average, abs=1e-9)
            continue
        gains = [enumerated(p_ik[i], confusion_akv[a]) for a in left]
        assert annotator_i[i] == left[int(np.argmax(gains))]
        assert gain_i[i] == pytest.approx(max(gains), abs=1e-12)
    assert any(len(voted) == 6 for voted in voters), "no item on which nobody is left"


def test_only_the_most_informative_are_considered(monkeypatch):
    monkeypatch.setattr(module, "MOST_INFORMATIVE", 2)
    skill_a = np.array([0.6, 0.9, 0.7, 0.8])
    confusion_akv = np.stack([np.stack([skill_a, 1 - skill_a], 1), np.stack([1 - skill_a, skill_a], 1)], 1)
    assert module.most_informative(confusion_akv).tolist() == [1, 3]
    assert module.most_informative(confusion_akv, np.array([True, False, True, False])).tolist() == [0, 2]
    start_i, code_v = np.array([0, 2]), np.array([2, 6])  # annotators 1 and 3 have voted
    _, annotator_i = choose_votes(np.array([[0.5, 0.5]]), start_i, code_v, confusion_akv, np.ones(4))
    assert annotator_i.tolist() == [NOBODY]


def test_an_anonymous_annotator_can_vote_again():
    confusion_akv = np.array([[[0.8, 0.2], [0.2, 0.8]]])
    given = (np.array([[0.5, 0.5]]), np.array([0, 2]), np.array([0, 1]), confusion_akv, np.array([2]))
    assert choose_votes(*given)[1].tolist() == [NOBODY]
    assert choose_votes(*given, repeats=True)[1].tolist() == [0]


def test_the_team_is_weighted_by_votes():
    confusion_akv = np.array([np.eye(2), np.full((2, 2), 0.5)])
    p_ik, codes = np.array([[0.3, 0.7]]), np.array([0, 2])
    gain_i, chosen_i = choose_votes(p_ik, np.array([0, 2]), codes, confusion_akv, np.array([3, 1]))
    assert chosen_i.tolist() == [NOBODY]
    team_akv = np.array([[[0.875, 0.125], [0.125, 0.875]]])
    np.testing.assert_allclose(gain_i, information_gain(p_ik, team_akv)[:, 0])


def mixed_fit(n_labels):
    votes = simulate_votes(n_items=40, n_annotators=5, votes_per_item=3, n_labels=n_labels, seed=3).votes
    domain_i = np.arange(votes.n_items, dtype=np.int32) % 3 - 1
    return fit(replace(votes, domains=("u", "v"), domain_i=domain_i), model="mixed", draws=0).fits[0]


@pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")
@pytest.mark.parametrize("n_labels", [2, 3])
def test_between_labels_the_gain_is_that_of_every_vote_added_and_all_states_looked_at_again(n_labels):
    one = mixed_fit(n_labels)
    states, patterns = one.states, one.patterns
    mix_zk, vote_azv = states.mix_zk, states.votes_azv(one.confusion_akv)
    p_rz = state_posterior(patterns, states, one.mode, slice(0, patterns.n_rows))
    gain_ra = information_gain(p_rz, vote_azv, mix_zk)
    weight_dz = states.weight_of_states(one.mode.weight_dg)
    np.testing.assert_allclose((p_rz @ mix_zk)[patterns.row_i], one.posterior_ik, atol=1e-9)

    def entropy_given(row, *further):
        """Entropy of the labels' mean shares after some votes, and the probability of the last of them."""
        codes = patterns.code_v[patterns.start_r[row] : patterns.start_r[row + 1]]
        cast = [*((code // n_labels, code % n_labels) for code in codes), *further]
        x_z = weight_dz[patterns.domain_r[row]].copy()
        for a, v in cast:
            before, x_z = x_z.sum(), x_z * [sum(mix_zk[z] * one.confusion_akv[a, :, v]) for z in range(len(x_z))]
        return entropy((x_z / x_z.sum()) @ mix_zk), x_z.sum() / before

    for row in range(0, patterns.n_rows, 5):
        for a in range(5):
            after = [entropy_given(row, (a, v)) for v in range(n_labels)]
            gain = entropy_given(row)[0] - sum(chance * left for left, chance in after)
            assert gain_ra[row, a] == pytest.approx(gain, abs=1e-12)
