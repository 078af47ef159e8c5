"""Weights for a population: shares are met, and what they cost is Kish's figure."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.errors import VotesError
from moral_entropy.groups.members import Grouping, rake, read_target, weighted_shares

GENDER = Grouping("gender", ("f", "m"), np.array([0, 0, 0, 1, -1]))


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=0, max_size=12), st.floats(0.2, 0.8))
def test_raked_shares_are_the_targets(pairs, share):
    # Every combination occurs, so that weights exist.
    cells = np.array([*pairs, *((g, h) for g in range(2) for h in range(3))])
    targets = [np.array([share, 1 - share]), np.array([0.5, 0.3, 0.2])]
    weight_a, off = rake([cells[:, 0], cells[:, 1]], targets)
    assert off < 1e-8
    for group_a, share_g in zip(cells.T, targets, strict=True):
        np.testing.assert_allclose(np.bincount(group_a, weights=weight_a) / weight_a.sum(), share_g, atol=1e-7)
    assert weight_a.mean() == pytest.approx(1.0)


def test_shares_that_contradict_each_other_are_said_to_be_off():
    # Groups of both columns are the same people, and the shares are not.
    _, off = rake([np.array([0, 0, 1]), np.array([0, 0, 1])], [np.array([0.5, 0.5]), np.array([0.9, 0.1])])
    assert off > 0.1


def test_who_has_no_group_weighs_nothing():
    weight_a, _ = rake([GENDER.group_a], [np.array([0.5, 0.5])])
    np.testing.assert_allclose(weight_a, [2 / 3, 2 / 3, 2 / 3, 2.0, 0.0])


def test_equal_weights_give_the_smoothed_vote_share():
    item_v, annotator_v, label_v = np.array([0, 0, 0, 1]), np.array([0, 1, 2, 0]), np.array([1, 1, 0, 0])
    p_ik, n_i = weighted_shares(item_v, annotator_v, label_v, np.ones(3), 3, 2)
    np.testing.assert_allclose(p_ik, [[1.5 / 4, 2.5 / 4], [1.5 / 2, 0.5 / 2], [0.5, 0.5]])
    assert n_i.tolist() == [3, 1, 0]


def test_shares_are_read_in_the_order_of_the_groups():
    frame = pl.DataFrame({"column": ["gender"] * 2, "group": ["m", "f"], "share": ["60%", "40"]})
    assert read_target(frame, [GENDER], "target")["gender"].tolist() == [0.4, 0.6]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("gender", "f", 1)], "gender has groups f, m, and the shares are of f"),
        (
            [("gender", "f", 1), ("gender", "m", 1), ("gender", "x", 1)],
            "the shares are of f, m, x.*join one without annotators",
        ),
        ([("gender", "f", -1), ("gender", "m", 1)], "not every share is a number.*First: gender 'f'"),
        ([("age", "f", 1)], r"age has no groups \(annotators are grouped by gender\)"),
        ([("gender", "f", 0), ("gender", "m", 0)], "all 0"),
        ([("gender", "f", 1), ("gender", "f", 1)], "the shares are of f, f"),
    ],
)
def test_shares_that_make_no_sense_are_refused(rows, said):
    frame = pl.DataFrame(rows, schema=["column", "group", "share"], orient="row")
    with pytest.raises(VotesError, match=said):
        read_target(frame, [GENDER], "target")
