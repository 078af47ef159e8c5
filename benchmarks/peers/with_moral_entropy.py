"""Ours: fits, what an audit publishes, plain shares of votes, and the paper's Adam under our prior and the paper's."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from child import Answer, Call, Lap, Laps, LongVotes
from data import FLAT, PAPER, log_posterior

import moral_entropy
from moral_entropy.consensus.adam import import_torch, maximise_with_adam
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.model import LogPosterior
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import QuestionFit
from moral_entropy.consensus.vote_share import smoothed_share
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.votes.table import UNKNOWN, Ballot, Votes, ballot_from_codes

PROBE = 5
"""Steps of Adam in each number of threads, to see which is quicker."""


def version() -> str:
    """Give the installed version."""
    return moral_entropy.__version__


def _ballot(votes: LongVotes) -> Ballot:
    labels = tuple(str(k) for k in range(votes.n_labels))
    return ballot_from_codes("label", labels, item_v=votes.item_v, annotator_v=votes.annotator_v, label_v=votes.label_v)


def _table(votes: LongVotes) -> Votes:
    domain_i = np.full(votes.n_items, UNKNOWN, dtype=np.int32) if votes.domain_i is None else votes.domain_i
    return Votes(
        items=pl.Series("item", np.arange(votes.n_items)),
        annotators=pl.Series("annotator", np.arange(votes.n_annotators)),
        ballots=(_ballot(votes),),
        domains=tuple(f"{d:03}" for d in range(int(domain_i.max()) + 1)),
        domain_i=domain_i,
    )


def _fit(table: Votes, **options: Any) -> QuestionFit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(table, **options).fits[0]


def _ended(found: QuestionFit) -> str:
    return "its own rule: the gradient" if found.climb.converged else "its cap of passes"


def _ours(draws: int, priors: Priors) -> Any:
    def prepare(votes: LongVotes) -> Call:
        table = _table(votes)

        def call(_lap: Lap) -> Answer:
            found = _fit(table, priors=priors, draws=draws)
            p_ik = found.summary.mean_ik if draws else found.posterior_ik
            # With draws the call is more than its passes, and what one takes cannot be told from it.
            return Answer(p_ik, _ended(found), None if draws else found.climb.passes)

        return call

    return prepare


def _as_audited(p_of: Callable[[QuestionFit], Any], **options: Any) -> Any:
    def prepare(votes: LongVotes) -> Call:
        table = _table(votes)

        def call(_lap: Lap) -> Answer:
            found = _fit(table, **options)
            return Answer(p_of(found), _ended(found))

        return call

    return prepare


def _share(pseudo_votes: float) -> Any:
    def prepare(votes: LongVotes) -> Call:
        ballot = _ballot(votes)

        def call(_lap: Lap) -> Answer:
            return Answer(smoothed_share(ballot.counts_ik, pseudo_votes=pseudo_votes), "counts once")

        return call

    return prepare


def _adam(steps: int, priors: Priors) -> Any:
    def prepare(votes: LongVotes) -> Call:
        ballot = _ballot(votes)
        height = log_posterior(ballot, priors, collapsed=False)
        import_torch().set_num_threads(_quicker_threads(height))

        def call(lap: Lap) -> Answer:
            reached = maximise_with_adam(height, steps=steps, dtype="float32", watch=lap)
            return Answer(height.posterior_rk(reached.at), f"always {steps:,} steps")

        return call

    return prepare


def _quicker_threads(height: LogPosterior) -> int:
    """Let Adam run in one thread or in all, whichever is quicker: sharing does not always help it."""
    torch, took = import_torch(), {}
    for threads in sorted({1, len(os.sched_getaffinity(0))}):
        torch.set_num_threads(threads)
        laps = Laps()
        maximise_with_adam(height, steps=PROBE, dtype="float32", watch=laps.lap)
        took[threads] = laps.seconds_a_pass() or 0.0
    return min(took, key=lambda threads: took[threads])


TOOLS = {
    "published": _as_audited(lambda found: found.p_ik),
    "model": _as_audited(lambda found: found.summary.mean_ik),
    "paper": _as_audited(lambda found: found.p_ik, model="paper"),
    "share": _share(0.0),
    "smoothed-share": _share(0.5),
    "mode": _ours(0, FLAT),
    "draws": _ours(1_000, FLAT),
    "mode-paper": _ours(0, PAPER),
    "draws-paper": _ours(1_000, PAPER),
    "adam-200": _adam(200, FLAT),
    "adam-2000": _adam(2_000, FLAT),
    "adam-200-paper": _adam(200, PAPER),
    "adam-2000-paper": _adam(2_000, PAPER),
}
WARM_UP = {name: _adam(20, FLAT) for name in TOOLS if name.startswith("adam")}
