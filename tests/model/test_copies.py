"""Who counts as one: identical annotators and those named, nobody else."""

from collections import Counter

import numpy as np
import pytest
from made_votes import copied
from numpy.testing import assert_allclose, assert_array_equal
from support import random_rows, votes_of

from moral_entropy import simulate_votes
from moral_entropy.errors import VotesError
from moral_entropy.model import copies as module
from moral_entropy.model.copies import Copies, count_once, find_copies
from moral_entropy.model.fit import fit
from moral_entropy.model.patterns import collapse

quiet = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")


def panel(right_a, n_items, seed=0):
    rng = np.random.default_rng(seed)
    truth_i = rng.integers(2, size=n_items)
    return truth_i, np.where(rng.random((n_items, len(right_a))) < right_a, truth_i[:, None], 1 - truth_i[:, None])


def rows_of(label_ia):
    return [(i, a, int(k)) for i, labels in enumerate(label_ia) for a, k in enumerate(labels) if k >= 0]


def groups_of(label_ia):
    return [group.tolist() for group in find_copies(collapse(votes_of(rows_of(label_ia)).ballots[0])).groups]


@pytest.mark.parametrize(
    ("n_shared", "n_different", "alike"), [(50, 0, True), (49, 0, False), (200, 2, True), (200, 3, False)]
)
def test_one_in_a_hundred_of_fifty_shared_items_may_differ(n_shared, n_different, alike):
    _, label_ia = panel([0.8] * 4, 260)
    copy_i = label_ia[:, 1].copy()
    copy_i[:n_different] = 1 - copy_i[:n_different]
    copy_i[n_shared:] = -1
    assert groups_of(np.column_stack([label_ia, copy_i])) == ([[1, 4]] if alike else [])


def test_the_best_annotators_are_nobodys_copies():
    _, label_ia = panel([0.98, 0.98, 0.98, 0.7, 0.7], 1_000)
    assert groups_of(label_ia) == []


def test_of_a_rare_label_honest_annotators_are_nobodys_copies_and_a_copy_is_one():
    rng = np.random.default_rng(0)
    truth_i = rng.random(3_000) < 0.02
    label_ia = np.where(truth_i[:, None], rng.random((3_000, 5)) < 0.9, rng.random((3_000, 5)) < 0.001).astype(int)
    # Every pair agrees on more than 99% of the items.
    assert all((label_ia[:, a] == label_ia[:, b]).mean() > 0.99 for a in range(5) for b in range(a))
    assert groups_of(label_ia) == []
    assert groups_of(np.column_stack([label_ia, label_ia[:, 3]])) == [[3, 5]]


def test_copies_of_a_copy_are_one_group_and_items_counted_count():
    _, label_ia = panel([0.8] * 3, 20)
    label_ia = np.column_stack([label_ia, label_ia[:, 0], label_ia[:, 0]])
    ballot = votes_of(rows_of(label_ia), count_i=np.full(20, 10.0)).ballots[0]
    assert [group.tolist() for group in find_copies(collapse(ballot)).groups] == [[0, 3, 4]]
    assert groups_of(label_ia) == []


def test_blocks_of_annotators_and_a_sample_of_rows_find_the_same(monkeypatch):
    _, label_ia = panel([0.8] * 9, 400)
    label_ia = np.column_stack([label_ia, label_ia[:, 2], label_ia[:, 7]])
    monkeypatch.setattr(module, "ANNOTATORS_AT_ONCE", 2)
    assert groups_of(label_ia) == [[2, 9], [7, 10]]
    patterns = collapse(votes_of(rows_of(label_ia)).ballots[0])
    monkeypatch.setattr(module, "MOST_PRODUCTS", patterns.n_rows * 11**2 / 2)
    assert module._affordable(patterns).n_rows == patterns.n_rows // 2
    assert groups_of(label_ia) == [[2, 9], [7, 10]]


def plain_once(patterns, group_a):
    """Rows after counting once, with loops."""
    rows = []
    for r in range(patterns.n_rows):
        codes = patterns.code_v[patterns.start_r[r] : patterns.start_r[r + 1]]
        said, row = [divmod(int(code), patterns.n_labels) for code in codes], []
        for g in set(group_a.tolist()):
            members = np.flatnonzero(group_a == g).tolist()
            mine = [label for a, label in said if a in members]
            if mine:
                times = Counter(mine)
                row.append((members[0], next(label for label in mine if times[label] == max(times.values()))))
        rows.append(sorted(row))
    return rows


@pytest.mark.parametrize("n_labels", [2, 4])
def test_counting_once_agrees_with_loops(n_labels):
    patterns = collapse(votes_of(random_rows(np.random.default_rng(10), 80, 7, n_labels), n_labels).ballots[0])
    group_a = np.array([0, 1, 0, 2, 1, 0, 3])
    once = count_once(patterns, Copies(group_a))
    found = [
        [divmod(int(code), n_labels) for code in once.code_v[once.start_r[r] : once.start_r[r + 1]]]
        for r in range(once.n_rows)
    ]
    assert found == plain_once(patterns, group_a)
    assert once.n_annotators == 7


@quiet
@pytest.mark.parametrize(("n_annotators", "n_copies"), [(6, 1), (9, 4)])
def test_copies_do_no_harm(n_annotators, n_copies):
    lost = []
    for seed in range(4):
        rng = np.random.default_rng([seed, n_copies])
        truth_i, label_ia = panel(rng.uniform(0.65, 0.85, n_annotators - n_copies), 800, seed)
        with_copies_ia = np.column_stack([label_ia] + [label_ia[:, 0]] * n_copies)
        alone, copied = (
            (fit(votes_of(rows_of(labels)), draws=0).fits[0].label_i == truth_i).mean()
            for labels in (label_ia, with_copies_ia)
        )
        lost.append(abs(alone - copied))
    assert max(lost) <= 0.01


@quiet
def test_a_merged_annotator_has_rows_and_draws():
    _, label_ia = panel([0.8, 0.7, 0.9, 0.6], 300)
    [found] = fit(votes_of(rows_of(np.column_stack([label_ia, label_ia[:, 1]]))), draws=200).fits
    assert_allclose(found.confusion_akv[4], found.confusion_akv[1], atol=1e-6)
    assert_allclose(found.confusion_sakv[:, 4], found.confusion_sakv[:, 1], atol=1e-6)
    assert_array_equal(found.counts_ik.sum(axis=1), 4)


@quiet
def test_naming_some_leaves_identical_ones_counted_as_one():
    votes = simulate_votes(n_items=120, n_annotators=6, votes_per_item=6, seed=3).votes
    made = copied(votes, 2, 5)
    consensus = fit(made, draws=0, merge=("0+1",))
    assert [group.tolist() for group in consensus.fits[0].counted_groups] == [[0, 1], [2, 5]]
    named, identical = [finding for finding in consensus.findings if finding.metric == "near_copies"]
    assert (named.level, identical.level) == ("note", "doubt")
    assert "were named" in named.text and "same votes" in identical.text


def test_who_is_not_there_cannot_be_merged():
    votes = votes_of([(i, a, (i + a) % 2) for i in range(9) for a in range(3)])
    for merge, message in ((("0+9",), "is no annotator: '9'"), (("0",), "0")):
        with pytest.raises(VotesError, match=message):
            fit(votes, merge=merge)
