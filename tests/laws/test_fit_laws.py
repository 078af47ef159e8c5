"""What must hold for any votes."""

import warnings
from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr
from support import log_posterior_of, random_rows, vote_rows, votes_of

from moral_entropy.model import posterior as posterior_module
from moral_entropy.model.entropy import decompose_entropy
from moral_entropy.model.fit import fit
from moral_entropy.model.posterior import score, shares_of
from moral_entropy.model.priors import Priors
from moral_entropy.model.search import starts

FIRM = Priors(prevalence=2.0, diagonal=4.0, off_diagonal=1.5)
MODELS = st.sampled_from(["mixed", "paper"])
PUBLISHED = ("p_ik", "posterior_ik", "model_ik", "low_i", "high_i", "epistemic_i", "ambiguity_i", "interior_i")
quick = settings(max_examples=20)


def fitted(rows, n_labels, *, item_priors=None, priors=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        votes = votes_of(rows, n_labels, n_items=12)
        return fit(votes, item_priors=item_priors, priors=priors, **({"draws": 16} | options)).fits[0]


def assert_identical(one, other):
    for name in PUBLISHED:
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert_array_equal(one.confusion_sakv, other.confusion_sakv)


@quick
@given(made=vote_rows(), order=st.randoms(use_true_random=False), model=MODELS)
def test_vote_order_is_irrelevant(made, order, model):
    rows, n_labels = made
    shuffled = rows.copy()
    order.shuffle(shuffled)
    assert_identical(fitted(rows, n_labels, model=model), fitted(shuffled, n_labels, model=model))


@settings(max_examples=8)
@given(made=vote_rows(), model=MODELS, seed=st.integers(0, 99))
def test_same_seed_same_draws_and_threads_do_not_matter(made, model, seed):
    one, other = (fitted(*made, model=model, seed=seed, threads=threads) for threads in (1, 2))
    assert_identical(one, other)
    another = fitted(*made, model=model, seed=seed + 1)
    assert_array_equal(one.posterior_ik, another.posterior_ik)
    assert not np.array_equal(one.confusion_sakv, another.confusion_sakv)


def test_a_pass_in_threads_and_blocks_is_the_same_to_the_bit(monkeypatch):
    monkeypatch.setattr(posterior_module, "SMALL", 0)
    monkeypatch.setattr(posterior_module, "ROWS_AT_ONCE", 5)
    rows = random_rows(np.random.default_rng(0), 60, 5, 3)
    one, two = (fit(votes_of(rows, 3), draws=20, threads=threads).fits[0] for threads in (1, 2))
    assert_identical(one, two)
    monkeypatch.undo()
    assert_allclose(fit(votes_of(rows, 3), draws=20).fits[0].p_ik, one.p_ik, atol=1e-9)


@quick
@given(made=vote_rows(), model=MODELS)
def test_entropy_parts_are_non_negative_and_sum_to_the_entropy_of_p(made, model):
    found = fitted(*made, model=model)
    parts = decompose_entropy(found)
    for part_i in (parts.ambiguity_i, parts.votes_i, parts.annotators_i):
        assert (part_i >= 0).all()
    assert_allclose(parts.ambiguity_i + parts.votes_i + parts.annotators_i, parts.total_i, atol=1e-12)
    assert_allclose(parts.total_i, entr(found.p_ik).sum(axis=1), atol=1e-12)
    if model == "paper":
        assert (parts.ambiguity_i == 0).all()


@quick
@given(made=vote_rows(), model=MODELS)
def test_probabilities_are_probabilities_inside_their_interval(made, model):
    found = fitted(*made, model=model)
    for p_ik in (found.p_ik, found.posterior_ik, found.model_ik):
        assert_allclose(p_ik.sum(axis=1), 1.0, atol=1e-12)
        assert (p_ik >= 0).all()
    n_labels, items = found.ballot.n_labels, np.arange(12)
    p_i = found.p_ik[items, found.ballot.positive if n_labels == 2 else found.label_i]
    # Where p is the share of the votes alone there is no interval.
    has_i = found.share_weight_i < 1
    assert (has_i == np.isfinite(found.low_i)).all() and (has_i == np.isfinite(found.high_i)).all()
    assert (found.low_i <= p_i)[has_i].all() and (p_i <= found.high_i)[has_i].all()
    assert (found.low_i >= 0)[has_i].all() and (found.high_i <= 1 + 1e-12)[has_i].all()


@quick
@given(made=vote_rows())
def test_the_papers_log_posterior_never_falls_along_em(made):
    rows, n_labels = made
    posterior = log_posterior_of(votes_of(rows, n_labels))
    for _, at in starts(posterior):
        heights = []
        for _ in range(8):
            counts = posterior.expect(at)
            heights.append(posterior.objective(at, counts))
            at = type(at)(*map(shares_of, posterior.completed(counts)))
        assert (np.diff(heights) >= -1e-11 * np.abs(heights[:-1])).all()


@quick
@given(made=vote_rows(), seed=st.integers(0, 99))
def test_priors_of_items_that_are_worth_no_vote_change_nothing(made, seed):
    t_ik = np.random.default_rng(seed).dirichlet(np.ones(made[1]), size=12)
    assert_identical(fitted(*made), fitted(*made, item_priors={"q": (t_ik, 0.0)}))


@quick
@given(seed=st.integers(0, 10_000), worth=st.floats(0.1, 4.0))
def test_a_prior_of_an_item_moves_its_p_towards_it(seed, worth):
    rows = random_rows(np.random.default_rng(seed), 12, 4, 2, share=0.9)
    low_ik, high_ik = np.full((12, 2), 0.5), np.full((12, 2), 0.5)
    low_ik[3], high_ik[3] = [0.9, 0.1], [0.1, 0.9]
    low, high = (fitted(rows, 2, draws=0, item_priors={"q": (t_ik, worth)}) for t_ik in (low_ik, high_ik))
    assert low.p_ik[3, 1] < high.p_ik[3, 1]


# Renaming and relabelling are tried away from exact ties, where rounding alone decides who wins.
@quick
@given(seed=st.integers(0, 10_000), n_labels=st.integers(2, 3), model=MODELS)
def test_renaming_annotators_changes_nothing(seed, n_labels, model):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 12, 4, n_labels, share=0.9)
    name_a = rng.permutation(4)
    one, other = (
        fitted(some, n_labels, priors=FIRM, draws=0, model=model)
        for some in (rows, [(i, name_a[a], k) for i, a, k in rows])
    )
    assume(not _tied(one))
    assert_allclose(one.posterior_ik, other.posterior_ik, atol=1e-5)
    assert_allclose(one.confusion_akv, other.confusion_akv[name_a], atol=1e-5)


