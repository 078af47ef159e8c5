"""Are there enough votes? Items with hardly a vote, annotators hardly known, one who dominates, rows left out.

Takes a `Consensus`, returns findings of the side "votes". Cheap: every audit runs it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from moral_entropy.checks.vote_access import VoteAccess, VotesOf, each_fit
from moral_entropy.consensus.fit_findings import annotator_name, finding_of
from moral_entropy.consensus.result import Consensus
from moral_entropy.findings import Finding, level_of, listed
from moral_entropy.progress import Advance, ignore
from moral_entropy.votes.table import Votes

SIDE = "votes"

MANY_VOTES = 0.1
"""Share of the votes from which annotators who are hardly known put the whole fit in doubt."""

DOMINATES = 0.4
"""Share of all votes from which one annotator dominates."""

LEFT_OUT = 0.05
"""Share of the rows of the input whose absence is worth a note."""


def examine_votes(
    consensus: Consensus, *, seed: int = 0, votes_of: VotesOf | None = None, advance: Advance = ignore
) -> list[Finding]:
    """Count what there is too little of.

    Parameters
    ----------
    consensus
        The fits to examine.
    seed
        Not used: nothing here is random.
    votes_of
        Returns the votes of the n-th fit; those on this machine when not given.
    advance
        Called with the share done.

    Examples
    --------
    >>> import moral_entropy as me
    >>> votes = me.simulate_votes(n_items=300, n_annotators=8, votes_per_item=5, seed=2).votes
    >>> [(finding.figure, finding.value) for finding in examine_votes(me.fit(votes, draws=100))]
    [('votes_per_item', 5.0), ('effective_votes', 5.0), ('single_vote_items', 0.0), ('hardly_known', 0.0)]
    """
    found = [finding for finding in consensus.findings if finding.side == SIDE]
    for votes in each_fit(consensus, votes_of, advance):
        found += _of_fit(consensus, votes)
    return [*found, *_dominant(consensus), *_without_votes(consensus), *_rows_left_out(consensus.votes)]


def _of_fit(consensus: Consensus, votes: VoteAccess) -> Iterator[Finding]:
    fit, ballot, count_i = votes.fit, votes.fit.ballot, votes.fit.ballot.count_i
    unvoted, voted = float(count_i[ballot.votes_i == 0].sum()), float(count_i[ballot.votes_i > 0].sum())
    if unvoted:
        yield finding_of(
            fit, SIDE, "items_without_votes", unvoted, n=round(unvoted + voted), level="note",
            text=f"{unvoted:,.0f} items have no vote.",
            meaning="Their p is the share of the label among all items, and no rule on votes says anything about them.",
            cure="Leave them out of what you publish, or have them annotated.",
        )  # fmt: skip
    if voted:
        single = float(count_i[ballot.votes_i == 1].sum()) / voted
        text = f"{single:.0%} of the items have a single vote, so that no second opinion checks it." if single else ""
        yield finding_of(fit, SIDE, "single_vote_items", single, n=round(voted), text=text)
        # Pooled rows are everybody's; that they outweigh one annotator's votes is their purpose.
        if not consensus.votes.anonymous and fit.pooling == "none":
            yield _hardly_known(consensus, votes)


def _hardly_known(consensus: Consensus, votes: VoteAccess) -> Finding:
    """Find annotators of whom some confusion row rests more on the prior than on votes."""
    fit = votes.fit
    votes_akv = votes.density.expect(fit.at).votes_akv - votes.density.pseudo_akv
    thin_a = (votes_akv.sum(axis=-1) < fit.beta_akv.sum(axis=-1)).any(axis=-1)
    # Whoever is counted with another has no vote of their own in the fit.
    thin_a[[a for group in fit.counted_groups for a in group[1:]]] = False
    votes_a = fit.ballot.votes_a
    share = float(votes_a[thin_a].sum() / max(votes_a.sum(), 1))
    few = np.flatnonzero(thin_a)[np.argsort(votes_a[thin_a], kind="stable")].tolist()
    if not few:
        return finding_of(fit, SIDE, "hardly_known", 0.0, n=0)
    names = listed([annotator_name(consensus, fit, a) for a in few])
    return finding_of(
        fit, SIDE, "hardly_known", share, n=len(few), level=level_of(share > MANY_VOTES),
        text=(
            f"{len(few):,} of {len(thin_a):,} annotators, who gave {share:.1%} of the votes, have voted on very few "
            f"items of some label ({names})."
        ),
        meaning="Of their errors the default assumption says more than their votes do.",
        cure="Collect more votes per annotator, or let annotators share what they have in common (--pooling partial).",
    )  # fmt: skip


def _dominant(consensus: Consensus) -> Iterator[Finding]:
    votes_a = np.zeros(len(consensus.votes.annotators), dtype=np.int64)
    for fit in consensus.fits:
        np.add.at(votes_a, fit.ballot.annotator_a, fit.ballot.votes_a)
    n_annotators, total = np.count_nonzero(votes_a), votes_a.sum()
    if consensus.votes.anonymous or n_annotators < 3:
        return
    share = float(votes_a.max() / total)
    # Of three annotators one third each is no dominance.
    if share > max(DOMINATES, 1.5 / n_annotators):
        first = str(consensus.votes.annotators[int(votes_a.argmax())])
        yield Finding(
            SIDE, "dominant_annotator", share, subject=first, n=int(votes_a.max()), level="doubt",
            text=f"one annotator dominates: {first} gave {share:.0%} of all votes.",
            meaning="The consensus leans on one person's reading, and the others are measured against it.",
            cure="Audit again without this annotator and compare; spread the next votes over others.",
        )  # fmt: skip


def _without_votes(consensus: Consensus) -> Iterator[Finding]:
    """Find annotators with a prior of their own who have no vote."""
    present = set(consensus.votes.annotators.cast(str).to_list())
    known = [str(name) for name in consensus.priors.annotators]
    strangers = [name for name in known if name not in present]
    if strangers:
        yield Finding(
            SIDE, "priors_without_votes", len(strangers), subject=listed(strangers), n=len(known), level="doubt",
            text=(
                f"{len(strangers)} of {len(known)} annotators with a prior of their own have no vote here. First: "
                f"{strangers[0]!r}."
            ),
            meaning="Their priors are not used: the same people may be spelt differently in the votes.",
            cure="Compare the names of --prior-annotators with those in the votes.",
        )  # fmt: skip


def _rows_left_out(votes: Votes) -> Iterator[Finding]:
    dropped, rows = sum(votes.reading.dropped.values()), max(votes.reading.rows, 1)
    if dropped / rows > LEFT_OUT:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in votes.reading.dropped.items())
        yield Finding(
            SIDE, "rows_left_out", dropped, n=rows, level="note",
            text=f"{dropped:,} of {rows:,} rows were left out ({reasons}).",
            meaning="If they are not missing at random, the rates of those who left blanks are off.",
            cure="Check that the columns were read as you meant; the report lists them under Method.",
        )  # fmt: skip
