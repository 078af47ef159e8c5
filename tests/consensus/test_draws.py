"""Where the Gaussian sits: with every label known, rows are Beta and its centre and spread can be written down."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support import random_rows, votes_of

from moral_entropy.consensus import draws
from moral_entropy.model.draws import centre_rows
from moral_entropy.model.fit import fit
from moral_entropy.model.priors import Priors


def known_votes(seed=3, n_items=60, n_annotators=3):
    rows = random_rows(np.random.default_rng(seed), n_items, n_annotators, 2)
    gold_i = np.random.default_rng(seed + 1).integers(2, size=n_items).astype(np.int16)
    return rows, gold_i, votes_of(rows, gold_i=gold_i)


@pytest.mark.parametrize(
    ("coordinates", "centre_less", "spread_less"),
    [("jacobian", 1.0, 0.0), ("paper", 1.0, 1.0), ("logit-mode", 0.0, 0.0), ("jeffreys", 0.5, 0.5)],
)
def test_centre_and_spread_with_every_label_known(coordinates, centre_less, spread_less):
    rows, gold_i, votes = known_votes()
    priors = Priors(prevalence=2.0, diagonal=3.0, off_diagonal=1.7)
    one = fit(votes, priors=priors, draws=40_000, model="paper", use_gold=True, coordinates=coordinates).fits[0]
    assert one.curvature.coordinates == coordinates
    for annotator in range(3):
        for true in range(2):
            count_v = np.where(np.arange(2) == true, 3.0, 1.7)
            for item, who, label in rows:
                count_v[label] += who == annotator and gold_i[item] == true
            share_v = (count_v - centre_less) / (count_v - centre_less).sum()
            information = (count_v - spread_less).sum() * share_v.prod()
            x_s = np.log(one.confusion_sakv[:, annotator, true, 1] / one.confusion_sakv[:, annotator, true, 0])
            assert x_s.mean() == pytest.approx(np.log(share_v[1] / share_v[0]), abs=4 / np.sqrt(40_000 * information))
            assert x_s.std() == pytest.approx(information**-0.5, rel=0.02)


def test_under_flat_priors_jeffreys_needs_no_other_coordinates():
    rows = [(item, annotator, int(item < 20)) for item in range(40) for annotator in range(3)]
    flat = Priors(diagonal=1.0, off_diagonal=1.0)
    edge, inside = (
        fit(votes_of(rows), priors=flat, draws=50, model="paper", coordinates=coordinates).fits[0]
        for coordinates in ("jacobian", "jeffreys")
    )
    # The mode lies on the edge of the simplex, where only some coordinates have a curvature.
    assert edge.curvature.coordinates == "logit-mode"
    assert inside.curvature.coordinates == "jeffreys"
    assert inside.curvature.positive_definite


@pytest.mark.parametrize("n_labels", [3, 6, 12])
def test_rows_of_many_labels_have_the_mean_of_their_dirichlet_posterior(n_labels):
    rows = random_rows(np.random.default_rng(5), 120, 4, n_labels)
    gold_i = np.random.default_rng(6).integers(n_labels, size=120).astype(np.int16)
    one = fit(votes_of(rows, gold_i=gold_i, n_labels=n_labels), draws=2_000, use_gold=True).fits[0]
    count_akv = one.beta_akv.copy()
    for item, who, label in rows:
        count_akv[who, gold_i[item], label] += 1
    mean_akv = count_akv / count_akv.sum(axis=-1, keepdims=True)
    assert_allclose(one.confusion_akv, mean_akv, atol=1e-6)
    assert_allclose(one.confusion_sakv.mean(axis=0), mean_akv, atol=0.002)


@pytest.mark.parametrize("n_labels", [3, 8])
def test_centring_moves_a_row_in_logs_and_leaves_its_spread(n_labels):
    rng = np.random.default_rng(n_labels)
    mode_akv = np.log(rng.dirichlet(np.full(n_labels, 0.5), size=(3, n_labels)))
    log_sakv = mode_akv + rng.normal(size=(500, 3, n_labels, n_labels)) * rng.uniform(0.1, 2.0, size=n_labels)
    log_sakv -= np.log(np.exp(log_sakv).sum(axis=-1, keepdims=True))
    before_sakv = log_sakv.copy()
    centre_rows(log_sakv, mode_akv)
    assert_allclose(np.exp(log_sakv).sum(axis=-1), 1.0)
    assert_allclose(np.exp(log_sakv).mean(axis=0), np.exp(mode_akv), atol=0.005)
    moved_sakv = log_sakv - before_sakv
    # The same for all draws, but for what makes a row add up to 1.
    assert_allclose(np.diff(moved_sakv, axis=-1).std(axis=0), 0.0, atol=1e-9)


def test_centring_some_annotators_at_a_time_gives_the_same(monkeypatch):
    rng = np.random.default_rng(9)
    mode_akv = np.log(rng.dirichlet(np.ones(4), size=(7, 4)))
    log_sakv = np.log(rng.dirichlet(np.ones(4), size=(50, 7, 4)))
    whole_sakv, tiled_sakv = log_sakv.copy(), log_sakv.copy()
    centre_rows(whole_sakv, mode_akv)
    monkeypatch.setattr(draws, "LOGS_AT_ONCE", 50 * 16 * 2)
    centre_rows(tiled_sakv, mode_akv)
    assert_array_equal(whole_sakv, tiled_sakv)
