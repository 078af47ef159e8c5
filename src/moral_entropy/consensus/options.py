"""Options of `fit`: how to fit, apart from the votes and the priors."""

from __future__ import annotations

from dataclasses import dataclass

from moral_entropy.errors import FitError

SOLVERS = ("em", "adam")
COORDINATES = ("jeffreys", "paper", "jacobian", "logit-mode")
CONSTRAINTS = ("none", "better-than-chance")
POOLING = ("none", "partial", "full")
TEMPERS = ("off", "heldout", "gold")

MAX_PASSES = 5_000
TOLERANCE = 1e-9
"""Largest derivative left, in units of the parameter's standard error with all labels known."""


@dataclass(frozen=True)
class FitOptions:
    """The options of `fit`, which explains them."""

    draws: int = 1_000
    seed: int = 0
    solver: str = "em"
    device: str = "cpu"
    coordinates: str = "jeffreys"
    interval: float = 0.9
    use_gold: bool = False
    pooling: str = "none"
    constrain: str = "none"
    temper: str | float = "off"
    threads: int | None = None
    max_passes: int = MAX_PASSES
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        """Refuse what cannot be done."""
        _one_of("solver", self.solver, SOLVERS)
        _one_of("coordinates", self.coordinates, COORDINATES)
        _one_of("pooling", self.pooling, POOLING)
        _one_of("constrain", self.constrain, CONSTRAINTS)
        if self.draws < 0 or self.draws == 1:
            msg = f"draws is {self.draws}; use 0 for the mode alone, or at least 2."
            raise FitError(msg)
        if not 0.0 < self.interval < 1.0:
            msg = f"interval is {self.interval:g}; it is the mass of a central interval, between 0 and 1."
            raise FitError(msg)
        self._check_temper()
        self._check_together()

    @property
    def better_than_chance(self) -> bool:
        """Whether every annotator's diagonal is kept at chance or above."""
        return self.constrain == "better-than-chance"

    def _check_temper(self) -> None:
        if isinstance(self.temper, str):
            _one_of("temper", self.temper, TEMPERS)
        elif not 0.0 < self.temper <= 10.0:
            msg = (
                f"temper is {self.temper:g}; it is a power of the likelihood, above 0 and at most 10. The model's is 1."
            )
            raise FitError(msg)

    def _check_together(self) -> None:
        if self.solver == "adam" and (self.pooling == "partial" or self.better_than_chance):
            what = "pooling='partial'" if self.pooling == "partial" else "constrain='better-than-chance'"
            msg = f"solver='adam' is the paper's climber and knows no {what}. Use solver='em'."
            raise FitError(msg)
        if self.pooling == "partial" and self.better_than_chance:
            msg = (
                "constrain='better-than-chance' holds for rows fitted one by one. Use pooling='none' or 'full' with it."
            )
            raise FitError(msg)
        if self.temper == "gold" and self.use_gold:
            msg = "use_gold takes gold labels as evidence, so they can no longer tell the exponent. Give one of them."
            raise FitError(msg)


def _one_of(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        msg = f"{what} is {value!r}; choose one of {', '.join(choices)}."
        raise FitError(msg)
