"""Options of the fit: what is believed before the first vote, and how to fit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from moral_entropy.errors import FitError, UsageError
from moral_entropy.options import StageOptions, option

Solver = Literal["em", "adam"]
Coordinates = Literal["jeffreys", "paper", "jacobian", "logit-mode"]
Pooling = Literal["auto", "none", "partial", "full"]
Constraint = Literal["none", "better-than-chance"]
Temper = Literal["off", "heldout", "gold"]
Model = Literal["mixed", "paper"]
Dependence = Literal["merge", "report", "off"]

COORDINATES: tuple[Coordinates, ...] = get_args(Coordinates)
POOLING: tuple[Pooling, ...] = get_args(Pooling)[1:]
"""Ways to pool annotators; "auto" is a choice among them."""

MAX_PASSES = 5_000
TOLERANCE = 1e-9
"""Largest derivative left, in units of the parameter's standard error with all labels known."""

PRIORS, FIT = "Priors", "Fit"


@dataclass(frozen=True)
class PriorOptions(StageOptions):
    """What is believed before the first vote; `Priors` once the questions and their labels are known."""

    prevalence: tuple[float, ...] | None = option(
        None,
        "Dirichlet prior of the prevalence: one value for all labels, or one per label (of two: negative, positive), "
        "as 80,20; flat when not given.",
        flag="--prior-prevalence",
        metavar="X[,Y,…]",
        panel=PRIORS,
    )
    confusion: tuple[float, float] | None = option(
        None,
        "Dirichlet prior of every confusion row: of the right label and of each wrong one; 1.8,1.2 when not given, and "
        "in the mixed model at most 3 for all wrong labels together.",
        flag="--prior-confusion",
        metavar="RIGHT,WRONG",
        panel=PRIORS,
    )
    annotators: str | Path | None = option(
        None,
        "CSV file of what is known of annotators from elsewhere: annotator, true, voted, pseudo_votes.",
        flag="--prior-annotators",
        metavar="FILE",
        panel=PRIORS,
    )
    preset: Literal["mft"] | None = option(
        None,
        'Prevalence priors of the paper: mft is 80,20, and 500,500 for a question called "any" or "any foundation".',
        panel=PRIORS,
    )

    def __post_init__(self) -> None:
        """Refuse two priors of the prevalence."""
        super().__post_init__()
        if self.preset and self.prevalence:
            msg = f"--preset {self.preset} sets the prevalence prior, and so does --prior-prevalence. Give one of them."
            raise UsageError(msg)


