"""Consensus → rows of annotators.parquet: how each annotator votes, and how often against the majority."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.outliers.disagreement import disagreement
from moral_entropy.runs.tables import ANNOTATORS, with_ids
from moral_entropy.votes.table import Floats

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
