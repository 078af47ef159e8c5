"""Means with intervals: against other implementations, second computations, and over repetitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import beta, norm

from moral_entropy.judges.estimates import (
    Answers,
    corrected_means,
    decide,
    difference,
    known_mean,
    ppi_mean,
)

YES = np.array([0.0, 1.0])


def one_system(truth_i, p_ik, n_known, cluster_i=None):
    n = len(truth_i)
    cluster_i = np.arange(n) if cluster_i is None else cluster_i
    return Answers(
        np.zeros(n, int), cluster_i, np.arange(n) < n_known, np.eye(p_ik.shape[1])[truth_i], p_ik, np.ones(n)
    )


def panel(seed, n_items=1_000, share=0.3, right=0.9):
    """Truth of two labels, and label probabilities by judges who are right that often."""
    rng = np.random.default_rng(seed)
    truth_i = (rng.random(n_items) < share).astype(int)
    voted_i = np.where(rng.random(n_items) < right, truth_i, 1 - truth_i)
    p_i = np.clip(np.where(voted_i == 1, 0.9, 0.1) + 0.1 * rng.standard_normal(n_items), 0.01, 0.99)
    return truth_i, np.stack([1 - p_i, p_i], axis=1)


def systems(seed, lenient=False, shares=(0.76, 0.70, 0.65, 0.80), n=300, n_known=150):
    """Four systems that answered the same prompts, and five judges, who may be lenient on the first."""
    rng = np.random.default_rng(seed)
    system_i, prompt_i = np.repeat(np.arange(len(shares)), n), np.tile(np.arange(n), len(shares))
    score_i = np.sqrt(0.4) * rng.standard_normal(n)[prompt_i] + np.sqrt(0.6) * rng.standard_normal(len(system_i))
    truth_i = (score_i < norm.ppf(shares)[system_i]).astype(int)
    log_odds = logit(np.array(shares))[system_i]
    for right in (0.9, 0.85, 0.8, 0.75, 0.7):
        chance_i = np.where(lenient & (system_i == 0) & (truth_i == 0), right - 0.3, right)
        vote_i = np.where(rng.random(len(truth_i)) < chance_i, truth_i, 1 - truth_i)
        log_odds = log_odds + np.where(vote_i == 1, 1, -1) * logit(right)
    known_i = np.isin(np.arange(len(truth_i)), rng.choice(len(truth_i), n_known, replace=False))
    p_i = expit(log_odds)
    p_ik = np.stack([1 - p_i, p_i], axis=1)
    return Answers(system_i, prompt_i, known_i, np.eye(2)[truth_i], p_ik, np.ones(len(truth_i))), shares


def test_known_answers_of_0_and_1_have_jeffreys_interval():
    estimate = known_mean(np.repeat([1.0, 0.0], [13, 37]))
    assert (estimate.low, estimate.high) == pytest.approx(beta(13.5, 37.5).ppf([0.05, 0.95]), abs=0.003)


def test_clusters_of_equal_answers_count_once():
    """Each answer three times, in clusters of three: the variance is that of the answers alone."""
    truth_i = (np.random.default_rng(0).random(60) < 0.4).astype(float)
    alone = known_mean(truth_i)
    thrice = known_mean(np.repeat(truth_i, 3), cluster_i=np.repeat(np.arange(60), 3))
    assert thrice.se == pytest.approx(alone.se, rel=0.03)
    guess_i, known_i = np.where(np.arange(60) % 5 > 0, truth_i, 1 - truth_i), np.arange(60) < 30
    alone = ppi_mean(truth_i, guess_i, known_i)
    thrice = ppi_mean(
        *(np.repeat(column, 3) for column in (truth_i, guess_i, known_i)), None, np.repeat(np.arange(60), 3)
    )
    assert (thrice.value, thrice.se) == pytest.approx((alone.value, alone.se), rel=0.02)


def test_ppi_is_that_of_the_public_implementation():
    """Figures of ppi-python 0.2.3: ppi_mean_pointestimate and ppi_mean_ci(alpha=0.1) of the same numbers."""
    rng = np.random.default_rng(5)
    truth_i = (rng.random(500) < 0.35) * 1.0
    noise = 0.6 * np.where(rng.random(500) < 0.85, truth_i, 1 - truth_i) + 0.1 * rng.standard_normal(500)
    guess_i = np.round(np.clip(0.2 + noise, 0, 1), 3)
    estimate = ppi_mean(truth_i, guess_i, np.arange(500) < 60)
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx(
        (0.33784773, 0.27667529, 0.39902016), abs=1e-8
    )


def answers_in_clusters(scale):
    """600 answers in clusters of three, 120 known in whole clusters, and judges who guess on a scale of their own."""
    rng = np.random.default_rng(5)
    cluster_i = np.arange(600) // 3
    truth_i = (0.6 * rng.random(200)[cluster_i] + 0.4 * rng.random(600) < 0.35) * 1.0
    vote_i = np.where(rng.random(600) < 0.85, truth_i, 1 - truth_i)
    return truth_i, np.round(scale * vote_i + 0.05 * rng.random(600), 3), np.arange(600) < 120, cluster_i


GLIDE = {
    # scale, power_tuning, clustered: mean, lower_bound, upper_bound at confidence_level=0.9, by glide-py 0.11.0.
    (0.95, True, False): (0.30385175, 0.24554083, 0.36216268),
    (0.3, False, False): (0.30665208, 0.24654027, 0.36676389),
    (0.3, False, True): (0.30665208, 0.22410194, 0.38920222),
}
"""Where its λ is ours: tuned on items, or 1, which ours is never above. It tunes clusters by their means."""


@pytest.mark.parametrize("case", GLIDE)
def test_ppi_is_that_of_glide_but_for_one_degree_of_freedom(case):
    """glide-py divides variances by n - 1, of clusters in each part, where ppi-python and we divide by n."""
    scale, tuned, clustered = case
    truth_i, guess_i, known_i, cluster_i = answers_in_clusters(scale)
    estimate = ppi_mean(truth_i, guess_i, known_i, None, cluster_i if clustered else None)
    value, low, high = GLIDE[case]
    assert estimate.value == pytest.approx(value, abs=2e-4 if tuned else 1e-8)
    assert (estimate.high - estimate.low) / (high - low) == pytest.approx(1.0, abs=0.01 if clustered else 0.0045)


@pytest.mark.parametrize("case", GLIDE)
def test_figures_of_glide_are_its_own(case):
    glide = pytest.importorskip("glide.estimators", reason="glide-py (Python 3.12 or later) is not installed")
    scale, tuned, clustered = case
    truth_i, guess_i, known_i, cluster_i = answers_in_clusters(scale)
    clusters = {"clusters": cluster_i} if clustered else {}
    estimator = glide.ClusteredPPIMeanEstimator() if clustered else glide.PPIMeanEstimator()
    interval = estimator.estimate(
        np.where(known_i, truth_i, np.nan), guess_i, confidence_level=0.9, power_tuning=tuned, **clusters
    ).confidence_interval
    assert (interval.mean, interval.lower_bound, interval.upper_bound) == pytest.approx(GLIDE[case], abs=1e-8)


@pytest.mark.parametrize(("n", "share", "right"), [(50, 0.3, 0.95), (200, 0.05, 0.95), (200, 0.6, 0.85)])
def test_intervals_hold_the_truth_and_are_shorter_than_those_of_known_answers_alone(n, share, right):
    held, length = [], []
    for seed in range(100):
        truth_i, p_ik = panel(seed, share=share, right=right)
        [estimate], _ = corrected_means(one_system(truth_i, p_ik, n), YES)
        alone = known_mean(truth_i[:n] * 1.0)
        held.append(estimate.low <= share <= estimate.high)
        length.append((estimate.high - estimate.low) / (alone.high - alone.low))
    assert 0.84 <= np.mean(held) <= 0.97
    assert np.mean(length) < 0.95


def test_systems_that_judges_err_alike_on_lend_to_each_other_and_are_compared_prompt_by_prompt():
    held, narrower, gap_held, alone_gap, gap = [], [], [], [], []
    for seed in range(60):
        answers, shares = systems(seed)
        together, gaps = corrected_means(answers, YES)
        rows = [answers.system_i == s for s in range(4)]
        parts = [Answers(*(column[here] for column in answers))._replace(system_i=np.zeros(300, int)) for here in rows]
        apart = [corrected_means(part, YES)[0][0] for part in parts]
        held += [estimate.low <= share <= estimate.high for estimate, share in zip(together, shares, strict=True)]
        narrower += [(a.high - a.low) / (b.high - b.low) for a, b in zip(together, apart, strict=True)]
        gap_held.append(gaps(0, 1).low <= 0.06 <= gaps(0, 1).high)
        gap.append(gaps(0, 1).se)
        alone_gap.append(difference(apart[0], apart[1]).se)
    assert 0.86 <= np.mean(held) <= 0.97
    assert np.mean(gap_held) >= 0.83
    assert np.mean(narrower) < 1.0
    assert np.mean(gap) < 0.95 * np.mean(alone_gap)


def test_where_judges_are_lenient_on_one_system_intervals_still_hold():
    held, gap_held = [], []
    for seed in range(80):
        answers, shares = systems(seed, lenient=True)
        estimates, gaps = corrected_means(answers, YES)
        held += [estimate.low <= share <= estimate.high for estimate, share in zip(estimates, shares, strict=True)]
        gap_held.append(gaps(0, 1).low <= 0.06 <= gaps(0, 1).high)
    assert 0.84 <= np.mean(held) <= 0.97
    assert np.mean(gap_held) >= 0.84


def test_the_standard_error_is_that_of_a_jackknife():
    """Every item left out in turn; priors and Student's quantile add a little to it."""
    truth_i, p_ik = panel(1, n_items=150, share=0.6, right=0.85)
    answers = one_system(truth_i, p_ik, 40)
    left_out = [Answers(*(np.delete(column, i, axis=0) for column in answers)) for i in range(150)]
    values = np.array([corrected_means(rest, YES)[0][0].value for rest in left_out])
    se = np.sqrt(149 / 150 * ((values - values.mean()) ** 2).sum())
    assert 1.0 <= corrected_means(answers, YES)[0][0].se / se < 1.1