@quick
@given(seed=st.integers(0, 10_000), n_labels=st.integers(2, 3), model=MODELS)
def test_relabelling_permutes_the_answer(seed, n_labels, model):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 12, 4, n_labels, share=0.9)
    new_k = rng.permutation(n_labels)
    one, other = (
        fitted(some, n_labels, priors=FIRM, draws=0, model=model)
        for some in (rows, [(i, a, new_k[k]) for i, a, k in rows])
    )
    assume(not _tied(one))
    assert_allclose(one.posterior_ik, other.posterior_ik[:, new_k], atol=1e-5)
    assert_allclose(one.p_ik, other.p_ik[:, new_k], atol=1e-5)


def _tied(found):
    heights = sorted(found.search.modes.values())
    return heights[-1] - heights[0] > 0.05


@quick
@given(made=vote_rows(max_items=8), times=st.integers(2, 4), model=MODELS)
def test_repeating_every_item_equals_counting_it(made, times, model):
    rows, n_labels = made
    n_items = max(i for i, _, _ in rows) + 1
    copies = [(i + c * n_items, a, k) for c in range(times) for i, a, k in rows]
    counted = votes_of(rows, n_labels, n_items=n_items, count_i=np.full(n_items, float(times)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = fit(counted, draws=0, priors=FIRM, model=model).fits[0]
        other = fit(votes_of(copies, n_labels, n_items=n_items * times), draws=0, priors=FIRM, model=model).fits[0]
    assert_allclose(one.search.log_posterior, other.search.log_posterior, rtol=1e-9)
    assert_allclose(one.p_ik, other.p_ik[:n_items], atol=1e-6)


@quick
@given(made=vote_rows(max_labels=2), model=MODELS, item=st.integers(0, 11))
def test_a_further_yes_of_an_annotator_better_than_chance_takes_nothing_from_yes(made, model, item):
    """With how annotators vote held: p of the model may fall where a vote makes everybody look worse."""
    found = fitted(*made, model=model, draws=0)
    better = np.flatnonzero(found.confusion_akv[:, 1, 1] > found.confusion_akv[:, 0, 1])
    patterns, row = found.patterns, int(found.patterns.row_i[item])
    for a in better:
        code_v = np.insert(patterns.code_v, patterns.start_r[row + 1], 2 * a + 1)
        more = replace(patterns, start_r=patterns.start_r + (np.arange(patterns.n_rows + 1) > row), code_v=code_v)
        before, after = (score(some, found.states, found.mode)[0][row, 1] for some in (patterns, more))
        assert after >= before - 1e-12


@quick
@given(made=vote_rows(), model=MODELS)
def test_an_item_without_votes_changes_nothing_for_the_others(made, model):
    rows, n_labels = made
    votes = votes_of(rows, n_labels, n_items=12)
    wider = votes_of(rows, n_labels, n_items=13)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = (fit(some, model=model, draws=0).fits[0] for some in (votes, wider))
    assert_allclose(other.p_ik[:12], one.p_ik, atol=1e-9)
