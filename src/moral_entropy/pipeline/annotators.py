"""Consensus → rows of annotators.parquet: how each annotator votes, and how often against the majority."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.pipeline.frames import counts_of
from moral_entropy.runs.tables import ANNOTATORS, ROWS_PER_GROUP, with_ids
from moral_entropy.votes.table import Ballot, Floats

ANNOTATORS_AT_ONCE = 1_024


def annotator_frames(consensus: Consensus) -> Iterator[pl.DataFrame]:
    """Give a row for every question, annotator and cell of the confusion matrix, in chunks."""
    schema = with_ids(ANNOTATORS, annotator=consensus.votes.annotators.dtype)
    for fit in consensus.fits:
        disagreement_a = disagreement(fit.ballot)
        for start in range(0, fit.ballot.n_annotators, ANNOTATORS_AT_ONCE):
            chunk = slice(start, min(start + ANNOTATORS_AT_ONCE, fit.ballot.n_annotators))
            columns = _columns(consensus, fit, chunk, disagreement_a[chunk])
            yield pl.DataFrame(columns, schema=schema)


def disagreement(ballot: Ballot) -> Floats:
    """Give the share of each annotator's votes that differ from the majority label of their item.

    The paper's majority: of two labels the positive one when it has half the votes or more, of more the
    plurality, and the label that sorts first where several have as many.

    Examples
    --------
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> ballot = ballot_from_codes("care", ("no", "yes"), item_v=[0, 0, 0, 1], annotator_v=[0, 1, 2, 2],
    ...                            label_v=[1, 1, 0, 1])
    >>> disagreement(ballot).tolist()
    [0.0, 0.0, 0.5]
    """
    differing_a = np.zeros(ballot.n_annotators)
    for start in range(0, ballot.n_items, ROWS_PER_GROUP):
        chunk = slice(start, min(start + ROWS_PER_GROUP, ballot.n_items))
        votes_i = ballot.votes_i[chunk]
        code_v = ballot.code_v[ballot.start_i[chunk.start] : ballot.start_i[chunk.stop]]
        differs_v = code_v % ballot.n_labels != np.repeat(_majority(ballot, chunk), votes_i)
        weight_v = np.repeat(ballot.count_i[chunk], votes_i) * differs_v
        differing_a += np.bincount(code_v // ballot.n_labels, weights=weight_v, minlength=ballot.n_annotators)
    return differing_a / np.maximum(ballot.votes_a, 1)


def _majority(ballot: Ballot, chunk: slice) -> NDArray[np.int64]:
    counts_ik = counts_of(ballot, chunk)
    if ballot.n_labels > 2:
        return np.asarray(counts_ik.argmax(axis=1))
    positive = ballot.positive
    is_positive_i = counts_ik[:, positive] >= counts_ik[:, 1 - positive]
    return np.asarray(np.where(is_positive_i, positive, 1 - positive))


def _columns(consensus: Consensus, fit: QuestionFit, chunk: slice, disagreement_a: Floats) -> dict[str, object]:
    ballot, confusion_akv = fit.ballot, fit.confusion_akv[chunk]
    n_rows, n_labels = confusion_akv.size, ballot.n_labels
    annotator_c = np.repeat(ballot.annotator_a[chunk], n_labels**2)
    low_c, high_c = _bounds(fit, chunk, consensus.interval)
    labels = pl.Series(ballot.labels, dtype=pl.String)
    cell_c = np.tile(np.arange(n_labels**2), n_rows // n_labels**2)
    return {
        "question": pl.repeat(ballot.question, n_rows, eager=True),
        "annotator": consensus.votes.annotators.gather(annotator_c),
        "n_votes": np.repeat(ballot.votes_a[chunk], n_labels**2),
        "disagreement": np.repeat(disagreement_a, n_labels**2),
        "true": labels.gather(cell_c // n_labels),
        "voted": labels.gather(cell_c % n_labels),
        "probability": confusion_akv.ravel(),
        "low": low_c,
        "high": high_c,
        "part": pl.repeat(ballot.part, n_rows, eager=True),
    }


def _bounds(fit: QuestionFit, chunk: slice, interval: float) -> tuple[pl.Series, pl.Series]:
    if not fit.n_draws:
        none = pl.repeat(None, fit.confusion_akv[chunk].size, dtype=pl.Float64, eager=True)
        return none, none
    tail = (1.0 - interval) / 2.0
    low_akv, high_akv = np.quantile(fit.confusion_sakv[:, chunk], [tail, 1.0 - tail], axis=0)
    return pl.Series(low_akv.ravel()), pl.Series(high_akv.ravel())
