"""Pooling against other solvers: anonymous votes, Dirichlet-multinomial likelihood, a joint Gaussian."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize
from scipy.special import gammaln, logsumexp
from support import random_rows, votes_of

from moral_entropy.consensus.common_rows import MOST_PER_LABEL, TYPICAL_VOTES, best_row, row_score
from moral_entropy.consensus.coordinates import pack
from moral_entropy.model.fit import fit, refit
from moral_entropy.consensus.model import LogPosterior
from moral_entropy.consensus.nested import _Marginal, rows_of
from moral_entropy.model.options import FitOptions
from moral_entropy.model.patterns import collapse, pool_fully
from moral_entropy.consensus.pooling import choose_pooling, learn_rows
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import FitError


def small_votes(seed=0, n_items=60, n_annotators=6, n_labels=2):
    return votes_of(random_rows(np.random.default_rng(seed), n_items, n_annotators, n_labels), n_labels)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_full_pooling_is_one_annotator_who_cast_all_votes(n_labels):
    rows = np.array(random_rows(np.random.default_rng(3), 50, 5, n_labels))
    pooled = fit(votes_of(rows, n_labels), pooling="full", draws=50).fits[0]
    merged = np.column_stack([rows[:, 0], np.zeros(len(rows), int), rows[:, 2]])
    with pytest.warns(match="by one annotator"):
        alone = fit(votes_of(merged, n_labels), draws=50).fits[0]
    assert_allclose(pooled.climb.log_posterior, alone.climb.log_posterior, rtol=1e-12)
    assert_allclose(pooled.posterior_ik, alone.posterior_ik, atol=1e-9)
    assert_allclose(pooled.summary.mean_ik, alone.summary.mean_ik, atol=1e-9)
    assert pooled.confusion_akv.shape == (5, n_labels, n_labels)
    assert np.ptp(pooled.confusion_sakv, axis=1).max() == 0.0


def beta_binomial_rows(n_annotators=40, n_votes=200, mean=0.8, concentration=25.0, seed=1):
    """All labels known: each annotator's rows are drawn around a common one."""
    rng = np.random.default_rng(seed)
    right_ak = rng.beta(mean * concentration, (1 - mean) * concentration, size=(n_annotators, 2))
    rows, gold = [], []
    for a in range(n_annotators):
        for n in range(n_votes):
            k = n % 2
            rows.append((len(gold), a, k if rng.random() < right_ak[a, k] else 1 - k))
            gold.append(k)
    return votes_of(rows, gold_i=np.array(gold)), right_ak


def learnt(patterns, row_kv):
    """Learn common rows with a flat prevalence and nothing known of any annotator."""
    plain = LogPosterior(patterns, np.ones(2), np.zeros((patterns.n_annotators, 2, 2)))
    shared = LogPosterior(pool_fully(patterns), np.ones(2), row_kv[None])
    densities, _ = learn_rows(plain, shared, row_kv, tolerance=1e-7, max_passes=500)
    return densities


def test_common_rows_are_the_likeliest_where_all_labels_are_known():
    votes, _ = beta_binomial_rows()
    ballot = votes.ballots[0]
    row_kv = np.array([[1.8, 1.2], [1.2, 1.8]])
    found = learnt(collapse(ballot, use_gold=True), row_kv).rows
    annotator_v, label_v = np.divmod(ballot.code_v, 2)
    for k in (0, 1):
        counts_av = np.array(
            [[((annotator_v == a) & (label_v == v) & (ballot.gold_i == k)).sum() for v in (0, 1)] for a in range(40)]
        )

        def loss(x, counts_av=counts_av, k=k):
            mean_v = np.array([1 / (1 + np.exp(x[0])), 1 / (1 + np.exp(-x[0]))])
            c = np.exp(x[1])
            beta_v = c * mean_v
            score = (gammaln(counts_av + beta_v) - gammaln(beta_v)).sum()
            score += (gammaln(c) - gammaln(counts_av.sum(axis=1) + c)).sum()
            return -(score + row_kv[k] @ np.log(mean_v) + np.log(c) - 2 * np.log(TYPICAL_VOTES + c))

        best = minimize(loss, [0.0, 3.0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9}).x
        # The Gaussian in the E-step costs a little; 100 votes a row keep it small.
        assert_allclose(found.mean_kv[k, 1], 1 / (1 + np.exp(-best[0])), atol=0.004)
        assert_allclose(np.log(found.concentration_k[k]), best[1], atol=0.12)


