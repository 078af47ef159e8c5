"""Thin data: items with hardly a vote, annotators of whom the prior knows more than the votes.

Takes a fit, gives findings of the side "identifiability".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.consensus.warn import THIN
from moral_entropy.validate.finding import Finding
from moral_entropy.validate.words import annotator_name, finding_of, level_of, listed
from moral_entropy.votes.table import Floats

SIDE = "identifiability"

VERY_THIN = 1.5
"""Votes an item below which p itself is in doubt."""

MANY_VOTES = 0.1
"""Share of the votes from which annotators who are hardly known put the whole fit in doubt."""


def thin_findings(consensus: Consensus, fit: QuestionFit, votes_akv: Floats) -> Iterator[Finding]:
    """Find items and annotators with too few votes.

    Parameters
    ----------
    consensus, fit
        What is examined.
    votes_akv
        Expected votes at the mode by annotator, true and voted label.
    """
    ballot = fit.ballot
    count_i = np.where(ballot.votes_i > 0, ballot.count_i, 0.0)
    per_item = float(np.average(ballot.votes_i, weights=count_i))
    text, level = "", level_of(per_item < THIN, bad=per_item < VERY_THIN)
    if per_item < THIN:
        text = (
            f"{per_item:.2f} votes an item: with fewer than {THIN:g} the prior decides much of the answer, and p can "
            "be sure and wrong."
        )
    yield finding_of(fit, SIDE, "votes_per_item", per_item, n=round(count_i.sum()), level=level, text=text)
    single = float(count_i[ballot.votes_i == 1].sum() / count_i.sum())
    words = f"{single:.0%} of the items have a single vote, so that no second opinion checks it." if single else ""
    yield finding_of(fit, SIDE, "single_vote_items", single, n=round(count_i.sum()), text=words)
    # Pooled rows are everybody's; that they outweigh one annotator's votes is their purpose.
    if not consensus.votes.anonymous and fit.pooling == "none":
        yield from _hardly_known(consensus, fit, votes_akv)


def _hardly_known(consensus: Consensus, fit: QuestionFit, votes_akv: Floats) -> Iterator[Finding]:
    """Find annotators of whom some confusion row rests more on the prior than on votes."""
    thin_a = (votes_akv.sum(axis=-1) < fit.beta_akv.sum(axis=-1)).any(axis=-1)
    votes_a = fit.ballot.votes_a
    share = float(votes_a[thin_a].sum() / max(votes_a.sum(), 1))
    text = ""
    if thin_a.any():
        few = np.flatnonzero(thin_a)[np.argsort(votes_a[thin_a], kind="stable")]
        text = (
            f"{thin_a.sum():,} of {len(thin_a):,} annotators, who gave {share:.1%} of the votes, have voted on so few "
            f"items of some label that the prior says more about their errors than the votes do "
            f"({listed([annotator_name(consensus, fit, a) for a in few.tolist()])})."
        )
    yield finding_of(
        fit,
        SIDE,
        "hardly_known",
        share,
        n=int(thin_a.sum()),
        level="doubt" if share > MANY_VOTES else "info",
        text=text,
    )
