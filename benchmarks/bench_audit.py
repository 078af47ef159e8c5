"""The whole command on the three twins, as a user runs it: a process each, files included."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import data
from measure import Measurement, cli, run_child, say

from moral_entropy.corpora.twin_parameters import corpus_facts
from moral_entropy.corpora.twins import write_twin

TWINS = ("mftc", "mfrc", "emfd")


def measure(sizes: data.Sizes) -> Iterator[Measurement]:
    """Audit the three twins twice, compiling where need be and all compiled; then under the paper's model."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        for name in TWINS:
            write_twin(name, here / f"{name}.parquet", seed=0, scale=sizes.scale)
        say("the audits of three twins, the first time")
        first = _audit_all(here)
        say("the audits of three twins, again")
        again = _audit_all(here)
        say("the audits of three twins under the paper's model")
        _audit_all(here, "--model", "paper")
        paper = _audit_all(here, "--model", "paper")
    facts = [corpus_facts(name) for name in TWINS]
    n_fits = sum(len(corpus.foundations) for corpus in facts)
    n_items = sum(max(1, round(sizes.scale * domain.items)) for corpus in facts for domain in corpus.domains)
    how = f"three commands one after the other: {n_fits} fits, {n_items:,} texts, 1,000 draws, run folders written"
    yield Measurement("audit of the three twins", again, "s", how, at_most=35.0)
    yield Measurement(
        "the same under the paper's model", paper, "s", f"{how}; after one that does not count", at_most=20.0
    )
    yield Measurement("the same, the time before", first, "s", "compiles whatever is not in Numba's cache yet")


def _audit_all(here: Path, *flags: str) -> float:
    given = ("--preset", "mft", "-q", "--force", *flags)
    runs = [run_child(cli("audit", str(here / f"{name}.parquet"), "-o", str(here / name), *given)) for name in TWINS]
    return sum(run.seconds for run in runs)
