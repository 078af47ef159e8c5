"""Near-copies are found and nobody else; counting once, and rows of copies, against loops and another optimiser."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from mixed_em import grid
from scipy.optimize import minimize
from support import load_script, random_rows, votes_of

from moral_entropy.consensus.counted_once import count_once, rows_from_votes, votes_by_state
from moral_entropy.consensus.near_copies import find_near_copies, strength_beside_copies
from moral_entropy.model.patterns import collapse
from moral_entropy.consensus.strengths import agreement, agreement_pairs, fit_strength

study = load_script("studies/copies.py")

FEW_SEEDS = {
    name: make
    for name, make in study.copy_designs().items()
    # 300 items are few for 15% noise.
    if "15% noise, 300 items" not in name and "1,000 items" not in name
}


@pytest.mark.parametrize("name", FEW_SEEDS)
def test_copies_are_found_and_nobody_else(name):
    panel = FEW_SEEDS[name](np.random.default_rng([1, 0]))
    found = find_near_copies(panel.patterns)
    expected = {frozenset(np.flatnonzero(panel.source_a == source).tolist()) for source in set(panel.source_a.tolist())}
    assert {frozenset(group.tolist()) for group in found.groups} == {group for group in expected if len(group) > 1}


@pytest.mark.parametrize("seed", [0, 5, 10, 14])
def test_three_judges_and_a_copy_are_not_two_perfect_judges(seed):
    """Either way all pairs but one are fitted: that of the two copies, or that of the two others."""
    panel = study.one_copied(np.random.default_rng([2_000, seed]), 2, 0.03, n_judges=3)
    assert [sorted(group.tolist()) for group in find_near_copies(panel.patterns).groups] == [[0, 3]]


@pytest.mark.parametrize("n_judges", [3, 4, 5, 6])
def test_few_independent_judges_are_nobodys_copies(n_judges):
    for seed in range(6):
        settings = {"n_items": 400, "right": (0.6, 0.97), "lopsided": True}
        assert not find_near_copies(study.judge(np.random.default_rng([3, seed]), 3, n_judges, **settings).patterns).any


def test_noisy_followers_join_a_group_of_many():
    """Six of 130 prompts are so noisy that two of them could not be called near-copies."""
    panel = study.prompts(np.random.default_rng([2_000, 15]), 2, noise=0.15, n_items=300)
    groups = find_near_copies(panel.patterns).groups
    assert len(groups) == 6 and sum(map(len, groups)) == 130
    assert all(len(set(panel.source_a[group].tolist())) == 1 for group in groups)


@pytest.mark.parametrize("noise", [0.0, 0.15])
def test_accuracy_is_that_of_the_panel_without_copies(noise):
    panel = study.one_copied(np.random.default_rng([1, 1]), 2, noise)
    _, once = study.counted(panel.patterns)
    without, plain, counted = (
        study.accuracy(votes, panel.truth_i) for votes in (panel.originals, panel.patterns, once)
    )
    assert counted >= without - 0.01 > plain


def test_the_original_stands_for_its_noisy_copy():
    panel = study.one_copied(np.random.default_rng([1, 2]), 3, 0.08)
    [group] = find_near_copies(panel.patterns).groups
    assert group.tolist() == [0, 4]


def test_reversed_judges_are_no_copies():
    panel = study.judge(np.random.default_rng(6), 2, 9, votes=6, reversed_judges=3)
    found = find_near_copies(panel.patterns)
    assert not found.any and (found.strength_a[-3:] < -0.3).all() and (found.strength_a[:-3] > 0.3).all()


def test_groups_known_beforehand_stay_together():
    panel = study.judge(np.random.default_rng(7), 2, 6)
    found = find_near_copies(panel.patterns, together_a=np.array([0, 1, 2, 3, 1, 5]))
    assert [sorted(group.tolist()) for group in found.groups] == [[1, 4]]


def test_correlation_of_two_labels_is_pearson_s():
    panel = study.judge(np.random.default_rng(8), 2, 5, n_items=300, votes=4)
    pairs = agreement_pairs(panel.patterns)
    found_p = agreement(pairs, 2).correlation_p
    for p, (a, b) in enumerate(zip(pairs.first_p, pairs.second_p, strict=True)):
        both_i = (panel.said_ia[:, [a, b]] >= 0).all(axis=1)
        assert pairs.shared_p[p] == both_i.sum()
        assert found_p[p] == pytest.approx(np.corrcoef(panel.said_ia[both_i][:, [a, b]].T)[0, 1])


def test_strength_is_the_correlation_with_the_truth():
    panel = study.judge(np.random.default_rng(9), 2, 8, n_items=20_000)
    pairs = agreement_pairs(panel.patterns)
    strength_a = fit_strength(pairs, agreement(pairs, 2).correlation_p)
    true_a = [np.corrcoef(panel.said_ia[:, a], panel.truth_i)[0, 1] for a in range(8)]
    np.testing.assert_allclose(strength_a, true_a, atol=0.03)


def said_by(right, copies, seed, n_items=1_000):
    """Votes of independent judges, and of copies of the last that differ on 3%; and how strong the judges truly are."""
    rng = np.random.default_rng(seed)
    truth_i = rng.integers(0, 2, n_items)
    said_ai = [np.where(rng.random(n_items) < one, truth_i, 1 - truth_i) for one in right]
    said_ai += [np.where(rng.random(n_items) < 0.03, 1 - said_ai[-1], said_ai[-1]) for _ in range(copies)]
    said_ia = np.array(said_ai).T
    return study.patterns_of(said_ia, 2), [np.corrcoef(one, truth_i)[0, 1] for one in said_ai]


@pytest.mark.parametrize(("right", "copies"), [((0.9, 0.85, 0.8, 0.75), 3), ((0.9, 0.85, 0.8, 0.8, 0.75), 6)])
def test_copies_that_are_most_of_a_panel_are_found(right, copies):
    patterns, strength = said_by(right, copies, seed=3)
    found = find_near_copies(patterns)
    last = len(right) - 1
    assert [sorted(group.tolist()) for group in found.groups] == [list(range(last, last + copies + 1))]
    np.testing.assert_allclose(found.strength_a, strength, atol=0.1)


def test_excellent_judges_among_independent_weak_ones_are_no_copies():
    patterns, _ = said_by((0.98, 0.98, 0.97, 0.97, 0.7, 0.68, 0.65), 0, seed=4)
    pairs = agreement_pairs(patterns)
    agreements = agreement(pairs, 2)
    plain_a = fit_strength(pairs, agreements.correlation_p)
    assert (strength_beside_copies(pairs, agreements, 30) == plain_a).all() and not find_near_copies(patterns).any


def plain_once(patterns, group_a, rank_a):
    """Rows after counting once, with loops."""
    rows = []
    for r in range(patterns.n_rows):
        codes = patterns.code_v[patterns.start_r[r] : patterns.start_r[r + 1]]
        said = [divmod(int(code), patterns.n_labels) for code in codes]
        row = []
        for g in set(group_a.tolist()):
            members = sorted(np.flatnonzero(group_a == g).tolist(), key=lambda a: -rank_a[a])
            mine = sorted([vote for vote in said if vote[0] in members], key=lambda vote: members.index(vote[0]))
            if len(members) == 1:
                row += mine
            elif mine:
                times = Counter(label for _, label in mine)
                first = next(label for _, label in mine if times[label] == max(times.values()))
                row.append((members[0], first))
        rows.append(sorted(row))
    return rows


@pytest.mark.parametrize("n_labels", [2, 4])
def test_counting_once_agrees_with_loops(n_labels):
    rng = np.random.default_rng(10)
    patterns = collapse(votes_of(random_rows(rng, 80, 7, n_labels), n_labels).ballots[0])
    group_a, rank_a = np.array([0, 1, 0, 2, 1, 0, 3]), rng.random(7)
    once = count_once(patterns, group_a, rank_a)
    found = [
        [divmod(int(code), n_labels) for code in once.code_v[once.start_r[r] : once.start_r[r + 1]]]
        for r in range(once.n_rows)
    ]
    assert found == plain_once(patterns, group_a, rank_a)
    assert (once.weight_r is patterns.weight_r) and (once.row_i is patterns.row_i)
    assert once.n_annotators == 7 and once.votes_c.reshape(7, -1).sum(axis=1).astype(bool).sum() == 4
    assert count_once(patterns, np.arange(7), rank_a) is patterns


@pytest.mark.parametrize("n_labels", [2, 3])
def test_rows_of_copies_are_the_highest_point(n_labels):
    """Against a general optimiser of the log posterior in log ratios, where the mean of rows is its highest point."""
    rng = np.random.default_rng(11)
    patterns = collapse(votes_of(random_rows(rng, 150, 4, n_labels), n_labels).ballots[0])
    mix_zk, _ = grid(n_labels)
    posterior_rz = rng.dirichlet(np.full(len(mix_zk), 0.3), patterns.n_rows)
    beta_akv = np.broadcast_to(np.where(np.eye(n_labels, dtype=bool), 1.8, 1.2), (1, n_labels, n_labels))
    seen_avz = votes_by_state(patterns, posterior_rz, np.array([2]))
    mean_akv, draw_sakv = rows_from_votes(seen_avz, mix_zk, beta_akv, draws=4_000, rng=3)

    def height(free):
        log_kv = np.concatenate([np.zeros((n_labels, 1)), free.reshape(n_labels, -1)], axis=1)
        log_kv -= np.log(np.exp(log_kv).sum(axis=1, keepdims=True))
        total = (beta_akv[0] * log_kv).sum()
        for r in range(patterns.n_rows):
            for code in patterns.code_v[patterns.start_r[r] : patterns.start_r[r + 1]]:
                if code // n_labels == 2:
                    log_z = np.log(mix_zk @ np.exp(log_kv[:, code % n_labels]))
                    total += patterns.weight_r[r] * posterior_rz[r] @ log_z
        return -total

    best = minimize(height, np.zeros(n_labels * (n_labels - 1)), method="BFGS").x.reshape(n_labels, -1)
    row_kv = np.exp(np.concatenate([np.zeros((n_labels, 1)), best], axis=1))
    np.testing.assert_allclose(mean_akv[0], row_kv / row_kv.sum(axis=1, keepdims=True), atol=2e-3)
    np.testing.assert_allclose(draw_sakv.mean(axis=0), mean_akv, atol=0.01)
    # As sure of a row as there are votes on its label: beside the prior's, all of the annotator's.
    spread_k = (mean_akv[0] * (1.0 - mean_akv[0])).sum(axis=-1)
    concentration_k = spread_k / draw_sakv[:, 0].var(axis=0).sum(axis=-1) - 1.0
    n_votes = patterns.votes_c.reshape(4, -1)[2].sum() + beta_akv.sum()
    assert concentration_k.sum() == pytest.approx(n_votes, rel=0.1)


@pytest.mark.parametrize("n_annotators", [1, 2])
def test_too_few_to_tell(n_annotators):
    patterns = collapse(votes_of(random_rows(np.random.default_rng(0), 50, n_annotators, 2), 2).ballots[0])
    found = find_near_copies(patterns)
    assert not found.any and found.groups == []
