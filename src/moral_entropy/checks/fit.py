"""Did the fit succeed? What the fits say of themselves, and whether there are draws to judge them by."""

from __future__ import annotations

from moral_entropy.checks.vote_access import VotesOf
from moral_entropy.consensus.result import Consensus
from moral_entropy.findings import Finding
from moral_entropy.progress import Advance, ignore

SIDE = "fit"


def examine_fit(
    consensus: Consensus, *, seed: int = 0, votes_of: VotesOf | None = None, advance: Advance = ignore
) -> list[Finding]:
    """Repeat what the fits have warned of, and say so where there are no draws.

    Parameters
    ----------
    consensus
        The fits to examine.
    seed, votes_of, advance
        Not used: nothing here is random or takes long.
    """
    found = [finding for finding in consensus.findings if finding.side == SIDE]
    if consensus.options.draws:
        return found
    no_draws = Finding(
        SIDE, "draws", 0, level="doubt",
        text="no posterior draws were asked for.",
        meaning="There are no intervals, and the entropy is not split: any figure may be firm or a guess.",
        cure="Run the audit again without --draws 0.",
    )  # fmt: skip
    return [*found, no_draws]
