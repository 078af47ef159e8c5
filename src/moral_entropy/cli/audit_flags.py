"""The flags of `moral-entropy audit`, and what they mean as options of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Option

from moral_entropy.cli.parse import names, number_or_name, number_or_names, numbers
from moral_entropy.errors import UsageError

if TYPE_CHECKING:
    from moral_entropy.audit.options import GradeOptions
    from moral_entropy.consensus.options import FitOptions
    from moral_entropy.pipeline.options import PriorOptions
    from moral_entropy.votes.options import Options

COLUMNS, LAYOUT, PRIORS, FIT = "Columns (guessed when not named)", "Layout of the votes", "Priors", "Fit"
RULES = "Audit of consensus rules"

Layout = Literal["auto", "long", "wide"]
Format = Literal[
    "auto", "long", "wide", "label-studio", "argilla", "prodigy", "doccano", "potato", "mturk", "lewidi", "crowd-kit",
    "hf-datasets",
]  # fmt: skip
OnRepeat = Literal["error", "first", "last", "count"]
Solver = Literal["em", "adam"]
Pooling = Literal["none", "partial", "full"]
Constraint = Literal["none", "better-than-chance"]
Coordinates = Literal["jeffreys", "paper", "jacobian", "logit-mode"]


@dataclass(frozen=True)
class VoteFlags:
    """How to read the votes."""

    item: Annotated[str | None, Option(help="What was voted on.", rich_help_panel=COLUMNS)] = None
    annotator: Annotated[str | None, Option(help="Who voted.", rich_help_panel=COLUMNS)] = None
    label: Annotated[str | None, Option(help="The vote.", rich_help_panel=COLUMNS)] = None
    question: Annotated[str | None, Option(help="Which question the vote answers.", rich_help_panel=COLUMNS)] = None
    domain: Annotated[str | None, Option(help="Where the item comes from.", rich_help_panel=COLUMNS)] = None
    text: Annotated[str | None, Option(help="The item's text.", rich_help_panel=COLUMNS)] = None
    gold: Annotated[str | None, Option(help="The item's known label.", rich_help_panel=COLUMNS)] = None
    published: Annotated[str | None, Option(help="The label already shipped.", rich_help_panel=COLUMNS)] = None
    count: Annotated[str | None, Option(help="How many items a row stands for.", rich_help_panel=COLUMNS)] = None
    format: Annotated[Format, Option(help="A table, or the tool that wrote it.", rich_help_panel=LAYOUT)] = "auto"
    layout: Annotated[Layout, Option(help="A row a vote, or a row an item.", rich_help_panel=LAYOUT)] = "auto"
    positive: Annotated[str | None, Option(help="The positive label.", rich_help_panel=LAYOUT)] = None
    multilabel: Annotated[
        str | None, Option(metavar="SEPARATOR", help="Cells name several labels: care,harm.", rich_help_panel=LAYOUT)
    ] = None
    questions: Annotated[
        str | None, Option(metavar="A,B,…", help="Columns of 0 and 1, each a question.", rich_help_panel=LAYOUT)
    ] = None
    labels: Annotated[
        str | None, Option(metavar="FILE", help="TOML file that merges and drops labels.", rich_help_panel=LAYOUT)
    ] = None
    on_repeat: Annotated[OnRepeat, Option(help="When someone votes twice on an item.", rich_help_panel=LAYOUT)] = (
        "error"
    )
    anonymous: Annotated[
        bool, Option("--anonymous", help="Votes without annotators: all share one matrix.", rich_help_panel=LAYOUT)
    ] = False
    counts: Annotated[
        str | None, Option(metavar="A,B,…", help="Columns that count the votes by label.", rich_help_panel=LAYOUT)
    ] = None
    of: Annotated[
        str | None, Option(metavar="N|COLUMN", help="Voters per item, for --questions.", rich_help_panel=LAYOUT)
    ] = None
    gold_file: Annotated[
        str | None, Option(metavar="FILE", help="Known labels, in a file of their own.", rich_help_panel=LAYOUT)
    ] = None
    classes: Annotated[
        str | None, Option(metavar="K|A,B,…", help="Labels there are, voted for or not.", rich_help_panel=LAYOUT)
    ] = None

    def options(self) -> Options:
        """Give the options that these flags mean."""
        from moral_entropy.votes.options import Options

        parsed = {
            "questions": names("--questions", self.questions),
            "counts": names("--counts", self.counts),
            "of": number_or_name(self.of),
            "classes": number_or_names("--classes", self.classes),
        }
        return Options(**vars(self) | parsed)


@dataclass(frozen=True)
class PriorFlags:
    """What is believed before the first vote."""

    prior_prevalence: Annotated[
        str | None, Option(metavar="A[,B,…]", help="Prevalence, as 80,20; flat if not given.", rich_help_panel=PRIORS)
    ] = None
    prior_confusion: Annotated[
        str | None, Option(metavar="RIGHT,WRONG", help="Confusion rows; 1.8,1.2 if not given.", rich_help_panel=PRIORS)
    ] = None
    prior_annotators: Annotated[
        str | None, Option(metavar="FILE", help="CSV: annotator,true,voted,pseudo_votes.", rich_help_panel=PRIORS)
    ] = None
    preset: Annotated[
        Literal["mft"] | None, Option(help="mft: 80,20; 500,500 for any foundation.", rich_help_panel=PRIORS)
    ] = None

    def options(self) -> PriorOptions:
        """Give the options that these flags mean."""
        from moral_entropy.pipeline.options import PriorOptions

        confusion = numbers("--prior-confusion", self.prior_confusion, exactly=2)
        return PriorOptions(
            prevalence=numbers("--prior-prevalence", self.prior_prevalence),
            confusion=(confusion[0], confusion[1]) if confusion else None,
            annotators=self.prior_annotators,
            preset=self.preset,
        )


@dataclass(frozen=True)
class FitFlags:
    """How to fit."""

    fit_by: Annotated[
        str | None, Option(metavar="COLUMN", help="Fit each value of a column on its own.", rich_help_panel=FIT)
    ] = None
    draws: Annotated[int, Option(min=0, help="Posterior draws; 0 for the mode alone.", rich_help_panel=FIT)] = 1_000
    seed: Annotated[int, Option(min=0, help="Of the draws: same seed, same bytes.", rich_help_panel=FIT)] = 0
    solver: Annotated[Solver, Option(help="adam needs PyTorch.", rich_help_panel=FIT)] = "em"
    device: Annotated[str, Option(help="Where adam runs: cpu, cuda, …", rich_help_panel=FIT)] = "cpu"
    coordinates: Annotated[Coordinates, Option(help="Of the Laplace approximation.", rich_help_panel=FIT)] = "jeffreys"
    interval: Annotated[float, Option(help="Mass of every interval.", rich_help_panel=FIT)] = 0.9
    gold_as_evidence: Annotated[
        bool, Option("--gold-as-evidence", help="Clamp items of known label to it.", rich_help_panel=FIT)
    ] = False
    pooling: Annotated[Pooling, Option(help="What annotators share; partial for thin data.", rich_help_panel=FIT)] = (
        "none"
    )
    constrain: Annotated[Constraint, Option(help="Keep annotators at chance or above.", rich_help_panel=FIT)] = "none"
    temper: Annotated[
        str, Option(metavar="off|heldout|gold|X", help="Power of the likelihood.", rich_help_panel=FIT)
    ] = "off"
    threads: Annotated[int | None, Option(min=1, help="At most so many; changes no figure.", rich_help_panel=FIT)] = (
        None
    )
    max_passes: Annotated[int, Option(min=1, help="Passes over the votes before giving up.", rich_help_panel=FIT)] = (
        5_000
    )

    def options(self) -> FitOptions:
        """Give the options that these flags mean."""
        from moral_entropy.consensus.options import FitOptions

        if not 0 < self.interval < 1:
            msg = f"--interval {self.interval:g} is not between 0 and 1. Write 0.9 for the middle 90%."
            raise UsageError(msg)
        own = ("fit_by", "gold_as_evidence", "temper")
        plain = {name: value for name, value in vars(self).items() if name not in own}
        return FitOptions(**plain, use_gold=self.gold_as_evidence, temper=_temper(self.temper))


def _temper(given: str) -> str | float:
    """Take the word, or the number, of `--temper`."""
    if given in ("off", "heldout", "gold"):
        return given
    try:
        return float(given)
    except ValueError:
        msg = f"--temper {given!r} is neither off, heldout or gold nor a number such as 0.5."
        raise UsageError(msg) from None


@dataclass(frozen=True)
class GradeFlags:
    """How to grade consensus rules."""

    rules: Annotated[
        str | None, Option(metavar="A,B,…", help="any,majority,two-vote,…; all if not given.", rich_help_panel=RULES)
    ] = None
    cost_fp: Annotated[float, Option(help="Of a wrong yes, for the advice.", rich_help_panel=RULES)] = 1.0
    cost_fn: Annotated[float, Option(help="Of a wrong no, for the advice.", rich_help_panel=RULES)] = 1.0
    smoothing: Annotated[float, Option(help="Pseudo-votes in smoothed scores.", rich_help_panel=RULES)] = 0.5
    bootstrap: Annotated[
        int, Option(min=0, metavar="N", help="Resample the items too, N times.", rich_help_panel=RULES)
    ] = 0

    def options(self) -> GradeOptions:
        """Give the options that these flags mean."""
        from moral_entropy.audit.options import GradeOptions

        return GradeOptions(
            rules=names("--rules", self.rules) or None,
            costs=(self.cost_fp, self.cost_fn),
            smoothing=self.smoothing,
            bootstrap=self.bootstrap,
        )
