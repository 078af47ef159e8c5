"""Items whose votes all name one label and whose consensus is another: how many, and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moral_entropy.consensus.result import QuestionFit
from moral_entropy.votes.table import Ints, Votes


@dataclass(frozen=True)
class Overruled:
    """Items whose votes the consensus overrules.

    Parameters
    ----------
    n, n_voted
        How many there are, of so many with a vote.
    by_votes
        On how many the votes themselves are read the other way round; on the others the prevalence outweighs them.
    first
        The id of the first, None where there is none.
    """

    n: float
    n_voted: float
    by_votes: float
    first: object


def overruled(votes: Votes, fit: QuestionFit) -> Overruled:
    """Count the items of a fit whose votes are overruled."""
    item_i, said_i = unanimous_against(fit)
    count_i = fit.ballot.count_i
    n, n_voted = float(count_i[item_i].sum()), float(count_i[fit.ballot.votes_i > 0].sum())
    by_votes = float(count_i[item_i[_votes_speak_against(fit, item_i, said_i)]].sum())
    first = votes.items[int(fit.ballot.item_i[item_i[0]])] if len(item_i) else None
    return Overruled(n, n_voted, by_votes, first)


def unanimous_against(fit: QuestionFit) -> tuple[Ints, Ints]:
    """Give the items whose votes all name a label that the consensus is against, and that label.

    Of two labels, one vote for "no" that counts as "yes" is among them; one "yes" that the prior outweighs is not.
    """
    ballot = fit.ballot
    counts_ik = ballot.counts_ik
    said_i = counts_ik.argmax(axis=1)
    unanimous_i = (ballot.votes_i > 0) & (counts_ik.max(axis=1) == ballot.votes_i)
    enough_i = ballot.votes_i >= 2
    if ballot.n_labels == 2:
        enough_i |= said_i != ballot.positive
    item_i = np.flatnonzero(unanimous_i & enough_i & (said_i != fit.label_i))
    return item_i, said_i[item_i]


def _votes_speak_against(fit: QuestionFit, item_i: Ints, said_i: Ints) -> Ints:
    """Tell where the votes alone, without the prevalence, favour the consensus over the label that was voted."""
    with np.errstate(divide="ignore"):
        log_likelihood_ik = np.log(fit.posterior_ik[item_i]) - np.log(fit.prevalence_k)
    row_i = np.arange(len(item_i))
    label_i = fit.label_i[item_i]
    return np.flatnonzero(log_likelihood_ik[row_i, label_i] > log_likelihood_ik[row_i, said_i])
