"""Sums over cells against every item, held whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from audit_support import rich_votes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr

from moral_entropy.model.fit import fit
from moral_entropy.rules.cells import group_by_answers, number_rows, rule_sums, sort_into_cells, targets_of
from moral_entropy.rules.rules import PLURALITY, RULES

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")

SETTINGS = {
    "two": {},
    "counted": {"counted": True},
    "first label positive": {"positive": 0},
    "three": {"n_labels": 3, "questions": ("tone",)},
    "four, counted": {"n_labels": 4, "questions": ("tone",), "counted": True},
}


def cells_of(consensus, rules):
    return sort_into_cells(consensus.votes, consensus.fits, group_by_answers, rules=rules)


def audited(use_gold=False, draws=6, model="paper", **settings):
    votes = rich_votes(11, **settings)
    consensus = fit(votes, draws=draws, use_gold=use_gold, model=model)
    return votes, consensus, *cells_of(consensus, (*RULES.values(), PLURALITY))


@pytest.mark.parametrize("model", ["paper", "mixed"])
@pytest.mark.parametrize("use_gold", [False, True], ids=["free", "clamped"])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_sums_are_those_of_every_items_p(settings, use_gold, model):
    _, _, cells, members = audited(use_gold, model=model, **settings)
    sum_tcs = rule_sums(cells, members, (1.0, 1.0)).sum_tcs
    expected_tcs = np.zeros(sum_tcs.shape)
    for member in members:
        fit_ = member.fit
        p_sik = fit_.p_ik[None]
        for t, target in enumerate(targets_of(fit_.ballot)):
            p_si = p_sik[:, :, target]
            yes_si = p_si >= 0.5 if fit_.ballot.n_labels == 2 else p_sik.argmax(axis=2) == target
            entropy_si, doubt_si = entr(p_si) + entr(1 - p_si), np.minimum(p_si, 1 - p_si)
            values = np.array([np.ones_like(p_si), yes_si, p_si, p_si**2, entropy_si, doubt_si])
            for i in range(fit_.ballot.n_items):
                cell = member.cell_gt[member.group_i[i], t]
                expected_tcs[:, cell] += fit_.ballot.count_i[i] * values[:, :, i]
    assert_allclose(sum_tcs, expected_tcs, rtol=1e-9, atol=1e-11)


def test_items_of_a_cell_share_everything_rules_see():
    votes, _, cells, members = audited(n_labels=3, questions=("tone",))
    member = members[0]
    ballot = member.fit.ballot
    for t, target in enumerate(targets_of(ballot)):
        for i in range(ballot.n_items):
            c = member.cell_gt[member.group_i[i], t]
            assert cells.chosen_c[c] == ballot.counts_ik[i, target]
            assert cells.votes_c[c] == ballot.votes_i[i]
            assert cells.domain_c[c] == votes.domain_i[ballot.item_i[i]]
            assert cells.label_c[c] == target
            for r, rule in enumerate((*RULES.values(), PLURALITY)):
                assert_array_equal(cells.score_rc[r, c], rule.scores(ballot.counts_ik[[i]], target)[0])
                assert cells.tied_rc[r, c] == rule.ties(ballot.counts_ik[[i]], target)[0]


def test_numbering_survives_columns_too_wide_for_one_key():
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 2**40, 50)[rng.integers(0, 3, 200)] for _ in range(4)]
    group_i, first_g = number_rows(columns)
    rows = [tuple(int(column[i]) for column in columns) for i in range(200)]
    assert len(first_g) == len(set(rows))
    assert all(rows[first_g[g]] == row for g, row in zip(group_i, rows, strict=True))


def test_parts_of_a_question_fall_into_its_cells():
    votes = rich_votes(12, questions=("care",))
    parted = replace(votes, extra={"domain": pl.Series([*votes.domains, None]).gather(votes.domain_i)}).split_by(
        "domain"
    )
    cells, members = cells_of(fit(parted, draws=0), tuple(RULES.values()))
    assert len(members) == 4
    assert set(cells.question_c.tolist()) == {0}
    assert_allclose(rule_sums(cells, members, (1.0, 1.0)).sum_tcs[0].sum(), replace(votes).n_items)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=40), st.booleans())
def test_numbering_rows_equals_sorting_them(rows, wide):
    columns = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    # A wide column has more places than there are rows to tick off.
    columns = columns * (100_000 if wide else 1)
    group_i, first_g = number_rows(list(columns))
    _, first, inverse = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    assert_array_equal(first_g, first)
    assert_array_equal(group_i, inverse.ravel())
