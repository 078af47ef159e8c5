"""Many labels, many annotators: what is fitted, what is fitted with fewer draws, and what is refused in words."""

import tracemalloc

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support import log_posterior_of, votes_of

from moral_entropy.checks.posterior import check_laplace
from moral_entropy.checks.run import run_checks
from moral_entropy.model.draws import state_draws
from moral_entropy.model.fit import fit
from moral_entropy.model.findings import fit_findings
from moral_entropy.consensus.laplace import DenseGaussian, KrylovGaussian, RowBlocks, gaussian_at, krylov_gaussian
from moral_entropy.consensus.limits import LEAST_DRAWS, affordable_draws
from moral_entropy.model.options import FitOptions
from moral_entropy.consensus.starts import paper_start
from moral_entropy.model.states import between_labels
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import FitError

pytestmark = pytest.mark.filterwarnings(
    "ignore::moral_entropy.errors.ThinDataWarning", "ignore::moral_entropy.errors.IdentifiabilityWarning"
)


def labelled(n_labels, n_annotators, n_votes, seed=0):
    rng = np.random.default_rng(seed)
    columns = rng.integers((n_votes // 2, n_annotators, n_labels), size=(n_votes, 3))
    rows = {(item, annotator): label for item, annotator, label in columns.tolist()}
    return votes_of([(*at, label) for at, label in rows.items()], n_labels)


def test_the_curvature_of_many_labels_takes_memory_in_proportion_to_the_parameters(monkeypatch):
    monkeypatch.setattr("moral_entropy.consensus.laplace.KRYLOV", 16)
    model = log_posterior_of(labelled(60, 20, 600))
    at = paper_start(20, 60)
    krylov_gaussian(model, at)
    tracemalloc.start()
    gaussian = krylov_gaussian(model, at)
    peak = tracemalloc.get_traced_memory()[1] / 8
    tracemalloc.stop()
    assert isinstance(gaussian.blocks, RowBlocks)
    # The basis has 16 numbers per parameter; a block per row would have 59, one per annotator 3,540.
    assert peak < 45 * model.n_parameters


def test_a_matrix_that_few_votes_touch_too_often_is_not_made(monkeypatch):
    model = log_posterior_of(labelled(6, 5, 100))
    at = paper_start(5, 6)
    assert isinstance(gaussian_at(model, at), DenseGaussian)
    monkeypatch.setattr("moral_entropy.consensus.laplace.DENSE_CELLS", model.n_cells - 1)
    assert isinstance(gaussian_at(model, at), KrylovGaussian)


def test_draws_of_very_many_annotators_are_put_in_order_in_pieces(monkeypatch):
    rng, states = np.random.default_rng(1), between_labels(3)
    confusion_sakv = rng.dirichlet(np.ones(3), size=(20, 200, 3))
    weight_sdg = rng.dirichlet(np.ones(states.n_groups), size=(20, 1))
    whole_cks = state_draws(states, weight_sdg, confusion_sakv)[0]
    monkeypatch.setattr("moral_entropy.model.states.MANY_NUMBERS", 1)
    monkeypatch.setattr("moral_entropy.model.draws.CODES_AT_ONCE", 7)
    assert_array_equal(state_draws(states, weight_sdg, confusion_sakv)[0], whole_cks)
    tracemalloc.start()
    vote_sazv = states.votes_azv(confusion_sakv)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * vote_sazv.nbytes
    assert_allclose(vote_sazv, np.einsum("zk,sakv->sazv", states.mix_zk, confusion_sakv), rtol=1e-12)


def test_annotators_of_one_vote_each_end_in_an_answer_and_in_words():
    rng = np.random.default_rng(8)
    rows = [(who // 5, who, int((who // 5 % 3 == 0) == (rng.random() < 0.8))) for who in range(1_500)]
    consensus = fit(votes_of(rows), draws=100, pooling="none")
    one = consensus.fits[0]
    # The climb ends long before it gives up, however little the votes say of whoever cast them.
    assert one.climb.passes < 0.5 * FitOptions().max_passes
    assert np.isfinite(one.summary.mean_ik).all()
    said = " ".join(finding.text for finding in run_checks(consensus))
    assert "1,500 of 1,500 annotators" in said and "300 groups that share neither item nor annotator" in said


def test_annotators_of_one_vote_each_are_pooled_and_their_majority_is_the_answer():
    rng = np.random.default_rng(8)
    true_i = np.arange(300) % 3 == 0
    rows = [(who // 5, who, int(true_i[who // 5] == (rng.random() < 0.8))) for who in range(1_500)]
    one = fit(votes_of(rows), draws=100).fits[0]
    assert one.pooling == "partial"
    majority_i = np.bincount([i for i, _, vote in rows if vote], minlength=300) > 2
    assert ((one.p_ik[:, 1] > 0.5) == majority_i).mean() > 0.98


def test_quick_checks_copy_few_draws_of_many_annotators(monkeypatch):
    fitted = fit(simulate_votes(n_items=60, n_annotators=6, votes_per_item=3, seed=1).votes, draws=300)
    assert [finding.n for finding in check_laplace(fitted)] == [300]
    n_numbers = 6 * 2 * fitted.fits[0].states.n_states
    monkeypatch.setattr("moral_entropy.checks.posterior.CHECKED_NUMBERS", n_numbers * 150)
    assert [finding.n for finding in check_laplace(fitted)] == [150]


@pytest.mark.parametrize("n_labels", [24, 28])
def test_as_many_labels_as_votes_are_fitted(n_labels):
    rows = [(k, k, k) for k in range(n_labels)]
    consensus = fit(votes_of(rows, n_labels), draws=20)
    fitted = consensus.fits[0]
    assert fitted.curvature.method == "krylov"
    assert fitted.climb.converged
    assert np.isfinite(fitted.summary.mean_ik).all()
    assert len(fit_findings(consensus)[2].text) < 200


def test_fewer_draws_are_made_where_those_asked_for_would_not_fit_and_it_is_said(monkeypatch):
    votes = simulate_votes(n_items=60, n_annotators=6, votes_per_item=3, seed=1).votes
    monkeypatch.setattr("moral_entropy.consensus.limits.DRAWN_NUMBERS", 24 * 150)
    consensus = fit(votes, draws=400)
    fitted = consensus.fits[0]
    assert fitted.n_draws == 150
    assert fitted.confusion_sakv.size == 24 * 150
    said = [finding for finding in consensus.findings if finding.figure == "fewer_draws"]
    assert [(one.value, one.alarms) for one in said] == [(150, False)]
    assert "150 draws were made, not 400" in said[0].text
    assert not [one for one in fit(votes, draws=150).findings if one.figure == "fewer_draws"]


def test_draws_of_several_questions_share_the_memory(monkeypatch):
    votes = simulate_votes(n_items=60, n_annotators=6, votes_per_item=3, seed=1).votes
    ballot, options = votes.ballots[0], FitOptions(draws=1_000)
    monkeypatch.setattr("moral_entropy.consensus.limits.ALL_DRAWN_NUMBERS", 24 * 900)
    assert affordable_draws(ballot, options) == 900
    assert affordable_draws(ballot, options, n_fits=3) == 300


def test_draws_that_memory_cannot_hold_are_refused_in_words_and_none_are_not():
    ballot = labelled(500, 30, 2_000).ballots[0]
    words = (
        r"500 labels and 30 annotators make 7,500,000 error rates; 1,000 draws of them would take 60 GB, .* --draws 0"
    )
    with pytest.raises(FitError, match=words):
        affordable_draws(ballot, FitOptions())
    assert affordable_draws(ballot, FitOptions(draws=0)) == 0
    assert affordable_draws(ballot, FitOptions(draws=10)) == 10
    assert affordable_draws(ballot, FitOptions(pooling="full")) >= LEAST_DRAWS


def test_more_error_rates_than_can_be_fitted_are_refused_before_the_climb():
    n_annotators = 80
    rows = pl.DataFrame({"item": range(1_000), "annotator": [i % n_annotators for i in range(1_000)]})
    frame = rows.with_columns(label=pl.format("label {}", pl.col("item") % 500))
    with pytest.raises(FitError, match=r"500 labels and 80 annotators .* 16,777,216 .* merge rare labels"):
        fit(frame, draws=0)
