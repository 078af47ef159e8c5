"""Entropies of every item over posterior draws, streamed."""

from __future__ import annotations

from collections.abc import Iterator

import data
import numpy as np
from measure import Measurement, median_seconds, say

from moral_entropy.consensus.coordinates import pack, unpack
from moral_entropy.consensus.draws import summarise
from moral_entropy.consensus.model import Parameters
from moral_entropy.consensus.starts import paper_start

DRAWS = 1_000
SPREAD = 0.1
"""Standard deviation of the draws in log ratios: about that of an annotator with some hundred votes."""


def measure(sizes: data.Sizes) -> Iterator[Measurement]:
    """Measure means, intervals and expected entropies of items that all have their own votes."""
    ballot = data.large(sizes.items).ballots[0]
    patterns = data.as_they_are(ballot)
    drawn = _draws(ballot.n_annotators)
    say(f"{ballot.n_items:,} items × {DRAWS:,} draws")
    took = median_seconds(
        lambda: summarise(patterns, drawn.weight_g, drawn.confusion_akv, positive=1),
        repeats=max(1, sizes.repeats // 3),
    )
    yield Measurement(
        f"{ballot.n_items:,} items × {DRAWS:,} draws of entropies",
        took,
        "s",
        f"means, 90% intervals and expected entropies in one pass; {ballot.n_votes:,} votes, not collapsed",
        at_most=12.0,
    )


def _draws(n_annotators: int) -> Parameters:
    centre_p = pack(paper_start(n_annotators, 2))
    normal_sp = np.random.default_rng(0).standard_normal((DRAWS, len(centre_p)))
    return unpack(centre_p + SPREAD * normal_sp, 2)
