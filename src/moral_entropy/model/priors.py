"""Priors: what is believed before the first vote.

Prevalence ~ Dir(alpha), row k of an annotator's confusion ~ Dir(beta_k). Densities are on the simplex, so
their modes have pseudo-counts alpha - 1 and beta - 1; below 1 there is no mode, which raises a `PriorError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from moral_entropy.errors import PriorError
from moral_entropy.votes.table import Ballot, Floats, Votes

PAPER_DIAGONAL, PAPER_OFF_DIAGONAL = 1.8, 1.2

ALL_WRONG = 3.0
"""Under the mixed model, most pseudo-votes for all wrong labels together: 1.2 of each of many would be chance."""


@dataclass(frozen=True)
class Priors:
    """Dirichlet priors of the prevalence and of every confusion row.

    Parameters
    ----------
    prevalence
        Alpha: one number for all labels, or one per label; two labels are ordered negative, positive,
        more in the order of the ballot.
    diagonal, off_diagonal
        Beta: of the right answer and of every wrong one; None for the paper's 1.2 of every wrong one, under the mixed
        model at most 3 of all wrong ones together.
    annotators
        Votes known from elsewhere, by annotator id: a matrix true × voted of pseudo-votes added to beta.
    by_question
        Alpha for some questions by name, instead of `prevalence`.

    Examples
    --------
    >>> Priors(prevalence=(80, 20)).prevalence
    (80, 20)
    >>> Priors(diagonal=0)
    Traceback (most recent call last):
    ...
    moral_entropy.errors.PriorError: the diagonal of the confusion prior is 0. ...
    """

    prevalence: float | Sequence[float] = 1.0
    diagonal: float = PAPER_DIAGONAL
    off_diagonal: float | None = None
    annotators: Mapping[object, ArrayLike] = field(default_factory=dict)
    by_question: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise a `PriorError` for priors under which there is no mode."""
        _check("the prevalence prior", self.prevalence)
        _check("the diagonal of the confusion prior", self.diagonal)
        if self.off_diagonal is not None:
            _check("the off-diagonal of the confusion prior", self.off_diagonal)
        for question, alpha in self.by_question.items():
            _check(f"the prevalence prior of {question!r}", alpha)

    def alpha_k(self, ballot: Ballot) -> Floats:
        """Return alpha in the order of the ballot's labels."""
        given = np.atleast_1d(np.asarray(self.by_question.get(ballot.question, self.prevalence), dtype=float))
        if len(given) == 1:
            return np.full(ballot.n_labels, given[0])
        if len(given) != ballot.n_labels:
            msg = (
                f"the prevalence prior has {len(given)} values, question {ballot.question!r} has "
                f"{ballot.n_labels} labels ({', '.join(ballot.labels)}). Give one value, or one per label."
            )
            raise PriorError(msg)
        # Two labels are given as "negative, positive", whichever sorts first.
        return given[::-1].copy() if ballot.n_labels == 2 and ballot.positive == 0 else given

    def row_kv(self, ballot: Ballot, *, mixed: bool = False) -> Floats:
        """Return beta of an annotator without a prior of their own."""
        wrong = self.off_diagonal
        if wrong is None:
            wrong = min(PAPER_OFF_DIAGONAL, ALL_WRONG / (ballot.n_labels - 1)) if mixed else PAPER_OFF_DIAGONAL
        beta_kv = np.full((ballot.n_labels, ballot.n_labels), wrong, dtype=float)
        np.fill_diagonal(beta_kv, self.diagonal)
        return beta_kv

    def beta_akv(self, ballot: Ballot, votes: Votes | None = None, *, mixed: bool = False) -> Floats:
        """Return beta for every annotator of the ballot."""
        n_labels = ballot.n_labels
        beta_akv = np.tile(self.row_kv(ballot, mixed=mixed), (ballot.n_annotators, 1, 1))
        if self.annotators and votes is not None:
            known = {str(name): np.asarray(cells, dtype=float) for name, cells in self.annotators.items()}
            for a, name in enumerate(votes.annotators.gather(ballot.annotator_a).to_list()):
                if str(name) in known:
                    beta_akv[a] += _pseudo_votes(str(name), known[str(name)], n_labels)
        return beta_akv


FIRMEST = 1e12
"""Most pseudo-votes of a prior: more than any votes could contradict, and few enough for sums of squares."""


def _check(what: str, values: float | Sequence[float]) -> None:
    bad = [value for value in np.atleast_1d(np.asarray(values, dtype=float)) if not value > 0 or np.isinf(value)]
    if bad:
        msg = f"{what} is {bad[0]:g}. A Dirichlet prior is positive and finite: 1 is flat, more is firmer."
        raise PriorError(msg)
    firm = [value for value in np.atleast_1d(np.asarray(values, dtype=float)) if value > FIRMEST]
    if firm:
        msg = f"{what} is {firm[0]:g}. No votes could contradict so firm a prior; use {FIRMEST:g} or less."
        raise PriorError(msg)
    low = [value for value in np.atleast_1d(np.asarray(values, dtype=float)) if value < 1]
    if low:
        msg = f"{what} is {low[0]:g}. Below 1 the posterior has no mode inside the simplex; use 1 (flat) or more."
        raise PriorError(msg)


def _pseudo_votes(name: str, cells: Floats, n_labels: int) -> Floats:
    if cells.shape != (n_labels, n_labels):
        msg = f"the prior of annotator {name!r} is {cells.shape}, not {n_labels} × {n_labels} (true × voted)."
        raise PriorError(msg)
    if not (np.isfinite(cells).all() and (cells >= 0).all()):
        msg = f"the prior of annotator {name!r} has a negative or missing pseudo-vote: {cells.min():g}."
        raise PriorError(msg)
    return cells
