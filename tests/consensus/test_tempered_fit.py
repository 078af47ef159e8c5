"""A tempered fit: p from a hand-written sum, the same everywhere p is used."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support import posterior_draws, random_rows, votes_of

from moral_entropy.consensus.fit import fit
from moral_entropy.errors import FitError

POWER = 0.4


def some_votes(n_labels=2, gold=False):
    rows = random_rows(np.random.default_rng(9), 60, 6, n_labels)
    gold_i = np.random.default_rng(1).integers(n_labels, size=60) if gold else None
    return votes_of(rows, n_labels, gold_i=gold_i)


def by_hand(fitted, prevalence_k, confusion_akv, power):
    """Every item's label probabilities, vote by vote."""
    ballot = fitted.ballot
    p_ik = np.empty((ballot.n_items, ballot.n_labels))
    for i in range(ballot.n_items):
        for k in range(ballot.n_labels):
            p = prevalence_k[k]
            for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
                p *= confusion_akv[code // ballot.n_labels, k, code % ballot.n_labels] ** power
            p_ik[i, k] = p
    return p_ik / p_ik.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_items_are_tempered_and_parameters_are_not(n_labels):
    votes = some_votes(n_labels)
    plain, tempered = (fit(votes, draws=40, model="paper", temper=temper).fits[0] for temper in ("off", POWER))
    assert_array_equal(tempered.confusion_sakv, plain.confusion_sakv)
    assert_allclose(tempered.posterior_ik, by_hand(plain, plain.prevalence_k, plain.confusion_akv, POWER), atol=1e-9)
    mean_ik = np.mean(
        [by_hand(plain, plain.prevalence_sk[s], plain.confusion_sakv[s], POWER) for s in range(40)], axis=0
    )
    assert_allclose(tempered.summary.mean_ik, mean_ik, atol=1e-7)
    assert_allclose(posterior_draws(tempered).mean(axis=0), mean_ik, atol=1e-7)
    assert np.abs(mean_ik - plain.summary.mean_ik).max() > 0.05, "the power matters here"


def test_a_power_of_one_is_the_model_itself():
    votes = some_votes()
    plain, told = (fit(votes, draws=40, model="paper", temper=temper).fits[0] for temper in ("off", 1.0))
    assert_array_equal(told.summary.mean_ik, plain.summary.mean_ik)


def test_learnt_exponents_are_used():
    votes = some_votes(gold=True)
    for how in ("heldout", "gold"):
        fitted = fit(votes, draws=0, model="paper", temper=how).fits[0]
        assert fitted.exponent.n > 0
        expected = by_hand(fitted, fitted.prevalence_k, fitted.confusion_akv, fitted.exponent.value)
        assert_allclose(fitted.posterior_ik, expected, atol=1e-9)
    assert fitted.exponent.value < 0.3, "random gold says that votes tell nothing"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temper": "gold"}, "no item has a gold label.*temper='heldout'"),
        ({"temper": "yes"}, "choose one of off, heldout, gold"),
        ({"temper": 0.0}, "above 0 and at most 10"),
        ({"temper": "gold", "use_gold": True}, "Give one of them"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(FitError, match=message):
        fit(some_votes(), **{"model": "paper", **options})
