"""Contributions: how much a vote changes the log-odds; log-likelihood ratios from each annotator's confusion matrix.

Takes a `QuestionFit`, returns the ratio at the mode and its interval over the draws. With two labels the posterior
log-odds of an item are the prior's plus the contributions of its votes, so that a waterfall of them explains p. Where
items may lie between labels, contributions are those between the labels themselves, and the prior's is that of the
labels' shares: they say which way a vote pulls, and at most how far.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from moral_entropy.model.consensus import QuestionFit
from moral_entropy.rules.intervals import central_interval
from moral_entropy.votes.table import Ballot, Floats

ANNOTATORS_AT_ONCE = 512


def spoken_for(ballot: Ballot) -> tuple[int, tuple[int, ...]]:
    """Return the baseline label, and the labels compared with it: the positive of two, all but the first of more.

    Examples
    --------
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> votes = {"item_v": [0], "annotator_v": [0], "label_v": [0]}
    >>> spoken_for(ballot_from_codes("care", ("no", "yes"), **votes))
    (0, (1,))
    >>> spoken_for(ballot_from_codes("tone", ("anger", "joy", "none"), **votes))
    (0, (1, 2))
    """
    if ballot.n_labels == 2:
        return 1 - ballot.positive, (ballot.positive,)
    return 0, tuple(range(1, ballot.n_labels))


def prior_contributions(fit: QuestionFit, interval: float) -> Floats:
    """Return the prior log-odds, as contributions of one annotator with one possible vote: see `vote_contributions`."""
    return _contributions(fit.ballot, fit.prevalence_k[None, :, None], fit.prevalence_sk[:, None, :, None], interval)


def vote_contributions(fit: QuestionFit, interval: float) -> Iterator[tuple[slice, Floats]]:
    """Yield the contributions of every possible vote, in nats, in batches of annotators: `ratio_bavc`.

    Axes: **b** the contribution at the mode and the two ends of its interval over the draws (NaN without draws), **a**
    annotator, **v**oted, **c** label compared with the baseline, see `spoken_for`.
    """
    for start in range(0, fit.ballot.n_annotators, ANNOTATORS_AT_ONCE):
        chunk = slice(start, min(start + ANNOTATORS_AT_ONCE, fit.ballot.n_annotators))
        yield chunk, _contributions(fit.ballot, fit.confusion_akv[chunk], fit.confusion_sakv[:, chunk], interval)


def _contributions(ballot: Ballot, at_akv: Floats, draws_sakv: Floats, interval: float) -> Floats:
    base, classes = spoken_for(ballot)
    n_annotators, _, n_votes = at_akv.shape
    ratio_bavc = np.full((3, n_annotators, n_votes, len(classes)), np.nan)
    for c, k in enumerate(classes):
        ratio_bavc[0, ..., c] = np.log(at_akv[:, k]) - np.log(at_akv[:, base])
        if len(draws_sakv):
            ratio_sp = np.log(draws_sakv[:, :, k] / draws_sakv[:, :, base]).reshape(len(draws_sakv), -1)
            bounds_bp = central_interval(np.ascontiguousarray(ratio_sp.T), interval)
            ratio_bavc[1:, ..., c] = np.reshape(bounds_bp, (2, n_annotators, n_votes))
    return ratio_bavc