def test_the_best_row_beats_its_neighbours_and_matches_a_derivative_free_search():
    rng = np.random.default_rng(2)
    sum_v = np.log(rng.dirichlet([8.0, 3.0, 1.0], size=30)).sum(axis=0)
    prior_v = np.array([1.8, 1.2, 1.2])
    mean_v, c = best_row(sum_v, 30, prior_v)

    def score(x):
        share_v = np.exp(np.append(0.0, x[:2]))
        share_v /= share_v.sum()
        c = np.exp(x[2])
        value = c * share_v @ sum_v - 30 * (gammaln(c * share_v).sum() - gammaln(c)) + prior_v @ np.log(share_v)
        return value + np.log(c) - 2 * np.log(TYPICAL_VOTES + c)

    x = np.append(np.log(mean_v[1:] / mean_v[0]), np.log(c))
    assert np.abs(approx_fprime(x, score, 1e-6)).max() < 1e-2
    other = minimize(lambda x: -score(x), x + 0.3, method="Nelder-Mead", options={"maxiter": 4000}).x
    assert_allclose(x, other, atol=1e-3)


def integrated(votes, outer_q, row_kv, alpha_k):
    """Log marginal posterior of outer parameters of two annotators: their four log odds summed out on a grid."""
    rows = rows_of(outer_q)
    grid, weight = np.polynomial.hermite_e.hermegauss(19)
    centre, spread = np.array([-1.4, 1.2, -1.4, 1.2]), 0.9
    x = np.stack(np.meshgrid(*[centre[n] + spread * grid for n in range(4)], indexing="ij"), axis=-1).reshape(-1, 4)
    log_w = np.log(np.stack(np.meshgrid(*[weight] * 4, indexing="ij"), axis=-1)).sum(axis=-1).ravel()
    log_w += (((x - centre) / spread) ** 2).sum(axis=1) / 2
    yes = 1 / (1 + np.exp(-x)).reshape(-1, 2, 2)
    beta_kv = rows.beta_kv
    log_prior = (beta_kv[:, 1] * np.log(yes) + beta_kv[:, 0] * np.log1p(-yes)).sum(axis=(1, 2))
    log_prior += 2 * (gammaln(rows.concentration_k) - gammaln(beta_kv).sum(axis=1)).sum()
    prevalence = 1 / (1 + np.exp(-outer_q[0]))
    ballot, log_like = votes.ballots[0], np.zeros(len(x))
    for i in range(ballot.n_items):
        chance_k = []
        for k, share in enumerate((1 - prevalence, prevalence)):
            p = np.full(len(x), share)
            for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
                p = p * (yes[:, code // 2, k] if code % 2 else 1 - yes[:, code // 2, k])
            chance_k.append(p)
        log_like += np.log(np.sum(chance_k, axis=0))
    outer = alpha_k @ np.log([1 - prevalence, prevalence])
    outer += sum(row_score(rows.mean_kv[k], float(rows.concentration_k[k]), row_kv[k]) for k in (0, 1))
    return logsumexp(log_w + log_prior + log_like) + outer


def test_the_marginal_of_the_outer_parameters_is_an_integral():
    votes = votes_of(random_rows(np.random.default_rng(5), 60, 2, 2, share=1.0))
    row_kv, alpha_k = np.array([[1.8, 1.2], [1.2, 1.8]]), np.array([2.0, 2.0])
    marginal = _Marginal(LogPosterior(collapse(votes.ballots[0]), alpha_k, np.zeros((2, 2, 2)), 1), row_kv)
    base_q = np.array([0.1, -1.3, 3.2, 1.2, 3.2])
    here = marginal.settle(base_q, None)
    for q in range(5):
        there_q = base_q + 0.3 * np.eye(5)[q]
        expected = integrated(votes, there_q, row_kv, alpha_k) - integrated(votes, base_q, row_kv, alpha_k)
        assert_allclose(marginal.settle(there_q, here).value - here.value, expected, atol=0.03)


def test_draws_have_the_curvature_and_follow_the_outer_parameters():
    votes = small_votes(4, n_items=300, n_annotators=5)
    fitted = learnt(collapse(votes.ballots[0]), np.array([[1.8, 1.2], [1.2, 1.8]])).nested
    assert fitted is not None
    drawn = fitted.draw(np.random.default_rng(0), 20_000)
    x_sp = np.column_stack(
        [
            drawn.log_weight_g[:, 1] - drawn.log_weight_g[:, 0],
            (drawn.log_confusion_akv[..., 1] - drawn.log_confusion_akv[..., 0]).reshape(20_000, -1),
        ]
    )
    outer_qq = np.linalg.inv(fitted.curvature_qq)
    own_pp = np.linalg.inv(fitted.settled.lower_pp @ fitted.settled.lower_pp.T)
    follow_pq = np.vstack([np.eye(5)[0], fitted.follow_pq])
    expected_pp = follow_pq @ outer_qq @ follow_pq.T
    expected_pp[1:, 1:] += own_pp
    assert_allclose(np.cov(x_sp.T), expected_pp, atol=0.04 * np.diag(expected_pp).max())


def test_integrating_annotators_out_is_what_thin_data_needs():
    """Hundreds of annotators with a few votes each: the joint mode buys likelihood from each, the marginal does not."""
    simulated = simulate_votes(
        n_items=4_000, n_annotators=300, votes_per_item=1.5, prevalence_k=[0.7, 0.3], accuracy=(0.75, 0.9), seed=3
    )
    with pytest.warns(match="votes per item"):
        fitted = fit(simulated.votes, model="paper", pooling="partial", draws=400).fits[0]
    low, high = np.quantile(fitted.prevalence_sk[:, 1], [0.05, 0.95])
    assert low < 0.3 < high
    assert high - low < 0.5, "and it still says something"


def test_partial_pooling_recovers_what_annotators_share():
    simulated = simulate_votes(
        n_items=3_000, n_annotators=30, votes_per_item=4, prevalence_k=[0.7, 0.3], accuracy=(0.75, 0.85), seed=2
    )
    common = fit(simulated.votes, model="paper", pooling="partial", draws=20).fits[0].common
    assert common is not None
    assert_allclose(common.mean_kv, simulated.confusion_akv.mean(axis=0), atol=0.03)
    # Uniform within 0.1 has the variance of a Beta of about 190 votes; far apart is what it must not find.
    assert (common.concentration_k > 40).all()


def test_partial_pooling_leaves_well_known_annotators_alone():
    simulated = simulate_votes(n_items=4_000, n_annotators=5, votes_per_item=5, prevalence_k=[0.5, 0.5], seed=6)
    alone, pooled = (fit(simulated.votes, pooling=pooling, draws=0).fits[0] for pooling in ("none", "partial"))
    assert_allclose(pooled.confusion_akv, alone.confusion_akv, atol=0.01)
    assert_allclose(pooled.posterior_ik, alone.posterior_ik, atol=0.05)


def test_renaming_and_relabelling_change_nothing_but_names():
    rows = np.array(random_rows(np.random.default_rng(8), 60, 6, 2))
    plain = fit(votes_of(rows), pooling="partial", draws=0).fits[0]
    renamed = rows.copy()
    renamed[:, 1] = 5 - rows[:, 1]
    swapped = rows.copy()
    swapped[:, 2] = 1 - rows[:, 2]
    # Both start their search elsewhere in rounding, and learning ends within its tolerance.
    other = fit(votes_of(renamed), pooling="partial", draws=0).fits[0]
    assert_allclose(other.confusion_akv[::-1], plain.confusion_akv, atol=5e-3)
    turned = fit(votes_of(swapped), pooling="partial", draws=0).fits[0]
    assert_allclose(turned.confusion_akv[:, ::-1, ::-1], plain.confusion_akv, atol=5e-3)


@pytest.mark.parametrize("model", ["mixed", "paper"])
def test_the_common_prior_is_the_one_of_the_fit(model):
    fitted = fit(small_votes(), model=model, pooling="partial", draws=10).fits[0]
    assert fitted.common is not None
    assert_allclose(fitted.beta_akv, np.tile(fitted.common.beta_kv, (6, 1, 1)))
    plain = fit(small_votes(), draws=10).fits[0]
    assert plain.common is None
    assert_allclose(plain.beta_akv[0], [[1.8, 1.2], [1.2, 1.8]])
    density = LogPosterior(fitted.patterns, fitted.alpha_g, fitted.beta_akv, between=fitted.between)
    at = replace(density, threads=1).expect(fitted.at).gradient(fitted.at)
    assert np.abs(at[1:]).max() < 1e-3, "rows are at their mode under the learnt prior"
    assert len(pack(fitted.at)) == density.n_parameters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "some"}, "choose one of auto, none, partial, full"),
        ({"pooling": "partial", "solver": "adam"}, "[Uu]se solver='em'"),
        ({"pooling": "partial", "constrain": "better-than-chance"}, "Use pooling='none' or pooling='full'"),
        ({"constrain": "yes"}, "choose one of none, better-than-chance"),
    ],
)
def test_what_cannot_go_together_is_refused(options, message):
    with pytest.raises(FitError, match=message):
        fit(small_votes(), **options)


