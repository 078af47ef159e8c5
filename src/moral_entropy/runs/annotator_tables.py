"""Consensus → rows of annotators.parquet and pushes.parquet: how annotators vote, and how much a vote counts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.items.pushes import prior_pushes, spoken_for, vote_pushes
from moral_entropy.schemas import ANNOTATORS, PUSHES, with_ids
from moral_entropy.votes.table import Floats

ANNOTATORS_AT_ONCE = 1_024


def annotator_frames(consensus: Consensus, summary: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield one row per question, annotator and cell of the confusion matrix, in chunks.

    Parameters
    ----------
    consensus
        The fits.
    summary
        The table annotator_summary, which has each annotator's share of votes against the majority.
    """
    schema = with_ids(ANNOTATORS, annotator=consensus.votes.annotators.dtype)
    for fit in consensus.fits:
        disagreement_a = summary.filter(question=fit.question, part=fit.ballot.part)["disagreement"].to_numpy()
        for start in range(0, fit.ballot.n_annotators, ANNOTATORS_AT_ONCE):
            chunk = slice(start, min(start + ANNOTATORS_AT_ONCE, fit.ballot.n_annotators))
            columns = _columns(consensus, fit, chunk, disagreement_a[chunk])
            yield pl.DataFrame(columns, schema=schema)


def _columns(consensus: Consensus, fit: QuestionFit, chunk: slice, disagreement_a: Floats) -> dict[str, object]:
    ballot, confusion_akv = fit.ballot, fit.rows_akv[chunk]
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
        none = pl.repeat(None, fit.rows_akv[chunk].size, dtype=pl.Float64, eager=True)
        return none, none
    tail = (1.0 - interval) / 2.0
    low_akv, high_akv = np.quantile(fit.rows_sakv[:, chunk], [tail, 1.0 - tail], axis=0)
    return pl.Series(low_akv.ravel()), pl.Series(high_akv.ravel())


def push_frames(consensus: Consensus) -> Iterator[pl.DataFrame]:
    """Yield, fit by fit, the prior's rows, and one row per annotator, possible vote and label it is compared for."""
    annotators = consensus.votes.annotators
    for fit in consensus.fits:
        nobody = pl.Series([None], dtype=annotators.dtype)
        no_vote = pl.Series([None], dtype=pl.String)
        yield _push_frame(fit, nobody, no_vote, prior_pushes(fit, consensus.interval))
        labels = pl.Series(fit.ballot.labels, dtype=pl.String)
        for chunk, push_bavc in vote_pushes(fit, consensus.interval):
            yield _push_frame(fit, annotators.gather(fit.ballot.annotator_a[chunk]), labels, push_bavc)


def _push_frame(fit: QuestionFit, annotators: pl.Series, voted: pl.Series, push_bavc: Floats) -> pl.DataFrame:
    a, v, c = (index.ravel() for index in np.indices(push_bavc.shape[1:]))
    classes = pl.Series([fit.ballot.labels[k] for k in spoken_for(fit.ballot)[1]], dtype=pl.String)
    push, low, high = (pl.Series(one_avc.ravel()).fill_nan(None) for one_avc in push_bavc)
    columns = {
        "question": pl.repeat(fit.ballot.question, len(a), eager=True),
        "part": pl.repeat(fit.ballot.part, len(a), eager=True),
        "annotator": annotators.gather(a),
        "voted": voted.gather(v),
        "class": classes.gather(c),
        "push": push,
        "low": low,
        "high": high,
    }
    return pl.DataFrame(columns, schema=with_ids(PUSHES, annotator=annotators.dtype))
