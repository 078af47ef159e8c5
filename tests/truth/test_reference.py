"""The default model against a second one of its formulas, plain EM in NumPy until nothing moves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support import plain_mixed_em, plain_states, pooled, random_rows, votes_of

from moral_entropy.model.fit import fit

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")

SIZES = {2: (80, 6), 3: (80, 6), 8: (240, 8), 15: (300, 6)}


def made(n_labels, *, domains=False, gold=False, copy=False):
    rng = np.random.default_rng(n_labels)
    n_items, n_annotators = SIZES[n_labels]
    rows = random_rows(rng, n_items, n_annotators, n_labels, share=0.9)
    if copy:
        rows += [(i, n_annotators, k) for i, a, k in rows if a == 1]
    return votes_of(
        rows,
        n_labels,
        n_items=n_items + 1,
        domain_i=rng.integers(-1, 2, size=n_items + 1) if domains else None,
        gold_i=np.where(rng.random(n_items + 1) < 0.2, rng.integers(n_labels, size=n_items + 1), -1) if gold else None,
    )


def assert_the_same(votes, found, at, state_iz, *, counts_ik=None, known_i=None, some=slice(None), silent=()):
    n_labels = votes.ballots[0].n_labels
    model_ik, interior_i = state_iz @ plain_states(n_labels)[0], state_iz[:, n_labels:].sum(axis=1)
    assert found.search.converged
    assert_allclose(found.posterior_ik, model_ik, atol=1e-6)
    assert_allclose(
        found.p_ik, pooled(votes.ballots[0], model_ik, model_ik, interior_i, counts_ik, known_i, silent), atol=1e-6
    )
    assert_allclose(found.mode.weight_dg, at.weight_dg, atol=1e-6)
    assert_allclose(found.mode.confusion_akv[some], at.confusion_akv[some], atol=1e-6)


@pytest.mark.parametrize("domains", [False, True])
@pytest.mark.parametrize("n_labels", SIZES)
def test_fit_equals_plain_em(n_labels, domains):
    votes = made(n_labels, domains=domains)
    [found] = fit(votes, draws=0).fits
    assert_the_same(votes, found, *plain_mixed_em(votes))


@pytest.mark.parametrize("n_labels", [2, 3])
def test_gold_as_evidence_equals_plain_em(n_labels):
    votes = made(n_labels, domains=True, gold=True)
    [found] = fit(votes, draws=0, use_gold=True).fits
    assert_the_same(votes, found, *plain_mixed_em(votes, use_gold=True), known_i=votes.ballots[0].gold_i)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_a_copy_counts_once_and_votes_as_the_one_it_copies(n_labels):
    votes, alone = made(n_labels, copy=True), made(n_labels)
    copy = SIZES[n_labels][1]
    [found] = fit(votes, draws=0).fits
    assert [group.tolist() for group in found.counted_groups] == [[1, copy]]
    at, state_iz = plain_mixed_em(votes, silent=[copy])
    assert_the_same(votes, found, at, state_iz, counts_ik=alone.ballots[0].counts_ik, some=slice(copy), silent=[copy])
    assert_allclose(found.confusion_akv[copy], found.confusion_akv[1], atol=1e-6)


def test_two_annotators_named_to_be_one_vote_as_one():
    votes = made(3, copy=True)
    [named], [found] = fit(votes, draws=0, merge=("1+6",)).fits, fit(votes, draws=0).fits
    assert [group.tolist() for group in named.counted_groups] == [[1, 6]]
    np.testing.assert_array_equal(named.p_ik, found.p_ik)