@pytest.mark.parametrize(
    ("n_annotators", "votes_each", "pooled"), [(99, 4, False), (100, 4, True), (100, 298, True), (100, 300, False)]
)
def test_many_annotators_of_few_votes_are_pooled(n_annotators, votes_each, pooled):
    # Every item has two votes, of neighbours; a vote nobody else checks counts for nothing.
    rows = [
        (n * n_annotators + a, who % n_annotators, 0)
        for n in range(votes_each // 2)
        for a in range(n_annotators)
        for who in (a, a + 1)
    ]
    alone = [(len(rows) + n, n % n_annotators, 1) for n in range(300)]
    votes = votes_of(rows + alone)
    assert choose_pooling(votes, FitOptions()) == ("partial" if pooled else "none")
    for asked in ("none", "partial", "full"):
        assert choose_pooling(votes, FitOptions(pooling=asked)) == asked
    for other in ({"model": "paper"}, {"constrain": "better-than-chance"}):
        assert choose_pooling(votes, FitOptions(**other)) == "none"
    assert choose_pooling(replace(votes, anonymous=True), FitOptions()) == "none"


def test_the_pooling_that_was_chosen_is_told_and_kept():
    votes = simulate_votes(n_items=120, n_annotators=110, votes_per_item=3, seed=1).votes
    chosen = fit(votes, draws=20)
    assert chosen.options.pooling == chosen.fits[0].pooling == "partial"
    told = fit(votes, draws=20, pooling="partial")
    np.testing.assert_array_equal(chosen.fits[0].p_ik, told.fits[0].p_ik)
    assert refit(chosen, votes=small_votes()).options.pooling == "partial"


def test_with_many_annotators_of_few_votes_pooled_labels_are_nearer_to_the_truth():
    def losses(pooling):
        for seed in range(5):
            simulated = simulate_votes(
                n_items=600,
                n_annotators=300,
                votes_per_item=3,
                prevalence_k=[0.7, 0.3],
                accuracy=(0.75, 0.95),
                seed=seed,
            )
            p_i = fit(simulated.votes, draws=0, pooling=pooling).fits[0].p_ik[np.arange(600), simulated.truth_i]
            yield -np.log(p_i).mean(), (p_i < 0.5).mean()

    loss, wrong = np.mean(list(losses("auto")), axis=0)
    loss_alone, wrong_alone = np.mean(list(losses("none")), axis=0)
    assert loss < 0.9 * loss_alone and wrong < 0.8 * wrong_alone


@pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")
@pytest.mark.parametrize("prevalence", [0.5, 0.3, 0.15])
def test_many_annotators_are_not_worse_than_their_vote(prevalence):
    """Rows of each annotator's own lose up to twenty points here: the rarer label vanishes."""
    right, counted = [], []
    for seed in range(3):
        simulated = simulate_votes(
            n_items=600, n_annotators=300, votes_per_item=1.5, prevalence_k=[1 - prevalence, prevalence], seed=seed
        )
        one = fit(simulated.votes, draws=0).fits[0]
        right.append((one.p_ik.argmax(axis=1) == simulated.truth_i).mean())
        counted.append((one.counts_ik.argmax(axis=1) == simulated.truth_i).mean())
    assert np.mean(right) > np.mean(counted) - 0.015


@pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")
def test_annotators_are_never_taken_for_more_alike_than_thirty_votes_of_two_labels():
    votes, _ = beta_binomial_rows(concentration=1e6)
    one = fit(votes, pooling="partial", draws=0, use_gold=True).fits[0]
    assert_allclose(one.common.concentration_k, 2 * MOST_PER_LABEL)
    loose, _ = beta_binomial_rows(concentration=8.0)
    one = fit(loose, pooling="partial", draws=0, use_gold=True).fits[0]
    assert one.common.concentration_k.max() < 12.0
