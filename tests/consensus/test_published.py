"""The published p and its interval against the same, item by item and draw by draw."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support import first_votes_by_hand, posterior_draws, random_rows, votes_of

from moral_entropy.model.fit import fit
from moral_entropy.consensus.published import published_interval


def between(one, interior_i):
    """The same fit, told how far its items lie between labels."""
    return replace(one, summary=replace(one.summary, interior_i=interior_i))


def by_hand(one, i):
    """Weight of the share, and share, from the votes of one item."""
    ballot = one.ballot
    labels = [code % ballot.n_labels for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]]
    share = [
        (labels.count(k) + n) / (len(labels) + ballot.n_labels / 2) for k, n in enumerate(first_votes_by_hand(ballot))
    ]
    return (min(0.6, 0.2 + one.summary.interior_i[i]) if labels else 0.0), np.array(share)


@pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")
@pytest.mark.parametrize(("n_labels", "positive"), [(2, 1), (2, 0), (4, None)])
def test_published_p_and_its_interval_are_those_of_pooled_draws(n_labels, positive):
    rng = np.random.default_rng(1)
    votes = votes_of(random_rows(rng, 60, 9, n_labels, share=0.8), n_labels, n_items=61, positive=positive)
    [one] = fit(votes, model="mixed", draws=80).fits
    one = between(one, 0.35 + rng.random(61) / 2)
    low_i, high_i = published_interval(one)
    draws_sik = posterior_draws(one)
    switched = 0
    for i in range(61):
        weight, share_k = by_hand(one, i)
        p_sk = (1 - weight) * draws_sik[:, i] + weight * share_k
        p_k = p_sk.mean(axis=0)
        assert_allclose(one.p_ik[i], p_k, atol=1e-9)
        label = int(p_k.argmax()) if n_labels > 2 else (positive if p_k[positive] >= 0.5 else 1 - positive)
        assert one.label_i[i] == label
        about = label if n_labels > 2 else positive
        assert_allclose([low_i[i], high_i[i]], np.quantile(p_sk[:, about], [0.05, 0.95]), atol=1e-9)
        switched += label != int(one.summary.mean_ik[i].argmax())
    assert switched > 0 or n_labels == 2


def test_a_rare_label_that_nobody_chose_stays_rare():
    """Of two labels, what is published begins with the share of all votes; of three, with half a vote each."""
    for n_labels in (2, 3):
        rows = [(i, a, int(i < 3 and a < 2)) for i in range(100) for a in range(3)]
        [one] = fit(votes_of(rows, n_labels), model="mixed", draws=30).fits
        rare = 6.5 / 301 if n_labels == 2 else 0.5
        found = (one.p_ik[99, 1] - (1 - one.share_weight_i[99]) * one.summary.mean_ik[99, 1]) / one.share_weight_i[99]
        assert found == pytest.approx(rare / (3 + n_labels / 2))


def test_the_paper_publishes_its_own():
    [one] = fit(votes_of(random_rows(np.random.default_rng(1), 30, 4, 2)), model="paper", draws=30).fits
    assert one.p_ik is one.summary.mean_ik
    assert published_interval(one) == (one.summary.low_i, one.summary.high_i)


def test_known_labels_and_items_without_votes_are_not_pooled():
    rng = np.random.default_rng(5)
    gold_i = np.where(np.arange(31) < 10, rng.integers(2, size=31), -1)
    votes = votes_of(random_rows(rng, 30, 4, 2), n_items=31, gold_i=gold_i)
    [one] = fit(votes, model="mixed", draws=30, use_gold=True).fits
    assert_array_equal(one.p_ik[:10].argmax(axis=1), gold_i[:10])
    assert_array_equal(one.p_ik[:10].max(axis=1), 1.0)
    assert_array_equal(one.p_ik[30], one.summary.mean_ik[30])
    assert (one.p_ik[10:30] != one.summary.mean_ik[10:30]).all()


def test_chunks_do_not_change_p(monkeypatch):
    votes = votes_of(random_rows(np.random.default_rng(7), 50, 4, 3), 3)
    [one] = fit(votes, model="mixed", draws=30).fits
    small = replace(one)
    monkeypatch.setattr(type(one), "chunks", lambda self: (slice(i, i + 7) for i in range(0, 50, 7)))
    assert_array_equal(small.p_ik, one.p_ik)
