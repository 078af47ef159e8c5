"""Divergences against their textbook formulas, and laws of the decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from audit_support import DIVERGENCES
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import rel_entr

from moral_entropy.rules.grade import BRIER, KL, ZERO_ONE, split

probability = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1).map(lambda x: round(x, 6)))
GENERATORS = (BRIER, KL, ZERO_ONE)
every_generator = pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: generator[0])


def divergence(generator, p, g):
    """What a report of `g` loses when `p` is right: the split of a single item."""
    one = np.ones((1, 1))
    parts, _ = split(generator, np.array([g]), one, p * one, generator[1](p) * one)
    return parts[generator[0]][0]


@every_generator
@settings(max_examples=50, deadline=None)
@given(p=probability, g=probability)
def test_divergences_are_the_textbook_ones(generator, p, g):
    assert_allclose(divergence(generator, p, g), DIVERGENCES[generator[0]](p, g), rtol=1e-9, atol=1e-12)


@given(p=probability, g=probability)
def test_kl_is_scipys(p, g):
    assert_allclose(divergence(KL, p, g), rel_entr(p, g) + rel_entr(1 - p, 1 - g), rtol=1e-9, atol=1e-12)


@every_generator
@given(p=probability, g=probability)
def test_honesty_is_never_beaten(generator, p, g):
    """The expected score of reporting g when labels come from p is least at g = p."""
    honest = divergence(generator, p, p) + generator[1](p)
    assert divergence(generator, p, g) + generator[1](p) >= honest - 1e-12


@st.composite
def levels(draw):
    n_levels = draw(st.integers(1, 4))
    g_l = np.array(draw(st.lists(probability, min_size=n_levels, max_size=n_levels, unique=True)))
    p_li = [draw(st.lists(probability, min_size=1, max_size=5)) for _ in range(n_levels)]
    return g_l, p_li


@every_generator
@settings(max_examples=60, deadline=None)
@given(made=levels())
def test_the_parts_add_up_and_are_what_they_say(generator, made):
    g_l, p_li = made
    weight_ls = np.array([[float(len(p_i))] for p_i in p_li])
    p_ls = np.array([[sum(p_i)] for p_i in p_li])
    entropy_ls = np.array([[sum(float(generator[1](p)) for p in p_i)] for p_i in p_li])
    parts, _ = split(generator, g_l, weight_ls, p_ls, entropy_ls)
    assert list(parts) == [f"{generator[0]}{part}" for part in ("", "_reliability", "_resolution", "_uncertainty")]
    whole_s, reliability_s, resolution_s, uncertainty_s = parts.values()
    divergence = DIVERGENCES[generator[0]]
    n = weight_ls.sum()
    everyone = [p for p_i in p_li for p in p_i]
    mean = sum(everyone) / n
    lost = sum(divergence(p, g) for g, p_i in zip(g_l, p_li, strict=True) for p in p_i) / n
    misfit = sum(len(p_i) * divergence(np.mean(p_i), g) for g, p_i in zip(g_l, p_li, strict=True)) / n
    spread = sum(len(p_i) * divergence(np.mean(p_i), mean) for p_i in p_li) / n
    varied = sum(divergence(p, mean) for p in everyone) / n
    found = [whole_s, reliability_s, resolution_s, uncertainty_s]
    assert_allclose(np.ravel(found), [lost, misfit, spread, varied], rtol=1e-9, atol=1e-11)
    if np.isfinite(lost):
        assert abs(reliability_s - resolution_s + uncertainty_s - whole_s)[0] < 1e-12


def test_nothing_to_divide_by_is_no_figure():
    nothing = np.zeros((2, 1))
    parts, _ = split(KL, np.array([0.0, 1.0]), nothing, nothing, nothing)
    assert np.isnan(list(parts.values())).all()
