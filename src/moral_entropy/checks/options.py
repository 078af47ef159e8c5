"""Options of the validation: what to examine, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moral_entropy.options import StageOptions, option


@dataclass(frozen=True)
class ValidationOptions(StageOptions):
    """What to examine of a consensus, and for how long."""

    sides: tuple[str, ...] | None = option(None, "Only these checks, as laplace,priors,gold; all when not given.")
    seed: int = option(0, "Seed of everything random: same seed, same figures.", least=0)
    chains: int = option(4, "Chains of NUTS.", least=1)
    tune: int | None = option(None, "Steps in which each chain of NUTS settles.", least=10)
    draws: int | None = option(None, "Draws of each chain of NUTS.", least=10)
    members: int = option(20, "Fits of the ensemble, of each kind.", least=2)
    folds: int = option(5, "Folds of the held-out votes.", least=2)

    def of(self, side: str) -> dict[str, Any]:
        """Return the keywords of one side's function."""
        given: dict[str, dict[str, Any]] = {
            "nuts": {"chains": self.chains, "tune": self.tune, "draws": self.draws},
            "ensemble": {"members": self.members},
            "heldout": {"folds": self.folds},
        }
        return {name: value for name, value in given.get(side, {}).items() if value is not None}
