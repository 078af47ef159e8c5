"""All options of a run: those of its stages, the same for the command line and for Python."""

from __future__ import annotations

from dataclasses import dataclass, field

from moral_entropy.groups.options import GroupOptions
from moral_entropy.judges.options import PanelOptions
from moral_entropy.model.options import FIT, FitOptions, PriorOptions
from moral_entropy.options import StageOptions, option
from moral_entropy.rules.options import GradeOptions
from moral_entropy.verdict.options import VerdictOptions
from moral_entropy.votes.options import ReadOptions


@dataclass(frozen=True)
class AuditOptions(StageOptions):
    """All options of a run.

    Parameters
    ----------
    read, priors, fit, grade, verdict, groups, judges
        How to read votes, what to believe before them, how to fit, how to grade rules, what was checked, which groups
        of annotators to compare, what is known of judges.
    fit_by
        Column of the votes; each of its values is fitted on its own.
    report
        Whether to write `report.html`.
    """

    read: ReadOptions = field(default_factory=ReadOptions)
    priors: PriorOptions = field(default_factory=PriorOptions)
    fit: FitOptions = field(default_factory=FitOptions)
    grade: GradeOptions = field(default_factory=GradeOptions)
    verdict: VerdictOptions = field(default_factory=VerdictOptions)
    groups: GroupOptions = field(default_factory=GroupOptions)
    judges: PanelOptions = field(default_factory=PanelOptions)
    fit_by: str | None = option(
        None, "Fit the items of each value of this column on their own.", metavar="COLUMN", panel=FIT
    )
    report: bool = option(True, "Write report.html.")
