"""Priors: what is believed before the first vote.

Prevalence ~ Dir(alpha), row k of an annotator's confusion ~ Dir(beta_k). Densities are on the simplex, so
their modes have pseudo-counts alpha - 1 and beta - 1; below 1 there is no mode, which raises a `PriorError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from moral_entropy.errors import PriorError
from moral_entropy.options import PriorOptions
from moral_entropy.votes.table import Ballot, Floats, Votes

PAPER_DIAGONAL, PAPER_OFF_DIAGONAL = 1.8, 1.2

ALL_WRONG = 3.0
"""Under the mixed model, most pseudo-votes for all wrong labels together: 1.2 of each of many would be chance."""

FIRMEST = 1e12
"""Most pseudo-votes of a prior: more than any votes could contradict, and few enough for sums of squares."""


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
        priors = {
            "the prevalence prior": self.prevalence,
            "the diagonal of the confusion prior": self.diagonal,
            "the off-diagonal of the confusion prior": () if self.off_diagonal is None else self.off_diagonal,
            **{f"the prevalence prior of {question!r}": alpha for question, alpha in self.by_question.items()},
        }
        for name, values in priors.items():
            for value in np.atleast_1d(np.asarray(values, dtype=float)):
                if not 0 < value < np.inf:
                    why = "A Dirichlet prior is positive and finite: 1 is flat, more is firmer."
                elif value > FIRMEST:
                    why = f"No votes could contradict so firm a prior; use {FIRMEST:g} or less."
                elif value < 1:
                    why = "Below 1 the posterior has no mode inside the simplex; use 1 (flat) or more."
                else:
                    continue
                msg = f"{name} is {value:g}. {why}"
                raise PriorError(msg)

    def alpha_k(self, ballot: Ballot) -> Floats:
        """Return alpha in the order of the ballot's labels."""
        alpha_k = np.atleast_1d(np.asarray(self.by_question.get(ballot.question, self.prevalence), dtype=float))
        if len(alpha_k) == 1:
            return np.full(ballot.n_labels, alpha_k[0])
        if len(alpha_k) != ballot.n_labels:
            msg = (
                f"the prevalence prior has {len(alpha_k)} values, question {ballot.question!r} has "
                f"{ballot.n_labels} labels ({', '.join(ballot.labels)}). Give one value, or one per label."
            )
            raise PriorError(msg)
        # Two labels are given as "negative, positive", whichever sorts first.
        return alpha_k[::-1].copy() if ballot.n_labels == 2 and ballot.positive == 0 else alpha_k

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
            cells_by_name = {str(name): np.asarray(cells, dtype=float) for name, cells in self.annotators.items()}
            for a, name in enumerate(votes.annotators.gather(ballot.annotator_a).to_list()):
                if str(name) in cells_by_name:
                    beta_akv[a] += _pseudo_votes(str(name), cells_by_name[str(name)], n_labels)
        return beta_akv


def _pseudo_votes(name: str, cells: Floats, n_labels: int) -> Floats:
    if cells.shape != (n_labels, n_labels):
        msg = f"the prior of annotator {name!r} is {cells.shape}, not {n_labels} × {n_labels} (true × voted)."
        raise PriorError(msg)
    if not (np.isfinite(cells).all() and (cells >= 0).all()):
        msg = f"the prior of annotator {name!r} has a negative or missing pseudo-vote: {cells.min():g}."
        raise PriorError(msg)
    return cells


# --- Options → priors, once the questions and their labels are known ---

ONE_FOUNDATION, ANY_FOUNDATION = (80.0, 20.0), (500.0, 500.0)
"""Prevalence priors (negative, positive) of the author's earlier notebook (moral-foundations-llm-eval)."""

ANY_NAMES = {"any", "any foundation"}
KNOWN_COLUMNS = ("annotator", "true", "voted", "pseudo_votes")


def priors_for(votes: Votes, options: PriorOptions) -> Priors:
    """Return the priors for these votes, as the options say.

    Examples
    --------
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> votes = simulate_votes(n_items=9, n_annotators=3, votes_per_item=2).votes
    >>> priors_for(votes, PriorOptions(preset="mft")).prevalence
    (80.0, 20.0)
    """
    priors = check_priors(options)
    by_name = _known_annotators(Path(options.annotators), votes) if options.annotators else {}
    if not options.preset:
        return replace(priors, annotators=by_name)
    any_questions = [name for name in votes.questions if name.lower().replace("_", " ") in ANY_NAMES]
    by_question = dict.fromkeys(any_questions, ANY_FOUNDATION)
    return replace(priors, prevalence=ONE_FOUNDATION, annotators=by_name, by_question=by_question)


def check_priors(options: PriorOptions) -> Priors:
    """Return the priors as far as options alone say; a `PriorError` where they are none, before anything is read."""
    diagonal, off_diagonal = options.confusion or (PAPER_DIAGONAL, None)
    alpha = options.prevalence or (1.0,)
    return Priors(alpha[0] if len(alpha) == 1 else alpha, diagonal, off_diagonal)


def _known_annotators(path: Path, votes: Votes) -> dict[object, ArrayLike]:
    frame, labels, cells_of = _read_known(path), votes.ballots[0].labels, dict[object, Floats]()
    odd = next((ballot for ballot in votes.ballots if ballot.labels != labels), None)
    if odd is not None:
        msg = (
            f"--prior-annotators needs all questions to have the same labels, but {votes.ballots[0].question!r} has "
            f"{', '.join(labels)} and {odd.question!r} {', '.join(odd.labels)}. Audit them one by one."
        )
        raise PriorError(msg)
    for annotator, true, voted, pseudo_votes in frame.select(KNOWN_COLUMNS).iter_rows():
        for label in (true, voted):
            if label not in labels:
                msg = f"{path}: label {label!r} of annotator {annotator!r} is not in the votes ({', '.join(labels)})."
                raise PriorError(msg)
        cells_kv = cells_of.setdefault(annotator, np.zeros((len(labels), len(labels))))
        cells_kv[labels.index(true), labels.index(voted)] += pseudo_votes
    return dict(cells_of)


def _read_known(path: Path) -> pl.DataFrame:
    text = dict.fromkeys(("annotator", "true", "voted"), pl.String())
    try:
        frame = pl.read_csv(path, schema_overrides={**text, "pseudo_votes": pl.Float64()})
    except (OSError, pl.exceptions.PolarsError) as error:
        why = str(error).splitlines()[0]
        msg = f"the prior of the annotators cannot be read from {path}: {why}. Columns: {', '.join(KNOWN_COLUMNS)}."
        raise PriorError(msg) from error
    missing = [column for column in KNOWN_COLUMNS if column not in frame.columns]
    if missing:
        msg = f"{path} has no column {missing[0]!r}. Found: {', '.join(frame.columns)}."
        raise PriorError(msg)
    empty = frame.select(KNOWN_COLUMNS).null_count().sum_horizontal().item()
    if empty:
        msg = f"{path} has {empty} empty cells. Fill {', '.join(KNOWN_COLUMNS)} in every row, or delete the row."
        raise PriorError(msg)
    return frame
