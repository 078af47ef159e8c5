"""Whether a text carries any foundation at all: five questions → one.

Takes `Votes` on the foundations, returns `Votes` on that one question. Touches no files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from moral_entropy.reproduce.published import ANY_FOUNDATION
from moral_entropy.votes.table import UNKNOWN, Ints, Votes, ballot_from_codes


@dataclass(frozen=True, eq=False)
class Annotations:
    """Who looked at which item. Axis: **u** one annotator on one item, over all questions.

    Parameters
    ----------
    item_u, annotator_u
        Rows of `Votes.items` and `Votes.annotators`.
    yes_u
        Whether the annotator said yes to any question.
    """

    item_u: Ints
    annotator_u: Ints
    yes_u: NDArray[np.bool_]


def gather_annotations(votes: Votes) -> Annotations:
    """Join the votes of one annotator on one item.

    Parameters
    ----------
    votes
        Votes on yes/no questions.
    """
    item_v = np.concatenate([np.repeat(ballot.item_i, ballot.votes_i) for ballot in votes.ballots])
    annotator_v = np.concatenate([ballot.annotator_a[ballot.code_v // 2] for ballot in votes.ballots])
    yes_v = np.concatenate([ballot.code_v % 2 == ballot.positive for ballot in votes.ballots])
    n_annotators = max(len(votes.annotators), 1)
    key_u, at_v = np.unique(item_v.astype(np.int64) * n_annotators + annotator_v, return_inverse=True)
    yes_u = np.bincount(at_v, weights=yes_v, minlength=len(key_u)) > 0
    return Annotations(key_u // n_annotators, key_u % n_annotators, yes_u)


def any_foundation(votes: Votes) -> Votes | None:
    """Return votes on whether a text carries any foundation; None if all of them agree.

    An annotator who flags at least one foundation says yes. In eMFD every highlight is a yes, so there is no such
    question to fit.

    Parameters
    ----------
    votes
        Votes on the foundations, yes or no.

    Examples
    --------
    >>> import polars as pl
    >>> from moral_entropy.votes.read import read_votes
    >>> asked = {"question": ["care", "loyalty"] * 2, "label": [1, 0, 0, 0]}
    >>> table = pl.DataFrame({"item": [1, 1, 2, 2], "annotator": ["ann"] * 4, **asked})
    >>> together = any_foundation(read_votes(table, classes=["0", "1"]))
    >>> together.questions, together.ballots[0].counts_ik.tolist()
    (('any foundation',), [[0, 1], [1, 0]])
    """
    found = gather_annotations(votes)
    if found.yes_u.all() or not found.yes_u.any():
        return None
    ballot = ballot_from_codes(
        ANY_FOUNDATION,
        ("no", "yes"),
        item_v=found.item_u,
        annotator_v=found.annotator_u,
        label_v=found.yes_u,
        item_i=np.arange(votes.n_items, dtype=np.int32),
        annotator_a=np.arange(len(votes.annotators), dtype=np.int32),
        gold_i=_gold(votes),
    )
    return replace(votes, ballots=(ballot,))


def _gold(votes: Votes) -> NDArray[np.int16]:
    """Return yes where any foundation is known to be there, no where all are known to be absent, else unknown."""
    yes_i = np.zeros(votes.n_items, dtype=bool)
    known_no_i = np.zeros(votes.n_items, dtype=np.int64)
    for ballot in votes.ballots:
        yes_i[ballot.item_i] |= ballot.gold_i == ballot.positive
        known_no_i[ballot.item_i] += ballot.gold_i == 1 - ballot.positive
    gold_i = np.where(yes_i, 1, np.where(known_no_i == len(votes.ballots), 0, UNKNOWN))
    return gold_i.astype(np.int16)
