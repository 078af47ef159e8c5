"""Entropies by hand, and their averages by domain."""

import numpy as np
from numpy.testing import assert_allclose
from support import random_rows, votes_of

from moral_entropy.consensus.entropy import decompose_entropy
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.fitted import local_fit
from moral_entropy.runs.item_tables import entropy_frame, entropy_sums


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
    frame = entropy_frame(consensus, local_fit(consensus).total(entropy_sums))
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
