"""Memory grows with the votes, not with their squares; what cannot be held is refused in words."""

import tracemalloc

import numpy as np
import pytest
from support import votes_of

from moral_entropy.errors import FitError
from moral_entropy.model import fit as module
from moral_entropy.model.copies import find_copies
from moral_entropy.model.fit import affordable_draws, fit
from moral_entropy.model.patterns import collapse
from moral_entropy.votes.table import ballot_from_codes

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")
MB = 2**20


def peak_of(act):
    tracemalloc.start()
    try:
        result = act()
        return result, tracemalloc.get_traced_memory()[1] / MB
    finally:
        tracemalloc.stop()


def crowd(n_items, n_annotators, n_labels=2, seed=0):
    """Everybody votes on everything."""
    rng = np.random.default_rng(seed)
    truth_i = rng.integers(n_labels, size=n_items)
    item_v, annotator_v = (grid.ravel() for grid in np.indices((n_items, n_annotators)))
    said_v = np.where(rng.random(len(item_v)) < 0.7, truth_i[item_v], rng.integers(n_labels, size=len(item_v)))
    return truth_i, votes_of(np.column_stack([item_v, annotator_v, said_v]), n_labels)


@pytest.mark.parametrize(("n_items", "n_annotators", "most"), [(1, 10_000, 60), (20, 6_000, 120)])
def test_many_votes_per_item(n_items, n_annotators, most):
    truth_i, votes = crowd(n_items, n_annotators)
    # One number per pair of annotators would be 800 or 288 MB.
    [found], peak = peak_of(lambda: fit(votes, draws=0).fits)
    assert found.search.converged
    assert found.label_i.tolist() == truth_i.tolist()
    assert peak < most


def test_draws_of_many_annotators_are_not_squared():
    _, votes = crowd(1, 10_000)
    [found], peak = peak_of(lambda: fit(votes, draws=20).fits)
    assert found.curvature.method == "annotators"
    assert peak < 150


def test_one_anonymous_voter_of_very_many_votes():
    label_v = (np.arange(30_000) % 3 == 0).astype(int)
    votes = votes_of(np.column_stack([np.arange(30_000) % 3, np.zeros(30_000, dtype=int), label_v]))
    [found], peak = peak_of(lambda: fit(votes, draws=20).fits)
    assert found.curvature.method == "dense"
    assert found.label_i.tolist() == [1, 0, 0]
    assert peak < 40


def test_copies_among_many_annotators_are_looked_for_block_by_block():
    _, votes = crowd(60, 1_000)
    copies, peak = peak_of(lambda: find_copies(collapse(votes.ballots[0])))
    assert not copies
    assert peak < 250


def test_what_is_too_large_is_refused_and_draws_are_fewer_where_they_would_not_fit(monkeypatch):
    def ballot(n_labels, n_annotators):
        labels, many = tuple(map(str, range(n_labels))), np.arange(n_annotators)
        return ballot_from_codes("q", labels, item_v=many, annotator_v=many, label_v=many % n_labels)

    with pytest.raises(FitError, match="5,000 labels and 1 annotators make 25,000,000 error rates"):
        affordable_draws(ballot(5_000, 1), 0)
    assert affordable_draws(ballot(2, 10), 1_000) == 1_000
    assert affordable_draws(ballot(2, 10_000), 1_000) == module.DRAWN_NUMBERS // 40_000
    assert affordable_draws(ballot(10, 10_000), 1_000) == module.LEAST_DRAWS
    with pytest.raises(FitError, match="--draws 0"):
        affordable_draws(ballot(20, 10_000), 1_000)
    assert affordable_draws(ballot(20, 10_000), 0) == 0


def test_fewer_draws_are_told(monkeypatch):
    _, votes = crowd(30, 5)
    monkeypatch.setattr(module, "DRAWN_NUMBERS", 5 * 4 * 150)
    consensus = fit(votes, draws=200)
    assert consensus.fits[0].n_draws == 150
    assert "fewer_draws" in [finding.metric for finding in consensus.findings]
