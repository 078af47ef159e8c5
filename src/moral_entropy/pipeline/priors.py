"""Options → `Priors`, once the questions and their labels are known.

Reads the file of known annotators; the priors themselves are checked where they are defined.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from moral_entropy.errors import PriorError
from moral_entropy.model.options import PriorOptions
from moral_entropy.model.priors import PAPER_DIAGONAL, Priors
from moral_entropy.votes.table import Floats, Votes

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
    check_priors(options)
    diagonal, off_diagonal = options.confusion or (PAPER_DIAGONAL, None)
    prevalence = ONE_FOUNDATION if options.preset else _one_or_all(options.prevalence)
    known = _known_annotators(Path(options.annotators), votes) if options.annotators else {}
    any_questions = [name for name in votes.questions if name.lower().replace("_", " ") in ANY_NAMES]
    return Priors(
        prevalence=prevalence,
        diagonal=diagonal,
        off_diagonal=off_diagonal,
        annotators=known,
        by_question=dict.fromkeys(any_questions, ANY_FOUNDATION) if options.preset else {},
    )


def check_priors(options: PriorOptions) -> None:
    """Raise a `PriorError` for options that are no valid prior, before anything is read."""
    diagonal, off_diagonal = options.confusion or (PAPER_DIAGONAL, None)
    Priors(prevalence=_one_or_all(options.prevalence), diagonal=diagonal, off_diagonal=off_diagonal)


def _one_or_all(given: tuple[float, ...] | None) -> float | tuple[float, ...]:
    if given is None:
        return 1.0
    return given[0] if len(given) == 1 else given


def _known_annotators(path: Path, votes: Votes) -> dict[object, ArrayLike]:
    frame = _read_known(path)
    labels = _shared_labels(votes)
    cells_of: dict[str, Floats] = {}
    for annotator, true, voted, pseudo_votes in frame.select(KNOWN_COLUMNS).iter_rows():
        for label in (true, voted):
            if label not in labels:
                msg = f"{path}: label {label!r} of annotator {annotator!r} is not in the votes ({', '.join(labels)})."
                raise PriorError(msg)
        cells_kv = cells_of.setdefault(annotator, np.zeros((len(labels), len(labels))))
        cells_kv[labels.index(true), labels.index(voted)] += pseudo_votes
    return dict(cells_of.items())


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


def _shared_labels(votes: Votes) -> tuple[str, ...]:
    first, *others = votes.ballots
    for other in others:
        if other.labels != first.labels:
            msg = (
                f"--prior-annotators needs all questions to have the same labels, but {first.question!r} has "
                f"{', '.join(first.labels)} and {other.question!r} {', '.join(other.labels)}. Audit them one by one."
            )
            raise PriorError(msg)
    return first.labels
