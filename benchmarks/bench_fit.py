"""A fit to convergence against the paper's Adam, and how far Adam's 200 steps fall short."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Iterator
from itertools import pairwise

import data
from measure import Measurement, median_seconds, say

from moral_entropy.consensus.adam import import_torch, maximise_with_adam
from moral_entropy.consensus.em import Optimum
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.model import LogPosterior
from moral_entropy.consensus.modes import find_mode
from moral_entropy.consensus.priors import Priors
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.votes.table import Votes

PAPER_STEPS, ENOUGH_STEPS = 200, 2_000
WARM_UP = 3


def measure(sizes: data.Sizes) -> Iterator[Measurement]:
    """Measure everything about the climb."""
    mftc = data.one_foundation("mftc", sizes.scale)
    yield from _against_adam("the MFTC twin", mftc, data.PAPER, sizes.repeats, sizes.adam_steps, 60.0)
    large = data.large(sizes.items)
    name = f"{large.n_votes / 1e6:g}M votes"
    yield from _against_adam(name, large, data.FLAT, min(sizes.repeats, 3), sizes.adam_steps_large, 60.0)
    for corpus in ("mftc", "emfd"):
        yield from _shortfall(corpus, data.one_foundation(corpus, sizes.scale))


def _against_adam(
    name: str, votes: Votes, priors: Priors, repeats: int, steps: int, bar: float
) -> Iterator[Measurement]:
    ballot = votes.ballots[0]
    say(f"fit to convergence on {name}, {repeats} times")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        ours = median_seconds(lambda: fit(votes, priors=priors, draws=0), repeats=repeats)
    say(f"{steps} steps of Adam on {name}")
    adam = ENOUGH_STEPS * _seconds_a_step(data.log_posterior(ballot, priors, collapsed=False), steps)
    size = f"{ballot.n_items:,} items, {ballot.n_votes:,} votes, {ballot.n_annotators:,} annotators"
    yield Measurement(
        f"fit to convergence on {name}", ours, "s", f"{size}; median of {repeats}, collapsing and all starts included"
    )
    yield Measurement(
        f"the paper's Adam, {ENOUGH_STEPS:,} steps, on {name}",
        adam,
        "s",
        f"median of {steps} steps after warm-up, times {ENOUGH_STEPS:,}; float32, one row per item, "
        "one thread or all, whichever is quicker",
    )
    yield Measurement(f"fit versus Adam on {name}", adam / ours, "×", "the two above", at_least=bar)
    rows = data.log_posterior(ballot, priors, collapsed=True)
    if rows.patterns.collapsed:
        helped = ENOUGH_STEPS * _seconds_a_step(rows, steps)
        yield Measurement(
            f"the same, had Adam our {rows.patterns.n_rows:,} collapsed rows",
            helped / ours,
            "×",
            "no bar: the paper has none",
        )


def _seconds_a_step(log_posterior: LogPosterior, steps: int) -> float:
    """Time Adam in one thread and in all, and let the quicker count: sharing does not always help it."""
    torch, took = import_torch(), []
    all_threads = torch.get_num_threads()
    for threads in sorted({1, all_threads}):
        torch.set_num_threads(threads)
        took.append(_median_step(log_posterior, steps))
    torch.set_num_threads(all_threads)
    return min(took)


def _median_step(log_posterior: LogPosterior, steps: int) -> float:
    at: list[float] = []
    maximise_with_adam(
        log_posterior,
        steps=WARM_UP + steps,
        dtype="float32",
        watch=lambda _share: at.append(time.perf_counter()),
    )
    return statistics.median(after - before for before, after in pairwise(at[WARM_UP - 1 :]))


def _shortfall(corpus: str, votes: Votes) -> Iterator[Measurement]:
    log_posterior = data.log_posterior(votes.ballots[0], data.PAPER, collapsed=True)
    say(f"how far Adam gets on the {corpus} twin")
    top = find_mode(log_posterior)
    for steps in (PAPER_STEPS, ENOUGH_STEPS):
        reached = maximise_with_adam(log_posterior, steps=steps)
        gap = top.log_posterior - reached.log_posterior
        yield Measurement(
            f"Adam's {steps:,} steps short of the mode, {corpus} twin",
            gap,
            "nats",
            "float64, prior 80,20; our mode less Adam's",
        )
        flipped = 100.0 * _flipped(log_posterior, top, reached)
        yield Measurement(
            f"labels flipped by that, {corpus} twin", flipped, "%", "items on the other side of p = ½ than at the mode"
        )


def _flipped(log_posterior: LogPosterior, one: Optimum, other: Optimum) -> float:
    side_r = [log_posterior.posterior_rk(optimum.at)[:, 1] >= 0.5 for optimum in (one, other)]
    return float(log_posterior.patterns.spread((side_r[0] != side_r[1]).astype(float)).mean())
