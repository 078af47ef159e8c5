"""Ours, and the paper's Adam: the same model, under our default prior and under the paper's."""

from __future__ import annotations

import os
import warnings
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
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.votes.table import UNKNOWN, Ballot, Votes, ballot_from_codes

PROBE = 5
"""Steps of Adam in each number of threads, to see which is quicker."""


def version() -> str:
    """Give the installed version."""
    return moral_entropy.__version__


def _ballot(votes: LongVotes) -> Ballot:
    return ballot_from_codes(
        "label", ("0", "1"), item_v=votes.item_v, annotator_v=votes.annotator_v, label_v=votes.label_v
    )


def _ours(draws: int, priors: Priors) -> Any:
    def prepare(votes: LongVotes) -> Call:
        table = Votes(
            items=pl.Series("item", np.arange(votes.n_items)),
            annotators=pl.Series("annotator", np.arange(votes.n_annotators)),
            ballots=(_ballot(votes),),
            domains=(),
            domain_i=np.full(votes.n_items, UNKNOWN, dtype=np.int32),
        )

        def call(_lap: Lap) -> Answer:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MoralEntropyWarning)
                found = fit(table, priors=priors, draws=draws).fits[0]
            p_ik = found.summary.mean_ik if draws else found.posterior_ik
            rule = "its own rule: the gradient" if found.climb.converged else "its cap of passes"
            # With draws the call is more than its passes, and what one takes cannot be told from it.
            return Answer(p_ik[:, 1], rule, None if draws else found.climb.passes)

        return call

    return prepare


def _adam(steps: int, priors: Priors) -> Any:
    def prepare(votes: LongVotes) -> Call:
        ballot = _ballot(votes)
        height = log_posterior(ballot, priors, collapsed=False)
        import_torch().set_num_threads(_quicker_threads(height))

        def call(lap: Lap) -> Answer:
            reached = maximise_with_adam(height, steps=steps, dtype="float32", watch=lap)
            return Answer(height.posterior_rk(reached.at)[:, 1], f"always {steps:,} steps")

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
