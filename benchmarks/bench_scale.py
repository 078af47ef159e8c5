"""A hundred million votes from Parquet to run folder: peak memory, and the time.

Takes minutes and gigabytes of disk, hence a target of its own: `make bench-scale`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import data
from measure import Measurement, cli, run_child, say

DRAWS = 100


def measure(sizes: data.Sizes) -> Iterator[Measurement]:
    """Simulate, audit, and say what it took; both in processes of their own."""
    n_votes = sizes.scale_items * data.LARGE_VOTES_PER_ITEM
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "votes.parquet", Path(folder) / "run"
        say(f"simulating {n_votes:,} votes")
        made = run_child(cli("simulate", *_shape(sizes), "-o", str(source)))
        say(f"auditing {n_votes:,} votes with {DRAWS} draws")
        run = run_child(cli("audit", str(source), "-o", str(out), "--draws", str(DRAWS), "-q"))
        written = sum(file.stat().st_size for file in out.iterdir()) / 1e9
        read = source.stat().st_size / 1e9
    what = f"{n_votes / 1e6:g}M votes to run folder"
    how = f"MAP and {DRAWS} draws of {sizes.scale_items:,} items; {read:.2g} GB read, {written:.2g} GB written"
    yield Measurement(f"{what}: peak memory", run.peak_gb, "GB", how, at_most=10.0)
    yield Measurement(f"{what}: time", run.seconds, "s", "the whole command")
    yield Measurement(f"simulating {n_votes / 1e6:g}M votes: peak memory", made.peak_gb, "GB", "streamed to Parquet")
    yield Measurement(f"simulating {n_votes / 1e6:g}M votes: time", made.seconds, "s", "the whole command")


def _shape(sizes: data.Sizes) -> list[str]:
    options = {
        "--items": sizes.scale_items,
        "--annotators": data.LARGE_ANNOTATORS,
        "--votes-per-item": data.LARGE_VOTES_PER_ITEM,
    }
    return [str(part) for option in options.items() for part in option]
