"""Contributions of votes: they add up to the posterior's log-odds, and their intervals are those of the draws."""

from __future__ import annotations

import numpy as np
import pytest
from support import random_rows, votes_of

from moral_entropy.items import contributions as module
from moral_entropy.items.contributions import contributions, spoken_for
from moral_entropy.model.fit import fit
from moral_entropy.votes.table import UNKNOWN


def made(n_labels=2, positive=None):
    rows = random_rows(np.random.default_rng(8), 60, 5, n_labels)
    return votes_of(rows, n_labels, n_items=61, positive=positive)


def fitted(n_labels=2, positive=None, **options):
    return fit(made(n_labels, positive), **{"draws": 40, "seed": 2, **options}).fits[0]


def all_contributions(one, interval=0.9):
    return np.concatenate([ratio_bavc[0] for _, _, ratio_bavc in votes_and_prior(one, interval)[1]])


def votes_and_prior(one, interval):
    prior, *votes = contributions(one, interval)
    assert prior[0].tolist() == prior[1].tolist() == [UNKNOWN]
    return prior[2], votes


@pytest.mark.parametrize(("n_labels", "positive"), [(2, 1), (2, 0), (3, None)])
def test_prior_and_contributions_add_up_to_the_log_odds_of_the_mode(n_labels, positive):
    one = fitted(n_labels, positive, model="paper")
    ballot = one.ballot
    base, classes = spoken_for(ballot)
    prior_c, contribution_avc = votes_and_prior(one, 0.9)[0][0, 0, 0], all_contributions(one)
    for i in range(ballot.n_items):
        total_c = prior_c.copy()
        for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
            total_c += contribution_avc[code // n_labels, code % n_labels]
        odds_c = np.log(one.posterior_ik[i, list(classes)]) - np.log(one.posterior_ik[i, base])
        np.testing.assert_allclose(total_c, odds_c, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("n_labels", "positive"), [(2, 1), (2, 0), (3, None)])
def test_between_labels_contributions_add_up_to_what_votes_say_of_the_labels_themselves(n_labels, positive):
    one = fitted(n_labels, positive)
    ballot, (base, classes) = one.ballot, spoken_for(one.ballot)
    contribution_avc = all_contributions(one)
    for i in range(ballot.n_items):
        codes = ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]
        total_c = sum((contribution_avc[code // n_labels, code % n_labels] for code in codes), np.zeros(len(classes)))
        odds_k = np.zeros(n_labels)
        for code in codes:
            odds_k += np.log(one.confusion_akv[code // n_labels, :, code % n_labels])
        np.testing.assert_allclose(total_c, odds_k[list(classes)] - odds_k[base], rtol=1e-9, atol=1e-9)
    share_k = one.posterior_ik.mean(axis=0)
    prior_c = votes_and_prior(one, 0.9)[0][0, 0, 0]
    np.testing.assert_allclose(prior_c, np.log(share_k[list(classes)] / share_k[base]), atol=0.2)


def test_intervals_are_quantiles_of_the_draws_one_by_one():
    one = fitted(3)
    prior_bavc, [(annotator_a, voted_v, ratio_bavc)] = votes_and_prior(one, 0.8)
    assert (annotator_a.tolist(), voted_v.tolist()) == (one.ballot.annotator_a.tolist(), [0, 1, 2])
    for a, v, c in np.ndindex(5, 3, 2):
        ratios = [np.log(draw[a, c + 1, v]) - np.log(draw[a, 0, v]) for draw in one.confusion_sakv]
        np.testing.assert_allclose(ratio_bavc[1:, a, v, c], np.quantile(ratios, [0.1, 0.9]), rtol=1e-9)
    ratios = np.log(one.prevalence_sk[:, 2]) - np.log(one.prevalence_sk[:, 0])
    np.testing.assert_allclose(prior_bavc[1:, 0, 0, 1], np.quantile(ratios, [0.1, 0.9]))


def test_chunks_change_nothing(monkeypatch):
    one = fitted()
    whole = all_contributions(one)
    monkeypatch.setattr(module, "ANNOTATORS_AT_ONCE", 2)
    assert len(votes_and_prior(one, 0.9)[1]) == 3
    np.testing.assert_array_equal(all_contributions(one), whole)


def test_without_draws_there_is_no_interval():
    [(_, _, ratio_bavc)] = votes_and_prior(fitted(draws=0), 0.9)[1]
    assert np.isnan(ratio_bavc[1:]).all() and np.isfinite(ratio_bavc[0]).all()
