"""Quantiles of figures some draws do not have."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta, binom

from moral_entropy.rules.intervals import beta_interval, central_interval

numbers = arrays(float, st.tuples(st.integers(1, 4), st.integers(1, 9)), elements=st.floats(-5, 5) | st.just(np.nan))


@given(value_ms=numbers, mass=st.floats(0.0, 0.99))
def test_quantiles_are_numpys_without_the_missing(value_ms, mass):
    low_m, high_m = central_interval(value_ms, mass)
    for m, value_s in enumerate(value_ms):
        kept = value_s[~np.isnan(value_s)]
        if len(kept):
            assert_allclose([low_m[m], high_m[m]], np.quantile(kept, [(1 - mass) / 2, (1 + mass) / 2]), atol=1e-9)
        else:
            assert np.isnan([low_m[m], high_m[m]]).all()


def test_infinity_is_a_value():
    low_m, high_m = central_interval(np.array([[np.inf] * 4, [0.0, 1.0, np.inf, np.inf]]), 0.5)
    assert_array_equal(low_m, [np.inf, 0.75])
    assert_array_equal(high_m, [np.inf, np.inf])


def test_no_draws_no_interval():
    assert np.isnan(central_interval(np.empty((3, 0)), 0.9)).all()


def test_counted_shares_have_jeffreys_and_exact_intervals():
    yes, no = np.array([0.0, 3.0, 7.0]), np.array([5.0, 4.0, 0.0])
    assert_allclose(beta_interval(yes, no, 0.9), [beta.ppf(q, yes + 0.5, no + 0.5) for q in (0.05, 0.95)])
    low, high = beta_interval(yes, no, 0.9, prior="exact")
    assert_allclose(binom.sf(yes[1:] - 1, (yes + no)[1:], low[1:]), 0.05)
    assert_allclose(binom.cdf(yes[:2], (yes + no)[:2], high[:2]), 0.05)
    assert low[0] == 0.0 and high[2] == 1.0
    assert np.isnan(beta_interval(0, 0, 0.9, prior="exact")).all()