@dataclass(frozen=True)
class FitOptions(StageOptions):
    """How to fit: the options of `fit`, which explains them."""

    error = FitError

    model: Model = option(
        "mixed",
        "mixed: items may lie between labels, and the published p is pooled with the vote share; paper: one true label "
        "per item, as the paper has it.",
        panel=FIT,
        everyday=True,
    )
    domain_prevalence: Literal["on", "off"] = option(
        "on",
        "Whether the prevalence may differ between domains, as far as the votes say that it does; the paper's model "
        "has one for all.",
        metavar="on|off",
        panel=FIT,
    )
    draws: int = option(1_000, "Posterior draws; 0 finds the mode alone.", panel=FIT, everyday=True)
    seed: int = option(
        0,
        "Seed of everything random: on one machine same votes, same seed, same bytes.",
        panel=FIT,
        least=0,
    )
    solver: Solver = option(
        "em", "How to find the mode: em, or adam as the paper does, which needs PyTorch.", panel=FIT
    )
    device: str = option("cpu", "Where adam computes: cpu, cuda, …", panel=FIT)
    coordinates: Coordinates = option(
        "jeffreys",
        "Coordinates of the Gaussian: log ratios, with mode and curvature after half of the change of variables "
        "(jeffreys, closest to NUTS), none of it (paper), all of it in the curvature alone (jacobian), or all of it "
        "(logit-mode). docs/adr says why.",
        metavar="NAME",
        panel=FIT,
    )
    interval: float = option(0.9, "Probability mass inside every interval.", panel=FIT)
    use_gold: bool = option(
        False, "Take known labels as evidence: their items have that label for certain.",
        flag="--gold-as-evidence", panel=FIT,
    )  # fmt: skip
    pooling: Pooling = option(
        "auto",
        "none: every annotator has their own confusion rows; partial: rows vary around common ones learnt from the "
        "votes; full: one matrix for all annotators; auto: partial where 100 annotators or more gave few votes "
        "each, else none, and always none in the paper's model.",
        panel=FIT,
    )
    constrain: Constraint = option(
        "none",
        "better-than-chance keeps every annotator's probability to be right at chance or above; none does not.",
        metavar="NAME",
        panel=FIT,
    )
    temper: Temper | float = option(
        "off",
        "Power of each item's likelihood: off (1, the paper's model), heldout (learnt by predicting votes left out), "
        "gold (learnt from items of known label), or a number. Parameters are fitted without it.",
        metavar="NAME|X",
        panel=FIT,
    )
    dependence: Dependence = option(
        "merge",
        "What to do about annotators whose votes copy each other: merge counts near-copies as one, report only names "
        "them, off does not look for them. The paper's model never merges.",
        panel=FIT,
        everyday=True,
    )
    merge: tuple[str, ...] = option(
        (),
        "Annotators to count as one, as anna+bert; several groups with a comma between them.",
        metavar="A+B[,C+D]",
        panel=FIT,
    )
    threads: int | None = option(
        None, "Use at most this many threads; the result does not depend on it.", panel=FIT, least=1
    )
    max_passes: int = option(
        MAX_PASSES, "Passes over the votes after which the search for the mode gives up.", panel=FIT, least=1
    )
    fit_tolerance: float = option(
        TOLERANCE, "Largest derivative left at the mode, in standard errors of the parameter.", panel=FIT
    )

    def __post_init__(self) -> None:
        """Refuse what cannot be done."""
        super().__post_init__()
        if self.draws < 0 or self.draws == 1:
            msg = f"{self.called('draws')} is {self.draws}; use 0 for the mode alone, or at least 2."
            raise FitError(msg)
        if not 0.0 < self.interval < 1.0:
            name = self.called("interval")
            msg = f"{name} is {self.interval:g}; it is the mass of a central interval, between 0 and 1."
            raise FitError(msg)
        if not 0.0 < self.fit_tolerance < float("inf"):
            name = self.called("fit_tolerance")
            msg = f"{name} is {self.fit_tolerance:g}; the search ends below it, so it is above 0, as {TOLERANCE:g}."
            raise FitError(msg)
        if isinstance(self.temper, float) and not 0.0 < self.temper <= 10.0:
            msg = (
                f"{self.called('temper')} is {self.temper:g}; it is a power of the likelihood, above 0 and at most 10. "
                "The model's is 1."
            )
            raise FitError(msg)
        self._check_together()

    @property
    def better_than_chance(self) -> bool:
        """Whether every annotator's diagonal is kept at chance or above."""
        return self.constrain == "better-than-chance"

    @property
    def mixed(self) -> bool:
        """Whether items may lie between labels."""
        return self.model == "mixed"

    @property
    def counts_once(self) -> bool:
        """Whether groups of annotators, found or named, are counted as one."""
        return bool(self.merge) or (self.mixed and self.dependence == "merge")

    @property
    def by_domain(self) -> bool:
        """Whether items of different domains are told apart."""
        return self.mixed and self.domain_prevalence == "on"

    def _check_together(self) -> None:
        self._check_paper()
        if self.solver == "adam" and (self.pooling == "partial" or self.better_than_chance):
            what = ("pooling", "partial") if self.pooling == "partial" else ("constrain", "better-than-chance")
            msg = (
                f"{self.called('solver', 'adam')} is the paper's climber and knows no {self.called(*what)}. "
                f"Use {self.called('solver', 'em')}."
            )
            raise FitError(msg)
        if self.pooling == "partial" and self.better_than_chance:
            msg = (
                f"{self.called('constrain', 'better-than-chance')} holds for rows fitted one by one. "
                f"Use {self.called('pooling', 'none')} or {self.called('pooling', 'full')} with it."
            )
            raise FitError(msg)
        if self.temper == "gold" and self.use_gold:
            msg = (
                f"{self.called('use_gold')} takes gold labels as evidence, so they can no longer tell the exponent "
                f"({self.called('temper', 'gold')}). Give one of them."
            )
            raise FitError(msg)

    def _check_paper(self) -> None:
        """Refuse what only the paper's model has."""
        if self.mixed and self.solver == "adam":
            msg = (
                f"{self.called('solver', 'adam')} is the paper's solver. Add {self.called('model', 'paper')}, "
                f"or use {self.called('solver', 'em')}."
            )
            raise FitError(msg)
        if self.mixed and self.temper != "off":
            msg = (
                f"{self.called('temper')} makes up for the paper's model, whose votes count too much together; the "
                f"mixed model needs no such power. Add {self.called('model', 'paper')}, or leave "
                f"{self.called('temper')} out."
            )
            raise FitError(msg)
