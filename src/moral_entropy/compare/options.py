"""Options of comparing two runs."""

from __future__ import annotations

from dataclasses import dataclass

from moral_entropy.options import StageOptions, option


@dataclass(frozen=True)
class CompareOptions(StageOptions):
    """How to compare two runs: the options of `compare_runs`, which explains them."""

    replicates: int = option(400, "How often items are resampled, for the intervals.", least=2)
    seed: int = option(0, "Seed of the resampling.", least=0)
