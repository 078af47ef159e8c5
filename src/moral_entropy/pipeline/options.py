"""What a run can be asked for, as values: the same for the command line and for Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from moral_entropy.audit.options import GradeOptions
from moral_entropy.consensus.options import FitOptions
from moral_entropy.votes.options import Options


@dataclass(frozen=True)
class PriorOptions:
    """What is believed before the first vote.

    Parameters
    ----------
    prevalence
        One value for all labels, or one per label; flat when not given.
    confusion
        Of the right answer, and of every wrong one; the paper's when not given.
    annotators
        CSV file of votes known from elsewhere: annotator, true, voted, pseudo_votes.
    preset
        "mft" for the paper's prevalence priors of the moral foundations.
    """

    prevalence: tuple[float, ...] | None = None
    confusion: tuple[float, float] | None = None
    annotators: str | Path | None = None
    preset: str | None = None


@dataclass(frozen=True)
class AuditOptions:
    """Everything a run can be asked for.

    Parameters
    ----------
    read, priors, fit, grade
        How to read (as `read_votes`), what to believe, how to fit, how to grade rules.
    fit_by
        Column of the votes; each of its values is fitted on its own.
    report
        Whether to write `report.html`.
    """

    read: Options = field(default_factory=Options)
    priors: PriorOptions = field(default_factory=PriorOptions)
    fit: FitOptions = field(default_factory=FitOptions)
    grade: GradeOptions = field(default_factory=GradeOptions)
    fit_by: str | None = None
    report: bool = True
