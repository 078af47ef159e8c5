"""The streaming pass against the draws of every item, held whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from audit_support import rich_votes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr
from support import posterior_draws, published_draws

from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.item_classes import number_rows
from moral_entropy.rules import sums as sums_module
from moral_entropy.rules.cells import sort_into_cells
from moral_entropy.rules.rules import PLURALITY, RULES
from moral_entropy.rules.sums import TILE, posterior_sums

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")

SETTINGS = {
    "two": {},
    "counted": {"counted": True},
    "first label positive": {"positive": 0},
    "three": {"n_labels": 3, "questions": ("tone",)},
    "four, counted": {"n_labels": 4, "questions": ("tone",), "counted": True},
}


def audited(use_gold=False, draws=TILE + 6, model="paper", **settings):
    votes = rich_votes(11, **settings)
    consensus = fit(votes, draws=draws, use_gold=use_gold, model=model)
    if model == "mixed":
        consensus = replace(consensus, fits=tuple(between_labels(one) for one in consensus.fits))
    return votes, consensus, *sort_into_cells(consensus, (*RULES.values(), PLURALITY))


def between_labels(one):
    """The same fit with some posterior mass between labels, the same for items of the same votes."""
    interior_r = np.random.default_rng(3).random(one.patterns.n_rows)
    return replace(one, summary=replace(one.summary, interior_i=interior_r[one.patterns.row_i]))


@pytest.mark.parametrize("model", ["paper", "mixed"])
@pytest.mark.parametrize("use_gold", [False, True], ids=["free", "clamped"])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_sums_are_those_of_every_items_draws(settings, use_gold, model):
    _, _, cells, members = audited(use_gold, model=model, **settings)
    found = posterior_sums(cells.n_cells, members)
    shape = found.p_cs.shape
    expected = {name: np.zeros(shape) for name in ("weight", "positive", "p", "p2", "entropy", "doubt")}
    for member in members:
        fit_ = member.fit
        p_sik = np.concatenate([published_draws(fit_).mean(axis=0)[None], posterior_draws(fit_)])
        for t, target in enumerate(member.targets):
            p_si = p_sik[:, :, target]
            yes_si = p_si >= 0.5 if fit_.ballot.n_labels == 2 else p_sik.argmax(axis=2) == target
            values = {"weight": np.ones_like(p_si), "positive": yes_si, "p": p_si, "p2": p_si**2}
            values |= {"entropy": entr(p_si) + entr(1 - p_si), "doubt": np.minimum(p_si, 1 - p_si)}
            for i in range(fit_.ballot.n_items):
                cell = member.cell_gt[member.group_i[i], t]
                for name, value_si in values.items():
                    expected[name][cell] += fit_.ballot.count_i[i] * value_si[:, i]
    for name, sum_cs in expected.items():
        assert_allclose(getattr(found, f"{name}_cs"), sum_cs, rtol=1e-9, atol=1e-11, err_msg=name)


def test_items_of_a_cell_share_everything_rules_see():
    votes, _, cells, members = audited(n_labels=3, questions=("tone",))
    member = members[0]
    ballot = member.fit.ballot
    for t, target in enumerate(member.targets):
        for i in range(ballot.n_items):
            c = member.cell_gt[member.group_i[i], t]
            assert cells.chosen_c[c] == ballot.counts_ik[i, target]
            assert cells.votes_c[c] == ballot.votes_i[i]
            assert cells.domain_c[c] == votes.domain_i[ballot.item_i[i]]
            assert cells.label_c[c] == target
            for r, rule in enumerate((*RULES.values(), PLURALITY)):
                assert_array_equal(cells.score_rc[r, c], rule.scores(ballot.counts_ik[[i]], target)[0])
                assert cells.tied_rc[r, c] == rule.ties(ballot.counts_ik[[i]], target)[0]


def test_any_number_of_threads_gives_the_same_bits():
    _, _, cells, members = audited(draws=3 * TILE)
    for bootstrap in (0, 100):
        one, many = (posterior_sums(cells.n_cells, members, bootstrap=bootstrap, threads=n) for n in (1, 3))
        assert_array_equal(one.p_cs, many.p_cs)
        assert_array_equal(one.weight_cs, many.weight_cs)


def test_resampled_items_are_poisson_around_what_they_are():
    _, _, cells, members = audited(draws=2, questions=("care",))
    found = posterior_sums(cells.n_cells, members, bootstrap=4_000, seed=5)
    weight_c, weight_cs = found.weight_cs[:, 0], found.weight_cs[:, 1:]
    assert_allclose(weight_cs.mean(axis=1), weight_c, rtol=0.2)
    assert_allclose(weight_cs.mean(), weight_c.mean(), rtol=0.01)
    assert_allclose(weight_cs.var(axis=1).sum(), weight_c.sum(), rtol=0.1)
    # Draw s of the posterior goes with every other column.
    assert_allclose(
        found.p_cs[:, 1::2].sum() / weight_cs[:, ::2].sum(), published_draws(members[0].fit)[0, :, 1].mean(), rtol=0.02
    )


def test_no_draws_leave_the_mean_alone_and_can_still_be_resampled():
    _, _, cells, members = audited(draws=0)
    assert posterior_sums(cells.n_cells, members).p_cs.shape[1] == 1
    found = posterior_sums(cells.n_cells, members, bootstrap=3_000)
    assert_allclose(found.p_cs[:, 1:].mean(axis=1).sum(), found.p_cs[:, 0].sum(), rtol=0.02)


def test_too_many_cells_thin_the_draws_evenly(monkeypatch):
    _, _, cells, members = audited(draws=200, questions=("care",))
    whole = posterior_sums(cells.n_cells, members)
    monkeypatch.setattr(sums_module, "MAX_NUMBERS", 6 * cells.n_cells * 50)
    thin = posterior_sums(cells.n_cells, members)
    assert thin.p_cs.shape[1] == 51
    assert_allclose(thin.p_cs[:, 1:], whole.p_cs[:, 1::4], rtol=1e-12)


def test_numbering_survives_columns_too_wide_for_one_key():
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 2**40, 50)[rng.integers(0, 3, 200)] for _ in range(4)]
    group_i, first_g = number_rows(columns)
    rows = [tuple(int(column[i]) for column in columns) for i in range(200)]
    assert len(first_g) == len(set(rows))
    assert all(rows[first_g[g]] == row for g, row in zip(group_i, rows, strict=True))


def test_parts_of_a_question_fall_into_its_cells():
    votes = rich_votes(12, questions=("care",))
    parted = votes.split(votes.domain_i, votes.domains)
    cells, members = sort_into_cells(fit(parted, draws=0), tuple(RULES.values()))
    assert len(members) == 4
    assert set(cells.question_c.tolist()) == {0}
    assert_allclose(posterior_sums(cells.n_cells, members).weight_cs.sum(), replace(votes).n_items)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=40), st.booleans())
def test_numbering_rows_equals_sorting_them(rows, wide):
    columns = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    # A wide column has more places than there are rows to tick off.
    columns = columns * (100_000 if wide else 1)
    group_i, first_g = number_rows(list(columns))
    _, first, inverse = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    assert_array_equal(first_g, first)
    assert_array_equal(group_i, inverse.ravel())
