"""One fused pass over the votes: nanoseconds a vote, and against crowd-kit's."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import data
import numpy as np
import polars as pl
from measure import Measurement, median_seconds, say
from peer_process import PEERS

from moral_entropy.consensus.model import LogPosterior
from moral_entropy.consensus.starts import paper_start
from moral_entropy.votes.table import Ballot, Votes

PEER_SCRIPT = Path(__file__).with_name("peers") / "crowdkit_pass.py"


def measure(sizes: data.Sizes) -> Iterator[Measurement]:
    """Measure the pass, then the same pass elsewhere."""
    large = data.large(sizes.items)
    yield from _nanoseconds(large, sizes.repeats)
    mftc = data.one_foundation("mftc", sizes.scale)
    for name, votes, passes in (("the MFTC twin", mftc, (2, 12)), (f"{large.n_votes / 1e6:g}M votes", large, (1, 3))):
        yield from _against_crowdkit(name, votes.ballots[0], passes, sizes.repeats)


def _nanoseconds(votes: Votes, repeats: int) -> Iterator[Measurement]:
    ballot = votes.ballots[0]
    for threads, bar in ((2, 8.0), (1, None)):
        in_threads = f"in {threads} thread{'s' * (threads > 1)}"
        say(f"a fused pass over {ballot.n_votes:,} votes {in_threads}")
        log_posterior = data.log_posterior(ballot, data.FLAT, collapsed=False, threads=threads)
        yield Measurement(
            f"a fused pass {in_threads}",
            1e9 * _seconds_a_pass(log_posterior, 3 * repeats) / ballot.n_votes,
            "ns/vote",
            f"E-step, M-step and log posterior of {ballot.n_votes:,} votes, not collapsed; median of {3 * repeats}",
            at_most=bar,
        )


def _seconds_a_pass(log_posterior: LogPosterior, repeats: int) -> float:
    patterns = log_posterior.patterns
    at = paper_start(patterns.n_annotators, patterns.n_labels)
    return median_seconds(lambda: log_posterior.expect(at).maximum(), repeats=repeats)


def _against_crowdkit(name: str, ballot: Ballot, passes: tuple[int, int], repeats: int) -> Iterator[Measurement]:
    what, bar = f"a pass versus crowd-kit's DawidSkene on {name}", 100.0
    if not PEERS.exists():
        yield Measurement(what, None, "×", "not measured: no .venv-peers; `make bench` installs it", at_least=bar)
        return
    say(f"crowd-kit's passes over {name}")
    answer = _time_crowdkit(ballot, passes)
    theirs = answer["seconds_a_pass"]
    how = f"crowd-kit {answer['version']}: {theirs:.3g} s per pass (n_iter {passes[1]} less n_iter {passes[0]})"
    fitted = data.log_posterior(ballot, data.FLAT, collapsed=True)
    ours = _seconds_a_pass(fitted, 3 * repeats)
    rows = f"{fitted.patterns.n_rows:,} rows of {ballot.n_items:,} items"
    yield Measurement(
        what, theirs / ours, "×", f"{how}; ours, as the fit makes it ({rows}): {ours:.3g} s", at_least=bar
    )
    if fitted.patterns.collapsed:
        whole = _seconds_a_pass(data.log_posterior(ballot, data.FLAT, collapsed=False), 3 * repeats)
        yield Measurement("the same, had we not collapsed", theirs / whole, "×", f"no bar; ours: {whole:.3g} s")


def _time_crowdkit(ballot: Ballot, passes: tuple[int, int]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes.parquet"
        _crowdkit_table(ballot).write_parquet(path)
        command = [str(PEERS), str(PEER_SCRIPT), str(path), *map(str, passes)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=sys.stderr, check=True, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def _crowdkit_table(ballot: Ballot) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "task": np.repeat(np.arange(ballot.n_items), ballot.votes_i),
            "worker": ballot.code_v // ballot.n_labels,
            "label": ballot.code_v % ballot.n_labels,
        }
    )
