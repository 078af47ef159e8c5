"""The paper's optimiser against EM, which finds the mode by another way."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support import log_posterior_of

from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import FitError, MissingExtraError
from moral_entropy.model.fit import fit
from moral_entropy.model.search import find_mode

VOTES = simulate_votes(n_items=400, n_annotators=8, votes_per_item=5, seed=3).votes


def test_adam_and_em_reach_the_same_mode():
    pytest.importorskip("torch")
    from moral_entropy.model.adam import maximise_with_adam

    posterior = log_posterior_of(
        simulate_votes(n_items=200, n_annotators=5, votes_per_item=4, n_labels=3, seed=3).votes
    )
    em, _, _ = find_mode(posterior, all_starts=True)
    adam = maximise_with_adam(posterior, steps=1_000)
    assert -1e-9 <= em.objective - adam.objective <= 0.05
    assert_allclose(adam.at.confusion_akv, em.at.confusion_akv, atol=0.03)


@pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")
def test_two_hundred_steps_stop_short_and_say_so():
    pytest.importorskip("torch")
    # A rare label that is missed more often than seen: far from the paper's start.
    confusion_akv, prevalence_k = np.tile([[0.95, 0.05], [0.6, 0.4]], (8, 1, 1)), [0.8, 0.2]
    design = {"n_items": 1_000, "n_annotators": 8, "votes_per_item": 4, "confusion_akv": confusion_akv}
    votes = simulate_votes(**design, prevalence_k=prevalence_k, seed=0).votes
    [adam], [em] = (fit(votes, model="paper", solver=solver, draws=0).fits for solver in ("adam", "em"))
    assert (adam.search.solver, adam.search.passes, adam.search.converged) == ("adam", 200, False)
    assert adam.search.log_posterior < em.search.log_posterior - 0.1


def test_what_adam_cannot_do_is_refused(monkeypatch):
    with pytest.raises(FitError, match="is the paper's solver"):
        fit(VOTES, solver="adam")
    pytest.importorskip("torch")
    with pytest.raises(FitError, match="knows no labels as evidence"):
        fit(VOTES, model="paper", solver="adam", use_gold=True)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="the solver adam needs PyTorch"):
        fit(VOTES, model="paper", solver="adam")
