"""What must hold for any votes."""

import warnings

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from support import log_posterior_of, random_rows, vote_rows, votes_of

from moral_entropy.consensus.em import maximise
from moral_entropy.model.entropy import decompose_entropy
from moral_entropy.model.fit import fit
from moral_entropy.model.priors import Priors
from moral_entropy.consensus.starts import paper_start

FIRM = Priors(prevalence=2.0, diagonal=4.0, off_diagonal=1.5)
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


def fitted(rows, n_labels, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(votes_of(rows, n_labels, n_items=12), **({"draws": 16} | options)).fits[0]


@quick
@given(made=vote_rows(), order=st.randoms(use_true_random=False))
def test_vote_order_is_irrelevant(made, order):
    rows, n_labels = made
    shuffled = rows.copy()
    order.shuffle(shuffled)
    one, other = fitted(rows, n_labels), fitted(shuffled, n_labels)
    assert_array_equal(one.posterior_ik, other.posterior_ik)
    assert_array_equal(one.summary.mean_ik, other.summary.mean_ik)


@quick
@given(made=vote_rows())
def test_entropy_parts_are_non_negative_and_sum_to_the_total(made):
    found = fitted(*made)
    parts = decompose_entropy(found)
    assert (parts.aleatoric_i >= 0).all()
    assert (parts.epistemic_i >= 0).all()
    assert_allclose(parts.aleatoric_i + parts.epistemic_i, parts.total_i, atol=1e-12)
    assert (parts.total_i <= np.log(found.ballot.n_labels) + 1e-12).all()


@quick
@given(made=vote_rows())
def test_the_log_posterior_never_falls(made):
    rows, n_labels = made
    votes = votes_of(rows, n_labels)
    trace = np.array(maximise(log_posterior_of(votes), paper_start(votes.ballots[0].n_annotators, n_labels)).trace)
    assert (np.diff(trace) >= -1e-11 * np.abs(trace[:-1])).all()


@quick
@given(made=vote_rows())
def test_probabilities_are_probabilities(made):
    found = fitted(*made)
    for ik in (found.posterior_ik, found.summary.mean_ik):
        assert_allclose(ik.sum(axis=1), 1.0, atol=1e-12)
        assert (ik >= 0).all()
    assert (found.summary.low_i <= found.summary.high_i).all()


# Renaming and relabelling are tried away from exact ties, where rounding alone decides who wins.
@quick
@given(seed=st.integers(0, 10_000), n_labels=st.integers(2, 3))
def test_renaming_annotators_changes_nothing(seed, n_labels):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 12, 4, n_labels, share=0.9)
    name_a = rng.permutation(4)
    one = fitted(rows, n_labels, priors=FIRM, draws=0)
    other = fitted([(i, name_a[a], k) for i, a, k in rows], n_labels, priors=FIRM, draws=0)
    assume(not _tied(one))
    assert_allclose(one.climb.log_posterior, other.climb.log_posterior, rtol=1e-9)
    assert_allclose(one.posterior_ik, other.posterior_ik, atol=1e-5)
    assert_allclose(one.confusion_akv, other.confusion_akv[name_a], atol=1e-5)


@quick
@given(seed=st.integers(0, 10_000), n_labels=st.integers(2, 3))
def test_relabelling_permutes_the_answer(seed, n_labels):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 12, 4, n_labels, share=0.9)
    new_k = rng.permutation(n_labels)
    one = fitted(rows, n_labels, priors=FIRM, draws=0)
    other = fitted([(i, a, new_k[k]) for i, a, k in rows], n_labels, priors=FIRM, draws=0)
    assume(not _tied(one))
    assert_allclose(one.climb.log_posterior, other.climb.log_posterior, rtol=1e-9)
    assert_allclose(one.posterior_ik, other.posterior_ik[:, new_k], atol=1e-5)


def _tied(found):
    heights = sorted(found.climb.modes.values())
    return heights[-1] - heights[0] > 0.05


@quick
@given(made=vote_rows(max_items=8), times=st.integers(2, 4))
def test_repeating_every_item_equals_counting_it(made, times):
    rows, n_labels = made
    n_items = max(i for i, _, _ in rows) + 1
    copies = [(i + c * n_items, a, k) for c in range(times) for i, a, k in rows]
    counted = votes_of(rows, n_labels, n_items=n_items, count_i=np.full(n_items, float(times)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = fit(counted, draws=0, priors=FIRM).fits[0]
        other = fit(votes_of(copies, n_labels, n_items=n_items * times), draws=0, priors=FIRM).fits[0]
    assert_allclose(one.climb.log_posterior, other.climb.log_posterior, rtol=1e-9)
    assert_allclose(one.posterior_ik, other.posterior_ik[:n_items], atol=1e-6)
