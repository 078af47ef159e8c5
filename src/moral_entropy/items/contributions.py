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
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints

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


def contributions(fit: QuestionFit, interval: float) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Yield what the prior adds, then what every possible vote does, in nats, in batches of annotators.

    Yields annotators, votes (of the prior both are `UNKNOWN`) and `ratio_bavc`. Axes: **b** the contribution at the
    mode and the two ends of its interval over the draws (NaN without draws), **a** annotator, **v**oted, **c** label
    compared with the baseline, see `spoken_for`.
    """
    ballot, (base, classes), nobody = fit.ballot, spoken_for(fit.ballot), np.array([UNKNOWN])
    batches = [(nobody, nobody, fit.prevalence_k[None, :, None], fit.prevalence_sk[:, None, :, None])]
    for start in range(0, ballot.n_annotators, ANNOTATORS_AT_ONCE):
        chunk, voted_v = slice(start, start + ANNOTATORS_AT_ONCE), np.arange(ballot.n_labels)
        batches.append((ballot.annotator_a[chunk], voted_v, fit.confusion_akv[chunk], fit.confusion_sakv[:, chunk]))
    for annotator_a, voted_v, at_akv, draws_sakv in batches:
        ratio_bavc = np.full((3, len(annotator_a), len(voted_v), len(classes)), np.nan)
        for c, k in enumerate(classes):
            ratio_bavc[0, ..., c] = np.log(at_akv[:, k]) - np.log(at_akv[:, base])
            if len(draws_sakv):
                ratio_sp = np.log(draws_sakv[:, :, k] / draws_sakv[:, :, base]).reshape(len(draws_sakv), -1)
                bounds_bp = central_interval(np.ascontiguousarray(ratio_sp.T), interval)
                ratio_bavc[1:, ..., c] = np.reshape(bounds_bp, (2, *at_akv[:, k].shape))
        yield annotator_a, voted_v, ratio_bavc
