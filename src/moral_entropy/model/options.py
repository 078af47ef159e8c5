"""Options of the fit: what is believed before the first vote, and how to fit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moral_entropy.errors import FitError, UsageError
from moral_entropy.options import StageOptions, option

Model = Literal["mixed", "paper"]
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
        "Prevalence priors for moral foundations, from an earlier notebook of the paper's author (the paper prints "
        'none): mft is 80,20, and 500,500 for a question called "any" or "any foundation".',
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
        "Whether the prevalence may differ between domains; the paper's model has one for all.",
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
    solver: Literal["em", "adam"] = option(
        "em", "How to find the mode: em, or adam as the paper does, which needs PyTorch.", panel=FIT
    )
    steps: int = option(200, "Steps of adam.", panel=FIT, least=1)
    interval: float = option(0.9, "Probability mass inside every interval.", panel=FIT)
    use_gold: bool = option(
        False, "Take known labels as evidence: their items have that label for certain.",
        flag="--gold-as-evidence", panel=FIT,
    )  # fmt: skip
    merge: tuple[str, ...] = option(
        (),
        "Annotators to count as one, as anna+bert; several groups with a comma between them. Identical annotators "
        "always count as one, but in the paper's model.",
        metavar="A+B[,C+D]",
        panel=FIT,
    )
    threads: int | None = option(
        None, "Use at most this many threads; the result does not depend on it.", panel=FIT, least=1
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
        if self.mixed and self.solver == "adam":
            msg = (
                f"{self.called('solver', 'adam')} is the paper's solver. Add {self.called('model', 'paper')}, "
                f"or use {self.called('solver', 'em')}."
            )
            raise FitError(msg)

    @property
    def mixed(self) -> bool:
        """Whether items may lie between labels."""
        return self.model == "mixed"

    @property
    def by_domain(self) -> bool:
        """Whether items of different domains are told apart."""
        return self.mixed and self.domain_prevalence == "on"
