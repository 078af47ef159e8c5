"""How one of the runs compared stands by itself: the verdict, figures and warnings of its own report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moral_entropy.findings import Finding
from moral_entropy.runs.findings import cautions
from moral_entropy.runs.run import Run
from moral_entropy.verdict.headlines import Headline, headlines
from moral_entropy.verdict.verdict import Verdict


@dataclass(frozen=True)
class Stand:
    """What a run says of itself.

    Parameters
    ----------
    verdict
        Can its labels be shipped?
    headlines
        Its four figures.
    cautions
        Its warnings, worst first.
    """

    verdict: Verdict
    headlines: Sequence[Headline]
    cautions: Sequence[Finding]


def stand_of(run: Run) -> Stand:
    """Return the verdict, figures and warnings of a run."""
    return Stand(run.verdict, headlines(run, run.verdict), cautions(run))