def test_few_clusters_widen_the_interval_by_students_quantile():
    """Six clusters of equal items: five degrees of freedom where their means were normal, and never as many as 60."""
    truth_i, p_ik = panel(2, n_items=600, share=0.6)
    estimates = [corrected_means(one_system(truth_i, p_ik, 600, np.arange(600) % n), YES)[0][0] for n in (6, 600)]
    sums = np.bincount(np.arange(600) % 6, truth_i - truth_i.mean())
    assert estimates[0].se > 1.05 * np.sqrt(6 / 5 * (sums**2).sum()) / 600
    assert estimates[1].se == pytest.approx(truth_i.std() / np.sqrt(600), rel=0.1)


def test_judges_who_tell_nothing_leave_the_known_answers():
    truth_i, _ = panel(3, share=0.6)
    p_i = np.random.default_rng(9).random(1_000)
    [estimate], _ = corrected_means(one_system(truth_i, np.stack([1 - p_i, p_i], axis=1), 200), YES)
    alone = known_mean(truth_i[:200] * 1.0)
    assert estimate.value == pytest.approx(alone.value, abs=0.02)
    assert estimate.high - estimate.low == pytest.approx(alone.high - alone.low, rel=0.15)


@given(gold=st.lists(st.sampled_from([None, 0, 1, 2]), min_size=8, max_size=40), seed=st.integers(0, 99))
def test_every_interval_lies_between_0_and_1_and_holds_its_value(gold, seed):
    rng = np.random.default_rng(seed)
    p_ik, known_i = rng.dirichlet([0.3] * 3, len(gold)), np.array([label is not None for label in gold])
    truth_ik = np.eye(3)[[label or 0 for label in gold]]
    answers = Answers(np.arange(len(gold)) % 2, np.arange(len(gold)) // 2, known_i, truth_ik, p_ik, np.ones(len(gold)))
    for estimate in corrected_means(answers, np.array([0.0, 0.25, 1.0]))[0]:
        assert 0 <= estimate.low <= estimate.high <= 1
        assert estimate.low - 1e-9 <= estimate.value <= estimate.high + 1e-9


@given(seed=st.integers(0, 99))
def test_labels_turned_round_turn_the_score_round(seed):
    # With so many known answers no strata are merged, which of equal neighbours takes the first.
    truth_i, p_ik = panel(seed, n_items=600)
    [there], _ = corrected_means(one_system(truth_i, p_ik, 300), YES)
    [back], _ = corrected_means(one_system(1 - truth_i, p_ik[:, ::-1], 300), YES)
    assert (there.value, there.low) == pytest.approx((1 - back.value, 1 - back.high), abs=0.02)


def test_a_difference_of_two_shares_has_newcombes_interval():
    """The method of Zou and Donner on Jeffreys' intervals, by hand."""
    a, b = known_mean(np.repeat([1.0, 0.0], [56, 14])), known_mean(np.repeat([1.0, 0.0], [48, 32]))
    gap = difference(a, b)
    assert gap.low == pytest.approx(0.2 - np.sqrt((0.8 - a.low) ** 2 + (b.high - 0.6) ** 2))
    assert gap.high == pytest.approx(0.2 + np.sqrt((a.high - 0.8) ** 2 + (0.6 - b.low) ** 2))


def test_as_many_known_answers_as_are_said_to_be_needed_settle_it():
    truth_i, p_ik = panel(7, n_items=20_000, share=0.6, right=0.85)
    [estimate], _ = corrected_means(one_system(truth_i, p_ik, 100), YES)
    limit = estimate.value - 0.03
    verdict, more = decide(estimate, limit, 20_000)
    assert (verdict, estimate.low < limit) == ("undecided", True)
    needed = 100 + more
    [later], _ = corrected_means(one_system(truth_i, p_ik, needed), YES)
    # If the score stays as it is: its distance from the lower bound is then that from the limit.
    assert later.value - later.low == pytest.approx(0.03, rel=0.25)


def test_without_known_answers_the_interval_holds_what_judges_share_a_sixth_of():
    truth_i, _ = panel(5, share=0.7)
    voted_i = np.where(np.random.default_rng(0).random(1_000) < 0.15, 1 - truth_i, truth_i)
    p_ik = np.where(np.eye(2)[voted_i] == 1, 0.98, 0.02)
    [estimate], _ = corrected_means(one_system(truth_i, p_ik, 0), YES)
    assert estimate.n_known == 0
    assert estimate.low < 0.7 < estimate.high < 1.0
