"""What groups are compared by: the yes of a yes/no question, each label of several, the mean of ratings and a cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moral_entropy.groups.coupled_truths import YesVotes
from moral_entropy.ties import tie_key
from moral_entropy.votes.table import Ballot, Floats, Ints

MEAN = "(mean)"
MOST_LABELS = 12
"""With more labels, only the commonest are compared."""


@dataclass(frozen=True, eq=False)
class Target:
    """One thing to compare groups by.

    Parameters
    ----------
    name
        A label, `MEAN`, or "at least 3".
    value_k
        What a vote for each label counts: 1 for yes and 0 for no, or the rating.
    read
        Whether "one truth or several" is asked of it.
    tested
        Whether differences are tested: of ratings only the mean is, since a test per label would bury it.
    """

    name: str
    value_k: Floats
    read: bool
    tested: bool = True


def targets_of(ballot: Ballot) -> list[Target]:
    """Return what groups are compared by on one question.

    Examples
    --------
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> votes = {"item_v": [0, 0, 1], "annotator_v": [0, 1, 0], "label_v": [0, 1, 2]}
    >>> ballot = ballot_from_codes("how bad", ("1", "2", "3"), **votes)
    >>> [target.name for target in targets_of(ballot)]
    ['1', '2', '3', '(mean)', 'at least 2']
    """
    n_labels, total_k = ballot.n_labels, ballot.counts_ik.sum(axis=0)
    if n_labels == 2:
        return [_label_target(ballot, ballot.positive, nominal=True)]
    ratings = _numbers(ballot.labels)
    shown = sorted(np.argsort(-total_k, kind="stable")[:MOST_LABELS].tolist())
    targets = [_label_target(ballot, k, nominal=ratings is None) for k in shown]
    if ratings is None:
        return targets
    order = np.argsort(ratings, kind="stable")
    below = np.cumsum(total_k[order]) / max(int(total_k.sum()), 1)
    # The cut that divides the votes best.
    cut = int(tie_key(np.abs(below[:-1] - 0.5)).argmin()) + 1
    at_least = ratings[order[cut]]
    return [
        *targets,
        Target(MEAN, ratings, False),
        Target(f"at least {at_least:g}", (ratings >= at_least).astype(np.float64), True, False),
    ]


def _label_target(ballot: Ballot, k: int, *, nominal: bool) -> Target:
    return Target(ballot.labels[k], np.eye(ballot.n_labels)[k], nominal, nominal)


def _numbers(labels: tuple[str, ...]) -> Floats | None:
    try:
        return np.array([float(label) for label in labels])
    except ValueError:
        return None


def votes_of(ballot: Ballot) -> tuple[Ints, Ints, Ints]:
    """Return item, annotator (as a row of `Votes.annotators`) and label of every vote."""
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    return (
        item_v,
        ballot.annotator_a[ballot.code_v // ballot.n_labels].astype(np.int64),
        ballot.code_v % ballot.n_labels,
    )


def yes_votes(ballot: Ballot, target: Target, n_annotators: int) -> YesVotes:
    """Return the votes as yes or no to a target."""
    item_v, annotator_v, label_v = votes_of(ballot)
    return YesVotes(item_v, annotator_v, target.value_k[label_v] > 0.5, ballot.n_items, n_annotators)
