"""The search comes to its end: a mode on whatever votes, in a bounded number of passes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support import log_posterior_of, plain_em, random_rows, votes_of

from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import ConvergenceWarning
from moral_entropy.model import search as module
from moral_entropy.model.fit import fit
from moral_entropy.model.priors import Priors
from moral_entropy.model.search import TOLERANCE, find_mode, pack, starts, unpack

quiet = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")


def few_votes_on_many_labels():
    rng = np.random.default_rng(0)
    return votes_of([(i, a, int(rng.integers(150))) for i in range(40) for a in range(2)], 150)


AWKWARD = {
    "two who always disagree": lambda: votes_of([(i, a, (i + a) % 2) for i in range(30) for a in (0, 1)]),
    "two pairs who always disagree": lambda: votes_of(
        [(i, a + 2 * (i % 2), (i // 2 + a) % 2) for i in range(16) for a in (0, 1)]
    ),
    "one annotator": lambda: votes_of([(i, 0, i % 3) for i in range(20)], 3),
    "all the same label": lambda: votes_of([(i, a, 1) for i in range(20) for a in range(3)]),
    "all the same label of many": lambda: votes_of([(i, a, 4) for i in range(20) for a in range(3)], 8),
    "items without votes": lambda: votes_of([(i, a, (i * a) % 2) for i in range(5) for a in range(3)], n_items=40),
    "one item": lambda: votes_of([(0, a, a % 2) for a in range(5)]),
    "one vote": lambda: votes_of([(0, 0, 1)]),
    "one vote per item": lambda: votes_of([(i, i % 4, int(i % 3 == 0)) for i in range(60)]),
    "every item anew": lambda: votes_of([(i, 2 * i + a, int(i % 3 == 0)) for i in range(30) for a in (0, 1)]),
    "many votes of one": lambda: votes_of([(i, 0, int(j < i)) for i in range(10) for j in range(10)]),
    "votes at random": lambda: votes_of(
        [(i, a, int(np.random.default_rng(i * 9 + a).integers(4))) for i in range(50) for a in range(5)], 4
    ),
    "150 labels of few votes": few_votes_on_many_labels,
}


# The paper's priors leave most of 150 labels to chance, from seven starts.
SEARCHED = [(case, "mixed") for case in AWKWARD] + [(case, "paper") for case in AWKWARD if "150" not in case]


@quiet
@pytest.mark.parametrize(("case", "model"), SEARCHED)
def test_awkward_votes_have_a_mode(case, model):
    [found] = fit(AWKWARD[case](), draws=0, model=model).fits
    assert found.search.converged and found.search.steepness <= TOLERANCE
    assert np.isfinite(found.p_ik).all() and np.isfinite(found.confusion_akv).all()
    assert_allclose(found.p_ik.sum(axis=1), 1.0, atol=1e-12)


@quiet
@pytest.mark.parametrize("case", [name for name in AWKWARD if "150" not in name])
def test_awkward_votes_can_be_drawn_from(case):
    [found] = fit(AWKWARD[case](), draws=20).fits
    for values in (found.p_ik, found.epistemic_i, found.confusion_sakv):
        assert np.isfinite(values).all()
    for values in (found.low_i, found.high_i):
        assert (np.isfinite(values) == (found.share_weight_i < 1)).all()


@quiet
@pytest.mark.parametrize("model", ["mixed", "paper"])
@pytest.mark.parametrize("flat", [Priors(diagonal=1.0, off_diagonal=1.0), Priors(prevalence=1e6, diagonal=1e6)])
def test_flat_and_firm_priors_end(model, flat):
    votes = votes_of(random_rows(np.random.default_rng(1), 40, 4, 2))
    [found] = fit(votes, draws=20, model=model, priors=flat).fits
    assert found.search.steepness <= 1e-6
    assert np.isfinite(found.p_ik).all()


@pytest.mark.parametrize("model", ["mixed", "paper"])
@pytest.mark.parametrize("n_labels", [2, 5])
def test_a_mode_is_found_in_few_passes(n_labels, model):
    votes = simulate_votes(n_items=2_000, n_annotators=30, votes_per_item=4, n_labels=n_labels, seed=2).votes
    [found] = fit(votes, draws=0, model=model).fits
    assert found.search.converged
    assert found.search.passes <= 300


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_papers_mode_is_that_of_a_textbook_em(n_labels):
    votes = votes_of(random_rows(np.random.default_rng(6), 120, 5, n_labels), n_labels)
    [found] = fit(votes, model="paper", draws=0).fits
    posterior = log_posterior_of(votes)
    at, posterior_ik = plain_em(votes, dict(starts(posterior))["paper"], Priors())
    assert_allclose(found.posterior_ik, posterior_ik, atol=1e-7)
    assert_allclose(found.confusion_akv, at.confusion_akv, atol=1e-7)


def test_a_search_that_is_stopped_says_so(monkeypatch):
    monkeypatch.setattr(module, "MAX_PASSES", 3)
    votes = votes_of(random_rows(np.random.default_rng(1), 40, 4, 3), 3)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        [found] = fit(votes, draws=0).fits
    assert not found.search.converged and found.search.steepness > TOLERANCE


def test_large_votes_begin_in_a_sample_and_end_where_all_votes_do(monkeypatch):
    posterior = log_posterior_of(votes_of(random_rows(np.random.default_rng(1), 400, 6, 3), 3), model="mixed")
    whole, _, _ = find_mode(posterior, all_starts=False)
    monkeypatch.setattr(module, "SAMPLE_VOTES", 500)
    sampled, _, _ = find_mode(posterior, all_starts=False)
    assert_allclose(sampled.at.confusion_akv, whole.at.confusion_akv, atol=1e-6)


def test_the_mode_does_not_depend_on_how_the_last_steps_are_taken(monkeypatch):
    votes = votes_of(random_rows(np.random.default_rng(4), 150, 6, 3), 3)
    [one] = fit(votes, draws=0).fits
    monkeypatch.setattr(module, "DENSE", 0)
    [other] = fit(votes, draws=0).fits
    assert other.search.converged
    assert_allclose(other.confusion_akv, one.confusion_akv, atol=1e-7)


def test_log_ratios_go_there_and_back():
    posterior = log_posterior_of(votes_of(random_rows(np.random.default_rng(4), 20, 3, 3), 3), model="paper")
    for _, at in starts(posterior):
        for there, back in zip(at, unpack(pack(at), at), strict=True):
            assert_allclose(back, there, rtol=1e-12)
