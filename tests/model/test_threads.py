"""A search lets BLAS have one thread, and gives the others back."""

import pytest
from support import log_posterior_of
from threadpoolctl import threadpool_info, threadpool_limits

from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.model.priors import Priors
from moral_entropy.model.search import maximise, starts


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_a_search_lets_blas_have_one_thread_and_gives_the_others_back():
    density = log_posterior_of(simulate_votes(n_items=100, n_annotators=5, votes_per_item=3, seed=0).votes, Priors())
    seen = []
    with threadpool_limits(limits=2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS cannot be told how many threads to use")
        maximise(density, dict(starts(density))["paper"], watch=lambda _: seen.append(blas_threads()))
        assert blas_threads() == {2}
    assert seen and all(threads == {1} for threads in seen)


def test_also_where_it_is_stopped():
    density = log_posterior_of(simulate_votes(n_items=100, n_annotators=5, votes_per_item=3, seed=0).votes, Priors())

    def stop(_):
        raise KeyboardInterrupt

    before = blas_threads()
    with pytest.raises(KeyboardInterrupt):
        maximise(density, dict(starts(density))["paper"], watch=stop)
    assert blas_threads() == before
