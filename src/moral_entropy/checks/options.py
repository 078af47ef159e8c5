"""Options of `validate`, in a file of their own so that `--help` loads nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from moral_entropy.options import StageOptions, option


@dataclass(frozen=True)
class ValidationOptions(StageOptions):
    """What to check of a consensus, and for how long."""

    checks: tuple[str, ...] | None = option(None, "Only these checks, as laplace,priors,gold; all when not given.")
    seed: int = option(0, "Seed of everything random: same seed, same figures.", least=0)
    chains: int = option(4, "Chains of NUTS.", least=1)
    tune: int | None = option(None, "Steps in which each chain of NUTS settles.", least=10)
    draws: int | None = option(None, "Draws of each chain of NUTS.", least=10)
    members: int = option(20, "Fits of the ensemble.", least=2)
