"""Polynomials for exp and log, against the library's own."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import entr, expit

from moral_entropy.consensus.vector_math import entropy_of_rare, logistic, mean_and_entropy


def buffers(n):
    return np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(x=st.lists(st.floats(-690.0, 690.0), min_size=1, max_size=40))
def test_logistic_and_softplus_equal_the_librarys(x):
    x_s = np.array(x)
    p_s, softplus_s = np.empty_like(x_s), np.empty_like(x_s)
    logistic(x_s, p_s, softplus_s, *buffers(len(x)))
    assert_allclose(p_s, expit(x_s), rtol=1e-14)
    assert_allclose(softplus_s, np.logaddexp(0.0, x_s), rtol=1e-14)


def test_far_out_the_logistic_is_all_or_nothing_and_the_softplus_exact():
    x_s = np.array([-1e5, -750.0, 750.0, 1e5])
    p_s, softplus_s = np.empty(4), np.empty(4)
    logistic(x_s, p_s, softplus_s, *buffers(4))
    assert_allclose(p_s, [0, 0, 1, 1], atol=1e-300)
    assert_allclose(softplus_s, [0, 0, 750, 1e5], atol=1e-300)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(x=st.lists(st.floats(-600.0, 600.0), min_size=1, max_size=40))
def test_mean_and_entropy_equal_the_librarys(x):
    x_s = np.array(x)
    mean, entropy = mean_and_entropy(x_s, *buffers(len(x)))
    assert_allclose(mean, expit(x_s).mean(), rtol=1e-13)
    # The rarer label's share by itself, since 1 - p loses it where p is near 1.
    far_s = np.abs(x_s)
    rare_s = expit(-far_s)
    entropy_s = entr(rare_s) + (1 - rare_s) * np.log1p(np.exp(-far_s))
    assert_allclose(entropy, entropy_s.mean(), rtol=1e-12, atol=1e-300)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(rare=st.lists(st.one_of(st.floats(0.0, 0.5), st.floats(0.0, 1e-6)), min_size=1, max_size=40))
def test_entropy_of_the_rarer_label_equals_the_librarys(rare):
    rare_s = np.array(rare)
    entropy_s = np.empty_like(rare_s)
    entropy_of_rare(rare_s, entropy_s, np.empty_like(rare_s), np.empty_like(rare_s))
    assert_allclose(entropy_s, entr(rare_s) - (1 - rare_s) * np.log1p(-rare_s), rtol=1e-13, atol=1e-300)
