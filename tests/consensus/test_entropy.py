"""Entropies by hand, and their averages by domain."""

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose
from support import random_rows, votes_of

from moral_entropy.model.entropy import decompose_entropy
from moral_entropy.model.fit import fit
from moral_entropy.runs.make import entropy_frame, entropy_sums, item_entropies


def test_draws_that_agree_leave_no_epistemic_part():
    posterior_sik = np.tile([[0.25, 0.75], [0.5, 0.5]], (7, 1, 1))
    parts = decompose_entropy(posterior_sik)
    assert_allclose(parts.total_i, [0.25 * np.log(4) + 0.75 * np.log(4 / 3), np.log(2)])
    assert_allclose(parts.epistemic_i, 0, atol=1e-15)


def test_means_by_domain_equal_loops_and_weigh_counted_items():
    rng = np.random.default_rng(0)
    count_i = rng.integers(1, 5, size=50).astype(float)
    votes = votes_of(random_rows(rng, 50, 6, 2), count_i=count_i)
    domain_i = rng.integers(-1, 2, size=50).astype(np.int32)
    object.__setattr__(votes, "domains", ("a", "b"))
    object.__setattr__(votes, "domain_i", domain_i)
    consensus = fit(votes, draws=50)
    parts = decompose_entropy(consensus)
    frame = entropy_frame(consensus, entropy_sums(consensus, item_entropies(consensus)))
    rows = {row["domain"]: row for row in frame.iter_rows(named=True)}
    assert set(rows) == {"(all)", "a", "b"}
    for name, code in (("a", 0), ("b", 1)):
        total = weight = 0.0
        for i in range(50):
            if domain_i[i] == code:
                total += count_i[i] * parts.epistemic_i[i]
                weight += count_i[i]
        assert_allclose(rows[name]["epistemic"], total / weight)
        assert rows[name]["n_items"] == weight
    assert_allclose(rows["(all)"]["total"], (count_i * parts.total_i).sum() / count_i.sum())


def test_without_draws_only_the_total_is_known():
    parts = decompose_entropy(fit(votes_of(random_rows(np.random.default_rng(1), 20, 3, 2)), draws=0))
    assert np.isfinite(parts.total_i).all()
    assert np.isnan(parts.aleatoric_i).all()
    assert np.isnan(parts.epistemic_i).all()


def mixed_fit(votes, ambiguity, interior, **options):
    """A fit whose items are said to lie between labels by hand."""
    [one] = fit(votes, model="mixed", **options).fits
    summary = replace(one.summary, ambiguity_i=one.summary.expected_entropy_i * ambiguity, interior_i=interior)
    return replace(one, summary=summary)


def test_three_parts_sum_to_the_total_and_mixed_calls_ambiguity_aleatoric():
    votes = votes_of(random_rows(np.random.default_rng(2), 40, 6, 3), 3)
    share_i = np.linspace(0, 1, 40)
    one = mixed_fit(votes, share_i, share_i, draws=40)
    parts = decompose_entropy(one)
    for i in range(40):
        p_k, expected = one.summary.mean_ik[i], one.summary.expected_entropy_i[i]
        total = -sum(p * np.log(p) for p in p_k)
        assert_allclose(parts.total_i[i], total, rtol=1e-12)
        assert_allclose(parts.ambiguity_i[i], share_i[i] * expected, rtol=1e-12, atol=1e-15)
        assert_allclose(parts.annotators_i[i], total - expected, rtol=1e-9, atol=1e-12)
        assert_allclose(parts.ambiguity_i[i] + parts.votes_i[i] + parts.annotators_i[i], total, rtol=1e-12)
    assert_allclose(parts.aleatoric_i, parts.ambiguity_i)
    assert_allclose(parts.epistemic_i, parts.total_i - parts.ambiguity_i, atol=1e-12)
    some = parts.of(slice(3, 5))
    assert_allclose(some.epistemic_i, parts.epistemic_i[3:5])


def test_the_paper_keeps_its_two_parts():
    [one] = fit(votes_of(random_rows(np.random.default_rng(3), 30, 5, 2)), model="paper", draws=40).fits
    parts = decompose_entropy(one)
    assert (parts.ambiguity_i == 0).all() and parts.ambiguity_i.strides == (0,)
    assert_allclose(parts.aleatoric_i, one.summary.expected_entropy_i, atol=1e-15)
    assert_allclose(parts.epistemic_i, parts.total_i - one.summary.expected_entropy_i, atol=1e-15)
