"""Rankings of items against sorting them all, one question at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import random_rows, votes_of

from moral_entropy.items import rank as module
from moral_entropy.items.next_votes import information_gain
from moral_entropy.items.rank import ONE_MORE_VOTE, first, item_reasons, rank_items, score_items
from moral_entropy.model.entropy import decompose_entropy
from moral_entropy.model.fit import fit


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, float("nan")]), max_size=12), st.integers(0, 14))
def test_first_is_a_stable_sort_cut_short(scores, n):
    expected = sorted((i for i, score in enumerate(scores) if score == score), key=lambda i: -scores[i])[:n]
    assert first(np.array(scores, dtype=float), n).tolist() == expected


def scored(n_labels=2, n_items=80, positive=None, published=False, model="mixed"):
    rng = np.random.default_rng(6)
    votes = votes_of(
        random_rows(rng, n_items, 5, n_labels, share=0.6), n_labels, n_items=n_items + 1, positive=positive
    )
    votes.domain_i[:] = np.arange(n_items + 1) % 3 - 1
    ballot = votes.ballots[0]
    if published:
        label_i = rng.integers(-1, n_labels, size=n_items + 1).astype(np.int16)
        object.__setattr__(ballot, "published_i", label_i)
    object.__setattr__(votes, "domains", ("forum", "wiki"))
    consensus = fit(votes, draws=30, seed=1, model=model)
    return votes, consensus.fits[0], score_items(votes, consensus.fits, decompose_entropy(consensus))


@pytest.mark.parametrize("positive", [0, 1])
def test_conflicts_are_where_rule_and_consensus_part(positive):
    _, one, scores = scored(positive=positive, published=True)
    p_i = one.p_ik[:, positive]
    for i, (counts, p) in enumerate(zip(one.ballot.counts_ik, p_i, strict=True)):
        yes, no = counts[positive], counts[1 - positive]
        said = {"any": yes >= 1, "majority": yes >= no, "two-vote": yes >= 2}
        for name, says_yes in said.items():
            score = scores.score_ri[f"conflict:{name}"][i]
            if yes + no == 0 or says_yes == (p >= 0.5):
                assert np.isnan(score)
            else:
                assert score == pytest.approx(1 - p if says_yes else p) and score >= 0.5
        shipped = one.ballot.published_i[i]
        parts_ways = shipped >= 0 and (shipped == positive) != (p >= 0.5)
        assert np.isnan(scores.score_ri["conflict:published"][i]) != parts_ways


def test_of_more_labels_the_plurality_conflicts_and_ties_do_not():
    _, one, scores = scored(n_labels=3)
    for i, counts in enumerate(one.ballot.counts_ik.tolist()):
        top = [k for k, n in enumerate(counts) if n == max(counts)]
        score = scores.score_ri["conflict:plurality"][i]
        if len(top) > 1 or top[0] == one.label_i[i]:
            assert np.isnan(score)
        else:
            assert score == pytest.approx(1 - one.p_ik[i, top[0]])


@pytest.mark.parametrize("n_labels", [2, 3])
def test_one_more_vote_is_the_best_of_those_who_have_not_voted(n_labels):
    _, one, scores = scored(n_labels=n_labels)
    states = one.states
    ballot, vote_azv = one.ballot, states.votes_azv(one.confusion_akv)
    domain_i = one.patterns.domain_r[one.patterns.row_i]
    p_iz = states.weight_of_states(one.mode.weight_dg)[domain_i]
    for i in range(ballot.n_items):
        for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
            p_iz[i] *= vote_azv[code // n_labels, :, code % n_labels]
    p_iz /= p_iz.sum(axis=1, keepdims=True)
    check_gains(one, scores, information_gain(p_iz, vote_azv, states.mix_zk))


@pytest.mark.parametrize("n_labels", [2, 3])
def test_so_it_is_under_the_papers_model(n_labels):
    _, one, scores = scored(n_labels=n_labels, model="paper")
    check_gains(one, scores, information_gain(one.model_ik, one.confusion_akv))


def check_gains(one, scores, gain_ia):
    n_labels, parts = one.ballot.n_labels, decompose_entropy(one)
    for i in range(one.ballot.n_items):
        doubtful = one.p_ik[i].max() < 0.75
        if doubtful and parts.ambiguity_i[i] > parts.votes_i[i] + parts.annotators_i[i]:
            assert np.isnan(scores.score_ri[ONE_MORE_VOTE][i]), "votes do not help where the item is ambiguous"
            continue
        codes = one.ballot.code_v[one.ballot.start_i[i] : one.ballot.start_i[i + 1]]
        left = [a for a in range(5) if a not in codes // n_labels]
        if left:
            assert scores.score_ri[ONE_MORE_VOTE][i] == pytest.approx(max(gain_ia[i, left]), abs=1e-12)
            assert gain_ia[i, scores.annotator_i[i]] == pytest.approx(max(gain_ia[i, left]), abs=1e-12)


def test_rankings_by_domain_are_those_of_the_items_inside(monkeypatch):
    monkeypatch.setattr(module, "TOP", 9)
    monkeypatch.setattr(module, "TOP_IN_DOMAIN", 4)
    votes, _, scores = scored()
    seen = set()
    for domain, ranking, at_n in rank_items(scores, votes.domains):
        score_i = scores.score_ri[ranking]
        inside = [
            i for i in range(len(score_i)) if domain == "(all)" or votes.domain_i[i] == votes.domains.index(domain)
        ]
        expected = sorted((i for i in inside if score_i[i] == score_i[i]), key=lambda i: -score_i[i])
        assert at_n.tolist() == expected[: 9 if domain == "(all)" else 4]
        seen.add((domain, ranking))
    assert len(seen) == 3 * len(scores.score_ri)


def test_reasons_hold_the_figures():
    votes, one, scores = scored()
    assert one.ballot.votes_i[80] == 0 and np.isnan(scores.score_ri["entropy"][80]), "the prior's doubt is not ranked"
    [at] = first(scores.score_ri["entropy"], 1)
    [reason] = item_reasons(votes, scores, "entropy", np.array([at]))
    counts = one.ballot.counts_ik[at]
    p = one.p_ik[at, 1]
    assert f"{counts[1]} of {counts.sum()} votes 1" in reason and f"p = {p:.2f} [" in reason
    assert reason.startswith(f"entropy {scores.entropy_i[at]:.3f} of at most 0.693 nats")
    [last] = item_reasons(votes, scores, ONE_MORE_VOTE, np.array([80]))
    assert "no votes" in last and f"a vote by {scores.annotator_i[80]} is expected" in last
